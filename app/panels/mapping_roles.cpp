// The roles of the mapping dialog: which tensor plays each, and what that one's axes are.
#include <algorithm>
#include <utility>

#include "app/panels/mapping_parts.h"
#include "core/tensor_io/npy.h"

namespace qkv::mapping_parts {
namespace {

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
  const std::optional<FoundTensor> found = tensor_of(state, role);
  const TensorInfo* info = found ? found->info : nullptr;
  const std::string shape = info == nullptr ? "" : shape_text(info->shape);
  const float layout_width = 104, key_width = 168;
  const Box box{at, {at.x + width - layout_width - 8, at.y + kRow}};
  if (draw_line(ui, "mapping/role/" + key, box, {"", shape, state.chosen == role, ui.colors().text})) {
    state.chosen = role;
  }
  ImDrawList* list = ImGui::GetWindowDrawList();
  draw_text_in(ui, list, FontRole::kText13, {at.x + 8, at.y}, {at.x + key_width, at.y + kRow},
               info == nullptr ? ui.colors().dim : ui.colors().text, role_words(role), TextAlign::kLeft);
  const float shape_width = info == nullptr ? 0 : label_width(ui, shape, 12) + 8;
  const float room = box.max.x - 8 - shape_width - at.x - key_width;
  draw_label_in(ui, list, {at.x + key_width, at.y}, {box.max.x - 8 - shape_width, at.y + kRow},
                info == nullptr ? "–" : end_that_fits(ui, info->name, room, true), 13,
                info == nullptr ? ui.colors().faint : ui.colors().text, TextAlign::kLeft, /*bold=*/info != nullptr);
  if (info != nullptr && form_of(role) != RoleForm::kWords) {
    draw_layout(ui, state, role, *info, {{at.x + width - layout_width, at.y}, {at.x + width, at.y + kRow}});
  }
  ImGui::SetCursorScreenPos({at.x, at.y + kRow + 2});
}

}  // namespace

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

InputKind shown_kind(const MappingDialogState& state) { return state.request.kind.value_or(state.proposal.kind); }

std::optional<FoundTensor> tensor_of(const MappingDialogState& state, Role role) {
  if (const MappedTensor* mapped = state.proposal.mapping.find(role)) {
    return FoundTensor{mapped->file, state.files[mapped->file].file.find(mapped->name)};
  }
  const auto named = state.request.tensors.find(role);
  return named == state.request.tensors.end() ? std::nullopt : find_tensor(state.files, named->second);
}

bool is_asked(const MappingDialogState& state, MappingQuestion::Kind kind, Role role) {
  return std::ranges::any_of(state.proposal.questions, [&](const MappingQuestion& question) {
    return question.kind == kind && std::ranges::find(question.roles, role) != question.roles.end();
  });
}

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

bool draw_line(Ui& ui, const std::string& id, const Box& box, const Line& line) {
  ImGui::SetCursorScreenPos(box.min);
  const bool clicked = ImGui::InvisibleButton(id.c_str(), {box.max.x - box.min.x, box.max.y - box.min.y});
  ui.widgets->add(id, box.min, box.max);
  ImDrawList* list = ImGui::GetWindowDrawList();
  if (line.lit || ImGui::IsItemHovered()) {
    const Color fill = line.lit ? ui.colors().accent_soft : with_alpha(ui.colors().line, 0.7);
    list->AddRectFilled(box.min, box.max, to_u32(fill), 5);
  }
  const float detail_width = line.detail.empty() ? 0 : label_width(ui, line.detail, 12) + 8;
  const float room = box.max.x - box.min.x - 16 - detail_width;
  const std::string shown = end_that_fits(ui, std::string(line.text), room, false);
  draw_label_in(ui, list, {box.min.x + 8, box.min.y}, {box.max.x - 8 - detail_width, box.max.y}, shown, 13, line.color,
                TextAlign::kLeft);
  if (shown != line.text) tooltip(ui, line.text);
  draw_label_in(ui, list, box.min, {box.max.x - 8, box.max.y}, line.detail, 12, ui.colors().dim, TextAlign::kRight);
  return clicked;
}

void draw_kinds(Ui& ui, MappingDialogState& state) {
  static constexpr Choice kKinds[] = {{"X and weights"}, {"Q, K, V"}, {"Attention weights"}};
  const InputKind kind = shown_kind(state);
  const auto picked = segmented(ui, "mapping/kind", kKinds, static_cast<int>(kind));
  gap(8);
  if (!picked) return;
  state.request = MappingRequest{};
  state.request.kind = static_cast<InputKind>(*picked);
  state.chosen = roles_of(*state.request.kind).front();
  propose(state);
}

void draw_roles(Ui& ui, MappingDialogState& state) {
  const float width = ImGui::GetContentRegionAvail().x;
  for (const Role role : roles_of(shown_kind(state))) {
    draw_role(ui, state, role, width);
  }
}

}  // namespace qkv::mapping_parts
