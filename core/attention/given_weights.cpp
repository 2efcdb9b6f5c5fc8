#include "core/attention/given_weights.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <utility>

#include "core/base/seconds_since.h"

namespace qkv {
namespace {

HeadTrace given_head(const SharedMatrix& attn) {
  HeadTrace head;
  head.attn = shared_cells(attn);
  head.rows.resize(static_cast<std::size_t>(attn.rows()));
  for (Index row = 0; row < attn.rows(); ++row) {
    head.rows[static_cast<std::size_t>(row)] = {.denominator = attn->row(row).cast<double>().sum(),
                                                .visible = attn.cols()};
  }
  return head;
}

}  // namespace

LazyMatrix shared_cells(const SharedMatrix& matrix) {
  const auto holder = std::make_shared<const SharedMatrix>(matrix);
  return LazyMatrix([holder] { return std::shared_ptr<const Matrix>(holder, &holder->get()); });
}

Trace given_trace(const Problem& problem, const Shapes& shapes) {
  const auto start = std::chrono::steady_clock::now();
  Trace trace;
  trace.problem = problem;
  trace.shapes = shapes;
  set_lazy_masks(trace);
  for (const SharedMatrix& attn : std::get<WeightsSource>(problem.source).attn) {
    trace.heads.push_back(given_head(attn));
  }
  trace.seconds = seconds_since(start);
  return trace;
}

Trace update_given(Trace before, const Problem& edited, const Shapes& shapes, UpdateReport& report) {
  const auto* old = std::get_if<WeightsSource>(&before.problem.source);
  if (old == nullptr || before.shapes != shapes || before.problem.options != edited.options) {
    report.full = true;
    return given_trace(edited, shapes);
  }
  const auto start = std::chrono::steady_clock::now();
  const auto& attn = std::get<WeightsSource>(edited.source).attn;
  for (std::size_t h = 0; h < attn.size(); ++h) {
    const bool same = old->attn[h].same_storage(attn[h]);
    if (!same) before.heads[h] = given_head(attn[h]);
    report.same.push_back(same);
  }
  before.problem = edited;
  before.seconds = seconds_since(start);
  return before;
}

Index count_unnormalised(const Trace& trace, int head) {
  if (!is_weights_only(trace.problem.source)) return 0;
  const std::vector<RowStats>& rows = trace.heads[static_cast<std::size_t>(head)].rows;
  return std::count_if(rows.begin(), rows.end(), [](const RowStats& row) {
    return std::isfinite(row.denominator) && std::abs(row.denominator - 1) > kGivenRowTolerance;
  });
}

Index count_unnormalised(const Trace& trace) {
  Index count = 0;
  for (int head = 0; head < trace.shapes.heads; ++head) count += count_unnormalised(trace, head);
  return count;
}

WeightPlace place_in_row(std::span<const float> weights, Index col) {
  WeightPlace place;
  const float weight = weights[static_cast<std::size_t>(col)];
  Index larger = 0;
  for (const float other : weights) {
    place.sum += static_cast<double>(other);
    place.keys += std::isnan(other) ? 0 : 1;
    larger += other > weight ? 1 : 0;
  }
  place.rank = std::isnan(weight) ? 0 : larger + 1;
  return place;
}

}  // namespace qkv
