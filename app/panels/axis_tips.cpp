#include "app/panels/axis_tips.h"

#include <algorithm>
#include <cmath>

#include "core/base/utf8.h"

namespace qkv {
namespace {

constexpr float kWidth = 276;            // of a line: tooltip() has no more
constexpr double kTextSize = 13;         // as tooltip() draws it
constexpr std::size_t kMostShown = 600;  // characters of a token

// Where characters end, each with the marks that join it.
std::vector<std::size_t> character_ends(const std::string& text) {
  std::vector<std::size_t> ends;
  std::size_t at = 0;
  while (at < text.size()) {
    if (joins_previous(next_code_point(text, at)) && !ends.empty()) ends.pop_back();
    ends.push_back(at);
  }
  return ends;
}

// Words too wide for a line go on in the next one: tooltip() would cut them.
std::string broken_to_width(Ui& ui, std::string text) {
  std::vector<std::size_t> ends = character_ends(text);
  if (ends.size() > kMostShown) {
    text = text.substr(0, ends[kMostShown - 2]) + "…";
    ends.resize(kMostShown);
    ends.back() = text.size();
  }
  std::string lines;
  std::size_t from = 0;
  for (auto next = ends.begin(); next != ends.end();) {
    const auto fits = [&](std::size_t end) {
      return label_width(ui, text.substr(from, end - from), kTextSize) <= kWidth;
    };
    // One character at least, however wide.
    const auto line_end = std::partition_point(next + 1, ends.end(), fits);
    const std::size_t end = *(line_end - 1);
    lines += (lines.empty() ? "" : "\n") + text.substr(from, end - from);
    from = end;
    next = line_end;
  }
  return lines;
}

// The entry so many pixels behind the first that is seen.
Index entry_at(const AxisView& view, Index count, float pixels, float size) {
  const double at = view.first + pixels * view.visible(static_cast<double>(count)) / size;
  return std::clamp<Index>(static_cast<Index>(std::floor(at)), 0, count - 1);
}

// Nothing else lies over the labels, and the pointer is on them.
bool is_pointed_at(const Box& labels) {
  if (!ImGui::IsMouseHoveringRect(labels.min, labels.max)) return false;
  ImGui::SetCursorScreenPos(labels.min);
  ImGui::Dummy({labels.max.x - labels.min.x, labels.max.y - labels.min.y});
  return ImGui::IsItemHovered();
}

void draw_tip(Ui& ui, const StageInput& in, Axis axis, Index index, Index count, const Box& labels) {
  const AxisTip tip = axis_tip(in, axis, index, count);
  std::string words = broken_to_width(ui, tip.token) + "\n" + tip.position;
  if (!tip.stored.empty()) words += "\n" + broken_to_width(ui, "Stored as " + tip.stored);
  ui.widgets->add("axis-tip/" + std::to_string(index), labels.min, labels.max);
  tooltip(ui, words);
}

bool is_of_tokens(Axis axis) { return axis == Axis::kQueries || axis == Axis::kKeys; }

}  // namespace

AxisTip axis_tip(const StageInput& in, Axis axis, Index index, Index count) {
  const Session& session = in.computed.session;
  const std::vector<std::string>& tokens = axis == Axis::kKeys ? session.keys() : session.tokens;
  const auto at = static_cast<std::size_t>(index);
  AxisTip tip;
  tip.token = shown_names(in, axis, count)[index];
  tip.position = (axis == Axis::kKeys ? "Key " : "Query ") + std::to_string(index + 1) + " of " + std::to_string(count);
  if (at < tokens.size() && tokens[at] != tip.token) tip.stored = tokens[at];
  return tip;
}

void draw_axis_tips(Ui& ui, const StageInput& in, const StageState& state, const MatrixPlace& place, Index rows,
                    Index cols) {
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const ImVec2 end{place.min.x + place.size.x, place.min.y + place.size.y};
  const std::string name = place.foreign ? "matrix/" + place.foreign->name : matrix_name(place.id);
  const Box beside{{place.min.x - 8 - place.label_room, place.min.y}, {place.min.x - 2, end.y}};
  if (place.row_labels) ui.widgets->add(name + "/row-labels", beside.min, beside.max);
  if (place.row_labels && is_of_tokens(place.rows) && is_pointed_at(beside)) {
    const Index row = entry_at(state.axes.at(place.rows), rows, mouse.y - place.min.y, place.size.y);
    draw_tip(ui, in, place.rows, row, rows, beside);
  }
  const Box above{{place.min.x, place.min.y - place.top_room}, {end.x, place.min.y - 2}};
  if (place.col_labels) ui.widgets->add(name + "/column-labels", above.min, above.max);
  if (place.col_labels && is_of_tokens(place.cols) && is_pointed_at(above)) {
    const Index col = entry_at(state.axes.at(place.cols), cols, mouse.x - place.min.x, place.size.x);
    draw_tip(ui, in, place.cols, col, cols, above);
  }
}

}  // namespace qkv
