#include "core/attention/difference.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/attention/altered_pass.h"
#include "core/attention/problem_inputs.h"

namespace qkv {
namespace {

constexpr float kNanF = std::numeric_limits<float>::quiet_NaN();

// An input that exists once. Q, K, V and weights come from the pass, which reads them from their source.
const SharedMatrix* input_of(const Problem& problem, MatrixKind kind) {
  return is_per_head(kind) ? nullptr : find_input(problem, {kind, 0});
}

Eigen::RowVectorXd our_row(const Problem& problem, AlteredPass& pass, const OtherMatrix& theirs, std::size_t head,
                           Index row) {
  if (const SharedMatrix* input = input_of(problem, theirs.kind)) return (*input)->row(row).cast<double>();
  return theirs.mean_of_heads ? pass.mean_row(theirs.kind, row) : pass.row({theirs.kind, static_cast<int>(head)}, row);
}

// Fills what is counted once all errors are known; `largest_relative` without our number.
void count_wrong(Difference& result, const std::vector<MatrixD>& theirs) {
  double most = 0;
  for (std::size_t head = 0; head < result.errors.size(); ++head) {
    const Matrix& errors = result.errors[head];
    result.wrong_by_head.push_back(0);
    result.largest_by_row.emplace_back();
    for (Index row = 0; row < errors.rows(); ++row) {
      float largest = 0;
      for (Index col = 0; col < errors.cols(); ++col) {
        const float size = std::abs(errors(row, col));
        // A NaN stays.
        if (size > largest || std::isnan(size)) largest = size;
        if (static_cast<double>(size) <= result.bound) continue;
        ++result.wrong_by_head.back();
        if (std::isnan(size)) ++result.not_finite;
        const double their = theirs[head](row, col);
        const CellDifference cell = {
            {{result.kind, static_cast<int>(head)}, row, col}, their - static_cast<double>(errors(row, col)), their};
        if (!result.first_wrong) result.first_wrong = cell;
        if (const double relative = relative_error(cell); std::isfinite(relative) && relative > most) {
          most = relative;
          result.largest_relative = cell;
        }
      }
      result.largest_by_row.back().push_back(largest);
    }
    result.wrong += result.wrong_by_head.back();
  }
}

}  // namespace

double cell_error(double ours, double theirs) {
  if (ours == theirs || (std::isnan(ours) && std::isnan(theirs))) return 0;
  const double error = std::abs(theirs - ours);
  return std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
}

double relative_error(const CellDifference& cell) {
  const double size = std::max(std::abs(cell.ours), std::abs(cell.theirs));
  return size == 0 ? 0 : std::abs(cell.error()) / size;
}

double Difference::relative_size() const {
  if (not_finite > 0) return std::numeric_limits<double>::infinity();
  if (!largest) return 0;
  return std::abs(largest->error()) / (magnitude > 0 ? magnitude : std::abs(largest->error()));
}

std::optional<KindShape> shape_of(MatrixKind kind, const Problem& problem, const Shapes& s) {
  if (const SharedMatrix* input = input_of(problem, kind)) return KindShape{1, input->rows(), input->cols()};
  switch (kind) {
    case MatrixKind::kQ:
      return KindShape{s.heads, s.nq, s.d_k};
    case MatrixKind::kK:
      return KindShape{s.kv_heads, s.nk, s.d_k};
    case MatrixKind::kV:
      return KindShape{s.kv_heads, s.nk, s.d_v};
    case MatrixKind::kAlibi:
      if (!problem.options.alibi) return std::nullopt;
      [[fallthrough]];
    case MatrixKind::kScores:
    case MatrixKind::kScaled:
    case MatrixKind::kAttn:
      return KindShape{s.heads, s.nq, s.nk};
    case MatrixKind::kKeep:
      return KindShape{1, s.nq, s.nk};
    case MatrixKind::kHeadsOut:
      return KindShape{s.heads, s.nq, s.d_v};
    case MatrixKind::kConcat:
      return KindShape{1, s.nq, s.heads * s.d_v};
    case MatrixKind::kOut:
      if (problem.wo) return KindShape{1, s.nq, s.d_out};
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

bool is_input(MatrixKind kind, const Problem& problem) {
  const bool direct = std::holds_alternative<DirectSource>(problem.source);
  if (direct && (kind == MatrixKind::kQ || kind == MatrixKind::kK || kind == MatrixKind::kV)) return true;
  return input_of(problem, kind) != nullptr;
}

OtherMatrix our_matrix(InputCache& cache, MatrixKind kind, const StopFlag* stop) {
  AlteredPass pass(cache, unaltered(cache.problem(), cache.shapes()));
  const KindShape shape = *shape_of(kind, cache.problem(), cache.shapes());
  OtherMatrix ours{kind};
  for (int head = 0; head < shape.heads; ++head) {
    MatrixD& matrix = ours.heads.emplace_back(shape.rows, shape.cols);
    for (Index row = 0; row < shape.rows; ++row) {
      if (is_stopped(stop)) return ours;
      matrix.row(row) = our_row(cache.problem(), pass, ours, static_cast<std::size_t>(head), row);
    }
  }
  return ours;
}

Result<std::vector<Difference>> differences(InputCache& cache, const std::vector<OtherMatrix>& theirs, double tolerance,
                                            const StopFlag* stop) {
  const Problem& problem = cache.problem();
  AlteredPass pass(cache, unaltered(problem, cache.shapes()));
  std::vector<Difference> results;
  for (const OtherMatrix& other : theirs) {
    Difference result;
    result.kind = other.kind;
    result.mean_of_heads = other.mean_of_heads;
    double their_magnitude = 0;
    for (std::size_t head = 0; head < other.heads.size(); ++head) {
      const MatrixD& matrix = other.heads[head];
      result.errors.emplace_back(matrix.rows(), matrix.cols());
      result.cells += matrix.size();
      for (Index row = 0; row < matrix.rows(); ++row) {
        if (is_stopped(stop)) return Error{ErrorCode::kCancelled, "the comparison was stopped"};
        const Eigen::RowVectorXd ours = our_row(problem, pass, other, head, row);
        for (Index col = 0; col < matrix.cols(); ++col) {
          const CellDifference cell = {{{other.kind, static_cast<int>(head)}, row, col}, ours(col), matrix(row, col)};
          const double error = cell_error(cell.ours, cell.theirs);
          const bool finite = std::isfinite(error);
          result.errors.back()(row, col) = error == 0 ? 0 : finite ? static_cast<float>(cell.error()) : kNanF;
          if (std::isfinite(cell.ours)) result.magnitude = std::max(result.magnitude, std::abs(cell.ours));
          if (std::isfinite(cell.theirs)) their_magnitude = std::max(their_magnitude, std::abs(cell.theirs));
          if (finite && error > (result.largest ? std::abs(result.largest->error()) : 0)) result.largest = cell;
        }
      }
    }
    result.bound = tolerance * (result.magnitude > 0 ? result.magnitude : their_magnitude);
    count_wrong(result, other.heads);
    for (auto* cell : {&result.first_wrong, &result.largest_relative}) {
      if (!*cell) continue;
      const MatrixCell& at = (*cell)->cell;
      (*cell)->ours = our_row(problem, pass, other, static_cast<std::size_t>(at.id.head), at.row)(at.col);
    }
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace qkv
