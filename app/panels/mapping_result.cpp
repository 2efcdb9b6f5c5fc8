// What is still to be said in the mapping dialog, and what comes of it.
#include <algorithm>

#include "app/panels/mapping_parts.h"
#include "app/panels/reading_bar.h"
#include "core/base/number_text.h"

namespace qkv::mapping_parts {
namespace {

// A number with its label before it; moves the cursor to the right, or first to a line of its own where there is no
// room for it.
struct NumberAsked {
  const char* id;
  std::string_view label, shown;
  int value, low, high;
};
void draw_number(Ui& ui, MappingDialogState& state, const NumberAsked& asked, std::optional<int>& value) {
  const float label = text_width(ui, FontRole::kText13, asked.label) + 10, field = 64;
  ImVec2 at = ImGui::GetCursorScreenPos();
  if (ImGui::GetContentRegionAvail().x < label + field) {
    at = {ImGui::GetWindowPos().x, at.y + kRow + 6};
  }
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

bool is_open(const MappingProposal& proposal, MappingQuestion::Kind kind) {
  return std::ranges::any_of(proposal.questions, [&](const MappingQuestion& each) { return each.kind == kind; });
}

// Whether heads lie side by side in a tensor, so that shapes do not count them, or may, since nothing fits otherwise.
bool needs_heads(const MappingDialogState& state) {
  const auto is_grouped = [](const MappedTensor& mapped) {
    return std::ranges::any_of(mapped.reading.layout.axes,
                               [](const std::string& axis) { return axis.size() > 1 && axis.find('H') != axis.npos; });
  };
  const MappingProposal& proposal = state.proposal;
  const bool fails = !state.session && state.reading.current() == nullptr;
  const bool may_need = fails && proposal.kind != InputKind::kWeights && !proposal.modules.empty();
  return may_need || proposal.mapping.heads > 0 || state.request.heads ||
         is_open(proposal, MappingQuestion::Kind::kHeads) || std::ranges::any_of(proposal.mapping.tensors, is_grouped);
}

// Heads that the role's tensor holds, by its shape and layout.
int count_heads(const MappingDialogState& state, Role role) {
  const MappedTensor* mapped = state.proposal.mapping.find(role);
  const TensorInfo* info = mapped == nullptr ? nullptr : state.files[mapped->file].file.find(mapped->name);
  if (info == nullptr) return 1;
  const Result<CellMap> map = map_cells(role, mapped->name, info->shape, mapped->reading);
  return map.ok() ? static_cast<int>(map.value().matrices.size()) : 1;
}

// As asked for, else as they come out.
struct Heads {
  int of_q = 1, of_kv = 1;
};
Heads heads_of(const MappingDialogState& state) {
  Heads heads{std::max(1, state.proposal.mapping.heads), std::max(1, state.proposal.mapping.kv_heads)};
  if (state.session) {
    const Result<Shapes> shapes = check_session(*state.session);
    if (shapes.ok()) heads = {shapes.value().heads, shapes.value().kv_heads};
  } else if (state.proposal.kind == InputKind::kDirect) {  // whose cells are still being read
    heads = {std::max(heads.of_q, count_heads(state, Role::kQ)), std::max(heads.of_kv, count_heads(state, Role::kK))};
  }
  if (state.request.heads) heads.of_q = *state.request.heads;
  if (state.request.kv_heads) heads.of_kv = *state.request.kv_heads;
  return heads;
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
    draw_number(ui, state, {"mapping/batch", "batch", {}, proposal.batch, 0, proposal.batches - 1}, request.batch);
  }
  if (needs_heads(state)) {
    const auto shown = [&](MappingQuestion::Kind kind) { return is_open(proposal, kind) ? "–" : ""; };
    const Heads heads = heads_of(state);
    draw_number(ui, state, {"mapping/heads", "heads", shown(MappingQuestion::Kind::kHeads), heads.of_q, 1, kMaxHeads},
                request.heads);
    draw_number(ui, state,
                {"mapping/kv_heads", "heads of K and V",
                 is_open(proposal, MappingQuestion::Kind::kHeads) ? "–" : shown(MappingQuestion::Kind::kKvHeads),
                 heads.of_kv, 1, kMaxHeads},
                request.kv_heads);
  }
  const ImVec2 end = ImGui::GetCursorScreenPos();
  ImGui::SetCursorScreenPos({at.x, end.y + (end.x > at.x ? kRow + 10 : 0)});
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
  constexpr float kLeastCell = 64, kGap = 12;
  const float label = 96;
  const auto columns_of = [&](float cell) {
    return std::min((*matrix)->cols(), static_cast<Index>((width - label) / cell));
  };
  const auto text_of = [&](Index row, Index col) { return format_value((*matrix)->coeff(row, col), 3); };
  const Index rows = std::min(kRows, (*matrix)->rows());
  float cell = kLeastCell;
  for (Index row = 0; row < rows; ++row) {
    for (Index col = 0; col < columns_of(kLeastCell); ++col) {
      cell = std::max(cell, text_width(ui, FontRole::kText13, text_of(row, col)) + kGap);
    }
  }
  const Index columns = columns_of(cell);
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  for (Index row = 0; row < rows; ++row) {
    const float top = at.y + 20 * static_cast<float>(row);
    const auto token = static_cast<std::size_t>(row);
    draw_label_in(ui, list, {at.x, top}, {at.x + label - 8, top + 20}, session.tokens[token], 12, ui.colors().dim,
                  TextAlign::kLeft);
    for (Index col = 0; col < columns; ++col) {
      const float left = at.x + label + cell * static_cast<float>(col);
      draw_text_in(ui, list, FontRole::kText13, {left, top}, {left + cell - 8, top + 20}, ui.colors().text,
                   text_of(row, col), TextAlign::kRight);
    }
  }
  ImGui::SetCursorScreenPos({at.x, at.y + 20 * kRows + 4});
}

// That the dialog begins where the session that is open was left, and what is not as it was then.
void draw_remembered(Ui& ui, const MappingDialogState& state, float width) {
  if (!state.is_remembered) return;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const std::string text = state.note.empty() ? "As the session that is open was made."
                                              : "As the session that is open was made, but " + state.note + ".";
  const float used = draw_label_paragraph(ui, ImGui::GetWindowDrawList(), at, width, text, 13,
                                          state.note.empty() ? ui.colors().dim : ui.colors().bad);
  ImGui::SetCursorScreenPos({at.x, at.y + used + 6});
}

}  // namespace

void draw_result(Ui& ui, MappingDialogState& state) {
  const float width = ImGui::GetContentRegionAvail().x;
  draw_remembered(ui, state, width);
  draw_numbers(ui, state);
  draw_question(ui, state, width);
  if (const Reading<Session>* reading = state.reading.current()) {
    const std::string text = state.opens_when_read ? "It opens as soon as it is read." : "Reading what will be opened.";
    const ImVec2 top = ImGui::GetCursorScreenPos();
    draw_text(ui, ImGui::GetWindowDrawList(), FontRole::kText13, top, ui.colors().dim, text);
    ImGui::SetCursorScreenPos({top.x, top.y + 26});
    return draw_reading_bar(ui, "mapping/reading", reading->progress());
  }
  const ImVec2 at = ImGui::GetCursorScreenPos();
  // Where names say nothing, nothing is wrong before a tensor is chosen.
  const bool is_untouched = state.proposal.modules.empty() && state.request.tensors.empty();
  const bool is_wrong = !state.session && !is_untouched && (state.proposal.error || state.proposal.questions.empty());
  const float used = draw_label_paragraph(ui, ImGui::GetWindowDrawList(), at, width, state.result, 13,
                                          is_wrong ? ui.colors().bad : ui.colors().dim);
  ImGui::SetCursorScreenPos({at.x, at.y + used + 6});
  if (state.session) draw_cells(ui, state, width);
}

}  // namespace qkv::mapping_parts
