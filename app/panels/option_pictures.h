// Small pictures of what the attention options do, drawn below their controls in the setup panel.
#pragma once

#include "app/panels/stage.h"
#include "core/attention/option_maps.h"

namespace qkv {

// What the pictures show, worked out when the session, the head or the row changes and not every frame. The renderer
// reads the maps after the frame, when an edit may have replaced the session already: this outlives it.
struct OptionPictures {
  struct Map {
    Matrix values;
    std::uint64_t version = 0;  // changes with the values
  };
  Map mask, added, rope;
  AttentionOptions options = {};  // that the maps were made from
  Shapes shapes = {};
  int head = -1;

  std::uint64_t trace_version = 0;  // StageInput::version that the rest was made from
  int trace_head = -1;
  Index row = -1;  // query whose weights are shown
  std::optional<ScoreSpan> span;
  std::vector<double> before, now;  // weights of the row at 1/√d_k and as they are, the largest of each bucket of keys
  std::vector<double> sinks;        // the sink's share of sampled rows
  double least_sink = 0, most_sink = 0;  // over all live rows
};

// Brings the pictures up to date with what the panel shows: `shapes` of the newest session.
void refresh_pictures(OptionPictures& pictures, const StageInput& in, const Shapes& shapes,
                      const std::optional<CellRef>& focus);

// Each draws at the cursor over the width of the panel and moves on. What is off has no picture.
void draw_scale_picture(Ui& ui, const StageInput& in, const OptionPictures& pictures);
void draw_mask_picture(Ui& ui, const StageInput& in, const OptionPictures& pictures);
void draw_rope_picture(Ui& ui, const StageInput& in, const OptionPictures& pictures);
void draw_added_picture(Ui& ui, const StageInput& in, const OptionPictures& pictures);
void draw_softcap_picture(Ui& ui, const OptionPictures& pictures);
void draw_sink_picture(Ui& ui, const OptionPictures& pictures);

}  // namespace qkv
