// A large file on its way into the window: read off the UI thread; a dialog says how far it is and can stop it.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <variant>

#include "app/panels/mapping_dialog.h"
#include "core/base/read_progress.h"

namespace qkv {

// A session, or tensors with what they propose; with the mapping of `origin` where the file is one of its files.
using OpenedFile = std::variant<Session, MappingDialogState>;
Result<OpenedFile> open_file(const std::filesystem::path& path, ReadProgress* progress = nullptr,
                             const TensorOrigin* origin = nullptr);
// The same for text that is no file: the clipboard's, a session or a table.
Result<OpenedFile> open_text(std::string_view text);

// Bytes from which a file is read off the UI thread: below, reading takes less than a tenth of a second.
inline constexpr std::uintmax_t kLargeFile = std::uintmax_t{32} << 20;

class FileOpening {
 public:
  struct Finished {
    std::filesystem::path path;
    bool ask_what_is_what = false;
    Result<OpenedFile> opened;
  };

  // `wake` is called from another thread when a file is read; may be empty.
  explicit FileOpening(std::function<void()> wake) : wake_(std::move(wake)) {}
  ~FileOpening();

  // One that is under way is given up.
  void start(const std::filesystem::path& path, bool ask_what_is_what,
             const std::shared_ptr<const TensorOrigin>& origin = nullptr);
  bool is_running() const { return current_ != nullptr; }
  // The reading stops at its next step, within some milliseconds.
  void give_up();
  std::optional<Finished> take();
  // Of readings, given up or not, that have not ended yet.
  std::size_t threads() const;

  // Says what is read, how far it is and what it may take; Cancel gives it up.
  void draw(Ui& ui);

 private:
  struct Job {
    std::filesystem::path path;
    bool ask_what_is_what = false;
    std::uintmax_t bytes = 0;
    ReadProgress progress;
    std::optional<Result<OpenedFile>> opened;  // written before `done`
    std::atomic<bool> done = false;
    std::jthread thread;
  };

  std::function<void()> wake_;
  std::list<Job> jobs_;  // the result of those that are given up is dropped
  Job* current_ = nullptr;
  bool open_ = false, just_opened_ = false;
};

}  // namespace qkv
