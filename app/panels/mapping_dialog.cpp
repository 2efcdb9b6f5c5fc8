#include "app/panels/mapping_dialog.h"

#include <algorithm>
#include <utility>

#include "app/panels/modal.h"
#include "core/base/number_text.h"
#include "core/base/utf8.h"
#include "core/session/tensor_names.h"
#include "core/tensor_io/npy.h"

namespace qkv {
namespace {

constexpr float kWidth = 920, kHeight = 700, kListWidth = 300, kRow = 28;
constexpr float kResultHeight = 172;  // of the numbers, the question and what comes of them

std::vector<Role> roles_of(InputKind kind) {
  switch (kind) {
    case InputKind::kDirect:
      return {Role::kQ, Role::kK, Role::kV, Role::kWo, Role::kBo, Role::kBias, Role::kTokens, Role::kKeyTokens};
    case InputKind::kProjected:
      return {Role::kX,  Role::kWq, Role::kWk, Role::kWv,   Role::kBq,    Role::kBk,
              Role::kBv, Role::kWo, Role::kBo, Role::kBias, Role::kTokens};
    case InputKind::kWeights:
      return {Role::kAttn, Role::kTokens, Role::kKeyTokens};
  }
  return {};
}

InputKind kind_of(const MappingProposal& proposal) {
  if (proposal.mapping.find(Role::kX) != nullptr) return InputKind::kProjected;
  const bool is_direct = proposal.mapping.find(Role::kQ) != nullptr;
  return !is_direct && proposal.mapping.find(Role::kAttn) != nullptr ? InputKind::kWeights : InputKind::kDirect;
}

const TensorInfo* info_of(const MappingDialogState& state, Role role) {
  if (const MappedTensor* mapped = state.proposal.mapping.find(role)) {
    return state.files[mapped->file].file.find(mapped->name);
  }
  // Named by the person, but the others are not there yet.
  const auto named = state.request.tensors.find(role);
  return named == state.request.tensors.end() ? nullptr : state.files.front().file.find(named->second);
}

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

// After every answer.
void propose(MappingDialogState& state, ReadProgress* progress = nullptr) {
  state.proposal = propose_mapping(state.files, state.request);
  state.session.reset();
  if (state.proposal.error) {
    state.result = state.proposal.error->message;
    return;
  }
  if (!state.proposal.questions.empty()) {
    state.result = "Answer the question above to see what will be opened.";
    return;
  }
  const std::string title = sanitize_utf8(state.path.stem().string());
  Result<Session> session = apply_mapping(state.files, state.proposal.mapping, title, progress);
  if (!session.ok()) {
    state.result = session.error().message;
    return;
  }
  state.session = std::move(session).value();
  state.result = shapes_text(check_session(*state.session).value());
}

void assign(MappingDialogState& state, Role role, const std::string& name) {
  state.request.tensors[role] = name;
  state.request.layouts.erase(role);
  state.request.layout.reset();
  // One tensor of all three plays its two other roles as well.
  const bool three = std::ranges::any_of(read_name(name), [](const NameReading& reading) { return reading.fused; });
  const RoleForm form = form_of(role);
  if (three && (form == RoleForm::kHeads || form == RoleForm::kWeights)) {
    const std::size_t first = static_cast<std::size_t>(role) - place_among_three(role);
    for (std::size_t i = 0; i < 3; ++i) state.request.tensors[kAllRoles[first + i]] = name;
  }
  propose(state);
}

// The end of a long name, which tells tensors of a model apart: "…self_attn.q_proj.weight".
std::string end_that_fits(Ui& ui, const std::string& name, float width, bool bold) {
  std::size_t from = 0;
  std::string text = name;
  while (label_width(ui, text, 13, bold) > width) {
    const std::size_t next = name.find_first_of("./_", from);
    if (next == std::string::npos || next + 1 == name.size()) break;
    from = next + 1;
    text = "…" + name.substr(from);
  }
  return text;
}

// A line that can be clicked, with a name at the left and a detail at the right.
bool line(Ui& ui, const std::string& id, const Box& box, std::string_view text, std::string_view detail, bool lit,
          Color color) {
  ImGui::SetCursorScreenPos(box.min);
  const bool clicked = ImGui::InvisibleButton(id.c_str(), {box.max.x - box.min.x, box.max.y - box.min.y});
  ui.widgets->add(id, box.min, box.max);
  ImDrawList* list = ImGui::GetWindowDrawList();
  if (lit || ImGui::IsItemHovered()) list->AddRectFilled(box.min, box.max, to_u32(ui.colors().accent_soft), 5);
  const float detail_width = detail.empty() ? 0 : label_width(ui, detail, 12) + 8;
  const float room = box.max.x - box.min.x - 16 - detail_width;
  const std::string shown = end_that_fits(ui, std::string(text), room, false);
  draw_label_in(ui, list, {box.min.x + 8, box.min.y}, {box.max.x - 8 - detail_width, box.max.y}, shown, 13, color,
                TextAlign::kLeft);
  if (shown != text) tooltip(ui, text);
  draw_label_in(ui, list, box.min, {box.max.x - 8, box.max.y}, detail, 12, ui.colors().dim, TextAlign::kRight);
  return clicked;
}

// All tensors of the file; a click gives one to the chosen role.
void draw_tensors(Ui& ui, MappingDialogState& state, float height) {
  heading(ui, "TENSORS IN THE FILE");
  ImGui::BeginChild("mapping-tensors", {kListWidth, height - 28}, false, ImGuiWindowFlags_NoNav);
  const float width = ImGui::GetContentRegionAvail().x;
  std::optional<std::string> picked;
  const TensorInfo* current = info_of(state, state.chosen);
  const auto row = [&](const std::string& id, std::string_view text, std::string_view detail, bool lit, Color color) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const bool clicked = line(ui, id, {at, {at.x + width, at.y + kRow}}, text, detail, lit, color);
    ImGui::SetCursorScreenPos({at.x, at.y + kRow});
    return clicked;
  };
  if (row("mapping/tensor/none", "none of them", "", current == nullptr, ui.colors().dim)) picked = "";
  const std::vector<TensorInfo>& tensors = state.files.front().file.tensors();
  // Of a file of thousands only the lines in sight are drawn.
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(tensors.size()), kRow);
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const TensorInfo& info = tensors[static_cast<std::size_t>(i)];
      const Color color = info.problem.empty() ? ui.colors().text : ui.colors().faint;
      if (row("mapping/tensor/" + info.name, info.name, shape_text(info.shape), &info == current, color)) {
        picked = info.name;
      }
    }
  }
  ImGui::EndChild();
  if (picked) assign(state, state.chosen, *picked);
}

