#include "core/attention/edit_extent.h"

#include <algorithm>

#include "core/attention/edit_options.h"
#include "core/attention/edit_rows.h"
#include "core/attention/update.h"

namespace qkv {

bool can_patch(const Trace& trace, const Problem& edited, const Shapes& shapes, Arithmetic arithmetic) {
  return arithmetic == Arithmetic::kFloat32 && trace.arithmetic == arithmetic && trace.shapes == shapes &&
         !trace.kernels.empty() && trace.problem.source.index() == edited.source.index();
}

namespace {

// How much an edit touches, over all query heads.
struct Extent {
  int heads = 0;
  Index query_rows = 0, key_rows = 0;  // over all query heads
};

Extent extent_of_source(const Trace& trace, const Problem& edited) {
  const Shapes& shapes = trace.shapes;
  if (const auto* after = std::get_if<DirectSource>(&edited.source)) {
    Extent extent;
    const int group = shapes.heads / shapes.kv_heads;
    for (int head = 0; head < shapes.heads; ++head) {
      const auto h = static_cast<std::size_t>(head), kv = static_cast<std::size_t>(head / group);
      const auto queries = static_cast<Index>(changed_rows(trace.q[h], after->q[h]).size());
      const auto keys = static_cast<Index>(changed_rows(trace.k[kv], after->k[kv]).size() +
                                           changed_rows(trace.v[kv], after->v[kv]).size());
      extent.query_rows += queries;
      extent.key_rows += keys;
      extent.heads += queries + keys > 0;
    }
    return extent;
  }
  const auto& before = std::get<ProjectedSource>(trace.problem.source);
  const auto& after = std::get<ProjectedSource>(edited.source);
  const bool same_weights = before.wq.same_storage(after.wq) && before.wk.same_storage(after.wk) &&
                            before.wv.same_storage(after.wv) && before.bq == after.bq && before.bk == after.bk &&
                            before.bv == after.bv;
  if (!same_weights) return {shapes.heads, shapes.nq * shapes.heads, 0};
  const auto rows = static_cast<Index>(changed_rows(before.x, after.x).size());
  return {rows > 0 ? shapes.heads : 0, rows * shapes.heads, rows * shapes.heads};
}

Extent extent_of(const Trace& trace, const Problem& edited) {
  const Shapes& shapes = trace.shapes;
  const OptionsEdit options = compare_options(trace.problem.options, edited.options, shapes);
  if (options.all_rows) return {shapes.heads, shapes.nq * shapes.heads, 0};
  Extent extent = extent_of_source(trace, edited);
  if (!options.any) return extent;
  extent.heads = shapes.heads;
  extent.query_rows += std::ssize(options.rows) * shapes.heads;
  extent.key_rows += (std::ssize(options.keys) + Index{options.sink}) * shapes.heads;
  return extent;
}

}  // namespace

UpdateCost estimated_cost(const Trace& trace, const Problem& edited) {
  const Shapes& s = trace.shapes;
  const Result<Shapes> shapes = check_shapes(edited);
  if (!shapes.ok()) return {s.heads, 0};
  if (!can_patch(trace, edited, shapes.value(), trace.arithmetic)) return {s.heads, estimated_flops(shapes.value())};
  const Extent extent = extent_of(trace, edited);
  const auto nq = static_cast<double>(s.nq), nk = static_cast<double>(s.nk);
  const double size = 2 * static_cast<double>(s.d_k) + 20 + 2 * static_cast<double>(s.d_v);
  // A key row costs about eight cells of a pass in each query row, since it reads columns.
  const double patched =
      static_cast<double>(extent.query_rows) * nk * size + static_cast<double>(extent.key_rows) * nq * 8 * size;
  return {extent.heads, std::min(patched, estimated_flops(s))};
}

}  // namespace qkv
