// exp, softcap and matrix products of the kernels over their whole range, on every SIMD target.
#include <doctest/doctest.h>

#include "tests/core/kernel_support.h"

using namespace qkv;
using namespace qkv::test;

namespace {

constexpr Index kKeys = 4001;

// A head of one dimension whose cells a test fills itself.
struct Line {
  std::mt19937 random{1};
  Head head{1, kKeys, 1, 1, random};
  PackedKeyValues kv{head.k.view(), head.v.view()};
  Cells cells{1, kKeys};

  void weigh(const RowSoftmax& row) { weigh_cells(head.input(kv), {0, 0, 1, kKeys}, {&row, 1}, cells.block()); }
  void scale() { scale_cells(head.input(kv), {0, 0, 1, kKeys}, cells.block()); }
};

double ulp_at(double value) {
  const float magnitude = std::abs(static_cast<float>(value));
  return static_cast<double>(std::nextafter(magnitude, kKernelInf)) - static_cast<double>(magnitude);
}

double real(float x) { return static_cast<double>(x); }

// The largest error in ulps of exp(s)·2^-exponent for 4001 scores from where it is about 1 down to 2^-120.
double worst_exp(Line& line, std::int32_t exponent) {
  const double ln2 = std::log(2.0), top = exponent * ln2;
  std::vector<float> scores;
  for (Index i = 0; i < kKeys; ++i) {
    line.cells(0, i) = static_cast<float>(top - (static_cast<double>(i) + real(line.head.k(i, 0)) / 4) / kKeys * 82.5);
    line.cells(0, i) = std::min(line.cells(0, i), std::nextafter(static_cast<float>(top + 0.3), 0.0f));
    scores.push_back(line.cells(0, i));
  }
  line.weigh({.max = 0, .base = 0, .exponent = exponent, .sum = 1, .visible = kKeys});
  double worst = 0;
  for (Index i = 0; i < kKeys; ++i) {
    const long double exact = std::exp(static_cast<long double>(scores[static_cast<std::size_t>(i)]) -
                                       static_cast<long double>(exponent) * 0.693147180559945309417232121458L);
    const double error = std::abs(real(line.cells(0, i)) - static_cast<double>(exact));
    worst = std::max(worst, error / ulp_at(static_cast<double>(exact)));
  }
  return worst;
}

// M × K times K × N; K terms in blocks of 512, rounded products and sums: off by (512 + 512 + blocks + 2)·2^-24 of
// the magnitudes.
void check_product(Index m, Index k, Index n, Index offset, bool with_bias, std::mt19937& random) {
  Cells left(m, k, offset), right(k, n, 15 - offset), bias(1, n, offset), out(m, n, offset);
  left.fill(random);
  right.fill(random);
  bias.fill(random);
  const PackedFactor factor(right.view());
  multiply(left.view(), factor, with_bias ? bias.row(0) : nullptr, out.block());
  CHECK(out.is_intact());
  bool all = true;
  for (Index i = 0; i < m; ++i) {
    for (Index j = 0; j < n; ++j) {
      double sum = with_bias ? real(bias(0, j)) : 0, magnitude = std::abs(sum);
      for (Index c = 0; c < k; ++c) {
        sum += real(left(i, c)) * real(right(c, j));
        magnitude += std::abs(real(left(i, c)) * real(right(c, j)));
      }
      const double terms = static_cast<double>(2 * std::min<Index>(k, 512) + k / 512 + 2);
      all = all && std::abs(real(out(i, j)) - sum) <= terms * kHalfUlp * magnitude;
    }
  }
  CHECK_MESSAGE(all, m, "×", k, " · ", k, "×", n);
  // Row by row: the same bits.
  Cells single(m, n, 15 - offset);
  for (Index i = 0; i < m; ++i) {
    multiply({left.row(i), 1, k, k + 3}, factor, with_bias ? bias.row(0) : nullptr, {single.row(i), 1, n, n + 3});
  }
  CHECK(same_bits(out, single));
}

}  // namespace

