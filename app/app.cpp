#include "app/app.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "app/app_impl.h"
#include "app/engine/pending.h"
#include "app/panels/concat_tab.h"
#include "app/panels/head_tab.h"
#include "app/panels/inspector.h"
#include "app/panels/lens.h"
#include "core/attention/streamed_pass.h"
#include "core/base/utf8.h"

namespace qkv {
namespace {

constexpr ImGuiWindowFlags kPlain = ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                                    ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoNav |
                                    ImGuiWindowFlags_NoBringToFrontOnFocus | ImGuiWindowFlags_NoScrollWithMouse;

}  // namespace

App::App(AppServices services, Preferences preferences)
    : impl_(std::make_unique<Impl>(std::move(services), std::move(preferences))) {
  Impl& a = *impl_;
  a.ui.fonts = &a.fonts;
  a.ui.labels = &a.labels;
  a.ui.widgets = &a.widgets;
  a.ui.sink = a.services.heatmaps;
  ImGui::GetIO().IniFilename = nullptr;
  for (Example& example : qkv::examples()) a.examples.push_back({std::move(example.title), std::move(example.path)});
  open(worked_example(), {});
}

App::~App() = default;

void App::open(Session session, std::filesystem::path path) {
  impl_->replace_session(std::move(session), std::move(path));
}

bool App::prepare_fonts(float scale) {
  impl_->ui.scale = scale;
  if (!impl_->fonts.needs_build(scale)) return false;
  impl_->fonts.build(scale);
  return true;
}

void App::compare_with(const std::filesystem::path& path) { impl_->compare_with(path); }

void App::push(Action action) {
  impl_->queue.push(std::move(action));
  impl_->redraw = true;
}

void App::type_character(char32_t character) {
  if (character >= 32 && character != 127) append_utf8(impl_->ui.typed, character);
  impl_->redraw = true;
}

void App::frame() {
  Impl& a = *impl_;
  a.take_results();
  a.update_lens();
  a.update_comparison();
  a.begin_ui();
  a.draw_root();
  a.draw_dialogs();
  a.ui.typed.clear();
  if (!a.ui.focus_seen) a.ui.focus.clear();
  a.apply_queue();
  if (a.frames_to_screenshot > 0) {
    --a.frames_to_screenshot;
    a.redraw = true;
  }
}

bool App::wants_frame_now() const { return impl_->redraw; }
double App::seconds_to_next_frame() const {
  return impl_->ui.next_frame_in < 1e8 ? impl_->ui.next_frame_in : std::numeric_limits<double>::infinity();
}

void App::request_close() {
  impl_->with_saved_work([a = impl_.get()] { a->quit = true; });
  impl_->redraw = true;
}
bool App::should_quit() const { return impl_->quit; }

std::string App::window_title() const {
  const std::string& title = impl_->history.current().title;
  return (impl_->history.is_modified() ? "• " : "") + (title.empty() ? "untitled" : title) + " – qkvlab";
}

bool App::screenshot_wanted() const { return impl_->frames_to_screenshot == 0; }

void App::wait_for_results() { impl_->wait_for_newest(); }

Preferences& App::preferences() { return impl_->preferences; }
const WidgetRegistry& App::widgets() const { return impl_->widgets; }
const Session& App::session() const { return impl_->history.current(); }
std::shared_ptr<const Trace> App::trace() const { return {impl_->computed, &impl_->computed->trace}; }
std::shared_ptr<const LensResult> App::lens() const { return impl_->lens; }
Color App::clear_color() const { return palette(impl_->preferences.theme).stage; }

CommandContext App::Impl::context() const {
  CommandContext c;
  c.can_undo = history.can_undo();
  c.can_redo = history.can_redo();
  c.has_selection = stage.selection.has_value();
  c.can_paste = stage.selection && stage.selection_drawn && is_editable(input(), stage.selection->id);
  c.has_projection = computed->trace.shapes.d_model > 0;
  c.raw_tokens = history.current().view.raw_tokens;
  c.only_weights = is_weights_only(history.current().problem.source);
  c.many_heads = computed->trace.shapes.heads > 1;
  c.has_comparison = !compare.other.empty();
  c.setup_hidden = preferences.setup_hidden;
  c.inspector_hidden = preferences.inspector_hidden;
  c.can_stop = can_stop();
  c.is_stopped = is_stopped();
  return c;
}

void App::Impl::begin_ui() {
  redraw = false;
  drawn = computed;
  drawn_lens = lens;
  drawn_comparison = compare.result;
  drawn_problem = history.current().problem;
  ui.theme = preferences.theme;
  if (styled != ui.theme) {
    apply_style(ui.theme);
    styled = ui.theme;
  }
  ui.time = ImGui::GetTime();
  ui.next_frame_in = 1e9;
  ui.focus_seen = false;
  ui.escape_taken = false;
  ui.was_typing = !ui.focus.empty();
  ui.heatmaps.clear();
  sources->begin_frame(computed->trace);
  widgets.begin_frame();
  labels.begin_frame(ui.scale);
  stage.last_hover = stage.hover;
  stage.hover.reset();
  stage.selection_drawn = std::exchange(stage.draws_selection, false);
}

void App::Impl::draw_root() {
  const ImVec2 size = ImGui::GetIO().DisplaySize;
  ImGui::SetNextWindowPos({0, 0});
  ImGui::SetNextWindowSize(size);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
  ImGui::PushFont(fonts.get(FontRole::kText13));
  ImGui::Begin("root", nullptr, kPlain);
  ImGui::PopStyleVar();
  const Session& session = history.current();
  const std::string undo = history.can_undo() ? history.undo_label() : "",
                    redo = history.can_redo() ? history.redo_label() : "";
  if (fonts.want(undo) || fonts.want(redo)) redraw = true;
  std::vector<MenuEntry> recent;
  for (const std::string& file : preferences.recent)
    recent.push_back({std::filesystem::path(file).filename().string(), file});
  const CommandContext now = context();
  if (!is_asking()) handle_shortcuts(now, !ui.keyboard_is_free(), queue);
  draw_top_bar(ui, {session.title, history.is_modified(), preferences.theme, now, undo, redo, &examples, &recent},
               queue);
  draw_panels({0, kTopBarHeight}, {size.x, size.y - kStatusHeight});
  double zoom = 1;
  for (const auto& [axis, view] : stage.axes) zoom = std::max(zoom, view.zoom);
  const bool busy = engine.busy() || lens_engine.busy() || compare_engine.busy() || opening.is_running();
  if (is_refining(computed->trace) && !is_stopped()) ui.redraw_within(0.1);
  if (busy) ui.redraw_within(0.2);  // so that an overtaken pass is given up in time
  draw_status_bar(ui, input(), {busy, can_stop(), zoom, has_failed() ? failure->message : std::string()},
                  {0, size.y - kStatusHeight}, {size.x, size.y}, queue);
  ImGui::End();
  ImGui::PopFont();
}

void App::Impl::draw_stage(ImVec2 min, ImVec2 max) {
  ImGui::SetCursorScreenPos(min);
  ImGui::BeginChild("stage", {max.x - min.x, max.y - min.y}, false,
                    ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse | ImGuiWindowFlags_NoNav);
  const StageInput in = input();
  const bool keys_are_free = !is_asking() && !ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopup);
  if (stage.enlarged && keys_are_free && ui.keyboard_is_free() && take_escape(ui)) run(CommandId::kEnlarge);
  if (!is_asking()) handle_cell_keys(ui, in, stage, queue);
  const float used = draw_tab_bar(ui, in, compare, min, max.x - min.x, queue);
  const ImVec2 top{min.x, min.y + used};
  if (compare.shown) {
    draw_compare_tab(ui, in, stage, compare, top, max, queue);
    ImGui::EndChild();
    return;
  }
  switch (in.session.view.tab) {
    case Tab::kHead:
      draw_head_tab(ui, in, stage, top, max, queue);
      break;
    case Tab::kHeads:
      draw_heads_tab(ui, in, stage, heads, top, max, queue);
      break;
    case Tab::kConcat:
      draw_concat_tab(ui, in, stage, top, max, queue);
      break;
    case Tab::kProjection:
      draw_projection_tab(ui, in, stage, top, max, queue);
      break;
  }
  draw_cell_menu(ui, in, stage, fill, queue);
  ImGui::EndChild();
}