// Layouts that a tensor of so many axes can have in the role, the current one among them.
std::vector<std::string> layouts_for(Role role, std::size_t rank, const std::optional<Layout>& current) {
  constexpr std::string_view kAll[] = {
      "ND",    "DN",    "N(HD)", "N(3HD)", "N(H3D)", "HND",   "NHD",    "BND",    "BN(HD)", "BN(3HD)", "3ND",
      "BHND",  "BNHD",  "3HND",  "3NHD",   "N3HD",   "NH3D",  "LBND",   "LBHND",  "LBNHD",  "3BHND",   "3BNHD",
      "B3HND", "BN3HD", "IO",    "OI",     "I(3O)",  "(3O)I", "I(H3D)", "(H3D)I", "HID",    "IHD",     "HDO",
      "LIO",   "LOI",   "O",     "(3O)",   "(H3D)",  "1O",    "HD",     "3O",     "NN",     "1NN",     "HNN",
      "BHNN",  "LHNN",  "LBHNN", "11NN",   "N",      "BN",    "LBN"};
  std::vector<std::string> texts;
  for (const std::string_view text : kAll) {
    const Layout layout = parse_layout(text).value();
    if (layout.axes.size() == rank && check_layout(role, layout).ok()) texts.emplace_back(text);
  }
  if (current && std::ranges::find(texts, layout_text(*current)) == texts.end()) texts.push_back(layout_text(*current));
  return texts;
}

