// The Compare tab: ours, theirs and the difference side by side, where it begins, and its likely cause.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "app/engine/compare.h"
#include "app/panels/stage.h"
#include "core/figure/figure_compare.h"

namespace qkv {

// Extents of what is shown, of one matrix of one result.
struct ShownExtents {
  std::uint64_t version = 0;
  std::size_t array = 0;
  int head = 0;
  ComparedExtents extents;
};

struct CompareState {
  std::filesystem::path other;  // empty = nothing is compared, and there is no tab
  bool shown = false;           // the tab is in front
  std::weak_ptr<const Computed> asked_for;
  std::shared_ptr<const CompareResult> result;  // the newest, may be of numbers before an edit
  std::string failure;                          // why there is none, or nothing in it
  std::vector<NamePair> names;                  // of their arrays, as the person chose
  bool names_shown = false;                     // the fields to choose them
  std::optional<MatrixKind> matrix;             // chosen; none = the first that differs
  std::optional<int> head;                      // chosen; none = that of the first wrong cell
  std::optional<ShownExtents> extents;          // so that they are not read in every frame
};

// Which matrix and head of a result the tab shows.
struct ShownComparison {
  std::size_t array = 0;
  int head = 0;
};
ShownComparison shown_comparison(const CompareResult& result, const CompareState& compare);

void draw_compare_tab(Ui& ui, const StageInput& in, StageState& state, CompareState& compare, ImVec2 min, ImVec2 max,
                      ActionQueue& queue);

}  // namespace qkv
