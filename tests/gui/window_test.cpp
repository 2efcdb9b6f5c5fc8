// The real window under Xvfb, driven as a person drives it.
#include <doctest/doctest.h>

#include "core/base/file.h"
#include "core/figure/colormap.h"
#include "core/figure/paint.h"
#include "core/session/session_file.h"
#include "core/tensor_io/npz.h"
#include "tests/gui/desktop.h"

using namespace qkv;
using namespace qkv::test;

namespace {

constexpr int kWidth = 1440, kHeight = 900;  // the size that a first start opens

// Skips a test, with its reason, where no display can be made.
#define NEEDS(desktop)                           \
  if (!(desktop).problem().empty()) {            \
    MESSAGE("skipped: " << (desktop).problem()); \
    return;                                      \
  }

// Colour of a cell, off its number.
Color cell_color(const PixelImage& screen, const Places& places, const std::string& cell) {
  const Place& place = places.at(cell);
  return pixel(screen, static_cast<int>(place.x) + 5, static_cast<int>(place.y) + 5);
}

Session saved_as(Window& window, const std::string& path) {
  window.key("ctrl+shift+s");
  window.settled();
  window.key("ctrl+a");
  window.type(path);
  window.key("Return");
  REQUIRE(wait_until([&] { return std::filesystem::exists(path); }));
  const Result<Session> session = read_session(path);
  REQUIRE(session.ok());
  return session.value();
}

}  // namespace

TEST_CASE("the window opens, shows something, and Ctrl+Q ends the program") {
  Desktop desktop;
  NEEDS(desktop);
  Window window(desktop, {});
  REQUIRE_MESSAGE(window.opened(), window.err());
  CHECK(window.title().find("qkvlab") != std::string::npos);
  CHECK(count_colors(window.settled()) > 100);

  window.key("ctrl+q");
  const Finished finished = window.wait();
  CHECK(finished.exit_code == 0);
  CHECK(finished.err == "");
  CHECK(std::filesystem::exists(desktop.config_folder() + "/qkvlab/preferences.json"));
}

TEST_CASE("a cell is typed over: the picture follows, undo takes it back") {
  Desktop desktop;
  NEEDS(desktop);
  const Places places = find_places("worked_example", kWidth, kHeight);
  Window window(desktop, {"worked_example"});
  REQUIRE_MESSAGE(window.opened(), window.err());
  const ColorTable table = color_table("blue-orange", ThemeName::kLight);
  const PixelImage before = window.settled();
  CHECK(cell_color(before, places, "matrix/scores/1/cell/1,0") == table[255]);  // 5 on −5 … 5
  CHECK(cell_color(before, places, "matrix/attn/1/cell/1,0") ==
        color_table("viridis", ThemeName::kLight)[static_cast<std::size_t>(table_index(0.61342))]);

  window.click(places.at("matrix/q/1/cell/0,1"));
  window.type("4");
  window.key("Return");
  window.key("Escape");
  window.move_to(kWidth - 20, kHeight - 60);
  const PixelImage after = window.settled();
  CHECK(cell_color(after, places, "matrix/scores/1/cell/0,0") == table[255]);  // 9 on −9 … 9
  CHECK(window.title().starts_with("• "));

  window.key("ctrl+z");
  const PixelImage undone = window.settled();
  CHECK(cell_color(undone, places, "matrix/scores/1/cell/0,0") ==
        cell_color(before, places, "matrix/scores/1/cell/0,0"));
  CHECK_FALSE(window.title().starts_with("• "));
  window.key("ctrl+q");
  CHECK(window.wait().exit_code == 0);
}

TEST_CASE("tokens are typed, a cell is scrubbed, and the session is saved") {
  Desktop desktop;
  NEEDS(desktop);
  const Places places = find_places("worked_example", kWidth, kHeight);
  Window window(desktop, {});
  REQUIRE_MESSAGE(window.opened(), window.err());
  const Place& cell = places.at("matrix/v/1/cell/0,0");
  window.drag(cell.middle_x(), cell.middle_y(), cell.middle_x() + 60, cell.middle_y());
  window.click(places.at("tokens/text"));
  window.key("End");
  window.while_stopped([&] { window.type(" 跑 🐈"); });  // however late the program reads its keys
  window.settled();
  const Session session = saved_as(window, desktop.folder() + "/typed.qkv.json");
  CAPTURE(join_tokens(session.tokens, TokenSplit::kWhiteSpace));
  CHECK(session.tokens == std::vector<std::string>{"貓", "追", "老鼠", "跑", "🐈"});
  const SharedMatrix* v = find_input(session, {MatrixKind::kV, 0});
  REQUIRE(v != nullptr);
  CHECK(v->get()(0, 0) == doctest::Approx(2).epsilon(0.3));
  CHECK(v->get()(1, 0) == 2);
  CHECK_FALSE(window.title().starts_with("• "));
  window.key("ctrl+q");
  CHECK(window.wait().exit_code == 0);
}