bool is_asked(const MappingDialogState& state, MappingQuestion::Kind kind, Role role) {
  return std::ranges::any_of(state.proposal.questions, [&](const MappingQuestion& question) {
    return question.kind == kind && std::ranges::find(question.roles, role) != question.roles.end();
  });
}

void draw_layout(Ui& ui, MappingDialogState& state, Role role, const TensorInfo& info, const Box& box) {
  const MappedTensor* mapped = state.proposal.mapping.find(role);
  const std::optional<Layout> current = mapped != nullptr ? std::optional(mapped->reading.layout) : std::nullopt;
  const std::vector<std::string> texts = layouts_for(role, info.shape.size(), current);
  std::vector<Choice> choices;
  int at = -1;
  for (const std::string& text : texts) {
    const bool is_settled = !is_asked(state, MappingQuestion::Kind::kLayout, role);
    if (current && is_settled && layout_text(*current) == text) at = static_cast<int>(choices.size());
    choices.push_back({text});
  }
  const std::string name = "mapping/layout/" + std::string(role_key(role));
  const auto picked = choice_field(ui, name, box, choices, at);
  if (!picked) return;
  state.request.layouts[role] = parse_layout(texts[static_cast<std::size_t>(*picked)]).value();
  propose(state);
}

// A role, the tensor that plays it, its axes.
void draw_role(Ui& ui, MappingDialogState& state, Role role, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const std::string key(role_key(role));
  const TensorInfo* info = info_of(state, role);
  const float layout_width = 104, key_width = 168;
  const Box box{at, {at.x + width - layout_width - 8, at.y + kRow}};
  if (line(ui, "mapping/role/" + key, box, "", info == nullptr ? "" : shape_text(info->shape), state.chosen == role,
           ui.colors().text)) {
    state.chosen = role;
  }
  ImDrawList* list = ImGui::GetWindowDrawList();
  draw_text_in(ui, list, FontRole::kText13, {at.x + 8, at.y}, {at.x + key_width, at.y + kRow},
               info == nullptr ? ui.colors().dim : ui.colors().text, role_words(role), TextAlign::kLeft);
  const float shape_width = info == nullptr ? 0 : label_width(ui, shape_text(info->shape), 12) + 8;
  const float room = box.max.x - 8 - shape_width - at.x - key_width;
  draw_label_in(ui, list, {at.x + key_width, at.y}, {box.max.x - 8 - shape_width, at.y + kRow},
                info == nullptr ? "–" : end_that_fits(ui, info->name, room, true), 13,
                info == nullptr ? ui.colors().faint : ui.colors().text, TextAlign::kLeft, /*bold=*/info != nullptr);
  if (info != nullptr && form_of(role) != RoleForm::kWords) {
    draw_layout(ui, state, role, *info, {{at.x + width - layout_width, at.y}, {at.x + width, at.y + kRow}});
  }
  ImGui::SetCursorScreenPos({at.x, at.y + kRow + 2});
}

void draw_kinds(Ui& ui, MappingDialogState& state) {
  static constexpr Choice kKinds[] = {{"X and weights"}, {"Q, K, V"}, {"Attention weights"}};
  const InputKind kind = state.request.kind.value_or(kind_of(state.proposal));
  const auto picked = segmented(ui, "mapping/kind", kKinds, static_cast<int>(kind));
  gap(8);
  if (!picked) return;
  state.request = MappingRequest{};
  state.request.kind = static_cast<InputKind>(*picked);
  state.chosen = roles_of(*state.request.kind).front();
  propose(state);
}

// A number with its label before it; moves the cursor to the right.
struct NumberAsked {
  const char* id;
  std::string_view label, shown;
  int value, low, high;
};
void draw_number(Ui& ui, MappingDialogState& state, const NumberAsked& asked, std::optional<int>& value) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float label = text_width(ui, FontRole::kText13, asked.label) + 10, field = 64;
  draw_text_in(ui, ImGui::GetWindowDrawList(), FontRole::kText13, at, {at.x + label, at.y + kRow}, ui.colors().dim,
               asked.label, TextAlign::kLeft);
  const Box box{{at.x + label, at.y}, {at.x + label + field, at.y + kRow}};
  const auto picked = number_field(ui, asked.id, box, asked.value, {double(asked.low), double(asked.high), 1, true},
                                   state.entry, asked.shown);
  ImGui::SetCursorScreenPos({at.x + label + field + 24, at.y});
  if (!picked) return;
  value = static_cast<int>(*picked);
  propose(state);
}

