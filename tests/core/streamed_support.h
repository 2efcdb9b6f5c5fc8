// One head computed both ways: its matrices held whole, and streamed.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/attention/kernel_input.h"
#include "core/attention/position.h"
#include "core/attention/streamed_head.h"
#include "core/attention/visible_keys.h"
#include "tests/core/slow_attention.h"

namespace qkv::test {

inline std::shared_ptr<const PackedKeyValues> packed(const Problem& problem, const Shapes& shapes, int head) {
  const auto& source = std::get<DirectSource>(problem.source);
  const auto kv = static_cast<std::size_t>(kv_head_of(shapes, head));
  const Matrix k = positioned(*source.k[kv], problem.options.rope).cast<float>();
  return std::make_shared<PackedKeyValues>(view_of(k), view_of(*source.v[kv]));
}

inline std::shared_ptr<StreamedHead> streamed(const Problem& problem, int head, bool with_out = true,
                                              Index overview_blocks = kOverviewBlocks) {
  const Shapes shapes = check_shapes(problem).value();
  const auto& source = std::get<DirectSource>(problem.source);
  return std::make_shared<StreamedHead>(source.q[static_cast<std::size_t>(head)], packed(problem, shapes, head),
                                        problem.options, shapes, head, with_out, overview_blocks);
}

// What attend_rows writes when it is asked for everything.
struct Held {
  Matrix scores, scaled, attn, out, keep;
  std::vector<RowSoftmax> rows;
  const Matrix& of(MatrixKind kind) const {
    return kind == MatrixKind::kScores   ? scores
           : kind == MatrixKind::kScaled ? scaled
           : kind == MatrixKind::kAttn   ? attn
           : kind == MatrixKind::kKeep   ? keep
                                         : out;
  }
};

inline Held held(const Problem& problem, int head) {
  const Shapes s = check_shapes(problem).value();
  const auto& source = std::get<DirectSource>(problem.source);
  const Matrix q = positioned(*source.q[static_cast<std::size_t>(head)], problem.options.rope).cast<float>();
  const auto kv = packed(problem, s, head);
  const HeadInput input = head_input(q, *kv, problem.options, s, head);
  Held all = {Matrix(s.nq, s.nk),
              Matrix(s.nq, s.nk),
              Matrix(s.nq, s.nk),
              Matrix(s.nq, s.d_v),
              keep_matrix(problem.options, s.nq, s.nk).cast<float>(),
              std::vector<RowSoftmax>(static_cast<std::size_t>(s.nq))};
  // attend_rows leaves out what the mask hides in whole tiles.
  const Rect whole = {0, 0, s.nq, s.nk};
  score_cells(input, whole, block_of(all.scores));
  HeadOutput output;
  output.scores = block_of(all.scores);
  output.weights = block_of(all.attn);
  output.out = block_of(all.out);
  output.rows = all.rows;
  KernelScratch scratch;
  attend_rows(input, 0, s.nq, output, scratch);
  all.scaled = all.scores;
  scale_cells(input, whole, block_of(all.scaled));
  return all;
}

inline Matrix read_all(const MatrixSource& source) {
  Matrix cells(source.rows(), source.cols());
  source.read({0, 0, cells.rows(), cells.cols()}, cells);
  return cells;
}

inline Matrix reduced(const MatrixSource& source, int level, Reduction how) {
  const Index side = Index{1} << level;
  Matrix cells((source.rows() + side - 1) / side, (source.cols() + side - 1) / side);
  source.reduce({0, 0, source.rows(), source.cols()}, level, how, cells);
  return cells;
}

// Equal to the bit, any NaN like any other.
inline bool same_bits(const Matrix& a, const Matrix& b) {
  return a.rows() == b.rows() && a.cols() == b.cols() &&
         std::equal(a.data(), a.data() + a.size(), b.data(), [](float x, float y) {
           return (std::isnan(x) && std::isnan(y)) || (x == y && std::signbit(x) == std::signbit(y));
         });
}

// What a reduction should be: a loop over the visible cells of the held matrix.
struct Block {
  double mean = 0, largest = -std::numeric_limits<double>::infinity(), magnitude = 0;
  Index cells = 0;
};
inline Block slow_block(const Matrix& cells, const Matrix& keep, const Rect& rect) {
  Block block;
  for (Index r = rect.row; r < rect.row + rect.rows; ++r) {
    for (Index c = rect.col; c < rect.col + rect.cols; ++c) {
      if (keep(r, c) == 0 || std::isnan(cells(r, c))) continue;
      const auto value = static_cast<double>(cells(r, c));
      block.mean += value;
      block.magnitude = std::max(block.magnitude, std::abs(value));
      block.largest = std::max(block.largest, value);
      ++block.cells;
    }
  }
  if (block.cells > 0) block.mean /= static_cast<double>(block.cells);
  return block;
}

// `mean` and `max` are the reductions of the whole matrix at `level`.
inline void check_reductions(const Matrix& cells, const Matrix& keep, int level, const Matrix& mean,
                             const Matrix& max) {
  const Index side = Index{1} << level;
  for (Index r = 0; r < mean.rows(); ++r) {
    for (Index c = 0; c < mean.cols(); ++c) {
      const Rect rect = {r * side, c * side, std::min(side, cells.rows() - r * side),
                         std::min(side, cells.cols() - c * side)};
      const Block want = slow_block(cells, keep, rect);
      CAPTURE(level);
      CAPTURE(r);
      CAPTURE(c);
      if (want.cells == 0) {
        CHECK(std::isnan(mean(r, c)));
        CHECK(std::isnan(max(r, c)));
        continue;
      }
      // Equal, infinities too, or near. Sums of at most `side` float32 terms, each off by half an ulp of the sum so
      // far; levels above round once more each; weights a quotient.
      const auto near = [&](float got, double right, double tolerance) {
        const auto value = static_cast<double>(got);
        return value == right || (std::isnan(value) && std::isnan(right)) || std::abs(value - right) <= tolerance;
      };
      const double eps = 1.2e-7 * std::max(want.magnitude, 1e-30);
      CHECK(near(mean(r, c), want.mean, (static_cast<double>(side) + 8) * eps));
      CHECK(near(max(r, c), want.largest, 0));
    }
  }
}

}  // namespace qkv::test
