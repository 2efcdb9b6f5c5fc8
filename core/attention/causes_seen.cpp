#include <algorithm>
#include <cmath>

#include "core/attention/altered_pass.h"
#include "core/attention/cause_listing.h"
#include "core/base/number_text.h"

namespace qkv {
namespace {

// The weights among theirs, head by head; nullptr where there are none.
const OtherMatrix* weights_of(const std::vector<OtherMatrix>& theirs) {
  const auto found = std::find_if(theirs.begin(), theirs.end(), [](const OtherMatrix& other) {
    return other.kind == MatrixKind::kAttn && !other.mean_of_heads;
  });
  return found == theirs.end() ? nullptr : &*found;
}

template <class Visit>
void for_each_weight(const OtherMatrix& attn, Visit visit) {
  for (const MatrixD& head : attn.heads) {
    for (Index i = 0; i < head.rows(); ++i) {
      for (Index j = 0; j < head.cols(); ++j) visit(i, j, head(i, j));
    }
  }
}

std::string names_of_keys(const std::vector<std::uint8_t>& valid) {
  std::string text;
  std::size_t said = 0;
  for (std::size_t key = 0; key < valid.size(); ++key) {
    if (valid[key] != 0) continue;
    if (++said > 6) return text + ", …";
    text += (text.empty() ? "" : ", ") + std::to_string(key);
  }
  return text;
}

// Keys that no query sees there.
void add_hidden_keys(Listing& list, const OtherMatrix& attn) {
  std::vector<std::uint8_t> seen(static_cast<std::size_t>(list.shapes.nk), 0);
  for_each_weight(attn, [&](Index, Index j, double weight) {
    if (weight != 0) seen[static_cast<std::size_t>(j)] = 1;
  });
  if (std::find(seen.begin(), seen.end(), 0) == seen.end()) return;
  const bool one = std::count(seen.begin(), seen.end(), 0) == 1;
  const std::string keys = (one ? "key " : "keys ") + names_of_keys(seen);
  list.add("padding-other", "padding", "other keys are hidden as padding", "No query gives a weight to " + keys + ".",
           "Hide the same keys on both sides.", [seen](Altered& a) { a.mask.key_valid = seen; });
}

// How far queries look there.
void add_seen_window(Listing& list, const OtherMatrix& attn) {
  const Index shift = query_shift(list.options(), list.shapes.nq, list.shapes.nk);
  Index before = 0, after = 0;
  for_each_weight(attn, [&](Index i, Index j, double weight) {
    if (weight == 0) return;
    before = std::max(before, i + shift - j);
    after = std::max(after, j - i - shift);
  });
  const Index farthest = list.shapes.nk - 1;
  if (before >= farthest) return;
  list.add("window-other", "window", "there is a window of " + std::to_string(before + 1),
           "No query sees a key that is more than " + std::to_string(before) + " before it.",
           "Use the same window on both sides.", [before, after](Altered& a) {
             a.mask.before = before + 1;
             a.mask.after = after + 1;
           });
}

// Weights that are 0 here and there and a constant times ours elsewhere.
void add_dropout(Listing& list, const OtherMatrix& attn, InputCache& cache) {
  const bool has_zeros = std::ranges::any_of(attn.heads, [](const MatrixD& head) { return (head.array() == 0).any(); });
  if (!has_zeros) return;
  AlteredPass pass(cache, unaltered(cache.problem(), cache.shapes()));
  std::vector<double> ratios;
  Index dropped = 0;
  for (std::size_t head = 0; head < attn.heads.size(); ++head) {
    for (Index i = 0; i < attn.heads[head].rows(); ++i) {
      const Eigen::RowVectorXd& ours = pass.row({MatrixKind::kAttn, static_cast<int>(head)}, i);
      for (Index j = 0; j < ours.size(); ++j) {
        const double weight = attn.heads[head](i, j);
        if (ours(j) == 0) continue;
        if (weight == 0) {
          ++dropped;
        } else {
          ratios.push_back(weight / ours(j));
        }
      }
    }
  }
  if (dropped == 0 || ratios.empty()) return;
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
  std::nth_element(ratios.begin(), middle, ratios.end());
  const double factor = *middle;
  if (!(factor > 1 + 1e-6) || !std::isfinite(factor)) return;
  list.add("dropout", "dropout", "dropout is on, p = " + format_fixed(1 - 1 / factor, 2, false),
           "Some weights are 0 and the others larger by a factor of " + format_fixed(factor, 3, false) + ".",
           "Switch it off: model.eval(), dropout_p = 0.", [&attn, factor](Altered& a) {
             a.softmax.zeros_of = &attn;
             a.softmax.factor = factor;
           });
}

}  // namespace

std::vector<Cause> seen_causes(InputCache& cache, const std::vector<OtherMatrix>& theirs) {
  const OtherMatrix* attn = weights_of(theirs);
  if (attn == nullptr) return {};
  Listing list{cache.problem(), cache.shapes()};
  add_hidden_keys(list, *attn);
  add_seen_window(list, *attn);
  add_dropout(list, *attn, cache);
  return std::move(list.causes);
}

}  // namespace qkv