void draw_numbers(Ui& ui, MappingDialogState& state) {
  const MappingProposal proposal = state.proposal;  // the fields propose anew
  MappingRequest& request = state.request;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  if (proposal.layers.size() > 1) {
    draw_number(ui, state,
                {"mapping/layer", "layer", {}, proposal.layer, proposal.layers.front(), proposal.layers.back()},
                request.layer);
  }
  if (proposal.batches > 1) {
    draw_number(ui, state, {"mapping/batch", "entry of the batch", {}, proposal.batch, 0, proposal.batches - 1},
                request.batch);
  }
  if (proposal.mapping.heads > 0 || request.heads) {
    const int heads = request.heads.value_or(std::max(1, proposal.mapping.heads));
    const bool is_open = is_asked(state, MappingQuestion::Kind::kHeads, Role::kWq);
    draw_number(ui, state, {"mapping/heads", "heads", is_open ? "–" : "", heads, 1, kMaxHeads}, request.heads);
  }
  const bool drawn = ImGui::GetCursorScreenPos().x > at.x;
  ImGui::SetCursorScreenPos({at.x, at.y + (drawn ? kRow + 10 : 0)});
}

// The first thing that is not clear, with its answers.
void draw_question(Ui& ui, MappingDialogState& state, float width) {
  if (state.proposal.questions.empty()) return;
  const MappingQuestion question = state.proposal.questions.front();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float used = draw_label_paragraph(ui, ImGui::GetWindowDrawList(), at, width, question.text + ". Which is it?",
                                          13, ui.colors().text);
  ImGui::SetCursorScreenPos({at.x, at.y + used + 6});
  std::vector<Choice> choices;
  for (const MappingQuestion::Choice& choice : question.choices) {
    choices.push_back(
        {choice.value.empty() ? std::string_view("(no name before)") : std::string_view(choice.value), choice.meaning});
  }
  const ImVec2 below = ImGui::GetCursorScreenPos();
  const Box box{below, {below.x + std::min(width, 300.0f), below.y + kRow}};
  const auto picked = choice_field(ui, "mapping/question", box, choices, -1);
  ImGui::SetCursorScreenPos({below.x, below.y + kRow + 8});
  if (!picked) return;
  const Status answered = answer(question, question.choices[static_cast<std::size_t>(*picked)].value, state.request);
  propose(state);
  if (!answered.ok()) state.result = answered.error().message;
}

// The first cells of the first matrix.
void draw_cells(Ui& ui, const MappingDialogState& state, float width) {
  const Session& session = *state.session;
  const SharedMatrix* matrix = nullptr;
  for (const MatrixKind kind : {MatrixKind::kQ, MatrixKind::kX, MatrixKind::kAttn}) {
    if (matrix == nullptr) matrix = find_input(session, {kind, 0});
  }
  if (matrix == nullptr) return;
  constexpr Index kRows = 3;
  const float label = 96, cell = 64;
  const Index columns = std::min(matrix->cols(), static_cast<Index>((width - label) / cell));
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  for (Index row = 0; row < std::min(kRows, matrix->rows()); ++row) {
    const float top = at.y + 20 * static_cast<float>(row);
    const auto token = static_cast<std::size_t>(row);
    draw_label_in(ui, list, {at.x, top}, {at.x + label - 8, top + 20}, session.tokens[token], 12, ui.colors().dim,
                  TextAlign::kLeft);
    for (Index col = 0; col < columns; ++col) {
      const float left = at.x + label + cell * static_cast<float>(col);
      draw_text_in(ui, list, FontRole::kText13, {left, top}, {left + cell - 8, top + 20}, ui.colors().text,
                   format_value((*matrix)->coeff(row, col), 3), TextAlign::kRight);
    }
  }
  ImGui::SetCursorScreenPos({at.x, at.y + 20 * kRows + 4});
}

