#include "app/panels/setup_panel.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/number_text.h"
#include "core/figure/colormap.h"

namespace qkv {
namespace {

constexpr float kField = 76, kRowGap = 6, kSectionGap = 18;

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

void draw_source(Ui& ui, const Session& session, const Shapes& s, SetupState& state, ActionQueue& queue) {
  heading(ui, "SOURCE");
  gap(6);
  const bool projected = std::holds_alternative<ProjectedSource>(session.problem.source);
  static constexpr Choice kKinds[] = {{"Q · K · V"}, {"X · W"}};
  if (const auto picked = segmented(ui, "source", kKinds, projected ? 1 : 0))
    queue.push(SetSourceKind{*picked == 1 ? SourceKind::kProjected : SourceKind::kDirect});
  gap(10);
  size_row(ui, state, queue, "heads", "field/heads", s.heads, kMaxHeads,
           [](double v) { return SetHeads{static_cast<int>(v)}; });
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

void draw_scale(Ui& ui, const Session& session, const Shapes& s, SetupState& state, ActionQueue& queue) {
  AttentionOptions options = session.problem.options;
  static constexpr Choice kScales[] = {{"1/√dₖ", "the usual"}, {"1", "none"}, {"custom"}};
  const int current = !options.scale ? 0 : *options.scale == 1.0f ? 1 : 2;
  if (const auto picked = choice_field(ui, "field/scale", labelled_row(ui, "scale", 104), kScales, current)) {
    if (*picked == 0) options.scale.reset();
    if (*picked == 1) options.scale = 1.0f;
    if (*picked == 2) options.scale = static_cast<float>(effective_scale(options, s.d_k) * (current == 1 ? 0.5 : 1));
    queue.push(SetAttention{options});
  }
  gap(kRowGap);
  if (current == 0 || !options.scale) return;
  if (const auto value = number_field(ui, "field/scale-value", labelled_row(ui, "", kField), *options.scale,
                                      {-1000, 1000, 0.01, false}, state.entry)) {
    options.scale = static_cast<float>(*value);
    queue.push(SetAttention{options}, ImGui::IsMouseDown(0) ? state.entry.gesture : 0);
  }
  gap(kRowGap);
}

// A number that is on or off: a switch, and the number below it while it is on.
template <class Set>
void optional_row(Ui& ui, SetupState& state, ActionQueue& queue, const std::string& label, const std::string& name,
                  std::optional<double> value, double first, const NumberRange& range, Set set) {
  if (switch_field(ui, "switch/" + name, labelled_row(ui, label, 40), value.has_value()))
    queue.push(SetAttention{set(value ? std::nullopt : std::optional(first))});
  gap(kRowGap);
  if (!value) return;
  if (const auto typed = number_field(ui, "field/" + name, labelled_row(ui, "", kField), *value, range, state.entry))
    queue.push(SetAttention{set(*typed)}, ImGui::IsMouseDown(0) ? state.entry.gesture : 0);
  gap(kRowGap);
}

void draw_position(Ui& ui, const Session& session, SetupState& state, ActionQueue& queue) {
  AttentionOptions options = session.problem.options;
  static constexpr Choice kRopes[] = {{"none"}, {"RoPE, halves", "as Llama"}, {"RoPE, pairs", "as GPT-J"}};
  const int current = !options.rope ? 0 : options.rope->style == RopeStyle::kHalf ? 1 : 2;
  if (const auto picked = choice_field(ui, "field/rope", labelled_row(ui, "position", 124), kRopes, current)) {
    const float base = options.rope ? options.rope->base : Rope{}.base;
    if (*picked == 0) options.rope.reset();
    if (*picked > 0) options.rope = Rope{base, *picked == 1 ? RopeStyle::kHalf : RopeStyle::kInterleaved};
    queue.push(SetAttention{options});
  }
  gap(kRowGap);
  if (options.rope) {
    const Box box = labelled_row(ui, "RoPE base", kField);
    if (const auto base =
            number_field(ui, "field/rope-base", box, options.rope->base, {1.001, 1e9, 100, false}, state.entry)) {
      options.rope->base = static_cast<float>(*base);
      queue.push(SetAttention{options}, ImGui::IsMouseDown(0) ? state.entry.gesture : 0);
    }
    gap(kRowGap);
  }
  if (switch_field(ui, "switch/alibi", labelled_row(ui, "ALiBi", 40), options.alibi)) {
    options.alibi = !options.alibi;
    queue.push(SetAttention{options});
  }
  gap(kRowGap);
}

// Soft cap, sliding window and sink.
void draw_limits(Ui& ui, const Session& session, const Shapes& s, SetupState& state, ActionQueue& queue) {
  const AttentionOptions& options = session.problem.options;
  const auto window = options.window ? std::optional<double>(static_cast<double>(*options.window)) : std::nullopt;
  const auto most = static_cast<double>(session.keys().size());
  optional_row(ui, state, queue, "window", "window", window, std::min(2.0, most),
               {1, std::max(most, window.value_or(1)), 1, true}, [&](std::optional<double> value) {
                 AttentionOptions changed = options;
                 changed.window = value ? std::optional(static_cast<Index>(*value)) : std::nullopt;
                 return changed;
               });
  const auto softcap = options.softcap ? std::optional<double>(*options.softcap) : std::nullopt;
  optional_row(ui, state, queue, "soft cap", "softcap", softcap, 20, {0.001, 1e6, 0.5, false},
               [&](std::optional<double> value) {
                 AttentionOptions changed = options;
                 changed.softcap = value ? std::optional(static_cast<float>(*value)) : std::nullopt;
                 return changed;
               });
  const auto head = static_cast<std::size_t>(std::clamp(session.view.head, 0, s.heads - 1));
  const auto sink = options.sink.empty() ? std::nullopt : std::optional<double>(options.sink[head]);
  const std::string label = s.heads > 1 && sink ? "sink of head " + std::to_string(head + 1) : "sink";
  optional_row(ui, state, queue, label, "sink", sink, 0, {-1e6, 1e6, 0.1, false}, [&](std::optional<double> value) {
    AttentionOptions changed = options;
    if (!value) changed.sink.clear();
    if (value && changed.sink.empty()) changed.sink.assign(static_cast<std::size_t>(s.heads), 0.0f);
    if (value) changed.sink[head] = static_cast<float>(*value);
    return changed;
  });
}

// A bias comes with a file; here it is said and can be taken away.
void draw_bias(Ui& ui, const Session& session, ActionQueue& queue) {
  if (!session.problem.options.bias) return;
  if (text_button(ui, "button/bias", labelled_row(ui, "bias from the file", kField), "remove")) {
    AttentionOptions changed = session.problem.options;
    changed.bias.reset();
    queue.push(SetAttention{changed});
  }
  gap(kRowGap);
}

void draw_attention(Ui& ui, const Session& session, const Shapes& s, SetupState& state, ActionQueue& queue) {
  heading(ui, "ATTENTION");
  gap(6);
  draw_scale(ui, session, s, state, queue);
  AttentionOptions options = session.problem.options;
  if (switch_field(ui, "switch/causal", labelled_row(ui, "causal mask", 40), options.causal)) {
    options.causal = !options.causal;
    queue.push(SetAttention{options});
  }
  gap(kRowGap);
  const bool cross = session.key_tokens.has_value();
  if (options.causal && cross) {
    static constexpr Choice kAligns[] = {{"bottom right", "last sees last"}, {"top left", "first sees first"}};
    const Box box = labelled_row(ui, "align", 120);
    if (const auto picked =
            choice_field(ui, "field/align", box, kAligns, options.align == CausalAlign::kTopLeft ? 1 : 0)) {
      options.align = *picked == 1 ? CausalAlign::kTopLeft : CausalAlign::kBottomRight;
      queue.push(SetAttention{options});
    }
    gap(kRowGap);
  }
  if (!std::holds_alternative<ProjectedSource>(session.problem.source)) {
    if (switch_field(ui, "switch/cross", labelled_row(ui, "cross-attention", 40), cross))
      queue.push(SetCrossAttention{!cross});
    gap(kRowGap);
  }
  draw_position(ui, session, state, queue);
  draw_limits(ui, session, s, state, queue);
  draw_bias(ui, session, queue);
  if (!options.key_valid.empty()) {
    const Box box = labelled_row(ui, "hidden keys", kField);
    const auto hidden = std::count(options.key_valid.begin(), options.key_valid.end(), std::uint8_t{0});
    if (text_button(ui, "button/show-keys", box, "show all " + std::to_string(hidden))) {
      options.key_valid.clear();
      queue.push(SetAttention{options});
    }
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
  static constexpr Choice kModes[] = {{"0 … 1"}, {"automatic", "least … most"}, {"symmetric", "−m … m"}, {"custom"}};
  ViewSettings changed = view;
  RangeSpec& spec = changed.*slot;
  if (const auto picked = choice_field(ui, name, labelled_row(ui, label, 108), kModes, static_cast<int>(spec.mode))) {
    const ColorRange now = resolve_range(spec, extent);
    spec.mode = static_cast<RangeMode>(*picked);
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

void draw_colour(Ui& ui, const StageInput& in, SetupState& state, ActionQueue& queue) {
  heading(ui, "COLOUR");
  gap(6);
  const ViewSettings& view = in.session.view;
  draw_map_row(ui, "weights", "field/weights-map", view.weights_map, queue, view, &ViewSettings::weights_map);
  draw_range_row(ui, state, "range", "field/weights-range", view, &ViewSettings::weights_range,
                 extent_of(in.computed.digest, ScaleGroup::kWeights), queue);
  draw_map_row(ui, "signed values", "field/signed-map", view.signed_map, queue, view, &ViewSettings::signed_map);
  draw_range_row(ui, state, "range", "field/signed-range", view, &ViewSettings::signed_range,
                 extent_of(in.computed.digest, ScaleGroup::kScores), queue);
  if (const auto digits = number_field(ui, "field/decimals", labelled_row(ui, "decimals", kField), view.decimals,
                                       {0, 6, 1, true}, state.entry)) {
    ViewSettings changed = view;
    changed.decimals = static_cast<int>(*digits);
    queue.push(SetView{changed});
  }
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

void draw_setup_panel(Ui& ui, const StageInput& in, const StageState& stage, SetupState& state, ActionQueue& queue) {
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
  if (const Result<Shapes> shapes = check_session(session)) {
    draw_source(ui, session, shapes.value(), state, queue);
    gap(kSectionGap - kRowGap);
    draw_attention(ui, session, shapes.value(), state, queue);
    gap(kSectionGap - kRowGap);
  }
  draw_colour(ui, in, state, queue);
  if (!state.entry.message.empty()) queue.messages.push_back(std::exchange(state.entry.message, {}));
  gap(24);
  ImGui::PopStyleVar();
}

}  // namespace qkv
