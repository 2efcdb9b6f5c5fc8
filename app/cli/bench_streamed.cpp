// Rows of `qkvlab bench`: one head that is too large for its matrices to be held.
#include <utility>

#include "app/cli/bench_rows.h"
#include "app/cli/bench_support.h"
#include "core/attention/streamed_head.h"

namespace qkv::cli {
namespace {

constexpr Index kWindow = 1024;  // rows and columns of exact cells that are read

std::shared_ptr<StreamedHead> streamed(const Problem& problem, const Shapes& shapes) {
  const DirectSource& source = std::get<DirectSource>(problem.source);
  auto packed = std::make_shared<PackedKeyValues>(view_of(*source.k[0]), view_of(*source.v[0]));
  return std::make_shared<StreamedHead>(source.q[0], std::move(packed), problem.options, shapes, 0, false);
}

// The coarse picture, the whole of the row statistics and overviews, and exact weights in the middle of the diagonal.
Result<std::vector<BenchRow>> time_streamed(const BenchSettings& settings, const Variant& variant, Index n) {
  const Problem problem = direct_problem(variant, 1, n);
  const Result<Shapes> shapes = check_shapes(problem);
  if (!shapes.ok()) return shapes.error();
  const std::string name = variant.name;

  BenchRow coarse = row_of(settings, "streamed", variant, 1, n);
  coarse.variant = name + ", coarse picture";
  coarse.flops = coarse.exps = 0;  // what it leaves out is its own choice
  coarse.seconds = median_seconds(settings, [&] { streamed(problem, shapes.value())->sample(*settings.pool); });

  const std::shared_ptr<StreamedHead> head = streamed(problem, shapes.value());
  BenchRow whole = row_of(settings, "streamed", variant, 1, n);
  whole.variant = name + ", row statistics and overview";
  whole.flops /= 2;  // of the two products, QKᵀ alone
  whole.limits = measure_machine_limits(*settings.pool).held;
  whole.seconds = seconds_of([&] { head->compute(*settings.pool); });  // once: it takes seconds

  BenchRow window = row_of(settings, "streamed", {"plain"}, 1, kWindow);
  window.variant = name + ", 1024 × 1024 weights of it";
  window.n = n;
  window.flops /= 2;
  const std::shared_ptr<const MatrixSource> weights = streamed_source(head, MatrixKind::kAttn);
  Matrix cells(kWindow, kWindow);
  const Index first = (n - kWindow) / 2;
  ThreadPool one(1);
  time_runs({&one, settings.quick}, window, [&] { weights->read({first, first, kWindow, kWindow}, cells); });
  window.threads = 1;
  return std::vector<BenchRow>{coarse, whole, window};
}

}  // namespace

Result<std::vector<BenchRow>> bench_streamed(const BenchSettings& settings) {
  std::vector<BenchRow> rows;
  for (const Variant& variant : {Variant{"plain"}, Variant{"causal", {.causal = true}}}) {
    Result<std::vector<BenchRow>> made = time_streamed(settings, variant, settings.quick ? 2048 : 131072);
    if (!made.ok()) return made.error();
    rows.insert(rows.end(), made.value().begin(), made.value().end());
  }
  return rows;
}

}  // namespace qkv::cli