void draw_roles(Ui& ui, MappingDialogState& state) {
  const float width = ImGui::GetContentRegionAvail().x;
  for (const Role role : roles_of(state.request.kind.value_or(kind_of(state.proposal)))) {
    draw_role(ui, state, role, width);
  }
}

// What is still to be said, and what comes of it.
void draw_result(Ui& ui, MappingDialogState& state) {
  const float width = ImGui::GetContentRegionAvail().x;
  draw_numbers(ui, state);
  draw_question(ui, state, width);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const bool is_wrong = !state.session && (state.proposal.error || state.proposal.questions.empty());
  const float used = draw_label_paragraph(ui, ImGui::GetWindowDrawList(), at, width, state.result, 13,
                                          is_wrong ? ui.colors().bad : ui.colors().dim);
  ImGui::SetCursorScreenPos({at.x, at.y + used + 6});
  if (state.session) draw_cells(ui, state, width);
}

// The letters of the layouts, beside the buttons.
void draw_letters(Ui& ui) {
  const ImVec2 corner{ImGui::GetWindowPos().x + 20, ImGui::GetWindowPos().y + ImGui::GetWindowSize().y - 48};
  const float width = ImGui::GetWindowSize().x - 40 - 200;
  draw_paragraph(
      ui, ImGui::GetWindowDrawList(), FontRole::kSmall11, {corner.x, corner.y + 2}, width, ui.colors().dim,
      "Axes: H heads, N tokens, D numbers of a token, B batch, L layer, 3 query-key-value; of weights I inputs "
      "and O outputs, IO for y = x·W, OI for y = x·Wᵀ as in torch. Letters in ( ) share an axis.");
}

}  // namespace

void open_mapping_dialog(MappingDialogState& state, const std::filesystem::path& path, TensorFile file,
                         ReadProgress* progress) {
  state = MappingDialogState{};
  state.open = state.just_opened = true;
  state.path = path;
  state.files = {{path.filename().string(), std::move(file)}};
  propose(state, progress);
  state.chosen = roles_of(kind_of(state.proposal)).front();
}

std::optional<Session> draw_mapping_dialog(Ui& ui, MappingDialogState& state) {
  const std::string title = "What is what in " + sanitize_utf8(state.path.filename().string());
  if (!begin_modal(ui, "mapping-dialog", title, {kWidth, kHeight}, state.open, state.just_opened)) return std::nullopt;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float height = room.y - 48;  // above the buttons
  draw_tensors(ui, state, height);
  ImGui::SetCursorScreenPos({at.x + kListWidth + 24, at.y});
  const float width = room.x - kListWidth - 24;
  ImGui::BeginChild("mapping-kinds", {width, 38}, false, ImGuiWindowFlags_NoNav | ImGuiWindowFlags_NoScrollbar);
  draw_kinds(ui, state);
  ImGui::EndChild();
  ImGui::SetCursorScreenPos({at.x + kListWidth + 24, at.y + 38});
  ImGui::BeginChild("mapping-roles", {width, height - 38 - kResultHeight}, false, ImGuiWindowFlags_NoNav);
  draw_roles(ui, state);
  ImGui::EndChild();
  ImGui::SetCursorScreenPos({at.x + kListWidth + 24, at.y + height - kResultHeight + 8});
  ImGui::BeginChild("mapping-result", {width, kResultHeight - 8}, false, ImGuiWindowFlags_NoNav);
  draw_result(ui, state);
  ImGui::EndChild();
  draw_letters(ui);
  std::optional<Session> confirmed;
  const int button = modal_buttons(ui, "mapping", "Open");
  if (button == 1 && state.session) {
    confirmed = std::move(state.session);
    state.open = false;
  }
  if (button == 2 || (ui.keyboard_is_free() && take_escape(ui))) state.open = false;
  const bool stays_open = state.open;
  end_modal(stays_open);
  if (!stays_open) state = MappingDialogState{};  // lets go of the file
  return confirmed;
}

}  // namespace qkv
