// Rows of `qkvlab bench`: edits of a computation that is there.
#include <utility>

#include "app/cli/bench_rows.h"
#include "app/cli/bench_support.h"
#include "core/attention/update.h"

namespace qkv::cli {
namespace {

// `heads` with one row in each negated; the others' numbers are shared as far as a matrix allows.
std::vector<SharedMatrix> with_edited_row(std::vector<SharedMatrix> heads, Index row) {
  for (SharedMatrix& head : heads) head.edit_rows(row, 1) *= -1;
  return heads;
}

struct Edit {
  const char* name;
  std::vector<SharedMatrix> DirectSource::*matrices;
};

constexpr Edit kEdits[] = {
    {"one row of Q", &DirectSource::q}, {"one row of K", &DirectSource::k}, {"one row of V", &DirectSource::v}};

// There and back again, so that every run finds something to do.
Result<BenchRow> time_edit(const BenchSettings& settings, const Problem& problem, const Edit& edit, BenchRow row) {
  const PassOptions options{Arithmetic::kFloat32, settings.pool, nullptr};
  Problem edited = problem;
  auto& matrices = std::get<DirectSource>(edited.source).*(edit.matrices);
  matrices = with_edited_row(matrices, row.n / 3);
  Result<Trace> trace = forward(problem, options);
  bool is_edited = false;
  row.seconds = median_seconds(settings, [&] {
    if (!trace.ok()) return;
    is_edited = !is_edited;
    trace = update(std::move(trace).value(), is_edited ? edited : problem, options);
  });
  if (!trace.ok()) return trace.error();
  row.variant = edit.name;
  return row;
}

}  // namespace

Result<std::vector<BenchRow>> bench_edits(const BenchSettings& settings) {
  const std::vector<Index> sizes = settings.quick ? std::vector<Index>{256} : std::vector<Index>{1024, 4096};
  std::vector<BenchRow> rows;
  for (const Index n : sizes) {
    const Problem problem = direct_problem({"plain"}, kBenchHeads, n);
    BenchRow row = row_of(settings, "edit", {"plain"}, kBenchHeads, n);
    const Result<BenchRow> full = time_pass(settings, problem, row);
    if (!full.ok()) return full.error();
    row.full_seconds = full.value().seconds;
    for (const Edit& edit : kEdits) {
      const Result<BenchRow> timed = time_edit(settings, problem, edit, row);
      if (!timed.ok()) return timed.error();
      rows.push_back(timed.value());
    }
  }
  return rows;
}

}  // namespace qkv::cli
