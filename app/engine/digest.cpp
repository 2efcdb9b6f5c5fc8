#include "app/engine/digest.h"

#include <cmath>

namespace qkv {

ScaleGroup scale_group(MatrixKind kind) {
  switch (kind) {
    case MatrixKind::kAttn:
      return ScaleGroup::kWeights;
    case MatrixKind::kScores:
    case MatrixKind::kAlibi:
    case MatrixKind::kBias:
    case MatrixKind::kScaled:
      return ScaleGroup::kScores;
    case MatrixKind::kKeep:
      return ScaleGroup::kMask;
    case MatrixKind::kX:
      return ScaleGroup::kInput;
    case MatrixKind::kWq:
    case MatrixKind::kWk:
    case MatrixKind::kWv:
    case MatrixKind::kBq:
    case MatrixKind::kBk:
    case MatrixKind::kBv:
      return ScaleGroup::kProjection;
    case MatrixKind::kConcat:
      return ScaleGroup::kConcat;
    case MatrixKind::kWo:
    case MatrixKind::kBo:
      return ScaleGroup::kWo;
    case MatrixKind::kOut:
      return ScaleGroup::kOut;
    default:
      return ScaleGroup::kValues;
  }
}

TraceDigest digest(const Trace& trace) {
  TraceDigest result;
  const Index shift = query_shift(trace.problem.options, trace.shapes.nq, trace.shapes.nk);
  for (const HeadTrace& head : trace.heads) result.heads.push_back(head_stats(head.attn, trace.keep, shift));
  for (const MatrixKind kind : kAllMatrixKinds) {
    const int count = is_per_head(kind) ? trace.shapes.heads : 1;
    for (int head = 0; head < count; ++head) {
      const Matrix* matrix = trace.find({kind, head});
      if (matrix == nullptr || kind == MatrixKind::kKeep) continue;
      const bool masked = kind == MatrixKind::kAttn;
      const FiniteExtent extent = finite_extent(*matrix, masked ? &trace.keep : nullptr);
      FiniteExtent& total = result.extents[static_cast<std::size_t>(scale_group(kind))];
      total = merge(total, extent);
    }
  }
  for (int h = 0; h < trace.shapes.heads; ++h) {
    const HeadTrace& head = trace.heads[static_cast<std::size_t>(h)];
    for (Index row = 0; row < head.attn.rows(); ++row) {
      if (head.rows[static_cast<std::size_t>(row)].visible == 0) continue;
      const double off = std::abs(head.attn.row(row).cast<double>().sum() - expected_row_sum(trace, h, row));
      if (off > result.worst_row_sum) result.worst_row_sum = off;
    }
  }
  result.warnings = find_warnings(trace);
  result.hidden = static_cast<Index>((trace.keep.array() == 0).count());
  return result;
}

}  // namespace qkv
