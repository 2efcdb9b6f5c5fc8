#include "tests/bench/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace qkv::bench {
namespace {

constexpr double kEps = 0x1p-24;

// The rows of a head that are checked: both ends, around the middle, and one of every eleventh part.
std::vector<int> sample_rows(int n) {
  std::vector<int> rows{0, 1, n / 2 - 1, n / 2, n - 2, n - 1};
  for (int part = 1; part < 11; ++part) rows.push_back(part * n / 11);
  return rows;
}

// Rows in float64 of one head: row r begins at data + r·stride.
struct Rows {
  const double* data;
  int stride;
  const double* row(int r) const { return data + static_cast<std::ptrdiff_t>(r) * stride; }
};

struct RowResult {
  std::vector<double> weights;  // [N], 0 where hidden
  std::vector<double> out;      // [d]
  double score_error = 0;       // e_s
  double out_size = 0;          // max|v|·√Σweight²
};

RowResult attend_row(const Case& of, const double* q, const Rows& k, const Rows& v, int row) {
  const double scale = 1 / std::sqrt(static_cast<double>(kHeadSize));
  const int visible = of.causal ? row + 1 : of.n;
  RowResult result{std::vector<double>(static_cast<std::size_t>(of.n)), std::vector<double>(kHeadSize)};
  double largest = -std::numeric_limits<double>::infinity(), magnitude = 0;
  for (int j = 0; j < visible; ++j) {
    double sum = 0, absolute = 0;
    for (int c = 0; c < kHeadSize; ++c) {
      const double term = q[c] * k.row(j)[c];
      sum += term;
      absolute += std::abs(term);
    }
    result.weights[static_cast<std::size_t>(j)] = sum * scale;
    largest = std::max(largest, sum * scale);
    magnitude = std::max(magnitude, absolute * scale);
  }
  double denominator = 0, largest_value = 0, squares = 0;
  for (int j = 0; j < visible; ++j) {
    double& weight = result.weights[static_cast<std::size_t>(j)];
    weight = std::exp(weight - largest);
    denominator += weight;
  }
  for (int j = 0; j < visible; ++j) {
    double& weight = result.weights[static_cast<std::size_t>(j)];
    weight /= denominator;
    squares += weight * weight;
    for (int c = 0; c < kHeadSize; ++c) {
      result.out[static_cast<std::size_t>(c)] += weight * v.row(j)[c];
      largest_value = std::max(largest_value, std::abs(v.row(j)[c]));
    }
  }
  result.out_size = largest_value * std::sqrt(squares);
  result.score_error = std::sqrt(static_cast<double>(kHeadSize)) * kEps * magnitude;
  return result;
}

// |got − want| over what is allowed; a NaN is infinitely wrong.
double share(float got, double want, double allowed) {
  const double error = std::abs(static_cast<double>(got) - want);
  if (std::isnan(error)) return std::numeric_limits<double>::infinity();
  if (error == 0) return 0;
  return error / allowed;
}

std::vector<double> wide(const Floats& floats, std::size_t from, std::size_t count) {
  return {floats.data() + from, floats.data() + from + count};
}

double worst_of_heads(const Case& of, const Inputs& inputs, const Outputs& outputs) {
  const std::size_t n = static_cast<std::size_t>(of.n), head_size = n * kHeadSize;
  double worst = 0;
  for (std::size_t h = 0; h < static_cast<std::size_t>(of.heads); ++h) {
    const std::vector<double> q = wide(inputs.q, h * head_size, head_size);
    const std::vector<double> k = wide(inputs.k, h * head_size, head_size);
    const std::vector<double> v = wide(inputs.v, h * head_size, head_size);
    for (const int row : sample_rows(of.n)) {
      const std::size_t r = static_cast<std::size_t>(row);
      const RowResult want =
          attend_row(of, q.data() + r * kHeadSize, {k.data(), kHeadSize}, {v.data(), kHeadSize}, row);
      const float* out = outputs.out.data() + h * head_size + r * kHeadSize;
      const double allowed = 4 * want.out_size * (want.score_error + std::sqrt(of.n) * kEps);
      for (std::size_t c = 0; c < kHeadSize; ++c) worst = std::max(worst, share(out[c], want.out[c], allowed));
      if (of.work != Work::kKept) continue;
      const float* attn = outputs.attn.data() + (h * n + r) * n;
      for (std::size_t j = 0; j < n; ++j) {
        const double weight = want.weights[j];
        worst = std::max(worst, share(attn[j], weight, weight * (2 * want.score_error + 32 * kEps)));
      }
    }
  }
  return worst;
}

// a [rows, d_model] · w [d_model, cols] in float64.
std::vector<double> product(const std::vector<double>& a, const Floats& w, std::size_t rows, std::size_t cols) {
  std::vector<double> c(rows * cols);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t i = 0; i < kModelSize; ++i) {
      const double factor = a[r * kModelSize + i];
      const float* from = w.data() + i * cols;
      double* to = c.data() + r * cols;
      for (std::size_t j = 0; j < cols; ++j) to[j] += factor * from[j];
    }
  }
  return c;
}

double worst_of_layer(const Case& of, const Inputs& inputs, const Outputs& outputs) {
  const std::size_t n = static_cast<std::size_t>(of.n), width = static_cast<std::size_t>(of.heads) * kHeadSize;
  static_assert(kModelSize == 8 * kHeadSize, "concat is as wide as X");
  const std::vector<double> x = wide(inputs.x, 0, n * kModelSize);
  const std::vector<double> k = product(x, inputs.wk, n, width), v = product(x, inputs.wv, n, width);
  double worst = 0;
  for (const int row : sample_rows(of.n)) {
    const std::vector<double> q =
        product(wide(inputs.x, static_cast<std::size_t>(row) * kModelSize, kModelSize), inputs.wq, 1, width);
    std::vector<double> concat;
    double out_size = 0, score_error = 0;
    for (int h = 0; h < of.heads; ++h) {
      const int first = h * kHeadSize, stride = static_cast<int>(width);
      const RowResult head =
          attend_row(of, q.data() + first, {k.data() + first, stride}, {v.data() + first, stride}, row);
      concat.insert(concat.end(), head.out.begin(), head.out.end());
      out_size = std::max(out_size, head.out_size);
      score_error = std::max(score_error, head.score_error * std::sqrt(1.0 * kModelSize / kHeadSize));
    }
    const std::vector<double> want = product(concat, inputs.wo, 1, kModelSize);
    const double allowed = 4 * out_size * (score_error + std::sqrt(of.n) * kEps);
    const float* got = outputs.out.data() + static_cast<std::size_t>(row) * kModelSize;
    for (std::size_t c = 0; c < kModelSize; ++c) worst = std::max(worst, share(got[c], want[c], allowed));
  }
  return worst;
}

}  // namespace

double worst_error(const Case& of, const Inputs& inputs, const Outputs& outputs) {
  return of.work == Work::kLayer ? worst_of_layer(of, inputs, outputs) : worst_of_heads(of, inputs, outputs);
}

}  // namespace qkv::bench
