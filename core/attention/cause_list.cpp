#include <algorithm>
#include <bit>
#include <cmath>

#include "core/attention/cause_listing.h"
#include "core/base/number_text.h"

namespace qkv {
namespace {

void add_scale(Listing& list) {
  const double ours = effective_scale(list.options(), list.shapes.d_k);
  const double usual = 1 / std::sqrt(static_cast<double>(list.shapes.d_k));
  const std::string text = format_value(ours, 4, false);
  const auto add = [&](const char* id, const char* name, const std::string& meaning, double scale) {
    if (std::abs(scale - ours) <= 1e-9 * std::abs(ours)) return;
    list.add(id, "scale", name, meaning, "Multiply QKᵀ by " + text + " once, before the softmax.",
             [scale](Altered& altered) { altered.scaling.scale = scale; });
  };
  add("scale-missing", "the scale is missing", "QKᵀ goes into the softmax as it is.", 1);
  add("scale-twice", "the scale is applied twice", "QKᵀ is multiplied by " + text + " two times.", ours * ours);
  add("scale-default", "the scale is 1/√d_k", "QKᵀ is divided by √d_k, although another scale is set.", usual);
  if (list.options().scale) add("scale-by-d_k", "the scale is 1/d_k", "QKᵀ is divided by d_k.", usual * usual);
  add("scale-of-all-heads", "the scale is 1/√(H·d_k)", "QKᵀ is divided by the root of the size of all heads together.",
      usual / std::sqrt(static_cast<double>(list.shapes.heads)));
  add("scale-inverted", "the scale is inverted", "QKᵀ is divided by " + text + " instead of multiplied.", 1 / ours);
}

void add_causal(Listing& list) {
  const AttentionOptions& o = list.options();
  const auto add = [&](const char* id, const char* name, const char* meaning, const char* fix, Change change) {
    list.add(id, "causal", name, meaning, fix, std::move(change));
  };
  const char* mask = "Let query i see the keys up to i: keep j ≤ i.";
  if (o.causal) {
    add("causal-missing", "the causal mask is missing", "Queries see later keys too.", mask,
        [](Altered& a) { a.mask.causal = false; });
    add("causal-upside-down", "the causal mask is upside down", "Queries see later keys instead of earlier ones.", mask,
        [](Altered& a) { a.mask.upside_down = true; });
  } else {
    add("causal-added", "there is a causal mask, none in ours", "Queries do not see later keys.",
        "Switch the causal mask off there, or on here.", [](Altered& a) { a.mask.causal = true; });
  }
  const char* diagonal = "Check the diagonal of the mask: with torch.triu or np.triu of what is hidden, k = 1.";
  add("causal-strict", "the causal mask hides the diagonal", "A query sees the keys before it and not its own.",
      diagonal, [](Altered& a) {
        a.mask.causal = true;
        a.mask.diagonal = -1;
      });
  add("causal-one-more", "the causal mask lets one key too many through", "A query sees the key after its own.",
      diagonal, [](Altered& a) {
        a.mask.causal = true;
        a.mask.diagonal = 1;
      });
  if (list.shapes.nq == list.shapes.nk) return;
  const bool top_left = o.align == CausalAlign::kTopLeft;
  const Index shift = top_left ? list.shapes.nk - list.shapes.nq : 0;
  list.add("causal-align", "align",
           top_left ? "positions are aligned at the bottom right" : "positions are aligned at the top left",
           top_left ? "The last query stands at the last key." : "The first query stands at the first key.",
           top_left ? "Align the first query with the first key, or set align to bottom_right here."
                    : "Align the last query with the last key (j ≤ i + Nk − Nq), or set align to top_left here.",
           [shift](Altered& a) { a.mask.shift = shift; });
}

void add_window(Listing& list) {
  if (!list.options().window) return;
  const Index w = *list.options().window;
  const std::string fix = "Keep |i − j| < " + std::to_string(w) + ": with a causal mask a query sees itself and " +
                          std::to_string(w - 1) + " before.";
  const auto add = [&](const char* id, const char* name, const std::string& meaning, std::optional<Index> before,
                       std::optional<Index> after) {
    list.add(id, "window", name, meaning, fix, [=](Altered& a) {
      a.mask.before = before;
      a.mask.after = after;
    });
  };
  add("window-missing", "the window is missing", "Keys at any distance are seen.", std::nullopt, std::nullopt);
  add("window-one-more", "the window is one key wider", "Keys at distance " + std::to_string(w) + " are seen.", w + 1,
      w + 1);
  if (w > 1) {
    add("window-one-less", "the window is one key narrower",
        "Keys at distance " + std::to_string(w - 1) + " are hidden.", w - 1, w - 1);
  }
  if (w > 4) {  // below, half of it is the window that is one key narrower
    add("window-half", "the window is split between both sides", "Half of it lies on each side of the query.",
        w / 2 + 1, w / 2 + 1);
  }
  if (list.options().causal) return;
  add("window-before", "the window has one side", "Of the later keys all are seen.", w, std::nullopt);
  add("window-past", "the window looks back alone", "Later keys are hidden.", w, 1);
}

void add_mask_use(Listing& list) {
  const AttentionOptions& o = list.options();
  const bool padded = std::find(o.key_valid.begin(), o.key_valid.end(), 0) != o.key_valid.end();
  if (padded) {
    const char* fix = "Hide the keys whose key_valid is 0, and no others.";
    list.add("padding-ignored", "padding", "padding is not hidden", "Keys that are padding get weights.", fix,
             [](Altered& a) { a.mask.ignores_padding = true; });
    list.add("padding-inverted", "padding", "the padding mask is inverted",
             "Padding is seen and the other keys are hidden.", fix, [](Altered& a) { a.mask.inverted_padding = true; });
  }
  if (!padded && !o.causal && !o.window) return;
  const auto use = [](MaskUse how, double fill) {
    return [=](Altered& a) {
      a.softmax.mask_use = how;
      a.softmax.fill = fill;
    };
  };
  const auto add = [&](const char* id, const std::string& name, const char* meaning, const char* fix, Change change) {
    list.add(id, "mask-use", name, meaning, fix, std::move(change));
  };
  add("mask-after-softmax", "the mask comes after the softmax",
      "Hidden weights are set to 0 and the others not divided by what is left.",
      "Set hidden scores to −∞ before the softmax.", use(MaskUse::kAfterwards, 0));
  add("mask-zero-scores", "the scores are multiplied by the mask", "A hidden score is 0, which softmax still counts.",
      "Set hidden scores to −∞, not to 0.", use(MaskUse::kZeroScore, 0));
  const char* fill_fix = "Set hidden scores to −∞, and rows with no visible key to 0 after the softmax.";
  const char* fill_meaning = "A hidden score is a finite number: where no key is visible, all get the same weight.";
  add("mask-fill-1e4", "hidden scores are −1e4", fill_meaning, fill_fix, use(MaskUse::kFill, -1e4));
  add("mask-fill-1e9", "hidden scores are −1e9", fill_meaning, fill_fix, use(MaskUse::kFill, -1e9));
  add("mask-fill-float16", "hidden scores are −65504, float16's lowest", fill_meaning, fill_fix,
      use(MaskUse::kFill, -65504));
  add("mask-add-1e4", "−1e4 is added to hidden scores",
      "Where no key is visible, hidden keys get weights by their scores.", fill_fix, use(MaskUse::kAdd, -1e4));
  if (o.softcap) {
    add("softcap-after-mask", "the softcap comes after the mask", "It brings hidden scores from −∞ to −c.",
        "Cap the scores first, then hide.", use(MaskUse::kFill, -static_cast<double>(*o.softcap)));
  }
}

void add_dead_rows(Listing& list) {
  const AttentionOptions& o = list.options();
  // Where ours has none, another mask may make some.
  if (!o.causal && !o.window && o.key_valid.empty()) return;
  const char* fix = "Set rows with no visible key to 0, as here; or leave them out of the comparison.";
  list.add("dead-nan", "dead", "rows with no visible key are NaN", "Softmax of −∞ alone is 0/0.", fix,
           [](Altered& a) { a.softmax.dead = DeadRows::kNan; });
  list.add("dead-uniform", "dead", "rows with no visible key are uniform", "Every hidden key gets the weight 1/Nk.",
           fix, [](Altered& a) { a.softmax.dead = DeadRows::kUniform; });
}

void add_softmax(Listing& list) {
  const auto add = [&](const char* id, const char* name, const char* meaning, const char* fix, Change change) {
    list.add(id, "softmax", name, meaning, fix, std::move(change));
  };
  const char* axis = "Take the softmax over the last axis of [H, Nq, Nk] (dim=-1): every row then adds up to 1.";
  add("softmax-over-queries", "the softmax runs over the queries", "Columns add up to 1 instead of rows.", axis,
      [](Altered& a) { a.softmax.over = SoftmaxOver::kQueries; });
  if (list.shapes.heads > 1) {
    add("softmax-over-heads", "the softmax runs over the heads", "A cell's weights of all heads add up to 1.", axis,
        [](Altered& a) { a.softmax.over = SoftmaxOver::kHeads; });
  }
  add("softmax-not-divided", "the exponentials are not divided by their sum", "Rows do not add up to 1.",
      "Divide each row by its sum.", [](Altered& a) { a.softmax.not_divided = true; });
  add("softmax-overflow", "the softmax does not subtract the maximum", "In float32 exp(s) is infinite from 88.8 on.",
      "Subtract the row's maximum before exp.", [](Altered& a) { a.softmax.overflows = true; });
  if (list.shapes.nq == list.shapes.nk) {
    add("attn-transposed", "the weights are transposed", "Rows and columns of A are swapped.",
        "Rows are queries, columns are keys.", [](Altered& a) { a.softmax.transposed = true; });
  }
  const AttentionOptions& o = list.options();
  if (!o.sink.empty()) {
    list.add("sink-missing", "sink", "the sink is missing", "The denominator is without the sink's exponential.",
             "Add exp(sink) to the denominator of each row.", [](Altered& a) { a.softmax.sink.clear(); });
  }
  const bool zero = !o.sink.empty() && std::all_of(o.sink.begin(), o.sink.end(), [](float s) { return s == 0; });
  if (!zero) {
    const auto heads = static_cast<std::size_t>(list.shapes.heads);
    list.add(
        "sink-zero", "sink", o.sink.empty() ? "there is a sink of 0, none in ours" : "the sinks are 0",
        "1 is added to the denominator (\"softmax off by one\").",
        o.sink.empty() ? "Leave the 1 out there, or set a sink of 0 for each head here." : "Use each head's own sink.",
        [heads](Altered& a) { a.softmax.sink.assign(heads, 0.0); });
  }
}

void add_score_terms(Listing& list) {
  const AttentionOptions& o = list.options();
  if (o.softcap) {
    const char* fix = "s = c·tanh(s/c) right after the scale.";
    list.add("softcap-missing", "softcap", "the softcap is missing", "Scores are not held within ±c.", fix,
             [](Altered& a) { a.scaling.softcap.reset(); });
    list.add("softcap-before-scale", "softcap", "the softcap comes before the scale", "Raw scores are capped.", fix,
             [](Altered& a) { a.scaling.softcap_before_scale = true; });
    if (o.alibi || o.bias) {
      list.add("softcap-last", "softcap", "the softcap comes after ALiBi and bias", "What is added is capped too.", fix,
               [](Altered& a) { a.scaling.softcap_last = true; });
    }
  }
  if (!o.bias) return;
  const char* fix = "Add the bias to the scores after the scale, before the softmax.";
  list.add("bias-missing", "bias", "the score bias is missing", "Nothing is added to the scores.", fix,
           [](Altered& a) { a.scaling.bias = 0; });
  list.add("bias-sign", "bias", "the score bias has the wrong sign", "It is subtracted.", fix,
           [](Altered& a) { a.scaling.bias = -1; });
  list.add("bias-before-scale", "bias", "the score bias comes before the scale", "It is scaled as well.", fix,
           [](Altered& a) { a.scaling.bias_before_scale = true; });
  if (list.shapes.nq == list.shapes.nk) {
    list.add("bias-transposed", "bias", "the score bias is transposed", "Its rows are keys there.", fix,
             [](Altered& a) { a.scaling.bias_transposed = true; });
  }
}

void add_alibi(Listing& list) {
  const auto add = [&](const char* id, const char* name, const char* meaning, const char* fix, Change change) {
    list.add(id, "alibi", name, meaning, fix, std::move(change));
  };
  const int heads = list.shapes.heads;
  if (!list.options().alibi) {
    add("alibi-added", "there is ALiBi, none in ours", "Scores lose slope·|i − j|.",
        "Switch ALiBi off there, or on here.", [](Altered& a) { a.scaling.alibi = 1; });
    return;
  }
  const char* fix = "Subtract slope·|i − j| after the scale, with slope 2^(−8(h+1)/H) for H a power of two.";
  add("alibi-missing", "ALiBi is missing", "Scores do not fall with distance.", fix,
      [](Altered& a) { a.scaling.alibi = 0; });
  add("alibi-sign", "ALiBi has the wrong sign", "Scores grow with distance.", fix,
      [](Altered& a) { a.scaling.alibi = -1; });
  add("alibi-slopes-from-zero", "the slopes of ALiBi start at 1", "Slopes are 2^(−8h/H), counted from h = 0.", fix,
      [](Altered& a) { a.scaling.slopes = AlibiSlopes::kFromZero; });
  if (!std::has_single_bit(static_cast<unsigned>(heads))) {
    add("alibi-slopes-plain", "the slopes of ALiBi are those of a power of two",
        "Slopes are 2^(−8(h+1)/H), although H is no power of two.",
        "Take the slopes of the next lower power of two, then every second one of twice that.",
        [](Altered& a) { a.scaling.slopes = AlibiSlopes::kPlainPower; });
  }
  add("alibi-signed", "ALiBi uses i − j instead of |i − j|", "Later keys gain.", fix,
      [](Altered& a) { a.scaling.alibi_signed = true; });
  add("alibi-before-scale", "ALiBi comes before the scale", "It is scaled as well.", fix,
      [](Altered& a) { a.scaling.alibi_before_scale = true; });
  if (list.shapes.nq != list.shapes.nk) {
    add("alibi-unshifted", "ALiBi counts both positions from the start",
        "The last query does not stand at the last key.", "Use i + Nk − Nq for the query's position.",
        [](Altered& a) { a.scaling.alibi_unshifted = true; });
  }
}

void add_steps(Listing& list) {
  const auto add = [&](const char* id, const char* name, const char* meaning, Change change) {
    list.add(id, "step", name, meaning, "Compare with the array of the same step.", std::move(change));
  };
  add("scores-are-scaled", "scores are given after scaling", "The array holds our \"scaled\".",
      [](Altered& a) { a.scores_are = HeldStep::kScaled; });
  add("scores-are-masked", "scores are given after masking", "Hidden scores are −∞ there.",
      [](Altered& a) { a.scores_are = a.scaled_are = HeldStep::kMasked; });
  add("scaled-are-raw", "scaled scores are given before scaling", "The array holds our \"scores\".",
      [](Altered& a) { a.scaled_are = HeldStep::kScores; });
  add("attn-before-softmax", "weights are given before the softmax", "The array holds our \"scaled\".",
      [](Altered& a) { a.attn_is = HeldStep::kScaled; });
  add("attn-is-masked", "weights are given before the softmax, masked", "Hidden scores are −∞ there.",
      [](Altered& a) { a.attn_is = HeldStep::kMasked; });
}

}  // namespace

std::vector<Cause> possible_causes(const Problem& problem, const Shapes& shapes) {
  Listing list{problem, shapes};
  add_scale(list);
  add_causal(list);
  add_window(list);
  add_mask_use(list);
  add_dead_rows(list);
  add_softmax(list);
  add_rope(list);
  add_heads(list);
  add_weights(list);
  add_score_terms(list);
  add_alibi(list);
  add_roles(list);
  add_steps(list);
  // What the shapes do not allow is no cause.
  std::erase_if(list.causes, [&](const Cause& cause) {
    Altered altered = unaltered(problem, shapes);
    cause.apply(altered);
    return !can_be(altered.inputs, problem, shapes);
  });
  return std::move(list.causes);
}

}  // namespace qkv
