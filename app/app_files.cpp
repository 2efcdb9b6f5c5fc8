// Files in and out of the window: opened, saved, exported.
#include <cstdlib>
#include <system_error>
#include <utility>

#include "app/app_impl.h"
#include "app/panels/save_arrays.h"
#include "app/unnamed_tokens.h"
#include "core/figure/paint.h"
#include "core/session/bfloat16_bits.h"
#include "core/session/session_file.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxRecent = 8;

}  // namespace

void App::deliver_screenshot(const PixelImage& straight_rgba) {
  Impl& a = *impl_;
  a.frames_to_screenshot = -1;
  const Result<Bytes> png = png_bytes(straight_rgba.width, straight_rgba.height, straight_rgba.rgba);
  const Status done = png ? write_file_atomically(a.screenshot_path, png.value()) : Status(png.error());
  a.say(done ? "Saved " + a.screenshot_path.string()
             : "Could not save " + a.screenshot_path.string() + ": " + done.error().message,
        7);
  if (done) a.preferences.export_folder = a.screenshot_path.parent_path().string();
}

void App::open_file(const fs::path& path) {
  impl_->with_saved_work([a = impl_.get(), path] { a->load(path); });
}

void App::open_file(BegunFile file) {
  impl_->opening.start(file.path, false, std::move(file.reading));
  impl_->show_if_read();
}

// Tensors whose names and shapes leave something open, or that make no session, are asked about.
void App::Impl::load(const fs::path& from, bool ask_what_is_what) {
  const auto read = [from, origin = history.current().origin](ReadProgress* progress) {
    return qkv::open_file(from, progress, origin.get());
  };
  opening.start(from, ask_what_is_what, read);
  show_if_read();
}

// A file beside those of the mapping dialog, which waits for it.
void App::Impl::add_to_mapping(const fs::path& from) {
  opening.start(from, false, [from](ReadProgress* progress) -> Result<OpenedFile> {
    Result<TensorFile> file = TensorFile::open(from, {}, progress);
    if (!file) return file.error();
    return OpenedFile(std::move(file).value());
  });
  show_if_read();
}

// What has to be read counts: a small file may refer to a large one, or unpack to more.
void App::Impl::show_if_read() {
  redraw = true;
  if (auto opened = opening.take_at_once()) show_opened(std::move(*opened));
}

void App::Impl::open_clipboard() {
  const char* text = ImGui::GetClipboardText();
  Result<OpenedFile> opened = open_text(text == nullptr ? "" : text);
  if (!opened) return say("Could not open the clipboard: " + opened.error().message, 9);
  show_opened({{}, false, std::move(opened)});
}

void App::Impl::show_opened(FileOpening::Finished file) {
  if (!file.opened) {
    const std::string deed = dialogs.mapping.is_waiting ? "Could not add " : "Could not open ";
    const std::string where = file.path.string() + ": ", name = file.path.filename().string() + ": ";
    const std::string& message = file.opened.error().message;
    return say(deed + (message.starts_with(where) || message.starts_with(name) ? "" : where) + message, 9);
  }
  redraw = true;
  if (auto* tensors = std::get_if<TensorFile>(&file.opened.value())) {
    const Status added = add_tensors(dialogs.mapping, file.path, std::move(*tensors));
    if (!added) say("Could not add " + added.error().message, 9);
    return;
  }
  if (Session* session = std::get_if<Session>(&file.opened.value())) {
    if (file.ask_what_is_what) say(file.path.filename().string() + " is a session, which says itself what is what");
    return take_opened(std::move(*session), file.path, true);
  }
  auto& asked = std::get<MappingDialogState>(file.opened.value());
  if (asked.session && !file.ask_what_is_what && !asked.is_remembered) {
    if (!roles_of_integers(asked.files, asked.proposal.mapping).empty()) {
      say("16-bit integers are read as whole numbers: File › Open tensors… reads them as bfloat16", 12);
    }
    return take_opened(std::move(*asked.session), file.path, false);
  }
  dialogs.mapping = std::move(asked);
}

void App::Impl::take_opened(Session session, const fs::path& from, bool is_session) {
  const auto folder = assets_folder();
  std::error_code failed;
  // Examples are templates: saving asks for a place.
  const bool is_example = folder && !from.empty() && fs::equivalent(from.parent_path(), *folder / "sessions", failed);
  if (!is_session) number_unnamed_tokens(session);
  replace_session(std::move(session), is_example || !is_session ? fs::path() : from);
  if (!is_example && !from.empty()) remember(from);
}

void App::Impl::save_to(const fs::path& to) {
  const Status done = write_session(history.current(), to);
  if (!done) {
    say("Could not save " + to.string() + ": " + done.error().message, 9);
    return;
  }
  path = to;
  history.mark_saved();
  remember(to);
  say("Saved " + to.string());
}

void App::Impl::with_saved_work(std::function<void()> then) {
  if (!history.is_modified()) {
    then();
    return;
  }
  ask(dialogs.question, "Save your changes?", "“" + history.current().title + "” has changes that are not saved.",
      "Save", "Don't save");
  dialogs.on_answer = [this, then](Answer answer) {
    if (answer == Answer::kOther) then();
    if (answer != Answer::kYes) return;
    if (path.empty()) {
      run(CommandId::kSaveAs);
      return;
    }
    save_to(path);
    if (!history.is_modified()) then();
  };
  redraw = true;
}

