#include "core/attention/source.h"

#include <cmath>
#include <initializer_list>
#include <limits>

#include "core/base/number_text.h"

namespace qkv {
namespace {

// What is wrong, if anything is.
using Objection = std::optional<Error>;

std::string text_of(Index number) { return std::to_string(number); }
std::string size_of(const SharedMatrix& m) { return text_of(m.rows()) + "×" + text_of(m.cols()); }
std::string counted(Index number, const std::string& noun, const std::string& plural = "") {
  return text_of(number) + " " + (number == 1 ? noun : plural.empty() ? noun + "s" : plural);
}

Objection check_not_empty(const std::string& name, const SharedMatrix& m) {
  if (m.rows() >= 1 && m.cols() >= 1) return std::nullopt;
  return bad_input(name + " is " + size_of(m) + ": it needs at least one row and one column");
}

// Both counts are positive.
Objection check_head_counts(Index heads, Index kv_heads) {
  constexpr Index kMost = std::numeric_limits<int>::max();
  if (heads > kMost || kv_heads > kMost) return bad_input("too many heads: at most " + text_of(kMost));
  if (heads % kv_heads == 0) return std::nullopt;
  return bad_input("q has " + counted(heads, "head") + " but k and v have " + text_of(kv_heads) +
                   ": the heads of q must be a multiple of the heads of k and v");
}

// Every head of `name` has cells and the shape of its head 0.
Objection check_heads_alike(const std::string& name, const std::vector<SharedMatrix>& heads) {
  if (heads.empty()) return bad_input(name + " has 0 heads: it needs at least one");
  if (auto problem = check_not_empty(name, heads[0])) return problem;
  for (std::size_t h = 1; h < heads.size(); ++h) {
    if (heads[h].rows() == heads[0].rows() && heads[h].cols() == heads[0].cols()) continue;
    return bad_input(name + "[" + std::to_string(h) + "] is " + size_of(heads[h]) + " but " + name + "[0] is " +
                     size_of(heads[0]) + ": every head of " + name + " needs the same shape");
  }
  return std::nullopt;
}

Objection check_direct(const DirectSource& source, Shapes& shapes) {
  const auto& [q, k, v] = source;
  if (auto problem = check_heads_alike("q", q)) return problem;
  if (auto problem = check_heads_alike("k", k)) return problem;
  if (auto problem = check_heads_alike("v", v)) return problem;
  if (v.size() != k.size()) {
    return bad_input("v has " + counted(static_cast<Index>(v.size()), "head") + " but k has " +
                     std::to_string(k.size()) + ": both need the same number of heads");
  }
  if (auto problem = check_head_counts(static_cast<Index>(q.size()), static_cast<Index>(k.size()))) return problem;
  if (k[0].cols() != q[0].cols()) {
    return bad_input("k has " + counted(k[0].cols(), "column") + " but q has " + text_of(q[0].cols()) +
                     ": both need d_k");
  }
  if (v[0].rows() != k[0].rows()) {
    return bad_input("v has " + counted(v[0].rows(), "row") + " but k has " + text_of(k[0].rows()) +
                     ": both need one row for each key");
  }
  shapes = {.nq = q[0].rows(),
            .nk = k[0].rows(),
            .heads = static_cast<int>(q.size()),
            .kv_heads = static_cast<int>(k.size()),
            .d_k = q[0].cols(),
            .d_v = v[0].cols()};
  return std::nullopt;
}

Objection check_weights(const std::string& name, const SharedMatrix& w, const SharedMatrix& x, int heads,
                        const std::string& heads_name) {
  if (auto problem = check_not_empty(name, w)) return problem;
  if (w.rows() != x.cols()) {
    return bad_input(name + " has " + counted(w.rows(), "row") + " but x has " + counted(x.cols(), "column") +
                     ": both need d_model");
  }
  if (w.cols() % heads == 0) return std::nullopt;
  return bad_input(name + " has " + counted(w.cols(), "column") + " but " + heads_name + " is " +
                   std::to_string(heads) + ": the columns must be a multiple of " + heads_name);
}

Objection check_bias(const std::string& name, const std::optional<SharedMatrix>& b, const std::string& weights_name,
                     const SharedMatrix& w) {
  if (!b || (b->rows() == 1 && b->cols() == w.cols())) return std::nullopt;
  return bad_input(name + " is " + size_of(*b) + " but " + weights_name + " has " + counted(w.cols(), "column") + ": " +
                   name + " needs to be 1×" + text_of(w.cols()));
}

Objection check_projected(const ProjectedSource& source, Shapes& shapes) {
  const auto& [x, wq, wk, wv, bq, bk, bv, heads, kv_heads] = source;
  if (heads < 1) return bad_input("heads is " + std::to_string(heads) + ": it needs to be at least 1");
  if (kv_heads < 1) return bad_input("kv_heads is " + std::to_string(kv_heads) + ": it needs to be at least 1");
  if (auto problem = check_head_counts(heads, kv_heads)) return problem;
  if (auto problem = check_not_empty("x", x)) return problem;
  if (auto problem = check_weights("wq", wq, x, heads, "heads")) return problem;
  if (auto problem = check_weights("wk", wk, x, kv_heads, "kv_heads")) return problem;
  if (auto problem = check_weights("wv", wv, x, kv_heads, "kv_heads")) return problem;
  const Index q_columns = wq.cols() / heads, k_columns = wk.cols() / kv_heads;
  if (q_columns != k_columns) {
    return bad_input("wk gives " + counted(k_columns, "column") + " a head (" + text_of(wk.cols()) + " / " +
                     std::to_string(kv_heads) + ") but wq gives " + text_of(q_columns) + " (" + text_of(wq.cols()) +
                     " / " + std::to_string(heads) + "): both need d_k");
  }
  if (auto problem = check_bias("bq", bq, "wq", wq)) return problem;
  if (auto problem = check_bias("bk", bk, "wk", wk)) return problem;
  if (auto problem = check_bias("bv", bv, "wv", wv)) return problem;
  shapes = {.nq = x.rows(),
            .nk = x.rows(),
            .heads = heads,
            .kv_heads = kv_heads,
            .d_k = q_columns,
            .d_v = wv.cols() / kv_heads,
            .d_model = x.cols()};
  return std::nullopt;
}

// The first option that is set, by its key. `align` alone says which key is a query's own, which statistics use.
std::string_view option_in_use(const AttentionOptions& options) {
  if (options.rope) return "rope";
  if (options.scale) return "scale";
  if (options.softcap) return "softcap";
  if (options.alibi) return "alibi";
  if (options.bias) return "bias";
  if (options.causal) return "causal";
  if (options.window) return "window";
  if (!options.key_valid.empty()) return "key_valid";
  return options.sink.empty() ? "" : "sink";
}

Objection check_given(const WeightsSource& source, const Problem& problem, Shapes& shapes) {
  if (auto error = check_heads_alike("attn", source.attn)) return error;
  if (auto error = check_head_counts(static_cast<Index>(source.attn.size()), 1)) return error;
  const std::string reason = ", but attn holds ready weights without q, k and v: remove ";
  if (problem.wo) return bad_input("wo mixes what heads make of v" + reason + "wo");
  if (problem.bo) return bad_input("bo is added to what heads make of v" + reason + "bo");
  if (const std::string option(option_in_use(problem.options)); !option.empty()) {
    return bad_input(option + " acts on the way from q and k to weights" + reason + option);
  }
  const int heads = static_cast<int>(source.attn.size());
  shapes = {.nq = source.attn[0].rows(), .nk = source.attn[0].cols(), .heads = heads, .kv_heads = heads};
  return std::nullopt;
}

Objection check_output(const Problem& problem, Shapes& shapes) {
  if (!problem.wo) {
    if (!problem.bo) return std::nullopt;
    return bad_input("bo is " + size_of(*problem.bo) + " but there is no wo: add wo or remove bo");
  }
  const SharedMatrix& wo = *problem.wo;
  if (auto error = check_not_empty("wo", wo)) return error;
  if (wo.rows() != shapes.heads * shapes.d_v) {
    return bad_input("wo has " + counted(wo.rows(), "row") + " but the heads side by side have " +
                     counted(shapes.heads * shapes.d_v, "column") + " (" + std::to_string(shapes.heads) + "·" +
                     text_of(shapes.d_v) + "): both need heads·d_v");
  }
  shapes.d_out = wo.cols();
  return check_bias("bo", problem.bo, "wo", wo);
}

std::string value_text(float value) { return std::isnan(value) ? "NaN" : format_shortest(value); }

Objection check_rope(const std::optional<Rope>& rope, const Shapes& shapes) {
  if (!rope) return std::nullopt;
  if (!(rope->base > 1) || !std::isfinite(rope->base)) {
    return bad_input("rope.base is " + value_text(rope->base) + ": it needs to be a finite number above 1");
  }
  if (shapes.d_k % 2 == 0) return std::nullopt;
  return bad_input("rope turns pairs of columns but d_k is " + text_of(shapes.d_k) + ": it needs an even d_k");
}

Objection check_sink(const std::vector<float>& sink, const Shapes& shapes) {
  const auto entries = static_cast<Index>(sink.size());
  if (entries == 0) return std::nullopt;
  if (entries != shapes.heads) {
    return bad_input("sink has " + counted(entries, "number") + " but there " + (shapes.heads == 1 ? "is " : "are ") +
                     counted(shapes.heads, "head") + ": it needs one number for each head");
  }
  for (std::size_t h = 0; h < sink.size(); ++h) {
    if (std::isfinite(sink[h])) continue;
    return bad_input("sink[" + std::to_string(h) + "] is " + value_text(sink[h]) + ": it needs to be a finite number");
  }
  return std::nullopt;
}

// The options that act on scores before the mask.
Objection check_scaling(const AttentionOptions& options, const Shapes& shapes) {
  if (options.scale && !std::isfinite(*options.scale)) {
    return bad_input("scale is " + value_text(*options.scale) +
                     ": it needs to be a finite number, or absent for 1/√d_k");
  }
  if (options.softcap && (!(*options.softcap > 0) || !std::isfinite(*options.softcap))) {
    return bad_input("softcap is " + value_text(*options.softcap) +
                     ": it needs to be a finite number above 0, or absent for no cap");
  }
  if (!options.bias || (options.bias->rows() == shapes.nq && options.bias->cols() == shapes.nk)) return std::nullopt;
  return bad_input("bias is " + size_of(*options.bias) + " but there are " + counted(shapes.nq, "query", "queries") +
                   " and " + counted(shapes.nk, "key") + ": it needs to be " + text_of(shapes.nq) + "×" +
                   text_of(shapes.nk));
}

Objection check_masks(const AttentionOptions& options, const Shapes& shapes) {
  if (options.window && (*options.window < 1 || *options.window > kMaxWindow)) {
    return bad_input("window is " + text_of(*options.window) + ": it needs to be a whole number from 1 to " +
                     text_of(kMaxWindow) + ", or absent for no window");
  }
  const auto entries = static_cast<Index>(options.key_valid.size());
  if (entries == 0 || entries == shapes.nk) return std::nullopt;
  return bad_input("key_valid has " + text_of(entries) + (entries == 1 ? " entry" : " entries") + " but there are " +
                   counted(shapes.nk, "key") + ": it needs one entry for each key");
}

Objection check_options(const AttentionOptions& options, const Shapes& shapes) {
  if (auto error = check_rope(options.rope, shapes)) return error;
  if (auto error = check_scaling(options, shapes)) return error;
  if (auto error = check_masks(options, shapes)) return error;
  return check_sink(options.sink, shapes);
}

}  // namespace

Result<Shapes> check_shapes(const Problem& problem) {
  Shapes shapes;
  Objection of_source;
  if (const auto* given = std::get_if<WeightsSource>(&problem.source)) {
    of_source = check_given(*given, problem, shapes);
    return of_source ? Result<Shapes>(*of_source) : shapes;
  }
  const auto* direct = std::get_if<DirectSource>(&problem.source);
  of_source =
      direct ? check_direct(*direct, shapes) : check_projected(std::get<ProjectedSource>(problem.source), shapes);
  if (of_source) return *of_source;
  if (auto error = check_output(problem, shapes)) return *error;
  if (auto error = check_options(problem.options, shapes)) return *error;
  return shapes;
}

int head_count(const Source& source) {
  if (const auto* direct = std::get_if<DirectSource>(&source)) return static_cast<int>(direct->q.size());
  if (const auto* given = std::get_if<WeightsSource>(&source)) return static_cast<int>(given->attn.size());
  return std::get<ProjectedSource>(source).heads;
}

int kv_head_of(const Shapes& shapes, int head) { return head / (shapes.heads / shapes.kv_heads); }

}  // namespace qkv
