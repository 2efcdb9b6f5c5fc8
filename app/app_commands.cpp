// What commands do.
#include <algorithm>
#include <utility>

#include "app/app_impl.h"
#include "app/engine/pending.h"
#include "app/panels/save_arrays.h"
#include "app/unnamed_tokens.h"
#include "core/session/tensor_origin.h"

namespace qkv {

namespace fs = std::filesystem;

void App::Impl::run(CommandId command) {
  switch (command) {
    case CommandId::kNew:
      with_saved_work([this] { replace_session(worked_example(), {}); });
      break;
    case CommandId::kOpen:
      with_saved_work([this] { open_file_dialog(dialogs.file, FilePurpose::kOpen, open_folder()); });
      break;
    case CommandId::kOpenTensors:
      with_saved_work([this] {
        const auto& origin = history.current().origin;
        open_file_dialog(dialogs.file, FilePurpose::kOpenTensors, origin ? origin->files.front().path : open_folder());
      });
      break;
    case CommandId::kOpenClipboard:
      with_saved_work([this] { open_clipboard(); });
      break;
    case CommandId::kCompare:
      open_file_dialog(dialogs.file, FilePurpose::kCompare, compare.other.empty() ? source_folder() : compare.other);
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
      if (is_pending(*computed)) {
        say(why_missing(input()));
        break;
      }
      open_export_dialog(dialogs.exporting, picture_source(input()), stage, preferences.theme, export_folder());
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
    case CommandId::kStop:
      is_stopped() ? engine.request(history.current()) : engine.stop();
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
    case CommandId::kSetup:
      preferences.setup_hidden = !preferences.setup_hidden;
      break;
    case CommandId::kInspector:
      preferences.inspector_hidden = !preferences.inspector_hidden;
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
  if (session.origin != nullptr) number_unnamed_tokens(session);
  history.reset(std::move(session));
  path = std::move(from);
  stage = StageState{};
  setup = SetupState{};
  compare = CompareState{};
  ui.focus.clear();
  engine.forget();
  lens_engine.forget();
  compare_engine.forget();
  lens.reset();
  lens_request.reset();
  failure.reset();
  const auto before = computed;
  recompute();
  if (computed != before) return;
  // Until the first result is there panels draw what the session was given, never the session before.
  computed = pending(history.current());
  if (before != nullptr && !is_pending(*before)) engine.recycle(before);
  ++version;
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

}  // namespace qkv
