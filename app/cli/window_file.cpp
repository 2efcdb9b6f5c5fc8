#include "app/cli/window_file.h"

#include <cstdlib>
#include <system_error>
#include <utility>

namespace qkv::cli {
namespace {

namespace fs = std::filesystem;

// As the menu opens it; questions are asked in the window.
Result<OpenedFile> read_unasked(const std::string& name, const fs::path& path, ReadProgress* progress) {
  Result<OpenedFile> opened = open_file(path, progress);
  if (!opened.ok()) return located(name, with_deed("cannot be read", opened.error()));
  return opened;
}

// Whether the window has something to show of it, be it a question.
bool is_open(const OpenedFile& file) {
  const auto* asked = std::get_if<MappingDialogState>(&file);
  return asked == nullptr || asked->session || (!asked->proposal.error && !asked->proposal.questions.empty());
}

// With the tensors mapped as the flags say, or why that makes no session.
Result<OpenedFile> read_as_flags_say(const std::string& name, const MapFlags& flags, ReadProgress* progress) {
  Result<Input> input = open_input(name, flags, progress);
  say_note(input);
  if (!input.ok()) return input.error();
  if (input.value().is_session) return OpenedFile(std::move(input.value().session));
  MappingDialogState mapped;
  mapped.session = std::move(input.value().session);
  return OpenedFile(std::move(mapped));
}

Result<OpenedFile> read_for_window(const std::string& name, const fs::path& path, const MapFlags& flags,
                                   ReadProgress* progress) {
  std::error_code problem;
  // A pipe is read once.
  if (has_any(flags) || !fs::is_regular_file(path, problem)) return read_as_flags_say(name, flags, progress);
  Result<OpenedFile> opened = read_unasked(name, path, progress);
  // Where names say nothing a person can, in the window; without one the error does.
  const bool can_ask = std::getenv("DISPLAY") != nullptr || std::getenv("WAYLAND_DISPLAY") != nullptr;
  const bool is_settled = !opened.ok() || can_ask || is_open(opened.value());
  return is_settled ? std::move(opened) : read_as_flags_say(name, flags, progress);
}

}  // namespace

Result<std::unique_ptr<BegunFile>> begin_window_file(const std::string& name, const MapFlags& flags) {
  const Result<fs::path> found = find_input_file(name);
  if (!found.ok() && name == "worked_example") return std::unique_ptr<BegunFile>();
  if (!found.ok()) return found.error();
  std::error_code problem;
  // What a pipe gives is waited for: nothing could be saved to it, and nobody could give it up.
  const bool is_file = fs::is_regular_file(found.value(), problem);
  auto file = std::make_unique<BegunFile>();
  if (is_file) file->path = found.value();
  file->reading = std::make_unique<Reading<OpenedFile>>([name, path = found.value(), flags](ReadProgress* progress) {
    return read_for_window(name, path, flags, progress);
  });
  if (is_file) {
    file->reading->ends_at_once();
  } else {
    file->reading->wait();
  }
  if (const Error* error = file->reading->error()) return *error;
  return file;
}

}  // namespace qkv::cli
