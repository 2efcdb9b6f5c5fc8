// One head, drawn as matrix products are drawn by hand: left factor left, right factor above, product where they meet.
#pragma once

#include "app/panels/matrix_view.h"

namespace qkv {

// Where everything of the tab goes; pure geometry.
struct HeadLayoutInput {
  ImVec2 min, max;  // of the stage below the tabs
  Shapes shapes;
  int head = 0;
  bool mask = false;                       // a mask hides something: its matrix is shown too
  bool alibi = false, bias = false;        // what they add is shown before the scaled scores
  float query_labels = 0, key_labels = 0;  // widths of row labels
  float key_label_height = 22;             // above columns of keys
  float scale_gap = 0;                     // between S and what follows, where its words need more than the usual
};
struct HeadLayout {
  MatrixPlace q, k, v, scores, alibi, bias, scaled, keep, attn, out;
  double cell = 0;  // horizontal size of a key's column
  ImVec2 bars;      // upper left corner of the colour bars
};
HeadLayout layout_head(const HeadLayoutInput& input);
// The width that lets every cell of a small session carry its number, and every matrix of a large one its title, where
// the stage is too narrow for that; 0 where it is not.
float readable_width(const HeadLayoutInput& input);

void draw_head_tab(Ui& ui, const StageInput& in, StageState& state, ImVec2 min, ImVec2 max, ActionQueue& queue);

// Colour bars of the groups, side by side from `at`.
void draw_color_bars(Ui& ui, const StageInput& in, const StageState& state, ImVec2 at,
                     std::initializer_list<ScaleGroup> groups);

}  // namespace qkv
