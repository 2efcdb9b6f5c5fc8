#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "core/attention/altered_pass.h"
#include "core/attention/causes.h"

namespace qkv {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr NumberFormat kRounding[] = {NumberFormat::kFloat32, NumberFormat::kFloat16, NumberFormat::kBfloat16};
// Errors of another order of operations are larger than ours by so much, at most.
constexpr double kRoundingSlack = 4;

// One matrix of theirs to be explained.
struct Target {
  const OtherMatrix* theirs;
  const Difference* found;
  double magnitude;
};

bool is_representable(const MatrixD& matrix, NumberFormat format) {
  for (Index i = 0; i < matrix.size(); ++i) {
    const double value = matrix.data()[i];
    if (!std::isnan(value) && rounded(value, format) != value) return false;
  }
  return true;
}

// Rows of the queries, the telling ones first: with wrong cells, with no visible key, then spread evenly.
std::vector<Index> telling_rows(const std::vector<Target>& targets, const Problem& problem, const Shapes& shapes) {
  std::vector<Index> rows;
  std::vector<bool> is_told(static_cast<std::size_t>(shapes.nq), false);
  const auto add = [&](Index row) {
    if (row >= shapes.nq || is_told[static_cast<std::size_t>(row)]) return;
    is_told[static_cast<std::size_t>(row)] = true;
    rows.push_back(row);
  };
  for (const Target& target : targets) {
    for (const auto& cell : {target.found->first_wrong, target.found->largest, target.found->largest_relative}) {
      if (cell) add(cell->cell.row);
    }
  }
  const auto is_dead = [&](Index row) {
    for (Index key = 0; key < shapes.nk; ++key) {
      if (mask_reason(problem.options, shapes.nq, shapes.nk, row, key) == MaskReason::kVisible) return false;
    }
    return true;
  };
  if (is_dead(0)) add(0);
  if (is_dead(shapes.nq - 1)) add(shapes.nq - 1);
  add(shapes.nq - 1);
  add(0);
  // Fractions 1/2, 1/4, 3/4, 1/8, …: any first part of them is spread.
  for (Index parts = 2; parts / 2 <= shapes.nq; parts *= 2) {
    for (Index part = 1; part < parts; part += 2) add(shapes.nq * part / parts);
  }
  for (Index row = 0; row < shapes.nq && shapes.nq < 4096; ++row) add(row);
  return rows;
}

class Search {
 public:
  Search(InputCache& cache, std::vector<Target> targets, double tolerance, const SearchLimits& limits,
         const StopFlag* stop)
      : cache_(cache), targets_(std::move(targets)), limits_(limits), stop_(stop) {
    close_ = std::max(tolerance, kFloat32Tolerance);
    ours_ = unaltered(cache.problem(), cache.shapes());
    for (const Target& target : targets_) before_ = std::max(before_, size_of(target));
    rows_ = telling_rows(targets_, cache.problem(), cache.shapes());
    const double a_row = AlteredPass::operations_a_row(cache.shapes());
    const auto fitting = [&](double work) { return static_cast<std::size_t>(std::max(2.0, work / a_row)); };
    rows_.resize(std::min(rows_.size(), fitting(limits.of_a_single)));
    few_rows_.assign(rows_.begin(),
                     rows_.begin() + static_cast<std::ptrdiff_t>(std::min(rows_.size(), fitting(limits.of_a_pair))));
  }

  // `seen()` gives those that come where none of the others is complete alone: they follow their numbers, whatever
  // they are.
  template <class Seen>
  Diagnosis run(const std::vector<Cause>& causes, const Seen& seen) {
    causes_ = causes;
    Diagnosis result;
    result.before = before_;
    result.rows = cache_.shapes().nq;
    result.rows_tried = static_cast<Index>(rows_.size());
    wrong_ = std::max<Index>(1, count_wrong(ours_));
    measure_rounding();
    result.rounding = rounding_alone();
    try_singles(causes_, result);
    if (!is_explained()) {
      const std::vector<Cause>& more = seen();
      try_singles(more, result);
      causes_.insert(causes_.end(), more.begin(), more.end());
    }
    if (result.rounding == NumberFormat::kFloat64 && !is_explained()) try_pairs(result);
    rank(result);
    return result;
  }

 private:
  bool is_explained() const {
    return std::any_of(found_.begin(), found_.end(), [](const CauseFit& each) { return each.complete; });
  }

