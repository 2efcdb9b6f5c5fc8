#include "tests/gui/desktop.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <csignal>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "core/base/utf8.h"
#include "tests/gui/keyboard.h"

namespace qkv::test {
namespace {

// The header of the XWD format, X11/XWDFile.h: big-endian 32-bit numbers, of which these are read.
enum XwdField {
  kHeaderSize = 0,
  kWidth = 4,
  kHeight = 5,
  kByteOrder = 7,
  kBitsPerPixel = 11,
  kBytesPerLine = 12,
  kRedMask = 14,
  kGreenMask = 15,
  kBlueMask = 16,
  kColors = 19,
  kFieldCount = 25
};
constexpr std::size_t kColorBytes = 12;  // of an entry of the colour map between header and pixels

std::uint32_t number_at(const std::string& bytes, std::size_t first, bool big_endian) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const auto byte = static_cast<unsigned char>(bytes[first + (big_endian ? i : 3 - i)]);
    value = value << 8 | byte;
  }
  return value;
}

PixelImage parse_xwd(const std::string& bytes) {
  REQUIRE(bytes.size() >= 4 * kFieldCount);
  const auto field = [&](XwdField index) { return number_at(bytes, 4 * static_cast<std::size_t>(index), true); };
  REQUIRE(field(kBitsPerPixel) == 32);
  const std::uint32_t width = field(kWidth), height = field(kHeight), line = field(kBytesPerLine);
  const std::size_t pixels = field(kHeaderSize) + kColorBytes * field(kColors);
  REQUIRE(line >= 4 * width);
  REQUIRE(bytes.size() >= pixels + std::size_t{line} * height);
  const bool big_endian = field(kByteOrder) == 1;
  const std::uint32_t masks[] = {field(kRedMask), field(kGreenMask), field(kBlueMask)};

  PixelImage image{static_cast<int>(width), static_cast<int>(height), {}};
  image.rgba.reserve(std::size_t{4} * width * height);
  for (std::size_t y = 0; y < height; ++y) {
    for (std::size_t x = 0; x < width; ++x) {
      const std::uint32_t value = number_at(bytes, pixels + y * line + 4 * x, big_endian);
      for (const std::uint32_t mask : masks) {
        image.rgba.push_back(static_cast<std::uint8_t>((value & mask) >> std::countr_zero(mask)));
      }
      image.rgba.push_back(255);
    }
  }
  return image;
}

bool is_installed(const std::string& program) {
  return run_process({"sh", "-c", "command -v " + program}).exit_code == 0;
}

std::string text_of(double number) { return std::to_string(static_cast<int>(number)); }

