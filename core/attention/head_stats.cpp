#include "core/attention/head_stats.h"

#include <cmath>
#include <limits>

namespace qkv {
namespace {

// Mean of the values added to it; 0 without any.
class Mean {
 public:
  void add(double value) {
    sum_ += value;
    ++count_;
  }
  double value() const { return count_ > 0 ? sum_ / static_cast<double>(count_) : 0.0; }

 private:
  double sum_ = 0;
  Index count_ = 0;
};

}  // namespace

double row_entropy(ConstMatrixRef attn, Index row) {
  double entropy = 0;
  for (Index j = 0; j < attn.cols(); ++j) {
    const auto weight = static_cast<double>(attn(row, j));
    if (std::isnan(weight)) return std::numeric_limits<double>::quiet_NaN();
    if (weight > 0) entropy -= weight * std::log(weight);  // a·ln a → 0 for a → 0
  }
  return entropy;
}

HeadStats head_stats(ConstMatrixRef attn, ConstMatrixRef keep, Index shift) {
  Mean entropy, max_entropy, previous, first, diagonal;
  for (Index i = 0; i < attn.rows(); ++i) {
    const Index visible = (keep.row(i).array() != 0.0f).count();
    const double of_row = row_entropy(attn, i);
    if (visible == 0 || std::isnan(of_row)) continue;
    entropy.add(of_row);
    max_entropy.add(std::log(static_cast<double>(visible)));
    first.add(static_cast<double>(attn(i, 0)));
    // Rows whose own or previous key does not exist say nothing about these two.
    const Index own = i + shift;
    if (own >= 0 && own < attn.cols()) diagonal.add(static_cast<double>(attn(i, own)));
    if (own >= 1 && own <= attn.cols()) previous.add(static_cast<double>(attn(i, own - 1)));
  }
  return {entropy.value(), max_entropy.value(), previous.value(), first.value(), diagonal.value()};
}

}  // namespace qkv