  double size_of(const Target& target) const {
    if (target.found->not_finite > 0) return kInfinity;
    return target.found->largest ? std::abs(target.found->largest->error()) / target.magnitude : 0;
  }

  // Calls visit(target, head, row, our row) for all that is to be explained, until it gives false.
  template <class Visit>
  void for_each_row(AlteredPass& pass, const std::vector<Index>& rows, Visit visit) const {
    for (const Target& target : targets_) {
      const OtherMatrix& theirs = *target.theirs;
      for (const Index row : rows) {
        if (row >= theirs.heads[0].rows()) continue;
        for (std::size_t head = 0; head < theirs.heads.size(); ++head) {
          const Eigen::RowVectorXd& ours = theirs.mean_of_heads ? pass.mean_row(theirs.kind, row)
                                                                : pass.row({theirs.kind, static_cast<int>(head)}, row);
          if (!visit(target, head, row, ours)) return;
        }
      }
    }
  }

  // The largest error that is left under `altered`, or ∞ as soon as it is more than `limit`.
  double remaining(const Altered& altered, const std::vector<Index>& rows, double limit) {
    AlteredPass pass(cache_, altered);
    double worst = 0;
    for_each_row(pass, rows, [&](const Target& target, std::size_t head, Index row, const Eigen::RowVectorXd& ours) {
      const auto theirs = target.theirs->heads[head].row(row);
      for (Index col = 0; col < ours.size(); ++col) {
        worst = std::max(worst, cell_error(ours(col), theirs(col)) / target.magnitude);
      }
      return worst <= limit;
    });
    return worst <= limit ? worst : kInfinity;
  }

  // Wrong cells under `altered`.
  Index count_wrong(const Altered& altered) {
    AlteredPass pass(cache_, altered);
    Index wrong = 0;
    for_each_row(pass, rows_, [&](const Target& target, std::size_t head, Index row, const Eigen::RowVectorXd& ours) {
      const auto theirs = target.theirs->heads[head].row(row);
      for (Index col = 0; col < ours.size(); ++col) wrong += cell_error(ours(col), theirs(col)) > target.found->bound;
      return true;
    });
    return wrong;
  }

  // How much rounding every step changes in each format.
  void measure_rounding() {
    for (const NumberFormat format : kRounding) {
      Altered altered = ours_;
      altered.format = format;
      AlteredPass exact(cache_, ours_), coarse(cache_, altered);
      std::vector<double> sizes(targets_.size(), 0.0);
      const auto compare = [&](const Target& of, std::size_t head, Index row, const Eigen::RowVectorXd& ours) {
        if (of.theirs->mean_of_heads) return true;
        double& worst = sizes[static_cast<std::size_t>(&of - targets_.data())];
        const Eigen::RowVectorXd& other = exact.row({of.theirs->kind, static_cast<int>(head)}, row);
        for (Index col = 0; col < ours.size(); ++col) {
          worst = std::max(worst, cell_error(other(col), ours(col)) / of.magnitude);
        }
        return true;
      };
      for_each_row(coarse, few_rows_, compare);
      rounding_sizes_.push_back(std::move(sizes));
      bool stored = true;
      for (const Target& target : targets_) {
        if (target.found->equal()) continue;
        for (const MatrixD& head : target.theirs->heads) stored = stored && is_representable(head, format);
      }
      stored_in_.push_back(stored);
    }
  }

  NumberFormat rounding_alone() const {
    NumberFormat coarser = NumberFormat::kFloat64;
    for (std::size_t f = 0; f < std::size(kRounding); ++f) {
      bool fits = true;
      for (std::size_t t = 0; t < targets_.size(); ++t) {
        const double size = size_of(targets_[t]);
        fits = fits &&
               (targets_[t].found->equal() || (std::isfinite(size) && size <= kRoundingSlack * rounding_sizes_[f][t]));
      }
      if (fits && stored_in_[f]) return kRounding[f];
      if (fits && coarser == NumberFormat::kFloat64) coarser = kRounding[f];
    }
    return coarser;
  }

  // The format whose rounding may leave so much, where their numbers are of that format; kFloat64 for none.
  NumberFormat rounding_of(double left) const {
    for (std::size_t f = 0; f < std::size(kRounding); ++f) {
      const double size = *std::max_element(rounding_sizes_[f].begin(), rounding_sizes_[f].end());
      if (stored_in_[f] && std::isfinite(size) && left <= kRoundingSlack * size) return kRounding[f];
    }
    return NumberFormat::kFloat64;
  }