std::string without_newline(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

bool wait_until(const std::function<bool()>& happened, double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!happened()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

Desktop::Desktop(int width, int height) {
  for (const char* program : {"Xvfb", "xdotool"}) {
    if (is_installed(program)) continue;
    problem_ = std::string(program) + " is not installed";
    return;
  }
  std::filesystem::create_directory(config_folder());
  const std::string screen = std::to_string(width) + "x" + std::to_string(height) + "x24";
  // -displayfd takes the first free display and says which; -fbdir keeps the screen in a file.
  server_ = std::make_unique<Process>(std::vector<std::string>{"Xvfb", "-displayfd", "1", "-screen", "0", screen,
                                                               "-fbdir", folder(), "-nolisten", "tcp", "-noreset"});
  const bool is_up = wait_until([&] { return server_->out().ends_with('\n') || !server_->running(); });
  display_ = ":" + without_newline(server_->out());
  if (!is_up || display_ == ":") {
    problem_ = "Xvfb does not start: " + server_->err();
    return;
  }
  problem_ = stop_repeating_keys(display_);
}

Environment Desktop::environment() const {
  return {{"DISPLAY", display_}, {"WAYLAND_DISPLAY", std::nullopt},
          {"HOME", folder()},    {"XDG_CONFIG_HOME", config_folder()},
          {"LC_ALL", "C.UTF-8"}, {"LIBGL_ALWAYS_SOFTWARE", "1"}};
}

PixelImage Desktop::screen() const { return parse_xwd(read_text(folder_ / "Xvfb_screen0")); }

std::string Desktop::xdotool(std::vector<std::string> words) const {
  words.insert(words.begin(), "xdotool");
  const Finished finished = run_process(words, environment());
  REQUIRE_MESSAGE(finished.exit_code == 0, finished.err);
  return without_newline(finished.out);
}

void Desktop::give_keys(const std::string& text) const {
  std::u32string characters;
  for (std::size_t at = 0; at < text.size();) characters += next_code_point(text, at);
  const std::string refused = test::give_keys(display_, characters);
  REQUIRE_MESSAGE(refused.empty(), refused);
}

Color pixel(const PixelImage& image, int x, int y) {
  REQUIRE((x >= 0 && y >= 0 && x < image.width && y < image.height));
  const std::size_t first =
      4 * (static_cast<std::size_t>(y) * static_cast<std::size_t>(image.width) + static_cast<std::size_t>(x));
  return {image.rgba[first], image.rgba[first + 1], image.rgba[first + 2], image.rgba[first + 3]};
}

int count_colors(const PixelImage& image, int at_most) {
  std::set<std::uint32_t> colors;
  for (std::size_t i = 0; i + 3 < image.rgba.size() && static_cast<int>(colors.size()) < at_most; i += 4) {
    colors.insert(std::uint32_t{image.rgba[i]} << 16 | std::uint32_t{image.rgba[i + 1]} << 8 | image.rgba[i + 2]);
  }
  return static_cast<int>(colors.size());
}

Places find_places(const std::string& file, int width, int height, const std::vector<std::string>& more_words) {
  const TempFolder folder;
  std::vector<std::string> words{QKVLAB_PROGRAM,
                                 "screenshot",
                                 file,
                                 "-o",
                                 folder / "window.png",
                                 "--layout",
                                 folder / "layout.json",
                                 "--size",
                                 std::to_string(width) + "x" + std::to_string(height)};
  words.insert(words.end(), more_words.begin(), more_words.end());
  const Finished finished = run_process(words);
  REQUIRE_MESSAGE(finished.exit_code == 0, finished.err);
  const auto layout = nlohmann::json::parse(read_text(folder / "layout.json"));
  Places places;
  for (const auto& [name, rect] : layout["widgets"].items()) places[name] = {rect[0], rect[1], rect[2], rect[3]};
  return places;
}

Window::Window(Desktop& desktop, const std::vector<std::string>& words)
    : desktop_(desktop),
      process_(
          [&] {
            std::vector<std::string> all{QKVLAB_PROGRAM};
            all.insert(all.end(), words.begin(), words.end());
            return all;
          }(),
          desktop.environment()) {
  const auto find = [&] {
    const Finished found =
        run_process({"xdotool", "search", "--onlyvisible", "--class", "qkvlab"}, desktop_.environment());
    id_ = found.exit_code == 0 ? found.out.substr(0, found.out.find('\n')) : "";
    return !id_.empty() || !process_.running();
  };
  wait_until(find);
  if (!opened()) return;
  desktop_.xdotool({"windowfocus", "--sync", id_});
  // An empty window may stand still too.
  wait_until([&] { return count_colors(desktop_.screen(), 64) >= 64 || !process_.running(); });
  settled();
}

double Window::processor_seconds() const {
  // /proc/PID/stat: behind the name in parentheses, fields 14 and 15 of proc(5) are ticks in user and kernel mode.
  const std::string stat = read_text("/proc/" + std::to_string(process_.id()) + "/stat");
  std::istringstream fields(stat.substr(stat.rfind(')') + 1));
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  double user = 0, kernel = 0;
  fields >> user >> kernel;
  return (user + kernel) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

std::string Window::title() const { return desktop_.xdotool({"getwindowname", id_}); }

void Window::resize(int width, int height) {
  desktop_.xdotool({"windowsize", id_, std::to_string(width), std::to_string(height)});
  settled();
}

// The program draws a frame on every event; xdotool's events come faster than frames, so moves and clicks wait a
// little.
void Window::move_to(double x, double y) {
  desktop_.xdotool({"mousemove", "--window", id_, text_of(x), text_of(y), "sleep", "0.05"});
}

void Window::click(double x, double y, int button) {
  move_to(x, y);
  const std::string number = std::to_string(button);
  desktop_.xdotool({"mousedown", number, "sleep", "0.05", "mouseup", number, "sleep", "0.05"});
}

void Window::double_click(const Place& place) {
  move_to(place.middle_x(), place.middle_y());
  desktop_.xdotool({"mousedown", "1", "sleep", "0.03", "mouseup", "1", "sleep", "0.03", "mousedown", "1", "sleep",
                    "0.03", "mouseup", "1", "sleep", "0.05"});
}

void Window::drag(double from_x, double from_y, double to_x, double to_y) {
  move_to(from_x, from_y);
  desktop_.xdotool({"mousedown", "1", "sleep", "0.05"});
  constexpr int kSteps = 8;
  for (int i = 1; i <= kSteps; ++i) {
    const double part = static_cast<double>(i) / kSteps;
    move_to(from_x + part * (to_x - from_x), from_y + part * (to_y - from_y));
  }
  desktop_.xdotool({"mouseup", "1", "sleep", "0.05"});
}

void Window::key(const std::string& name) { desktop_.xdotool({"key", "--delay", "40", name, "sleep", "0.05"}); }

void Window::type(const std::string& text) {
  desktop_.give_keys(text);
  desktop_.xdotool({"type", "--delay", "40", text});
}

void Window::while_stopped(const std::function<void()>& act) {
  process_.signal(SIGSTOP);
  act();
  process_.signal(SIGCONT);
}

PixelImage Window::settled(double seconds) {
  PixelImage last = desktop_.screen();
  auto since = std::chrono::steady_clock::now();
  const bool stands_still = wait_until([&] {
    PixelImage now = desktop_.screen();
    if (now.rgba != last.rgba) {
      last = std::move(now);
      since = std::chrono::steady_clock::now();
    }
    return std::chrono::steady_clock::now() - since > std::chrono::duration<double>(seconds);
  });
  REQUIRE(stands_still);
  return last;
}

}  // namespace qkv::test