void App::Impl::with_overwrite_asked(const fs::path& to, std::function<void()> then) {
  std::error_code failed;
  if (to == path || !fs::exists(to, failed)) {
    then();
    return;
  }
  ask(dialogs.question, "Replace the file?", to.string() + " exists already.", "Replace");
  dialogs.on_answer = [then](Answer answer) {
    if (answer == Answer::kYes) then();
  };
}

void App::Impl::export_picture(const ExportRequest& request) {
  PictureSpec spec = request.spec;
  spec.figure.look = history.current().view;
  const auto write = [this, spec, to = request.path, format = request.format, scale = request.scale] {
    wait_for_newest();  // the picture is of what was edited, not of the last result
    const Result<Figure> figure = layout_picture(picture_source(input()), spec, labels.shaper());
    const Result<Bytes> picture =
        figure ? figure_bytes(figure.value(), labels.shaper(), format, scale) : Result<Bytes>(figure.error());
    const Status done = picture ? write_file_atomically(to, picture.value()) : Status(picture.error());
    if (!done) {
      dialogs.exporting.problem = "Could not write " + to.string() + ": " + done.error().message;
      dialogs.exporting.open = dialogs.exporting.just_opened = true;
      return;
    }
    dialogs.exporting.open = false;
    dialogs.exporting.last = {format, scale};
    preferences.export_folder = fs::absolute(to).parent_path().string();
    say("Saved " + to.string());
  };
  dialogs.exporting.open = false;
  with_overwrite_asked(request.path, write);
  redraw = true;
}

void App::Impl::save_arrays(FilePurpose purpose, const fs::path& chosen) {
  const bool is_matrix = purpose == FilePurpose::kSaveMatrix;
  const fs::path to = chosen.has_extension() ? chosen : fs::path(chosen.string() + (is_matrix ? ".csv" : ".npz"));
  with_overwrite_asked(to, [this, purpose, is_matrix, to] {
    wait_for_newest();
    const Result<ArrayContent> content =
        is_matrix ? matrix_content(input(), dialogs.saving, to, dialogs.file.labels) : all_content(input());
    const Status done = content ? write_file_atomically(to, content.value().bytes) : Status(content.error());
    if (done) {
      preferences.export_folder = fs::absolute(to).parent_path().string();
      say("Saved " + to.string() + " (" + content.value().words + ")");
      return;
    }
    say("Could not save " + to.string() + ": " + done.error().message, 9);
    // A place that can't be written: the dialog stays, with what was typed.
    if (content) open_file_dialog(dialogs.file, purpose, to);
  });
}

void App::Impl::file_chosen(FilePurpose purpose, const fs::path& chosen) {
  switch (purpose) {
    case FilePurpose::kOpen:
      load(chosen);
      break;
    case FilePurpose::kOpenTensors:
      load(chosen, /*ask_what_is_what=*/true);
      break;
    case FilePurpose::kAddTensors:
      add_to_mapping(chosen);
      break;
    case FilePurpose::kCompare:
      compare_with(chosen);
      break;
    case FilePurpose::kSaveAs: {
      const fs::path to = chosen.has_extension() ? chosen : fs::path(chosen.string() + ".qkv.json");
      with_overwrite_asked(to, [this, to] {
        save_to(to);
        // A place that can't be written: the dialog stays, with what was typed.
        if (history.is_modified() || path != to) open_file_dialog(dialogs.file, FilePurpose::kSaveAs, to);
      });
      break;
    }
    case FilePurpose::kExport:
      dialogs.exporting.path.edit.set(chosen.string());
      dialogs.exporting.open = dialogs.exporting.just_opened = true;
      break;
    case FilePurpose::kSaveMatrix:
    case FilePurpose::kSaveArrays:
      save_arrays(purpose, chosen);
      break;
    case FilePurpose::kScreenshot: {
      const fs::path to = chosen.has_extension() ? chosen : fs::path(chosen.string() + ".png");
      with_overwrite_asked(to, [this, to] {
        screenshot_path = to;
        frames_to_screenshot = 3;  // until the dialogs are gone from the picture
        toasts.clear();
      });
      break;
    }
  }
  redraw = true;
}

// Where a dialog that opens a file begins; empty: the working directory.
fs::path App::Impl::open_folder() const { return path.empty() ? fs::path() : path.parent_path() / ""; }

fs::path App::Impl::source_folder() const {
  std::error_code failed;
  if (!path.empty()) return open_folder();
  const auto& origin = history.current().origin;
  if (origin == nullptr || origin->files.empty()) return {};
  const fs::path folder = origin->files.front().path.parent_path();
  return fs::is_directory(folder, failed) ? folder / "" : fs::path();
}

fs::path App::Impl::export_folder() const {
  std::error_code failed;
  if (!preferences.export_folder.empty() && fs::is_directory(preferences.export_folder, failed))
    return preferences.export_folder;
  if (const fs::path folder = source_folder(); !folder.empty()) return folder.parent_path();
  if (const char* home = std::getenv("HOME"); home != nullptr && fs::is_directory(home, failed)) return home;
  return fs::current_path(failed);
}

void App::Impl::remember(const fs::path& file) {
  std::error_code failed;
  const std::string text = fs::absolute(file, failed).string();
  std::erase(preferences.recent, text);
  preferences.recent.insert(preferences.recent.begin(), text);
  if (preferences.recent.size() > kMaxRecent) preferences.recent.resize(kMaxRecent);
}

}  // namespace qkv
