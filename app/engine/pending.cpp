#include "app/engine/pending.h"

#include "core/attention/given_weights.h"
#include "core/attention/kernel_input.h"
#include "core/attention/problem_inputs.h"
#include "core/attention/visible_keys.h"

namespace qkv {
namespace {

std::vector<RowStats> visible_rows(const Problem& problem, const Shapes& shapes) {
  const VisibleKeys visible(kernel_mask(problem.options, shapes), shapes.nq, shapes.nk);
  std::vector<RowStats> rows(static_cast<std::size_t>(shapes.nq));
  for (Index row = 0; row < shapes.nq; ++row) {
    rows[static_cast<std::size_t>(row)].visible = visible.count(row, 0, shapes.nk);
  }
  return rows;
}

}  // namespace

std::shared_ptr<const Computed> pending(const Session& session) {
  auto made = std::make_shared<Computed>();
  made->session = session;
  Trace& trace = made->trace;
  trace.problem = session.problem;
  trace.shapes = check_session(session).value();  // a session in the window agrees with itself
  if (const auto* direct = std::get_if<DirectSource>(&session.problem.source)) {
    trace.q = direct->q;
    trace.k = direct->k;
    trace.v = direct->v;
  }
  const auto heads = static_cast<std::size_t>(trace.shapes.heads);
  trace.heads.resize(heads);
  for (HeadTrace& head : trace.heads) head.rows = visible_rows(trace.problem, trace.shapes);
  if (const auto* given = std::get_if<WeightsSource>(&session.problem.source)) {
    for (std::size_t h = 0; h < heads; ++h) trace.heads[h].attn = shared_cells(given->attn[h]);
  }
  if (trace.problem.options.alibi) trace.alibi.resize(heads);
  TraceDigest& digest = made->digest;
  digest.refining = true;
  digest.heads.resize(heads);
  digest.hidden = count_hidden(trace);
  for (const ProblemInput& input : inputs_of(trace.problem)) {
    FiniteExtent& extent = digest.extents[static_cast<std::size_t>(scale_group(input.kind))];
    for (const SharedMatrix& matrix : input.matrices) extent = merge(extent, finite_extent(matrix.get()));
  }
  return made;
}

bool is_pending(const Computed& computed) { return computed.digest.refining && computed.trace.streams.empty(); }

}  // namespace qkv