  // A fit is kept that is complete, or leaves little, or leaves few cells wrong: then what else is wrong is elsewhere.
  void keep(std::vector<Cause> causes, const Altered& altered, double left) {
    constexpr double kFew = 0.2;
    const bool within = left <= close_;
    const NumberFormat format = within ? NumberFormat::kFloat64 : rounding_of(left);
    const bool complete = within || format != NumberFormat::kFloat64;
    const bool most = left <= before_ / 10 && left <= 0.05;
    const bool single = causes.size() == 1;
    if (!complete && !most && !single) return;
    const double wrong_left = complete ? 0 : static_cast<double>(count_wrong(altered)) / static_cast<double>(wrong_);
    if (complete || most || wrong_left <= kFew) {
      found_.push_back({std::move(causes), wrong_left, left, complete, format});
    }
  }

  bool too_much_work(const Altered& altered, double limit) const {
    return AlteredPass::needs_all_rows(altered) &&
           AlteredPass::operations_a_row(cache_.shapes()) * static_cast<double>(cache_.shapes().nq) > limit;
  }

  void try_singles(const std::vector<Cause>& causes, Diagnosis& result) {
    for (const Cause& cause : causes) {
      if (is_stopped(stop_)) return;
      Altered altered = ours_;
      cause.apply(altered);
      if (too_much_work(altered, limits_.of_one_that_needs_all_rows)) continue;
      ++result.singles;
      keep({cause}, altered, remaining(altered, rows_, before_ / 2));
    }
  }

  void try_pairs(Diagnosis& result) {
    const double a_pair = AlteredPass::operations_a_row(cache_.shapes());
    const auto most = static_cast<std::size_t>(limits_.of_all_pairs / a_pair);
    for (std::size_t a = 0; a < causes_.size(); ++a) {
      for (std::size_t b = a + 1; b < causes_.size(); ++b) {
        if (is_stopped(stop_)) return;
        if (causes_[a].group == causes_[b].group) continue;
        Altered altered = ours_;
        causes_[a].apply(altered);
        causes_[b].apply(altered);
        ++result.all_pairs;
        const bool possible = can_be(altered.inputs, cache_.problem(), cache_.shapes());
        if (!possible || too_much_work(altered, limits_.of_a_pair) || result.pairs == most) continue;
        ++result.pairs;
        const double first = remaining(altered, few_rows_, before_ / 10);
        if (std::isfinite(first)) {
          keep({causes_[a], causes_[b]}, altered, remaining(altered, rows_, before_ / 10));
        }
      }
    }
  }

  // Complete ones first; of those, and of the others, by what they leave. What leaves the same keeps its order.
  void rank(Diagnosis& result) {
    std::stable_sort(found_.begin(), found_.end(), [](const CauseFit& a, const CauseFit& b) {
      return std::tuple(!a.complete, a.wrong_left, a.remaining) < std::tuple(!b.complete, b.wrong_left, b.remaining);
    });
    if (found_.empty()) return;
    const auto same = [best = found_.front()](const CauseFit& each) {
      return each.complete == best.complete && each.wrong_left == best.wrong_left &&
             each.remaining <= 4 * best.remaining + 1e-12;
    };
    const auto end = std::find_if_not(found_.begin(), found_.end(), same);
    std::stable_sort(found_.begin(), end, [this](const CauseFit& a, const CauseFit& b) {
      return std::pair(a.causes.size(), place(a)) < std::pair(b.causes.size(), place(b));
    });
    result.ties = static_cast<std::size_t>(end - found_.begin()) - 1;
    constexpr std::size_t kMost = 8;
    if (found_.size() > kMost) found_.resize(kMost);
    result.ties = std::min(result.ties, found_.size() - 1);
    result.explanations = std::move(found_);
  }

  // In the list of causes, for the order among equals.
  std::size_t place(const CauseFit& each) const {
    const auto at = std::ranges::find(causes_, each.causes[0].id, &Cause::id);
    return static_cast<std::size_t>(at - causes_.begin());
  }

