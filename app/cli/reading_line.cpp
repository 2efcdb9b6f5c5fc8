#include "app/cli/reading_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <mutex>

#include "app/cli/common.h"
#include "app/reading_words.h"

namespace qkv::cli {
namespace {

constexpr std::chrono::milliseconds kFirst{300}, kNext{100};
constexpr const char* kClearLine = "\r\x1b[K";

std::size_t terminal_columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

// One line; without the name where both do not fit, since a line that wraps cannot be taken back.
std::string line_of(const std::string& name, const ReadProgress& progress) {
  const std::string percent = percent_words(progress);
  const std::string words = reading_words(progress) + (percent.empty() ? "" : " (" + percent + ")");
  const std::string whole = "qkvlab: " + name + ": " + words;
  // A text has at least as many bytes as columns.
  return whole.size() < terminal_columns() ? whole : words.substr(0, terminal_columns() - 1);
}

}  // namespace

ReadingLine::ReadingLine(const std::string& name) : name_(printable(std::filesystem::path(name).filename().string())) {
  if (::isatty(STDERR_FILENO) == 0) return;
  thread_ = std::jthread([this](const std::stop_token& stop) { write_until_stopped(stop); });
}

void ReadingLine::write_until_stopped(const std::stop_token& stop) const {
  std::mutex mutex;
  std::condition_variable_any ends;
  std::unique_lock lock(mutex);
  bool is_written = false;
  const auto stopped_within = [&](std::chrono::milliseconds time) {
    return ends.wait_for(lock, stop, time, [&] { return stop.stop_requested(); });
  };
  for (auto pause = kFirst; !stopped_within(pause); pause = kNext) {
    std::fputs((kClearLine + line_of(name_, progress_)).c_str(), stderr);
    is_written = true;
  }
  if (is_written) std::fputs(kClearLine, stderr);
}

}  // namespace qkv::cli
