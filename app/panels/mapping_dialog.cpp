#include "app/panels/mapping_dialog.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "app/panels/mapping_parts.h"
#include "app/panels/modal.h"
#include "app/ui/keys.h"
#include "app/unnamed_tokens.h"
#include "core/base/utf8.h"
#include "core/session/bfloat16_bits.h"

namespace qkv {

namespace fs = std::filesystem;
using namespace mapping_parts;

namespace {

constexpr float kWidth = 960, kHeight = 720, kListWidth = 300;
constexpr float kResultHeight = 196;  // of the numbers, the question and what comes of them

std::string counted(Index count, const std::string& one, const std::string& more) {
  return std::to_string(count) + " " + (count == 1 ? one : more);
}

// "4 heads, 7 queries, 7 keys, d_k = 64".
std::string shapes_text(const Shapes& shapes) {
  std::string text = counted(shapes.heads, "head", "heads");
  if (shapes.kv_heads != shapes.heads) text += " (" + std::to_string(shapes.kv_heads) + " of K and V)";
  text += ", " + counted(shapes.nq, "query", "queries") + ", " + counted(shapes.nk, "key", "keys");
  if (shapes.d_k > 0) text += ", d = " + std::to_string(shapes.d_k);
  if (shapes.d_model > 0) text += ", d_model = " + std::to_string(shapes.d_model);
  return text;
}

NamedTensors named(const fs::path& path, TensorFile file) {
  return {file_name_text(path), std::move(file), remembered_place(path)};
}

// The proposal anew, and why there is nothing to read yet; true where there is.
bool look(MappingDialogState& state) {
  state.reading.give_up();
  state.opens_when_read = false;
  state.session.reset();
  state.proposal = propose_mapping(state.files, state.request);
  state.result.clear();
  if (state.proposal.error) {
    state.result = state.proposal.error->message;
    if (state.proposal.modules.empty()) state.result += ". Choose them at the left, or add the file that has them.";
  } else if (!state.proposal.questions.empty()) {
    state.result = "Answer the question above to see what will be opened.";
  }
  return state.result.empty();
}

void take_session(MappingDialogState& state, Result<Session> session) {
  if (!session.ok()) {
    state.opens_when_read = false;
    state.result = session.error().message;
    return;
  }
  state.session = std::move(session).value();
  number_unnamed_tokens(*state.session);
  state.result = shapes_text(check_session(*state.session).value());
}

// Reads what the mapping makes. Holds all that it needs: the state may change meanwhile.
Reading<Session>::Read reader_of(const MappingDialogState& state) {
  std::string title = state.path.empty() ? "clipboard" : sanitize_utf8(state.path.stem().string());
  return [files = state.files, mapping = state.proposal.mapping, title = std::move(title)](ReadProgress* progress) {
    return apply_mapping(files, mapping, title, progress);
  };
}

void start_reading(MappingDialogState& state) {
  state.reading.start(std::make_unique<Reading<Session>>(reader_of(state)));
  if (!state.reading.current()->ends_at_once()) return;
  take_session(state, *state.reading.take());
}

// What there is to say of the files, and the proposal. True where nothing is open: it can be read.
bool take_files(MappingDialogState& state) {
  const auto has_uint16 = [](const NamedTensors& each) {
    return !each.bfloat16.empty() || !bfloat16_candidates(each.file).empty();
  };
  const auto reads_bfloat16 = [](const NamedTensors& each) { return !each.bfloat16.empty(); };
  state.has_uint16 = std::ranges::any_of(state.files, has_uint16);
  state.uint16_is_bfloat16 = std::ranges::any_of(state.files, reads_bfloat16);
  const bool is_clear = look(state);
  state.chosen = roles_of(shown_kind(state)).front();
  return is_clear;
}

void begin(MappingDialogState& state, const std::string& name, const fs::path& path) {
  state = MappingDialogState{};
  state.open = state.just_opened = true;
  state.name = name;
  state.path = path;
}

// The letters of the layouts, beside the buttons.
void draw_letters(Ui& ui, float buttons_width) {
  const ImVec2 corner{ImGui::GetWindowPos().x + 20, ImGui::GetWindowPos().y + ImGui::GetWindowSize().y - 48};
  const float width = ImGui::GetWindowSize().x - 40 - buttons_width;
  draw_paragraph(
      ui, ImGui::GetWindowDrawList(), FontRole::kSmall11, {corner.x, corner.y + 2}, width, ui.colors().dim,
      "Axes: H heads, N tokens, D numbers of a token, B batch, L layer, 3 query-key-value; of weights I inputs "
      "and O outputs, IO for y = x·W, OI for y = x·Wᵀ as in torch. Letters in ( ) share an axis.");
}

// The lists at the left, what is what at the right, and what comes of it below.
void draw_content(Ui& ui, MappingDialogState& state) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float height = room.y - 48;  // above the buttons
  draw_tensors(ui, state, kListWidth, height);
  const float left = at.x + kListWidth + 24, width = room.x - kListWidth - 24;
  const auto part = [&](const char* id, float top, float part_height, ImGuiWindowFlags flags, auto draw) {
    ImGui::SetCursorScreenPos({left, at.y + top});
    ImGui::BeginChild(id, {width, part_height}, false, ImGuiWindowFlags_NoNav | flags);
    draw(ui, state);
    ImGui::EndChild();
  };
  part("mapping-kinds", 0, 38, ImGuiWindowFlags_NoScrollbar, draw_kinds);
  part("mapping-roles", 38, height - 38 - kResultHeight, 0, draw_roles);
  part("mapping-result", height - kResultHeight + 8, kResultHeight - 8, 0, draw_result);
}

}  // namespace

