// The attention options in the setup panel: a row for each, and below what is on a picture of what it does.
#include <algorithm>
#include <cmath>
#include <optional>

#include "app/panels/setup_panel.h"
#include "core/attention/formula.h"
#include "core/attention/temperature.h"
#include "core/base/number_text.h"

namespace qkv {
namespace {

constexpr float kSwitch = 40;

// What the rows of the section share.
struct Rows {
  Ui& ui;
  const StageInput& in;
  const Shapes& shapes;  // of the session
  SetupState& state;
  OptionPictures& pictures;
  ActionQueue& queue;

  const Session& session() const { return in.session; }
  const AttentionOptions& options() const { return in.session.problem.options; }
  void set(AttentionOptions changed) { queue.push(SetAttention{std::move(changed)}); }
  // While the mouse is down the steps of a drag are one for undo.
  void set_by_drag(AttentionOptions changed) {
    queue.push(SetAttention{std::move(changed)}, ImGui::IsMouseDown(0) ? state.entry.gesture : 0);
  }
};

void draw_temperature(Rows& rows) {
  const double t = temperature(rows.options(), rows.shapes.d_k);
  const bool shows = t > 0 && std::isfinite(t);
  const std::string text = shows ? factor_text(static_cast<float>(t)) : rows.options().scale == 0.0f ? "∞" : "–";
  const Box box = labelled_row(rows.ui, "temperature T", kNumberField);
  const double now = shows ? t : 1;
  std::optional<double> changed =
      number_field(rows.ui, "field/temperature", box, now, {kLeastTemperature, kMostTemperature, 0.02, false},
                   rows.state.entry, text);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const Box track{{at.x, at.y}, {at.x + width, at.y + 20}};
  ImGui::Dummy({width, 20});
  if (const auto slid = log_slider(rows.ui, "slider/temperature", track, t <= 0 ? kMostTemperature : t,
                                   {kLeastTemperature, kMostTemperature, 1}))
    changed = slid;
  if (changed) {
    AttentionOptions options = rows.options();
    set_temperature(options, *changed, rows.shapes.d_k);
    rows.set_by_drag(options);
  }
  gap(kSetupRowGap);
}

void draw_scale(Rows& rows) {
  AttentionOptions options = rows.options();
  static constexpr Choice kScales[] = {{"1/√dₖ", "the usual"}, {"1", "none"}, {"custom"}};
  const int current = !options.scale ? 0 : *options.scale == 1.0f ? 1 : 2;
  if (const auto picked = choice_field(rows.ui, "field/scale", labelled_row(rows.ui, "scale", 104), kScales, current)) {
    const double now = effective_scale(options, rows.shapes.d_k);
    if (*picked == 0) options.scale.reset();
    if (*picked == 1) options.scale = 1.0f;
    if (*picked == 2) options.scale = static_cast<float>(now * (current == 1 ? 0.5 : 1));
    rows.set(options);
  }
  gap(kSetupRowGap);
  if (rows.options().scale) {
    if (const auto value = number_field(rows.ui, "field/scale-value", labelled_row(rows.ui, "", kNumberField),
                                        *rows.options().scale, {-1000, 1000, 0.01, false}, rows.state.entry)) {
      options.scale = static_cast<float>(*value);
      rows.set_by_drag(options);
    }
    gap(kSetupRowGap);
  }
  draw_temperature(rows);
  draw_scale_picture(rows.ui, rows.in, rows.pictures);
}

// A number that is on or off: a switch, and the number below it while it is on. `value` is the present one, or the one
// to begin with.
template <class Set>
void optional_row(Rows& rows, const std::string& label, const std::string& name, bool on, double value,
                  const NumberRange& range, Set set) {
  if (switch_field(rows.ui, "switch/" + name, labelled_row(rows.ui, label, kSwitch), on))
    rows.set(set(on ? std::nullopt : std::optional(value)));
  gap(kSetupRowGap);
  if (!on) return;
  const Box box = labelled_row(rows.ui, "", kNumberField);
  if (const auto typed = number_field(rows.ui, "field/" + name, box, value, range, rows.state.entry))
    rows.set_by_drag(set(*typed));
  gap(kSetupRowGap);
}

void draw_align(Rows& rows) {
  AttentionOptions options = rows.options();
  static constexpr Choice kAligns[] = {{"bottom right", "last sees last"}, {"top left", "first sees first"}};
  const Box box = labelled_row(rows.ui, "align", 120);
  const int current = options.align == CausalAlign::kTopLeft ? 1 : 0;
  if (const auto picked = choice_field(rows.ui, "field/align", box, kAligns, current)) {
    options.align = *picked == 1 ? CausalAlign::kTopLeft : CausalAlign::kBottomRight;
    rows.set(options);
  }
  gap(kSetupRowGap);
}

// Causal, window and hidden keys: together they make one mask.
void draw_masks(Rows& rows) {
  AttentionOptions options = rows.options();
  if (switch_field(rows.ui, "switch/causal", labelled_row(rows.ui, "causal mask", kSwitch), options.causal)) {
    options.causal = !options.causal;
    rows.set(options);
  }
  gap(kSetupRowGap);
  // Windows and ALiBi count distances from the shifted position too.
  if (rows.session().key_tokens && (options.causal || options.window || options.alibi)) draw_align(rows);
  const auto keys = static_cast<Index>(rows.session().keys().size());
  const Index window = options.window.value_or(std::min<Index>(2, keys));
  const auto most = static_cast<double>(std::max(keys, window));
  optional_row(rows, "window", "window", options.window.has_value(), static_cast<double>(window), {1, most, 1, true},
               [&](std::optional<double> value) {
                 AttentionOptions changed = rows.options();
                 changed.window = value ? std::optional(static_cast<Index>(*value)) : std::nullopt;
                 return changed;
               });
  if (!options.key_valid.empty()) {
    const Box box = labelled_row(rows.ui, "hidden keys", kNumberField);
    const auto hidden = std::count(options.key_valid.begin(), options.key_valid.end(), std::uint8_t{0});
    if (text_button(rows.ui, "button/show-keys", box, "show all " + std::to_string(hidden))) {
      options.key_valid.clear();
      rows.set(options);
    }
    gap(kSetupRowGap);
  }
  draw_mask_picture(rows.ui, rows.in, rows.pictures);
}

void draw_rope(Rows& rows) {
  AttentionOptions options = rows.options();
  static constexpr Choice kRopes[] = {{"none"}, {"RoPE, halves", "as Llama"}, {"RoPE, pairs", "as GPT-J"}};
  const int current = !options.rope ? 0 : options.rope->style == RopeStyle::kHalf ? 1 : 2;
  if (const auto picked =
          choice_field(rows.ui, "field/rope", labelled_row(rows.ui, "position", 124), kRopes, current)) {
    const float base = options.rope ? options.rope->base : Rope{}.base;
    if (*picked == 0) options.rope.reset();
    if (*picked > 0) options.rope = Rope{base, *picked == 1 ? RopeStyle::kHalf : RopeStyle::kInterleaved};
    rows.set(options);
  }
  gap(kSetupRowGap);
  if (rows.options().rope) {
    const Box box = labelled_row(rows.ui, "RoPE base", kNumberField);
    if (const auto base = number_field(rows.ui, "field/rope-base", box, rows.options().rope->base,
                                       {1.001, 1e9, 100, false}, rows.state.entry)) {
      options.rope->base = static_cast<float>(*base);
      rows.set_by_drag(options);
    }
    gap(kSetupRowGap);
  }
  draw_rope_picture(rows.ui, rows.in, rows.pictures);
}

// ALiBi and the bias: both are added to the scores.
void draw_added(Rows& rows) {
  AttentionOptions options = rows.options();
  if (switch_field(rows.ui, "switch/alibi", labelled_row(rows.ui, "ALiBi", kSwitch), options.alibi)) {
    options.alibi = !options.alibi;
    rows.set(options);
  }
  gap(kSetupRowGap);
  const bool has_bias = options.bias.has_value();
  if (switch_field(rows.ui, "switch/bias", labelled_row(rows.ui, "score bias B", kSwitch), has_bias))
    rows.queue.push(SetScoreBias{!has_bias});
  gap(kSetupRowGap);
  draw_added_picture(rows.ui, rows.in, rows.pictures);
}

void draw_softcap(Rows& rows) {
  const AttentionOptions& options = rows.options();
  optional_row(rows, "soft cap", "softcap", options.softcap.has_value(), options.softcap.value_or(20.0f),
               {0.001, 1e6, 0.5, false}, [&](std::optional<double> value) {
                 AttentionOptions changed = options;
                 changed.softcap = value ? std::optional(static_cast<float>(*value)) : std::nullopt;
                 return changed;
               });
  draw_softcap_picture(rows.ui, rows.pictures);
}

void draw_sink(Rows& rows) {
  const AttentionOptions& options = rows.options();
  const int heads = rows.shapes.heads;
  const auto head = static_cast<std::size_t>(std::clamp(rows.session().view.head, 0, heads - 1));
  const bool on = !options.sink.empty();
  const std::string label = heads > 1 && on ? "sink of head " + std::to_string(head + 1) : "sink";
  optional_row(rows, label, "sink", on, on ? options.sink[head] : 0.0f, {-1e6, 1e6, 0.1, false},
               [&](std::optional<double> value) {
                 AttentionOptions changed = options;
                 if (!value) changed.sink.clear();
                 if (value && changed.sink.empty()) changed.sink.assign(static_cast<std::size_t>(heads), 0.0f);
                 if (value) changed.sink[head] = static_cast<float>(*value);
                 return changed;
               });
  draw_sink_picture(rows.ui, rows.pictures);
}

}  // namespace

void draw_attention(Ui& ui, const StageInput& in, const StageState& stage, const Shapes& shapes, SetupState& state,
                    OptionPictures& pictures, ActionQueue& queue) {
  refresh_pictures(pictures, in, shapes, focus_cell(stage));
  heading(ui, "ATTENTION");
  gap(6);
  Rows rows{ui, in, shapes, state, pictures, queue};
  draw_scale(rows);
  draw_masks(rows);
  draw_rope(rows);
  draw_added(rows);
  draw_softcap(rows);
  draw_sink(rows);
}

}  // namespace qkv
