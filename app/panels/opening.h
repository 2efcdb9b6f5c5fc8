// A file on its way into the window: read off the UI thread, where a dialog says how far it is and can stop it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <variant>

#include "app/engine/reading.h"
#include "app/panels/mapping_dialog.h"
#include "core/base/read_progress.h"

namespace qkv {

// A session, tensors with what they propose, or tensors beside those of the mapping dialog.
using OpenedFile = std::variant<Session, MappingDialogState, TensorFile>;
// One of the first two; with the mapping of `origin` where the file is one of its files.
Result<OpenedFile> open_file(const std::filesystem::path& path, ReadProgress* progress = nullptr,
                             const TensorOrigin* origin = nullptr);
// The same for text that is no file: the clipboard's, a session or a table.
Result<OpenedFile> open_text(std::string_view text);

// A file whose reading has begun before there was a window.
struct BegunFile {
  std::filesystem::path path;  // empty for what is no file that could be written again
  std::unique_ptr<Reading<OpenedFile>> reading;
};

class FileOpening {
 public:
  using Read = Reading<OpenedFile>::Read;
  struct Finished {
    std::filesystem::path path;
    bool ask_what_is_what = false;
    Result<OpenedFile> opened;
  };

  // `wake` is called from another thread when a file is read; may be empty.
  explicit FileOpening(std::function<void()> wake) : wake_(std::move(wake)) {}

  // One that is under way is given up. `read` reads the file at `path`, or goes on already.
  void start(const std::filesystem::path& path, bool ask_what_is_what, Read read);
  void start(const std::filesystem::path& path, bool ask_what_is_what, std::unique_ptr<Reading<OpenedFile>> reading);
  bool is_running() const { return readings_.current() != nullptr; }
  // The reading stops at its next step, within some milliseconds.
  void give_up();
  std::optional<Finished> take();
  // Waits for the file of which little is to be read; nullopt where that is not the end.
  std::optional<Finished> take_at_once();
  // Of readings, given up or not, that have not ended yet.
  std::size_t threads() const { return readings_.threads(); }

  // Says what is read, how far it is and what it may take; Cancel gives it up.
  void draw(Ui& ui);

 private:
  std::function<void()> wake_;
  std::filesystem::path path_;  // of the current one, like the rest
  bool ask_what_is_what_ = false;
  std::uintmax_t bytes_ = 0;
  NewestReading<OpenedFile> readings_;
  bool open_ = false, just_opened_ = false;
};

}  // namespace qkv
