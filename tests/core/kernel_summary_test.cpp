// Sums, smallest and largest values of blocks of keys, which attend_rows finds while it passes by.
#include <doctest/doctest.h>

#include <array>

#include "tests/core/kernel_support.h"

using namespace qkv;
using namespace qkv::test;

namespace {

constexpr Index kNq = 61, kNk = 704;

std::vector<Head> heads() {
  std::mt19937 random(5);
  std::vector<Head> result;
  result.emplace_back(kNq, kNk, 16, 8, random);
  result.emplace_back(kNq, kNk - 3, 16, 8, random).mask.causal = true;  // no whole block at the end
  result.emplace_back(kNq, kNk, 16, 8, random).scaling.scale = -0.3f;
  Head& windowed = result.emplace_back(kNq, kNk, 8, 4, random);
  windowed.mask.window = 200;
  windowed.key_valid.assign(static_cast<std::size_t>(kNk), 1);
  for (std::size_t j = 0; j < 300; j += 5) windowed.key_valid[j] = 0;
  windowed.sink = 0.5f;
  // What is far ahead of the first scores, by more than the exponent leaves room for, and beyond what has none.
  Head& rising = result.emplace_back(kNq, kNk, 16, 8, random);
  for (Index c = 0; c < 16; ++c) {
    rising.k(100, c) *= 60;
    rising.k(300, c) *= 200;
    rising.q(7, c) *= 300;
  }
  Head& capped = result.emplace_back(kNq, kNk, 16, 8, random);
  capped.scaling.softcap = 2;
  capped.scaling.slope = 0.02f;
  Head& wild = result.emplace_back(kNq, kNk, 4, 4, random);
  wild.k(70, 1) = kKernelNan;
  for (Index c = 0; c < 4; ++c) wild.k(500, c) = 3e37f;  // the sum of the scores of its block is none
  return result;
}

// The planes of KeyBlockOutput.
struct Planes {
  std::array<Cells, 8> cells;

  explicit Planes(Index blocks) {
    for (Cells& plane : cells) (plane = Cells(kNq, blocks)).fill(77);
  }
  KeyBlockOutput output(Index width) {
    const auto summary = [&](std::size_t n) {
      return BlockSummary{cells[n].block(), cells[n + 1].block(), cells[n + 2].block()};
    };
    return {width, summary(0), summary(3), cells[6].block(), cells[7].block()};
  }
};

// Cells of one block that a row sees.
struct Seen {
  double sum = 0, size = 0;
  float min = kKernelInf, max = -kKernelInf;
  bool is_nan = false;

  void add(float cell) {
    sum += static_cast<double>(cell);
    size += std::abs(static_cast<double>(cell));
    min = std::min(min, cell);
    max = std::max(max, cell);
    is_nan = is_nan || std::isnan(cell);
  }
};

// `sum` may be beyond float32 where `size` is.
void check_block(const Seen& want, float sum, float min, float max) {
  if (want.is_nan) {
    CHECK(std::isnan(sum));
    return;
  }
  CHECK(min == want.min);
  CHECK(max == want.max);
  if (want.size > 3e38) return;
  CHECK(std::abs(static_cast<double>(sum) - want.sum) <= 1e-5 * want.size);
}

void check_row(const Head& head, const HeadInput& input, const Results& held, const Planes& planes, Index width,
               Index row) {
  Cells scaled(1, head.nk(), 0, 0);
  std::copy_n(held.scores.row(row), head.nk(), scaled.row(0));
  scale_cells(input, {row, 0, 1, head.nk()}, scaled.block());
  for (Index first = 0; first < head.nk(); first += width) {
    Seen scores, scaled_scores, weights;
    for (Index key = first; key < std::min(first + width, head.nk()); ++key) {
      if (!head.sees(row, key)) continue;
      scores.add(held.scores(row, key));
      scaled_scores.add(scaled(0, key));
      weights.add(held.weights(row, key));
    }
    const auto at = [&](std::size_t plane) { return planes.cells[plane](row, first / width); };
    CAPTURE(row);
    CAPTURE(first);
    check_block(scores, at(0), at(1), at(2));
    check_block(scaled_scores, at(3), at(4), at(5));
    if (std::isnan(held.rows[static_cast<std::size_t>(row)].sum)) continue;
    CHECK(std::abs(static_cast<double>(at(6)) - weights.sum) <= 1e-5 * weights.sum + 1e-30);
    CHECK(at(7) == std::max(weights.max, 0.0f));
  }
}

}  // namespace

TEST_CASE("what is found of blocks of keys is what their cells come to, and changes no row") {
  on_every_target([] {
    for (Head& head : heads()) {
      const PackedKeyValues kv(head.k.view(), head.v.view());
      const HeadInput input = head.input(kv);
      Results held(head);
      HeadOutput all = held.all();
      all.normalized = false;
      attend(input, all);
      for (const Index width : {1, 8, 16, 32, 64, 128, 256, 512, 1024}) {
        CAPTURE(width);
        Planes planes((head.nk() + width - 1) / width);
        std::vector<RowSoftmax> rows(held.rows.size());
        HeadOutput output;
        output.rows = rows;
        output.blocks = planes.output(width);
        attend(input, output);
        CHECK(same_bits(rows, held.rows));
        for (Index row = 0; row < head.nq(); ++row) check_row(head, input, held, planes, width, row);
        for (const Cells& plane : planes.cells) CHECK(plane.is_intact());
      }
    }
  });
}
