#include "core/attention/trace.h"

#include <algorithm>
#include <cmath>

#include "core/attention/given_weights.h"
#include "core/attention/kernel_cells.h"
#include "core/attention/kernels/row_summary.h"
#include "core/attention/position.h"
#include "core/attention/problem_inputs.h"
#include "core/attention/streamed_head.h"

namespace qkv {
namespace {

bool all_finite(const SharedMatrix& matrix) { return float_extent(matrix->data(), matrix->size()).all_finite; }

Index count_non_finite(const SharedMatrix& matrix) {
  return all_finite(matrix) ? 0 : matrix.get().size() - matrix->array().isFinite().count();
}

// −Inf is how a bias hides a key.
Index count_wrong_biases(const SharedMatrix& bias) {
  if (all_finite(bias)) return 0;
  const auto is_wrong = [](float value) { return std::isnan(value) || value == HUGE_VALF; };
  return std::count_if(bias->data(), bias->data() + bias->size(), is_wrong);
}

const Matrix* head_of(const std::vector<SharedMatrix>& heads, int head) {
  return head >= 0 && static_cast<std::size_t>(head) < heads.size() ? &heads[static_cast<std::size_t>(head)].get()
                                                                    : nullptr;
}

const Matrix* head_of(const std::vector<HeadTrace>& heads, int head, LazyMatrix HeadTrace::*member) {
  if (head < 0 || static_cast<std::size_t>(head) >= heads.size()) return nullptr;
  return (heads[static_cast<std::size_t>(head)].*member).find();
}

}  // namespace

const Matrix* Trace::find(MatrixId id) const {
  switch (id.kind) {
    case MatrixKind::kQ:
      return head_of(q, id.head);
    case MatrixKind::kK:
      return head_of(k, id.head);
    case MatrixKind::kV:
      return head_of(v, id.head);
    case MatrixKind::kScores:
      return head_of(heads, id.head, &HeadTrace::scores);
    case MatrixKind::kAlibi:
      return id.head >= 0 && static_cast<std::size_t>(id.head) < alibi.size()
                 ? alibi[static_cast<std::size_t>(id.head)].find()
                 : nullptr;
    case MatrixKind::kScaled:
      return head_of(heads, id.head, &HeadTrace::scaled);
    case MatrixKind::kAttn:
      return head_of(heads, id.head, &HeadTrace::attn);
    case MatrixKind::kHeadsOut:
      return head_of(heads, id.head, &HeadTrace::out);
    case MatrixKind::kKeep:
      return keep.find();
    case MatrixKind::kConcat:
      return concat.find();
    case MatrixKind::kOut:
      return out ? &*out : nullptr;
    default: {
      const SharedMatrix* input = find_input(problem, id);
      return input ? &input->get() : nullptr;
    }
  }
}

std::shared_ptr<const MatrixSource> Trace::source(MatrixId id) const {
  const bool of_kernel =
      id.kind == MatrixKind::kScores || id.kind == MatrixKind::kScaled || id.kind == MatrixKind::kAttn;
  if (of_kernel && id.head >= 0 && static_cast<std::size_t>(id.head) < kernels.size()) {
    return std::make_shared<KernelCells>(kernels[static_cast<std::size_t>(id.head)], id.kind);
  }
  if (id.kind == MatrixKind::kAlibi && problem.options.alibi && id.head >= 0 && id.head < shapes.heads) {
    return std::make_shared<AlibiCells>(problem.options, shapes, id.head);
  }
  const Matrix* held = find(id);
  const auto stream = static_cast<std::size_t>(id.kind == MatrixKind::kKeep ? 0 : id.head);
  if (!held && id.head >= 0 && stream < streams.size()) return streamed_source(streams[stream], id.kind);
  return held ? std::make_shared<DenseSource>(*held) : nullptr;
}

HeadStats head_stats(const Trace& trace, int head) {
  const std::vector<RowStats>& rows = trace.heads[static_cast<std::size_t>(head)].rows;
  HeadStatsSum sum(query_shift(trace.problem.options, trace.shapes.nq, trace.shapes.nk));
  const auto keys = static_cast<std::size_t>(trace.shapes.nk);
  for_each_strip(*trace.source({MatrixKind::kAttn, head}), [&](Index first, const ConstMatrixRef& strip) {
    for (Index r = 0; r < strip.rows(); ++r) {
      sum.add({strip.row(r).data(), keys}, first + r, rows[static_cast<std::size_t>(first + r)].visible);
    }
  });
  return sum.value();
}

void set_lazy_masks(Trace& trace) {
  const AttentionOptions options = trace.problem.options;
  const Shapes shapes = trace.shapes;
  trace.keep = LazyMatrix([options, shapes] {
    return std::make_shared<const Matrix>(keep_matrix(options, shapes.nq, shapes.nk).cast<float>());
  });
  trace.alibi.clear();
  for (int head = 0; options.alibi && head < shapes.heads; ++head) {
    trace.alibi.emplace_back([cells = AlibiCells(options, shapes, head)] {
      auto whole = std::make_shared<Matrix>(cells.rows(), cells.cols());
      cells.read({0, 0, cells.rows(), cells.cols()}, *whole);
      return whole;
    });
  }
}

void set_lazy_concat(Trace& trace) {
  std::vector<LazyMatrix> outs;
  for (const HeadTrace& head : trace.heads) outs.push_back(head.out);
  trace.concat = LazyMatrix([outs, shapes = trace.shapes] {
    auto whole = std::make_shared<Matrix>(shapes.nq, shapes.heads * shapes.d_v);
    for (std::size_t h = 0; h < outs.size(); ++h) {
      whole->middleCols(static_cast<Index>(h) * shapes.d_v, shapes.d_v) = outs[h].get();
    }
    return whole;
  });
}

Index count_hidden(const Trace& trace) {
  if (trace.heads.empty()) return 0;
  Index hidden = trace.shapes.nq * trace.shapes.nk;
  for (const RowStats& row : trace.heads[0].rows) hidden -= row.visible;
  return hidden;
}

double expected_row_sum(const Trace& trace, int head, Index row) {
  const RowStats& stats = trace.heads[static_cast<std::size_t>(head)].rows[static_cast<std::size_t>(row)];
  return stats.visible == 0 ? 0 : 1 - stats.sink;
}

TraceWarnings find_warnings(const Trace& trace) {
  TraceWarnings warnings;
  if (!trace.heads.empty()) {
    const std::vector<RowStats>& rows = trace.heads[0].rows;
    warnings.dead_rows = std::count_if(rows.begin(), rows.end(), [](const RowStats& row) { return row.visible == 0; });
  }
  for (const ProblemInput& input : inputs_of(trace.problem)) {
    for (const SharedMatrix& matrix : input.matrices) {
      warnings.nan_inputs += input.kind == MatrixKind::kBias ? count_wrong_biases(matrix) : count_non_finite(matrix);
    }
  }
  warnings.unnormalised_rows = count_unnormalised(trace);
  if (trace.out) {
    warnings.nan_outputs = trace.out->array().isNaN().count();
  } else {
    for (const HeadTrace& head : trace.heads) {
      if (const Matrix* values = head.out.find()) warnings.nan_outputs += values->array().isNaN().count();
    }
  }
  return warnings;
}

}  // namespace qkv
