#include "core/attention/cause_listing.h"
#include "core/base/number_text.h"

namespace qkv {

void add_rope(Listing& list) {
  const auto add = [&](const std::string& id, const std::string& name, const std::string& meaning,
                       const std::string& fix, Change change,
                       const char* group = "rope") { list.add(id, group, name, meaning, fix, std::move(change)); };
  if (list.shapes.d_k % 2 != 0) return;
  const std::optional<Rope>& rope = list.options().rope;
  const char* styles[] = {"half", "interleaved"};
  if (!rope) {
    for (const RopeStyle style : {RopeStyle::kHalf, RopeStyle::kInterleaved}) {
      const std::string name = styles[static_cast<int>(style)];
      add("rope-added-" + name, "there is a rotary embedding (" + name + ", base 10000), none in ours",
          "Q and K are rotated by position.", "Switch it off there, or on here.", [style](Altered& a) {
            a.inputs.rope = Rope{10000, style};
          });
    }
    return;
  }
  const bool half = rope->style == RopeStyle::kHalf;
  add("rope-style", std::string("the rotary embedding is ") + styles[half ? 1 : 0] + ", not " + styles[half ? 0 : 1],
      half ? "Columns 2i and 2i + 1 turn together." : "Columns i and i + d/2 turn together.",
      half ? "Turn columns i and i + d/2 together, or set the style interleaved here."
           : "Turn columns 2i and 2i + 1 together, or set the style half here.",
      [half](Altered& a) { a.inputs.rope->style = half ? RopeStyle::kInterleaved : RopeStyle::kHalf; });
  add("rope-missing", "the rotary embedding is missing", "Q and K are not rotated.", "Rotate Q and K before QKᵀ.",
      [](Altered& a) { a.inputs.rope.reset(); });
  for (const float base : {10000.0F, 500000.0F, 1000000.0F}) {
    if (base == rope->base) continue;
    const std::string text = format_fixed(static_cast<double>(base), 0, false);
    add("rope-base-" + text, "the base of the rotary embedding is " + text,
        "Angles are position · " + text + "^(−2i/d).",
        "Use the base " + format_shortest(rope->base) + ", or set " + text + " here.",
        [base](Altered& a) { a.inputs.rope->base = base; });
  }
  const char* where = "rope-position";
  add(
      "rope-backwards", "the rotary embedding turns the other way", "Angles are negative.",
      "Turn (x, y) to (x·cos − y·sin, y·cos + x·sin).", [](Altered& a) { a.inputs.rope_backwards = true; }, where);
  add(
      "rope-queries-only", "the rotary embedding turns Q alone", "K is not rotated.", "Rotate K as well.",
      [](Altered& a) { a.inputs.rope_on_keys = false; }, where);
  add(
      "rope-keys-only", "the rotary embedding turns K alone", "Q is not rotated.", "Rotate Q as well.",
      [](Altered& a) { a.inputs.rope_on_queries = false; }, where);
  const char* start = "Count the positions of queries and keys from 0 alike.";
  add(
      "rope-queries-ahead", "the positions of the queries are one ahead", "The first query stands at position 1.",
      start, [](Altered& a) { a.inputs.first_query_position = 1; }, where);
  add(
      "rope-queries-behind", "the positions of the queries are one behind", "The first query stands at position −1.",
      start, [](Altered& a) { a.inputs.first_query_position = -1; }, where);
  const Index shift = list.shapes.nk - list.shapes.nq;
  if (shift != 0 && shift != 1 && shift != -1) {
    add(
        "rope-queries-last", "the last query stands at the last key", "Positions of the queries start at Nk − Nq.",
        start, [shift](Altered& a) { a.inputs.first_query_position = shift; }, where);
  }
  add(
      "rope-already-in", "q and k are given after the rotation", "The arrays hold what goes into QKᵀ.",
      "Compare with q and k before the rotation.", [](Altered& a) { a.inputs.shows_rotated = true; }, where);
}

void add_heads(Listing& list) {
  const Shapes& s = list.shapes;
  if (s.kv_heads > 1 && s.kv_heads < s.heads) {
    list.add("gqa-tiled", "gqa", "key/value heads are tiled, not repeated",
             "Query head h reads key/value head h mod " + std::to_string(s.kv_heads) + ".",
             "Repeat each key/value head " + std::to_string(s.heads / s.kv_heads) +
                 " times in a row (torch.repeat_interleave, not repeat).",
             [](Altered& a) { a.tiled = true; });
  }
  if (s.heads == 1) return;
  const char* fix = "Cut [N, H·d] as [N, H, d], then swap axes to [H, N, d].";
  const auto all = [](HeadCut layout) { return [layout](Altered& a) { a.inputs.layout = {layout, layout, layout}; }; };
  list.add("heads-uncut", "layout", "the axes of the heads are not swapped", "[N, H·d] is read as [H, N, d].", fix,
           all(HeadCut::kUncut));
  list.add("heads-interleaved", "layout", "heads are interleaved", "Head h takes columns h, h + H, h + 2H and so on.",
           fix, all(HeadCut::kInterleaved));
  const char* back = "Swap [H, N, d] to [N, H, d], then join to [N, H·d].";
  list.add("concat-uncut", "concat", "the axes are not swapped back before the heads are joined",
           "[H, N, d] is read as [N, H·d].", back, [](Altered& a) { a.output.concat = HeadCut::kUncut; });
  list.add("concat-interleaved", "concat", "the heads are joined interleaved",
           "Column j of head h becomes column h + H·j.", back,
           [](Altered& a) { a.output.concat = HeadCut::kInterleaved; });
}

void add_roles(Listing& list) {
  const auto add = [&](const char* id, const char* name, const char* meaning, const char* fix, Change change) {
    list.add(id, "roles", name, meaning, fix, std::move(change));
  };
  const auto from = [](int q, int k, int v) { return [=](Altered& a) { a.inputs.taken_from = {q, k, v}; }; };
  const char* order = "Check the order of Q, K and V where they are split or passed.";
  add("q-and-k-swapped", "Q and K are swapped", "Keys ask and queries answer.", order, from(1, 0, 2));
  add("v-for-k", "V stands in for K", "Scores are Q·Vᵀ.", order, from(0, 2, 2));
  add("k-for-v", "K stands in for V", "The output is A·K.", order, from(0, 1, 1));
  add("k-and-v-swapped", "K and V are swapped", "Scores are Q·Vᵀ and the output is A·K.", order, from(0, 2, 1));
  add("q-for-k", "Q stands in for K", "Scores are Q·Qᵀ.", order, from(0, 0, 2));
  add("k-for-q", "K stands in for Q", "Scores are K·Kᵀ.", order, from(1, 1, 2));
  if (list.shapes.nq == 1 && list.shapes.nk == 1) return;
  const char* tokens = "Give both the tokens in the same order.";
  list.add("tokens-reversed", "order", "the tokens are reversed", "The last token comes first.", tokens,
           [](Altered& a) { a.inputs.reversed_queries = a.inputs.reversed_keys = true; });
  list.add("queries-reversed", "order", "the queries are reversed", "The last query comes first.", tokens,
           [](Altered& a) { a.inputs.reversed_queries = true; });
  list.add("keys-reversed", "order", "the keys are reversed", "The last key comes first, and its value.", tokens,
           [](Altered& a) { a.inputs.reversed_keys = true; });
}

void add_weights(Listing& list) {
  const char* fix = "Linear weights are [out, in]: compute x·Wᵀ of those, or store W as [in, out].";
  const auto transposed = [&](const char* id, const std::string& name, std::array<bool, 3> of, bool wo) {
    list.add(id, "weights", name, "The product is with the transpose.", fix, [=](Altered& a) {
      a.inputs.transposed = of;
      a.output.transposed_wo = wo;
    });
  };
  const auto biasless = [&](const char* id, const std::string& name, std::array<bool, 3> of, bool bo) {
    list.add(id, "projection-bias", name, "Nothing is added after the product with W.",
             "Add the bias after the product.", [=](Altered& a) {
               a.inputs.no_bias = of;
               a.output.no_bo = bo;
             });
  };
  const Problem& problem = list.problem;
  const bool square_wo = problem.wo && problem.wo->rows() == problem.wo->cols();
  const ProjectedSource* source = list.projected();
  if (source != nullptr) {
    const auto square = [](const SharedMatrix& w) { return w.rows() == w.cols(); };
    const std::array<bool, 3> can = {square(source->wq), square(source->wk), square(source->wv)};
    if (can[0] && can[1] && can[2]) {
      if (square_wo) transposed("weights-transposed", "all weights are transposed", can, true);
      transposed("wqkv-transposed", "W^Q, W^K and W^V are transposed", can, false);
    }
    if (can[0]) transposed("wq-transposed", "W^Q is transposed", {true, false, false}, false);
    if (can[1]) transposed("wk-transposed", "W^K is transposed", {false, true, false}, false);
    if (can[2]) transposed("wv-transposed", "W^V is transposed", {false, false, true}, false);
    if (source->bq || source->bk || source->bv) {
      if (problem.bo) biasless("biases-missing", "all biases are missing", {true, true, true}, true);
      biasless("bqkv-missing", "b^Q, b^K and b^V are missing", {true, true, true}, false);
    }
    if (source->bq) biasless("bq-missing", "b^Q is missing", {true, false, false}, false);
    if (source->bk) biasless("bk-missing", "b^K is missing", {false, true, false}, false);
    if (source->bv) biasless("bv-missing", "b^V is missing", {false, false, true}, false);
  }
  if (square_wo) transposed("wo-transposed", "W^O is transposed", {}, true);
  if (problem.bo) biasless("bo-missing", "b^O is missing", {}, true);
  if (!problem.wo) return;
  if (list.shapes.d_out == list.shapes.heads * list.shapes.d_v) {
    list.add("wo-missing", "output", "W^O is missing", "The output is the heads side by side.",
             "Multiply Concat by W^O.", [](Altered& a) {
               a.output.no_wo = true;
               a.output.no_bo = true;
             });
  }
  if (source != nullptr && list.shapes.d_out == list.shapes.d_model) {
    list.add("residual-added", "output", "the residual is in it", "X is added to the output.",
             "Compare with the output before X is added.", [](Altered& a) { a.output.residual = true; });
  }
}

}  // namespace qkv
