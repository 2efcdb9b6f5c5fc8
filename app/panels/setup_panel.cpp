#include "app/panels/setup_panel.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include "core/base/number_text.h"
#include "core/figure/colormap.h"

namespace qkv {
namespace {

constexpr float kField = kNumberField, kRowGap = kSetupRowGap, kSectionGap = 18;

template <class Make>
void size_row(Ui& ui, SetupState& state, ActionQueue& queue, std::string_view label, const std::string& name,
              double value, double most, Make make) {
  const Box box = labelled_row(ui, label, kField);
  if (const auto changed = number_field(ui, name, box, value, {1, most, 1, true}, state.entry)) {
    if (state.entry.name.empty() && !ImGui::IsMouseDown(0)) state.entry.gesture = queue.new_gesture();
    queue.push(make(*changed), ImGui::IsMouseDown(0) ? state.entry.gesture : 0);
  }
  if (ImGui::IsMouseClicked(0)) state.entry.gesture = queue.new_gesture();
  gap(kRowGap);
}

void draw_cross_switch(Ui& ui, const Session& session, ActionQueue& queue) {
  const bool cross = session.key_tokens.has_value();
  if (switch_field(ui, "switch/cross", labelled_row(ui, "cross-attention", 40), cross))
    queue.push(SetCrossAttention{!cross});
  gap(kRowGap);
}

void draw_heads_row(Ui& ui, const Shapes& s, SetupState& state, ActionQueue& queue) {
  size_row(ui, state, queue, "heads", "field/heads", s.heads, kMaxHeads,
           [](double v) { return SetHeads{static_cast<int>(v)}; });
}

// Of weights alone: what there is instead of options, and what can be set.
void draw_given_source(Ui& ui, const Session& session, const Shapes& s, SetupState& state, ActionQueue& queue) {
  heading(ui, "SOURCE");
  gap(6);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  ImDrawList* list = ImGui::GetWindowDrawList();
  draw_text(ui, list, FontRole::kBold13, at, ui.colors().text, "Weights as given");
  const float height =
      draw_label_paragraph(ui, list, {at.x, at.y + 20}, width,
                           "There are no Q, K and V. Scale, mask and the other options act on the way to the weights, "
                           "so there are none to set here. Every weight can be edited.",
                           13, ui.colors().dim);
  ui.widgets->add("source/given", at, {at.x + width, at.y + 20 + height});
  ImGui::Dummy({width, 20 + height});
  gap(10);
  draw_cross_switch(ui, session, queue);
  draw_heads_row(ui, s, state, queue);
}

void draw_source(Ui& ui, const Session& session, const Shapes& s, SetupState& state, ActionQueue& queue) {
  heading(ui, "SOURCE");
  gap(6);
  const bool projected = std::holds_alternative<ProjectedSource>(session.problem.source);
  static constexpr Choice kKinds[] = {{"Q · K · V"}, {"X · W"}};
  if (const auto picked = segmented(ui, "source", kKinds, projected ? 1 : 0))
    queue.push(SetSourceKind{*picked == 1 ? SourceKind::kProjected : SourceKind::kDirect});
  gap(10);
  if (!projected) draw_cross_switch(ui, session, queue);
  draw_heads_row(ui, s, state, queue);
  size_row(ui, state, queue, "key/value heads", "field/kv-heads", s.kv_heads, s.heads,
           [](double v) { return SetKvHeads{static_cast<int>(v)}; });
  size_row(ui, state, queue, "dₖ", "field/d-k", double(s.d_k), kMaxHeadSize,
           [](double v) { return SetDk{static_cast<Index>(v)}; });
  size_row(ui, state, queue, "dᵥ", "field/d-v", double(s.d_v), kMaxHeadSize,
           [](double v) { return SetDv{static_cast<Index>(v)}; });
  if (projected)
    size_row(ui, state, queue, "d_model", "field/d-model", double(s.d_model), kMaxModelSize,
             [](double v) { return SetDModel{static_cast<Index>(v)}; });
  const bool has_wo = session.problem.wo.has_value();
  if (switch_field(ui, "switch/wo", labelled_row(ui, "output projection Wᴼ", 40), has_wo))
    queue.push(SetOutputProjection{!has_wo});
  gap(kRowGap);
  if (has_wo)
    size_row(ui, state, queue, "output columns", "field/d-out", double(s.d_out), kMaxModelSize,
             [](double v) { return SetDOut{static_cast<Index>(v)}; });
  if (projected || has_wo) {
    const auto* p = std::get_if<ProjectedSource>(&session.problem.source);
    const bool biases = session.problem.bo.has_value() || (p != nullptr && (p->bq || p->bk || p->bv));
    if (switch_field(ui, "switch/biases", labelled_row(ui, "biases", 40), biases)) queue.push(SetBiases{!biases});
    gap(kRowGap);
  }
}

void draw_map_row(Ui& ui, std::string_view label, const std::string& name, const std::string& current,
                  ActionQueue& queue, const ViewSettings& view, std::string ViewSettings::*slot) {
  std::vector<Choice> maps;
  int index = -1;
  for (const ColormapInfo& map : colormaps()) {
    if (map.name == current) index = static_cast<int>(maps.size());
    maps.push_back({map.name, map.diverging ? "diverging" : "sequential"});
  }
  if (const auto picked = choice_field(ui, name, labelled_row(ui, label, 108), maps, index)) {
    ViewSettings changed = view;
    changed.*slot = std::string(maps[static_cast<std::size_t>(*picked)].text);
    queue.push(SetView{changed});
  }
  gap(kRowGap);
}

void draw_range_row(Ui& ui, SetupState& state, std::string_view label, const std::string& name,
                    const ViewSettings& view, RangeSpec ViewSettings::*slot, const FiniteExtent& extent,
                    ActionQueue& queue) {
  // Values with a sign have no logarithmic scale: it comes last.
  static constexpr Choice kTexts[] = {
      {"0 … 1"}, {"automatic", "least … most"}, {"symmetric", "−m … m"}, {"custom"}, {"logarithmic", "by factors"}};
  static constexpr RangeMode kModes[] = {RangeMode::kUnit, RangeMode::kAuto, RangeMode::kSymmetric, RangeMode::kCustom,
                                         RangeMode::kLog};
  const std::span<const Choice> texts(kTexts, slot == &ViewSettings::weights_range ? 5 : 4);
  ViewSettings changed = view;
  RangeSpec& spec = changed.*slot;
  const int current = static_cast<int>(std::ranges::find(kModes, spec.mode) - std::begin(kModes));
  if (const auto picked = choice_field(ui, name, labelled_row(ui, label, 108), texts, current)) {
    const ColorRange now = resolve_range(spec, extent);
    spec.mode = kModes[*picked];
    if (spec.mode == RangeMode::kCustom) {
      spec.low = now.flat ? now.low - 1 : now.low;
      spec.high = now.flat ? now.high + 1 : now.high;
    }
    queue.push(SetView{changed});
  }
  gap(kRowGap);
  if (spec.mode != RangeMode::kCustom) return;
  const Box box = labelled_row(ui, "", 184);
  const float middle = (box.min.x + box.max.x) / 2;
  const auto low = number_field(ui, name + "/low", {box.min, {middle - 3, box.max.y}}, spec.low,
                                {-1e30, 1e30, 0.1, false}, state.entry);
  const auto high = number_field(ui, name + "/high", {{middle + 3, box.min.y}, box.max}, spec.high,
                                 {-1e30, 1e30, 0.1, false}, state.entry);
  if (low) spec.low = static_cast<float>(*low);
  if (high) spec.high = static_cast<float>(*high);
  if ((low || high) && spec.low < spec.high) queue.push(SetView{changed});
  if ((low || high) && !(spec.low < spec.high))
    queue.messages.push_back("The range needs its low end below its high end");
  gap(kRowGap);
}

void draw_decimals(Ui& ui, const ViewSettings& view, SetupState& state, ActionQueue& queue) {
  if (const auto digits = number_field(ui, "field/decimals", labelled_row(ui, "decimals", kField), view.decimals,
                                       {0, 6, 1, true}, state.entry)) {
    ViewSettings changed = view;
    changed.decimals = static_cast<int>(*digits);
    queue.push(SetView{changed});
  }
}

void draw_colour(Ui& ui, const StageInput& in, SetupState& state, ActionQueue& queue) {
  heading(ui, "COLOUR");
  gap(6);
  const ViewSettings& view = in.session.view;
  draw_map_row(ui, "weights", "field/weights-map", view.weights_map, queue, view, &ViewSettings::weights_map);
  draw_range_row(ui, state, "range", "field/weights-range", view, &ViewSettings::weights_range,
                 extent_of(in.computed.digest, ScaleGroup::kWeights), queue);
  if (is_weights_only(in.session.problem.source)) return draw_decimals(ui, view, state, queue);
  draw_map_row(ui, "signed values", "field/signed-map", view.signed_map, queue, view, &ViewSettings::signed_map);
  draw_range_row(ui, state, "range", "field/signed-range", view, &ViewSettings::signed_range,
                 extent_of(in.computed.digest, ScaleGroup::kScores), queue);
  draw_decimals(ui, view, state, queue);
}

// The text stays and its tokens follow: one undo step.
void resplit(const Session& session, TokenSplit split, const SetupState& state, ActionQueue& queue) {
  const std::uint64_t gesture = queue.new_gesture();
  queue.push(SetSplit{split}, gesture);
  const auto again = [&](Side side, const std::string& text, std::uint64_t step) {
    std::vector<std::string> tokens = split_tokens(text, split);
    if (!tokens.empty()) queue.push(SetTokens{side, std::move(tokens)}, step);
  };
  again(Side::kQueries, state.queries.text.edit.text, gesture);
  if (session.key_tokens) again(Side::kKeys, state.keys.text.edit.text, 0);
}

}  // namespace

void draw_setup_panel(Ui& ui, const StageInput& in, const StageState& stage, SetupState& state,
                      OptionPictures& pictures, ActionQueue& queue) {
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  const Session& session = in.session;
  heading(ui, session.key_tokens ? "TOKENS · QUERIES" : "TOKENS");
  gap(6);
  draw_tokens(ui, in, stage, Side::kQueries, state.queries, queue);
  if (session.key_tokens) {
    gap(14);
    heading(ui, "TOKENS · KEYS");
    gap(6);
    draw_tokens(ui, in, stage, Side::kKeys, state.keys, queue);
  }
  gap(10);
  static constexpr Choice kSplits[] = {
      {"white space", "老鼠 is one token"}, {"space and CJK", "老 | 鼠"}, {"every character", "c | a | t"}};
  if (const auto picked =
          choice_field(ui, "field/split", labelled_row(ui, "split by", 120), kSplits, static_cast<int>(session.split)))
    resplit(session, static_cast<TokenSplit>(*picked), state, queue);
  gap(kSectionGap);
  const Result<Shapes> shapes = check_session(session);
  if (shapes && is_weights_only(session.problem.source)) {
    draw_given_source(ui, session, shapes.value(), state, queue);
    gap(kSectionGap - kRowGap);
  } else if (shapes) {
    draw_source(ui, session, shapes.value(), state, queue);
    gap(kSectionGap - kRowGap);
    draw_attention(ui, in, stage, shapes.value(), state, pictures, queue);
    gap(kSectionGap - kRowGap);
  }
  draw_colour(ui, in, state, queue);
  if (!state.entry.message.empty()) queue.messages.push_back(std::exchange(state.entry.message, {}));
  gap(24);
  ImGui::PopStyleVar();
}

}  // namespace qkv