TEST_CASE("pictures are exported, and the picture of the window is what the screen shows") {
  Desktop desktop;
  NEEDS(desktop);
  Window window(desktop, {"thinking_machines"});
  REQUIRE_MESSAGE(window.opened(), window.err());
  window.key("ctrl+e");
  window.settled();
  window.key("ctrl+a");
  window.type(desktop.folder() + "/heads.png");
  window.key("Return");
  CHECK(wait_until([&] { return std::filesystem::exists(desktop.folder() + "/heads.png"); }));

  window.move_to(kWidth / 2.0, kHeight - 10);
  const std::string file = desktop.folder() + "/window.png";
  window.key("ctrl+shift+e");
  window.settled();
  window.key("ctrl+a");
  window.type(file);
  window.key("Return");
  REQUIRE(wait_until([&] { return std::filesystem::exists(file); }));
  const Result<Bytes> bytes = read_file(file);
  REQUIRE(bytes.ok());
  const Result<PixelImage> picture = decode_png(bytes.value());
  REQUIRE(picture.ok());
  CHECK(picture.value().width == kWidth);
  CHECK(picture.value().height == kHeight);
  // The top bar and the tabs do not change while the message about the file comes and goes.
  const PixelImage screen = desktop.screen();
  int different = 0;
  for (int y = 0; y < 80; ++y)
    for (int x = 0; x < kWidth; ++x) different += pixel(screen, x, y) == pixel(picture.value(), x, y) ? 0 : 1;
  CHECK(different == 0);
  window.key("ctrl+q");
  CHECK(window.wait().exit_code == 0);
}

TEST_CASE("tensors whose names say nothing are asked about, not refused") {
  Desktop desktop;
  NEEDS(desktop);
  const std::string path = desktop.config_folder() + "/odd.npz", saved = desktop.config_folder() + "/odd.qkv.json";
  std::vector<NamedArray> arrays;
  for (const std::string name : {"first", "second", "third"}) {
    arrays.push_back({name, {2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6}});
  }
  const Result<Bytes> bytes = npz_bytes(arrays);
  REQUIRE(bytes.ok());
  REQUIRE(write_file_atomically(path, bytes.value()).ok());
  Window window(desktop, {path});
  REQUIRE_MESSAGE(window.opened(), window.err());
  window.settled();
  window.key("Escape");  // the dialog; behind it is the worked example
  window.settled();
  const Session session = saved_as(window, saved);
  CHECK(session.title == worked_example().title);
  window.key("ctrl+q");
  CHECK(window.wait().exit_code == 0);
}

TEST_CASE("leaving with unsaved work asks, and the window's size is remembered") {
  Desktop desktop;
  NEEDS(desktop);
  const Places places = find_places("worked_example", kWidth, kHeight);
  {
    Window window(desktop, {});
    REQUIRE_MESSAGE(window.opened(), window.err());
    window.click(places.at("switch/causal"));
    window.key("ctrl+q");
    window.settled();
    CHECK(window.running());
    window.key("Escape");
    window.settled();
    CHECK(window.running());
    window.key("ctrl+z");
    window.resize(1100, 700);
    window.key("ctrl+q");
    CHECK(window.wait().exit_code == 0);
  }
  CHECK(read_text(desktop.config_folder() + "/qkvlab/preferences.json").find("1100") != std::string::npos);
}

TEST_CASE("a window that nobody touches uses no processor time") {
  Desktop desktop;
  NEEDS(desktop);
  Window window(desktop, {});
  REQUIRE_MESSAGE(window.opened(), window.err());
  const double before = window.processor_seconds();
  std::this_thread::sleep_for(std::chrono::seconds(4));
  CHECK(window.processor_seconds() - before <= 0.04);  // 1 %
  window.key("ctrl+q");
  CHECK(window.wait().exit_code == 0);
}
