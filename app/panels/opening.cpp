#include "app/panels/opening.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "app/panels/modal.h"
#include "app/panels/reading_bar.h"
#include "app/reading_words.h"
#include "app/ui/keys.h"
#include "core/session/session_file.h"

namespace qkv {
Result<OpenedFile> open_file(const std::filesystem::path& path, ReadProgress* progress, const TensorOrigin* origin) {
  Result<std::variant<Session, TensorFile>> opened = open_session_or_tensors(path, progress);
  if (!opened) return opened.error();
  if (Session* session = std::get_if<Session>(&opened.value())) return OpenedFile(std::move(*session));
  MappingDialogState asked;
  open_mapping_dialog(asked, path, std::move(std::get<TensorFile>(opened.value())), progress, origin);
  return OpenedFile(std::move(asked));
}

Result<OpenedFile> open_text(std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return bad_input("it holds no text: copy a table of numbers, or a session's JSON");
  }
  const std::span<const std::byte> bytes = as_bytes(text);
  if (looks_like_session(bytes)) {
    Result<Session> session = parse_session(text, {});
    if (!session) return session.error();
    return OpenedFile(std::move(session).value());
  }
  Result<TensorFile> table = TensorFile::from_bytes(Bytes(bytes.begin(), bytes.end()), "clipboard");
  if (!table) return table.error();
  MappingDialogState asked;
  open_text_dialog(asked, "the clipboard", std::move(table).value());
  return OpenedFile(std::move(asked));
}

void FileOpening::give_up() { readings_.give_up(); }

void FileOpening::start(const std::filesystem::path& path, bool ask_what_is_what, Read read) {
  start(path, ask_what_is_what, std::make_unique<Reading<OpenedFile>>(std::move(read), wake_));
}

void FileOpening::start(const std::filesystem::path& path, bool ask_what_is_what,
                        std::unique_ptr<Reading<OpenedFile>> reading) {
  readings_.start(std::move(reading));
  path_ = path;
  ask_what_is_what_ = ask_what_is_what;
  std::error_code failed;
  bytes_ = std::filesystem::file_size(path, failed);
  if (failed) bytes_ = 0;
  open_ = just_opened_ = true;
}

std::optional<FileOpening::Finished> FileOpening::take() {
  std::optional<Result<OpenedFile>> opened = readings_.take();
  if (!opened) return std::nullopt;
  open_ = just_opened_ = false;
  return Finished{path_, ask_what_is_what_, std::move(*opened)};
}

std::optional<FileOpening::Finished> FileOpening::take_at_once() {
  if (!is_running() || !readings_.current()->ends_at_once()) return std::nullopt;
  return take();
}

void FileOpening::draw(Ui& ui) {
  if (!begin_modal(ui, "opening", "Opening " + path_.filename().string(), {460, 236}, open_, just_opened_)) {
    return;
  }
  if (!is_running()) {
    open_ = false;
    return end_modal(open_);
  }
  const ReadProgress& progress = readings_.current()->progress();
  const std::string text = "The file has " + mebibytes(bytes_) +
                           ". Only the tensors that are shown are read; as float32 they take up to " +
                           mebibytes(2 * std::max<std::uintmax_t>(bytes_, progress.total())) +
                           " of memory. The session that is open stays until then.";
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float used = draw_label_paragraph(ui, ImGui::GetWindowDrawList(), at, ImGui::GetContentRegionAvail().x, text,
                                          13, ui.colors().dim);
  ImGui::SetCursorScreenPos({at.x, at.y + used + 16});
  draw_reading_bar(ui, "opening/progress", progress);
  if (modal_buttons(ui, "opening", {}) == 2 || take_escape(ui)) {
    give_up();
    open_ = false;
  }
  end_modal(open_);
}

}  // namespace qkv
