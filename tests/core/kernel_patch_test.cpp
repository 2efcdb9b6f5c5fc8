// What edited keys change in output rows, on every SIMD target.
#include <doctest/doctest.h>

#include <array>

#include "core/attention/kernels/patch_rows.h"
#include "tests/core/kernel_support.h"

using namespace qkv;
using namespace qkv::test;

namespace {

constexpr Index kRows = 5;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// Keys that are edited, and weights of theirs in kRows rows.
struct Edits {
  std::vector<std::vector<double>> values, weights;  // before and after of each key in turn
  std::array<SumPatch, kRows> sums = {SumPatch{3, 3.5}, {2, 2}, {7, 6}, {1, kNone}, {4, 4}};

  Edits(Index d_v, std::size_t keys, std::mt19937& random) {
    std::uniform_real_distribution<double> uniform(-1, 1);
    const auto fill = [&](Index count) {
      std::vector<double> numbers(static_cast<std::size_t>(count));
      for (double& each : numbers) each = uniform(random);
      return numbers;
    };
    for (std::size_t n = 0; n < 2 * keys; ++n) {
      values.push_back(fill(d_v));
      weights.push_back(fill(kRows));
      weights.back()[4] = 0;
    }
    // A value that no row may touch: the last key is seen by none.
    for (std::size_t n = 2 * keys - 2; keys > 1 && n < 2 * keys; ++n) {
      std::fill(values[n].begin(), values[n].end(), kNone);
      std::fill(weights[n].begin(), weights[n].end(), 0.0);
    }
  }
  std::vector<KeyPatch> patches() const {
    std::vector<KeyPatch> all;
    for (std::size_t n = 0; n < values.size(); n += 2) {
      all.push_back({values[n].data(), values[n + 1].data(), weights[n].data(), weights[n + 1].data()});
    }
    return all;
  }
  bool touches(std::size_t row) const {
    return std::any_of(weights.begin(), weights.end(), [row](auto& of_rows) { return of_rows[row] != 0; });
  }
};

void check(Index d_v, std::size_t keys, Index offset, std::mt19937& random) {
  CAPTURE(d_v);
  CAPTURE(keys);
  const Edits edits(d_v, keys, random);
  Cells out(kRows, d_v, offset), rest(kRows, d_v, 15 - offset), before(kRows, d_v), rest_before(kRows, d_v);
  out.fill(random);
  rest.fill(random, 1e-8f);
  for (Index r = 0; r < kRows; ++r) {
    std::copy_n(out.row(r), d_v, before.row(r));
    std::copy_n(rest.row(r), d_v, rest_before.row(r));
  }
  patch_rows_of({edits.sums, edits.patches(), out.block(), rest.block()});
  CHECK(out.is_intact());
  CHECK(rest.is_intact());
  for (Index r = 0; r < kRows; ++r) {
    const auto row = static_cast<std::size_t>(r);
    const SumPatch& sum = edits.sums[row];
    const bool is_left = std::isnan(sum.after) || (sum.before == sum.after && !edits.touches(row));
    for (Index c = 0; c < d_v; ++c) {
      const auto col = static_cast<std::size_t>(c);
      if (is_left) {
        CHECK(same_bits(out(r, c), before(r, c)));
        CHECK(same_bits(rest(r, c), rest_before(r, c)));
        continue;
      }
      double weighed = (static_cast<double>(before(r, c)) + static_cast<double>(rest_before(r, c))) * sum.before;
      for (std::size_t n = 0; n < edits.values.size(); n += 2) {
        if (edits.weights[n][row] == 0 && edits.weights[n + 1][row] == 0) continue;
        weighed += edits.weights[n + 1][row] * edits.values[n + 1][col] - edits.weights[n][row] * edits.values[n][col];
      }
      const double want = weighed / sum.after, got = static_cast<double>(out(r, c)) + static_cast<double>(rest(r, c));
      CHECK(std::abs(got - want) <= 0x1p-46);
      CHECK(std::abs(static_cast<double>(rest(r, c))) <= kHalfUlp * std::abs(got) + 0x1p-49);
    }
  }
}

}  // namespace

TEST_CASE("edited keys change output rows on every target: each width, at every alignment") {
  on_every_target([] {
    std::mt19937 random(11);
    for (Index d_v = 1; d_v <= 67; ++d_v) {
      for (std::size_t keys = 0; keys <= 3; ++keys) check(d_v, keys, (d_v * 3) % 16, random);
    }
    for (Index offset = 0; offset < 16; ++offset) check(21, 1, offset, random);
    check(1009, 2, 3, random);
  });
}
