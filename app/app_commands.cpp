#include <algorithm>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "app/app_impl.h"
#include "app/panels/save_arrays.h"
#include "core/figure/paint.h"
#include "core/session/session_file.h"
#include "core/session/tensor_origin.h"

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

void App::Impl::run(CommandId command) {
  switch (command) {
    case CommandId::kNew:
      with_saved_work([this] { replace_session(worked_example(), {}); });
      break;
    case CommandId::kOpen:
      with_saved_work([this] {
        open_file_dialog(dialogs.file, FilePurpose::kOpen, path.empty() ? fs::path() : path.parent_path() / "");
      });
      break;
    case CommandId::kOpenTensors:
      with_saved_work([this] {
        const auto& origin = history.current().origin;
        const fs::path folder = path.empty() ? fs::path() : path.parent_path() / "";
        open_file_dialog(dialogs.file, FilePurpose::kOpenTensors, origin ? origin->files.front().path : folder);
      });
      break;
    case CommandId::kOpenClipboard:
      with_saved_work([this] { open_clipboard(); });
      break;
    case CommandId::kCompare:
      open_file_dialog(dialogs.file, FilePurpose::kCompare, path.empty() ? fs::path() : path.parent_path() / "");
      break;
    case CommandId::kTabCompare:
      compare.shown = !compare.other.empty();
      break;
    case CommandId::kSave:
      if (!path.empty()) {
        save_to(path);
        break;
      }
      [[fallthrough]];
    case CommandId::kSaveAs: {
      const std::string name = file_stem(history.current().title) + ".qkv.json";
      open_file_dialog(dialogs.file, FilePurpose::kSaveAs, path.empty() ? export_folder() / name : path);
      break;
    }
    case CommandId::kExport:
      open_export_dialog(dialogs.exporting, input(), stage, preferences.theme, export_folder());
      break;
    case CommandId::kScreenshot:
      open_file_dialog(dialogs.file, FilePurpose::kScreenshot, export_folder() / "qkvlab.png");
      break;
    case CommandId::kSaveMatrix:
      dialogs.saving = meant_matrix(input(), stage);
      open_file_dialog(dialogs.file, FilePurpose::kSaveMatrix,
                       export_folder() / matrix_file_name(input(), dialogs.saving));
      break;
    case CommandId::kSaveArrays:
      open_file_dialog(dialogs.file, FilePurpose::kSaveArrays, export_folder() / arrays_file_name(input()));
      break;
    case CommandId::kQuit:
      with_saved_work([this] { quit = true; });
      break;
    case CommandId::kUndo:
    case CommandId::kRedo:
      if (command == CommandId::kUndo ? !history.can_undo() : !history.can_redo()) break;
      command == CommandId::kUndo ? history.undo() : history.redo();
      recompute();
      break;
    case CommandId::kCopy:
      copy_selection(input(), stage, queue);
      break;
    case CommandId::kCopyMatrix:
      copy_matrix(input(), stage, queue);
      break;
    case CommandId::kCopyNumpy:
      copy_code(input(), CodeKind::kNumpy, queue);
      break;
    case CommandId::kCopyPytorch:
      copy_code(input(), CodeKind::kPytorch, queue);
      break;
    case CommandId::kCopyLatex:
      wait_for_newest();  // the document is of what was edited, not of the last result
      copy_code(input(), CodeKind::kLatex, queue);
      break;
    case CommandId::kPaste:
      paste_selection(input(), stage, queue);
      break;
    case CommandId::kPalette:
      dialogs.palette.just_opened = true;
      break;
    case CommandId::kShortcuts:
      dialogs.shortcuts = {true, true};
      break;
    case CommandId::kAbout:
      dialogs.about = {true, true};
      break;
    default:
      run_view_command(command);
  }
  redraw = true;
}

void App::Impl::run_view_command(CommandId command) {
  ViewSettings view = history.current().view;
  const int count = computed->trace.shapes.heads;
  const auto zoom = [&](double factor) {
    for (auto& [axis, axis_view] : stage.axes) axis_view.zoom = std::max(1.0, axis_view.zoom * factor);
  };
  const auto is_tab = command == CommandId::kTabHead || command == CommandId::kTabHeads ||
                      command == CommandId::kTabConcat || command == CommandId::kTabProjection;
  if (is_tab) compare.shown = false;
  switch (command) {
    case CommandId::kTabHead:
      view.tab = Tab::kHead;
      break;
    case CommandId::kTabHeads:
      view.tab = Tab::kHeads;
      break;
    case CommandId::kTabConcat:
      view.tab = Tab::kConcat;
      break;
    case CommandId::kTabProjection:
      view.tab = Tab::kProjection;
      break;
    case CommandId::kPreviousHead:
      view.head = (view.head + count - 1) % count;
      break;
    case CommandId::kNextHead:
      view.head = (view.head + 1) % count;
      break;
    case CommandId::kLensValues:
      view.lens = Lens::kValues;
      break;
    case CommandId::kLensGradient:
      view.lens = Lens::kGradient;
      break;
    case CommandId::kLensPrecision:
      view.lens = Lens::kBfloat16;
      break;
    case CommandId::kEnlarge: {
      const auto cell = focus_cell(stage);
      if (stage.enlarged)
        stage.enlarged.reset();
      else if (cell && view.tab == Tab::kHead)
        stage.enlarged = cell->id.kind;
      else
        say("Choose a cell on One head first: its matrix is enlarged");
      stage.axes.clear();
      break;
    }
    case CommandId::kRawTokens:
      view.raw_tokens = !view.raw_tokens;
      break;
    case CommandId::kFit:
      stage.axes.clear();
      break;
    case CommandId::kZoomIn:
      zoom(1.25);
      break;
    case CommandId::kZoomOut:
      zoom(0.8);
      break;
    case CommandId::kThemeLight:
      preferences.theme = ThemeName::kLight;
      break;
    case CommandId::kThemeDark:
      preferences.theme = ThemeName::kDark;
      break;
    case CommandId::kFill:
      stage.open_menu = true;
      break;
    case CommandId::kSelectAll:
      if (stage.selection)
        if (const ShownCells cells = shown_cells(input(), stage.selection->id))
          stage.selection =
              Selection{stage.selection->id, 0, 0, cells.rows - 1, cells.cols - 1, stage.selection->transposed};
      break;
    default:
      break;
  }
  if (!(view == history.current().view)) queue.push(SetView{view});
}

