#include "app/panels/compare_names.h"

#include <algorithm>

#include "core/session/compare_candidates.h"

namespace qkv {
namespace {

constexpr float kRow = 28, kStep = 36, kLabel = 84, kGap = 24, kLeastColumn = 270, kMostColumn = 380;
constexpr float kLeastRows = 2.5f;  // in sight, so that the half one tells that they scroll
constexpr MatrixKind kKinds[] = {MatrixKind::kAttn,     MatrixKind::kScores, MatrixKind::kScaled,
                                 MatrixKind::kHeadsOut, MatrixKind::kConcat, MatrixKind::kOut,
                                 MatrixKind::kQ,        MatrixKind::kK,      MatrixKind::kV};

// The array of the kind: chosen, or found by its name.
std::string current_text(const CompareState& compare, MatrixKind kind) {
  const auto chosen = std::ranges::find(compare.names, kind, &NamePair::ours);
  if (chosen != compare.names.end()) return part_text(*chosen);
  const Comparison& comparison = compare.result->comparison;
  for (std::size_t i = 0; i < comparison.arrays.size(); ++i) {
    if (comparison.theirs[i].kind == kind) return comparison.arrays[i].name;
  }
  return "";
}

// One matrix of ours and the arrays that it could be.
void draw_kind(Ui& ui, CompareState& compare, MatrixKind kind, const KindShape& shape, int heads, ImVec2 at,
               float width) {
  const std::string key(file_key(kind));
  const std::vector<ArrayCandidate> candidates = candidates_for(compare.result->arrays, kind, shape, heads);
  const std::string current = current_text(compare, kind);
  std::vector<std::string> texts, shapes;
  for (const auto& [pair, array] : candidates) {
    texts.push_back(part_text(pair));
    shapes.push_back(pair.leading.empty() ? shape_text(array->shape) : "");
  }
  const bool is_chosen = std::ranges::find(compare.names, kind, &NamePair::ours) != compare.names.end();
  if (is_chosen) texts.emplace_back("as its name says"), shapes.emplace_back();
  std::vector<Choice> choices;
  for (std::size_t i = 0; i < texts.size(); ++i) choices.push_back({texts[i], shapes[i]});
  const auto known = std::ranges::find(texts, current);
  ImDrawList* list = ImGui::GetWindowDrawList();
  draw_text_in(ui, list, FontRole::kText13, at, {at.x + kLabel, at.y + kRow}, ui.colors().dim, key, TextAlign::kLeft);
  const Box box{{at.x + kLabel, at.y}, {at.x + width, at.y + kRow}};
  if (choices.empty()) {
    draw_text_in(ui, list, FontRole::kText13, {box.min.x + 10, box.min.y}, box.max, ui.colors().faint,
                 "none has its shape", TextAlign::kLeft);
    return;
  }
  const int index = known == texts.end() ? -1 : static_cast<int>(known - texts.begin());
  const auto picked = choice_field(ui, "compare/name/" + key, box, choices, index);
  if (!picked) return;
  std::erase_if(compare.names, [&](const NamePair& pair) { return pair.ours == kind; });
  const auto at_choice = static_cast<std::size_t>(*picked);
  if (at_choice < candidates.size()) compare.names.push_back(candidates[at_choice].pair);
  compare.names_shown = true;  // another may be to choose
  compare.asked_for.reset();
  compare.failure.clear();
}

}  // namespace

float draw_compare_names(Ui& ui, const Computed& ours, CompareState& compare, ImVec2 at, ImVec2 room) {
  std::vector<std::pair<MatrixKind, KindShape>> kinds;
  for (const MatrixKind kind : kKinds) {
    const std::optional<KindShape> shape = shape_of(kind, ours.session.problem, ours.trace.shapes);
    if (shape) kinds.emplace_back(kind, *shape);
  }
  const int columns = std::max(1, static_cast<int>((room.x + kGap) / (kLeastColumn + kGap)));
  const int rows = (static_cast<int>(kinds.size()) + columns - 1) / columns;
  const float height = kStep * static_cast<float>(rows), shown = std::min(height, std::max(room.y, kLeastRows * kStep));
  const float width = room.x - (shown < height ? ImGui::GetStyle().ScrollbarSize : 0);
  const float column =
      std::min(kMostColumn, (width + kGap) / static_cast<float>(columns) - kGap);  // without what is between two
  ImGui::SetCursorScreenPos(at);
  ImGui::BeginChild("compare-names", {room.x, shown}, false, ImGuiWindowFlags_NoNav | ImGuiWindowFlags_NoBackground);
  const ImVec2 first = ImGui::GetCursorScreenPos();
  for (int i = 0; i < static_cast<int>(kinds.size()); ++i) {
    const ImVec2 corner{first.x + (column + kGap) * static_cast<float>(i / rows),
                        first.y + kStep * static_cast<float>(i % rows)};
    const auto& [kind, shape] = kinds[static_cast<std::size_t>(i)];
    draw_kind(ui, compare, kind, shape, ours.trace.shapes.heads, corner, column);
  }
  ImGui::SetCursorScreenPos(first);
  ImGui::Dummy({width, height});
  ImGui::EndChild();
  return shown;
}

}  // namespace qkv