TEST_CASE("exp over its whole range") {
  on_every_target([] {
    Line line;
    double worst = 0;
    for (std::int32_t exponent = -5909; exponent <= 5909; exponent += exponent > -130 && exponent < 130 ? 1 : 97) {
      worst = std::max(worst, worst_exp(line, exponent));
    }
    MESSAGE("exp: largest error ", worst, " ulp");
    CHECK(worst <= 1.25);  // 0.88 with fused products, 1.14 without
  });
}

TEST_CASE("exp at its ends") {
  on_every_target([] {
    Line line;
    line.cells.fill(-1000.0f);
    const float given[] = {0.0f, -0.0f, -83.0f, -83.5f, -90.0f, -104.0f, -8192.0f, -1e30f, -kKernelInf, kKernelNan};
    std::copy(std::begin(given), std::end(given), line.cells.row(0));
    line.weigh({.max = 0, .base = 0, .exponent = 0, .sum = 1, .visible = kKeys});
    CHECK(line.cells(0, 0) == 1);
    CHECK(line.cells(0, 1) == 1);
    CHECK(line.cells(0, 2) == doctest::Approx(std::exp(-83.0)).epsilon(1e-6));
    for (Index i = 3; i < 9; ++i) CHECK(same_bits(line.cells(0, i), 0.0f));  // below 2^-120
    CHECK(std::isnan(line.cells(0, 9)));
    CHECK(same_bits(line.cells(0, 10), 0.0f));
  });
}

// From tiny to saturated, also where c·tanh(s / c) is s to the last digit.
TEST_CASE("softcap") {
  on_every_target([] {
    Line line;
    line.head.scaling.scale = 1;
    double worst = 0;
    for (const float c : {1e-3f, 0.7f, 20.0f, 50.0f, 1e6f}) {
      line.head.scaling.softcap = c;
      for (const double range : {1e-30, 1e-5, 1e-3, 0.1, 1.0, 30.0}) {
        std::vector<float> given;
        for (Index i = 0; i < kKeys; ++i) {
          line.cells(0, i) = static_cast<float>(real(c) * range * (static_cast<double>(i) / 2000 - 1));
          given.push_back(line.cells(0, i));
        }
        line.scale();
        for (Index i = 0; i < kKeys; ++i) {
          const double exact = real(c) * std::tanh(real(given[static_cast<std::size_t>(i)]) / real(c));
          worst = std::max(worst, std::abs(real(line.cells(0, i)) - exact) / ulp_at(exact));
        }
      }
    }
    MESSAGE("softcap: largest error ", worst, " ulp");
    // Quotient, exponential, quotient and product are each off by half an ulp to 0.9, some where an ulp is twice that
    // of the result.
    CHECK(worst <= 3.5);
    line.head.scaling.softcap = 20;
    line.cells(0, 0) = kKernelInf;
    line.cells(0, 1) = -kKernelInf;
    line.cells(0, 2) = kKernelNan;
    line.cells(0, 3) = -0.0f;
    line.scale();
    CHECK(line.cells(0, 0) == 20);
    CHECK(line.cells(0, 1) == -20);
    CHECK(std::isnan(line.cells(0, 2)));
    CHECK(same_bits(line.cells(0, 3), -0.0f));
  });
}

TEST_CASE("products of matrices") {
  on_every_target([] {
    std::mt19937 random(2);
    for (Index n = 0; n <= 67; ++n) {
      check_product(1 + n % 13, n, 1 + (n * 5) % 67, n % 16, n % 2 == 0, random);
      check_product(n, 1 + (n * 3) % 67, 17, n % 16, n % 2 == 1, random);
      check_product(5, 9, n, n % 16, n % 2 == 0, random);
    }
    check_product(7, 1009, 33, 0, true, random);
    check_product(101, 300, 1009, 3, true, random);
    check_product(101, 1100, 35, 3, false, random);
  });
}