void App::Impl::draw_dialogs() {
  ImGui::PushFont(fonts.get(FontRole::kText13));
  draw_palette(ui, context(), dialogs.palette, queue);
  if (const auto chosen = draw_file_dialog(ui, dialogs.file)) file_chosen(dialogs.file.purpose, *chosen);
  opening.draw(ui);
  if (auto opened = opening.take()) show_opened(std::move(*opened));
  draw_mapping();
  if (const auto request = draw_export_dialog(ui, picture_source(input()), dialogs.exporting)) export_picture(*request);
  if (dialogs.exporting.browse) {
    dialogs.exporting.browse = false;
    open_file_dialog(dialogs.file, FilePurpose::kExport, dialogs.exporting.path.edit.text);
  }
  if (const Answer answer = draw_question(ui, dialogs.question); answer != Answer::kNone) {
    const auto then = std::exchange(dialogs.on_answer, nullptr);
    if (then) then(answer);
  }
  draw_shortcuts(ui, dialogs.shortcuts);
  draw_about(ui, dialogs.about);
  const ImVec2 size = ImGui::GetIO().DisplaySize;
  draw_toasts(ui, toasts, {size.x / 2, size.y - kStatusHeight});
  ImGui::PopFont();
}

void App::Impl::draw_mapping() {
  MappingDialogState& mapping = dialogs.mapping;
  const std::filesystem::path mapped = mapping.path;
  if (auto session = draw_mapping_dialog(ui, mapping)) take_opened(std::move(*session), mapped, false);
  if (std::exchange(mapping.wants_file, false)) {
    open_file_dialog(dialogs.file, FilePurpose::kAddTensors,
                     mapped.empty() ? export_folder() / "" : mapped.parent_path() / "");
  }
  // Taken up again when a file was chosen or none.
  if (mapping.is_waiting && !dialogs.file.open && !opening.is_running()) {
    resume(mapping);
    redraw = true;
  }
}