  InputCache& cache_;
  std::vector<Target> targets_;
  SearchLimits limits_;
  const StopFlag* stop_;
  Altered ours_;
  std::vector<Cause> causes_;
  double close_ = 0, before_ = 0;
  Index wrong_ = 1;  // cells of ours in rows_
  std::vector<Index> rows_, few_rows_;
  std::vector<std::vector<double>> rounding_sizes_;  // by format, then target
  std::vector<bool> stored_in_;                      // by format: their numbers are of it
  std::vector<CauseFit> found_;
};

// Their inputs are ours, rounded to the format.
bool are_rounded(const std::vector<OtherMatrix>& theirs, const std::vector<Difference>& found, const Problem& problem,
                 NumberFormat format) {
  if (format == NumberFormat::kFloat64) return false;
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    if (!is_input(theirs[i].kind, problem) || found[i].equal()) continue;
    for (std::size_t head = 0; head < theirs[i].heads.size(); ++head) {
      const MatrixD& matrix = theirs[i].heads[head];
      if (!is_representable(matrix, format)) return false;
      for (Index n = 0; n < matrix.size(); ++n) {
        const double error = std::abs(static_cast<double>(found[i].errors[head].data()[n]));
        if (!(error <= 0.51 * ulp_in(format, matrix.data()[n]))) return false;
      }
    }
  }
  return true;
}

bool has_complete_cause(const Diagnosis& found) {
  return !found.explanations.empty() && found.explanations[0].complete;
}

// Nothing is left to explain.
bool is_complete(const Diagnosis& found) {
  return has_complete_cause(found) || found.rounding != NumberFormat::kFloat64;
}

}  // namespace

Result<Diagnosis> find_causes(InputCache& cache, const std::vector<OtherMatrix>& theirs,
                              const std::vector<Difference>& found, double tolerance, const SearchLimits& limits,
                              const StopFlag* stop) {
  const Problem& problem = cache.problem();
  std::vector<Target> targets;
  std::optional<MatrixKind> first;
  Diagnosis inputs;
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    const MatrixKind kind = theirs[i].kind;
    const bool equal = found[i].equal();
    const bool of_heads = kind == MatrixKind::kQ || kind == MatrixKind::kK || kind == MatrixKind::kV;
    if (is_input(kind, problem) && !equal) inputs.inputs_differ = true;
    // Equal Q, K and V say nothing of what is done with them.
    if ((is_input(kind, problem) && !of_heads) || (of_heads && equal)) continue;
    const double bound = found[i].bound / (tolerance > 0 ? tolerance : 1);
    targets.push_back({&theirs[i], &found[i], found[i].magnitude > 0 ? found[i].magnitude : bound > 0 ? bound : 1});
    if (!equal && (!first || kind < *first)) first = kind;
  }
  if (!first) return inputs;
  const std::vector<Cause> causes = possible_causes(problem, cache.shapes());
  std::optional<std::vector<Cause>> found_in_theirs;  // from all of their weights, so only where it is asked for
  const auto seen = [&]() -> const std::vector<Cause>& {
    if (!found_in_theirs) found_in_theirs = seen_causes(cache, theirs);
    return *found_in_theirs;
  };
  // Those that differ come first, as they rule out most.
  std::stable_sort(targets.begin(), targets.end(), [](const Target& a, const Target& b) {
    return std::pair(a.found->equal(), a.theirs->kind) < std::pair(b.found->equal(), b.theirs->kind);
  });
  Diagnosis result = Search(cache, targets, tolerance, limits, stop).run(causes, seen);
  for (const Target& target : targets) result.explained = std::max(result.explained, target.theirs->kind);
  const auto is_later = [&](const Target& target) { return target.theirs->kind > *first && !target.found->equal(); };
  if (!is_complete(result) && std::any_of(targets.begin(), targets.end(), is_later)) {
    std::erase_if(targets, [&](const Target& target) { return target.theirs->kind > *first; });
    Diagnosis of_first = Search(cache, targets, tolerance, limits, stop).run(causes, seen);
    if (is_complete(of_first)) {
      result = std::move(of_first);
      result.explained = *first;
    }
  }
  if (is_stopped(stop)) return Error{ErrorCode::kCancelled, "the comparison was stopped"};
  result.inputs_differ =
      inputs.inputs_differ && !has_complete_cause(result) && !are_rounded(theirs, found, problem, result.rounding);
  return result;
}

}  // namespace qkv