void mapping_parts::propose(MappingDialogState& state) {
  if (look(state)) start_reading(state);
}

void open_mapping_dialog(MappingDialogState& state, const fs::path& path, TensorFile file, ReadProgress* progress,
                         const TensorOrigin* origin) {
  begin(state, file_name_text(path), path);
  state.files = {named(path, std::move(file))};
  if (origin != nullptr && is_from(*origin, state.files.front().path)) {
    Reopened again = reopen(*origin, std::move(state.files.front()), progress);
    state.files = std::move(again.files);
    state.request = std::move(again.request);
    state.is_remembered = true;
    for (const std::string& missing : again.missing) state.note += (state.note.empty() ? "" : "; ") + missing;
  }
  if (take_files(state)) take_session(state, reader_of(state)(progress));
}

void open_text_dialog(MappingDialogState& state, const std::string& name, TensorFile file) {
  begin(state, name, {});
  state.files = {{name, std::move(file)}};
  if (take_files(state)) start_reading(state);
}

Status add_tensors(MappingDialogState& state, const fs::path& path, TensorFile opened) {
  NamedTensors file = named(path, std::move(opened));
  const auto has_place = [&](const NamedTensors& each) { return !file.path.empty() && each.path == file.path; };
  if (std::ranges::any_of(state.files, has_place)) return bad_input(file.name + ": it is there already");
  const auto has_name = [&](const NamedTensors& each) { return each.name == file.name; };
  if (std::ranges::any_of(state.files, has_name)) file.name = sanitize_utf8(file.path.string());
  if (state.uint16_is_bfloat16) file = with_bfloat16(std::move(file));
  state.files.push_back(std::move(file));
  if (take_files(state)) start_reading(state);
  return Done{};
}

void remove_tensors(MappingDialogState& state, std::size_t file) {
  MappingRequest& request = state.request;
  state.files.erase(state.files.begin() + static_cast<std::ptrdiff_t>(file));
  // What was said of its tensors counts no more, and what there is to choose from may be less.
  request.layer.reset();
  request.batch.reset();
  request.module.reset();
  std::erase_if(request.tensors, [&](const auto& named) {
    const bool is_gone = !named.second.empty() && !find_tensor(state.files, named.second);
    if (is_gone) request.layouts.erase(named.first);
    return is_gone;
  });
  if (take_files(state)) start_reading(state);
}

void resume(MappingDialogState& state) {
  state.is_waiting = false;
  state.open = state.just_opened = true;
}

std::optional<Session> draw_mapping_dialog(Ui& ui, MappingDialogState& state) {
  const std::string title = "What is what in " + state.name;
  if (auto session = state.reading.take()) take_session(state, std::move(*session));
  const bool fresh = state.just_opened;  // the key that led here is still down: it answers nothing
  if (!begin_modal(ui, "mapping-dialog", title, {kWidth, kHeight}, state.open, state.just_opened)) return std::nullopt;
  // A list or a field that is open takes the key itself.
  const bool enters =
      !fresh && ui.keyboard_is_free() && !ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopupId) && enter_pressed();
  draw_content(ui, state);
  draw_letters(ui, state.is_remembered ? 312 : 200);
  std::optional<Session> confirmed;
  const bool can_open = state.session || state.reading.current() != nullptr;
  const int button = modal_buttons(ui, "mapping", "Open", state.is_remembered ? "Start over" : "", "Cancel", can_open);
  if (button == 1 || (enters && can_open)) state.opens_when_read = true;
  if (state.opens_when_read && state.session) {
    confirmed = std::move(state.session);
    state.open = false;
  }
  if (button == 2 || (ui.keyboard_is_free() && take_escape(ui))) state.open = false;
  if (button == 3) {
    for (NamedTensors& file : state.files) file = without_bfloat16(std::move(file));
    state.files.resize(1);
    state.request = MappingRequest{};
    state.is_remembered = false;
    state.note.clear();
    if (take_files(state)) start_reading(state);
  }
  if (state.wants_file) {
    state.is_waiting = true;
    state.open = false;
  }
  const bool stays_open = state.open;
  end_modal(stays_open);
  if (!stays_open && !state.is_waiting) state = MappingDialogState{};  // lets go of the files
  return confirmed;
}

}  // namespace qkv