void App::Impl::apply_queue() {
  ActionQueue todo = std::exchange(queue, ActionQueue{});
  queue.last_gesture = todo.last_gesture;
  bool changed = false;
  for (const QueuedAction& item : todo.actions) {
    const Status done = history.perform(item.action, item.gesture);
    if (!done) say(done.error().message, 7);
    changed = changed || (done.ok() && makes_undo_step(item.action));
    redraw = true;
  }
  if (changed) recompute();
  for (const CommandId command : todo.commands) run(command);
  for (const std::filesystem::path& file : todo.open_files) with_saved_work([this, file] { load(file); });
  for (std::string& message : todo.messages) say(std::move(message));
  if (!todo.commands.empty() || !todo.open_files.empty() || !todo.messages.empty()) redraw = true;
}

void App::Impl::recompute() {
  ++version;
  detected_tokens = token_style(history.current(), ViewSettings{});
  engine.request(history.current());
  take_results();
}

void App::Impl::take_results() {
  if (auto result = engine.take_result()) {
    const auto before = std::exchange(computed, std::move(result));
    if (before != nullptr && !is_pending(*before)) engine.recycle(before);
    failure.reset();
    ++version;
    redraw = true;
  }
  if (auto error = engine.take_error()) {
    say(error->message, 7);
    failure = std::move(error);
  }
}

void App::Impl::compare_with(const std::filesystem::path& other) {
  compare_engine.forget();
  compare = CompareState{};
  compare.other = other;
  compare.shown = true;
  redraw = true;
}

PictureSource App::Impl::picture_source(const StageInput& in) const {
  if (!compare.shown || compare.result == nullptr || !compare.result->failure.empty()) return {in};
  return {in, compare.result.get(), shown_comparison(*compare.result, compare)};
}

void App::Impl::update_comparison() {
  if (compare.shown && !is_pending(*computed) && compare.asked_for.lock() != computed) {
    compare.asked_for = computed;
    compare_engine.request({computed->session, compare.other, ++version, compare.names});
  }
  if (auto result = compare_engine.take_result(); result && (*result)->other == compare.other) {
    compare.result = std::move(*result);
    compare.failure = compare.result->failure;
    redraw = true;
  }
  if (const auto error = compare_engine.take_error()) {
    compare.result.reset();
    compare.failure = error->message;
    redraw = true;
  }
}

void App::Impl::update_lens() {
  follow_target(computed->trace, stage);
  const Lens wanted = history.current().view.lens;
  const LensResult* before = lens.get();
  if (wanted == Lens::kValues || is_pending(*computed)) {
    lens.reset();
    lens_request.reset();
  } else {
    LensRequest request{computed, wanted, {}};
    if (wanted == Lens::kGradient) request.target.cell = stage.lens_target;
    if (lens_request != request) lens_engine.request(request);
    lens_request = std::move(request);
  }
  if (auto result = lens_engine.take_result(); result && lens_request && (*result)->request.lens == wanted) {
    lens = std::move(*result);
  }
  if (lens && lens->request.lens != wanted) lens.reset();
  if (const auto error = lens_engine.take_error(); error && lens_request) {
    say(error->message, 9);
    ViewSettings view = history.current().view;
    view.lens = Lens::kValues;
    queue.push(SetView{view});
  }
  if (lens.get() == before) return;
  ++version;
  redraw = true;
}

void App::Impl::say(std::string text, double seconds) {
  std::erase_if(toasts, [&](const Toast& toast) { return toast.text == text; });
  toasts.push_back({std::move(text), ImGui::GetTime() + seconds});
  if (toasts.size() > 4) toasts.erase(toasts.begin());
  redraw = true;
}

}  // namespace qkv