void App::Impl::replace_session(Session session, fs::path from) {
  session.view = fitting_view(session);
  history.reset(std::move(session));
  path = std::move(from);
  stage = StageState{};
  setup = SetupState{};
  compare = CompareState{};
  ui.focus.clear();
  recompute();
  // Panels need a trace to draw: the first is waited for, however large its session.
  if (computed == nullptr) wait_for_newest();
}

// Tensors whose names and shapes leave something open, or that make no session, are asked about.
void App::Impl::load(const fs::path& from, bool ask_what_is_what) {
  std::error_code failed;
  const std::uintmax_t bytes = fs::file_size(from, failed);
  redraw = true;
  const auto& origin = history.current().origin;
  if (!failed && bytes >= kLargeFile) return opening.start(from, ask_what_is_what, origin);
  show_opened({from, ask_what_is_what, qkv::open_file(from, origin.get())});
}

void App::Impl::open_clipboard() {
  const char* text = ImGui::GetClipboardText();
  Result<OpenedFile> opened = open_text(text == nullptr ? "" : text);
  if (!opened) return say("Could not open the clipboard: " + opened.error().message, 9);
  show_opened({{}, false, std::move(opened)});
}

void App::Impl::show_opened(FileOpening::Finished file) {
  if (!file.opened) return say("Could not open " + file.path.string() + ": " + file.opened.error().message, 9);
  if (Session* session = std::get_if<Session>(&file.opened.value())) {
    if (file.ask_what_is_what) say(file.path.filename().string() + " is a session, which says itself what is what");
    return take_opened(std::move(*session), file.path, true);
  }
  auto& asked = std::get<MappingDialogState>(file.opened.value());
  if (asked.session && !file.ask_what_is_what && !asked.is_remembered)
    return take_opened(std::move(*asked.session), file.path, false);
  dialogs.mapping = std::move(asked);
  redraw = true;
}

void App::Impl::take_opened(Session session, const fs::path& from, bool is_session) {
  const auto folder = assets_folder();
  std::error_code failed;
  // Examples are templates: saving asks for a place.
  const bool is_example = folder && !from.empty() && fs::equivalent(from.parent_path(), *folder / "sessions", failed);
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
  FigureSpec spec = request.spec;
  spec.look = history.current().view;
  const auto write = [this, spec, to = request.path, format = request.format, scale = request.scale] {
    wait_for_newest();  // the picture is of what was edited, not of the last result
    const Result<Figure> figure = layout_figure(computed->session, computed->trace, spec, labels.shaper());
    const Result<Bytes> picture =
        figure ? figure_bytes(figure.value(), labels.shaper(), format, scale) : Result<Bytes>(figure.error());
    const Status done = picture ? write_file_atomically(to, picture.value()) : Status(picture.error());
    if (!done) {
      dialogs.exporting.problem = "Could not write " + to.string() + ": " + done.error().message;
      dialogs.exporting.open = dialogs.exporting.just_opened = true;
      return;
    }
    dialogs.exporting.open = false;
    preferences.export_folder = fs::absolute(to).parent_path().string();
    say("Saved " + to.string());
  };
  dialogs.exporting.open = false;
  with_overwrite_asked(request.path, write);
  redraw = true;
}

void App::Impl::wait_for_newest() {
  engine.wait();
  take_results();
  update_lens();
  lens_engine.wait();
  update_lens();
  update_comparison();
  compare_engine.wait();
  update_comparison();
  if (sources->wait()) redraw = true;
}

void App::Impl::save_arrays(FilePurpose purpose, const fs::path& chosen) {
  const bool is_matrix = purpose == FilePurpose::kSaveMatrix;
  const fs::path to = chosen.has_extension() ? chosen : fs::path(chosen.string() + (is_matrix ? ".csv" : ".npz"));
  with_overwrite_asked(to, [this, purpose, is_matrix, to] {
    wait_for_newest();
    const Result<ArrayContent> content = is_matrix ? matrix_content(input(), dialogs.saving, to) : all_content(input());
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
      if (const Status added = add_tensors(dialogs.mapping, chosen); !added) {
        say("Could not add " + added.error().message, 9);
      }
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

fs::path App::Impl::export_folder() const {
  std::error_code failed;
  if (!preferences.export_folder.empty() && fs::is_directory(preferences.export_folder, failed))
    return preferences.export_folder;
  if (!path.empty()) return path.parent_path();
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
