// The steps of attend_rows one at a time, for the cells of a rectangle.
#include <algorithm>

#include "core/attention/kernels/head_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/attention/kernels/cells.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "core/attention/kernels/finish_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

// Scores of the keys of one vector. A row alone has one sum, so more rows than in other tiles hide the latency of the
// additions.
void score_vector(Index rows, Index vec, const PlainScoreJob& job) {
  constexpr Index kTall = 2 * kTileRows;
  const Index tall = rows / kTall * kTall;
  if (tall > 0) job.run<kTall, 1>(0, tall, vec);
  for (Index row = tall; row < rows; ++row) job.run<1, 1>(row, row + 1, vec);
}

void scores_of(const HeadInput& input, const Rect& rect, FloatBlock out) {
  constexpr Index kRows = kMaxBlockRows / 2, kStride = kKeyBlock + kPanel;
  AlignedBuffer cells(std::min(rect.rows, kRows) * kStride);
  const Index end = rect.col + rect.cols;
  for (Index row = 0; row < rect.rows; row += kRows) {
    const Index rows = std::min(kRows, rect.rows - row);
    for (Index first = rect.col / kPanel * kPanel; first < end; first += kKeyBlock) {
      const Index last = std::min(first + kKeyBlock, end), from = std::max(first, rect.col);
      const PlainScoreJob job = {
          input.q.row(rect.row + row), input.q.stride, input.kv->impl().keys, cells.data(), kStride, first};
      if (from / kStep == (last - 1) / kStep) {
        score_vector(rows, from / kStep, job);
      } else {
        run_tiles(rows, first / kStep, round_up(last, kPanel) / kStep, job);
      }
      for (Index r = 0; r < rows; ++r) {
        std::copy_n(cells.data() + r * kStride + (from - first), last - from, out.row(row + r) + (from - rect.col));
      }
    }
  }
}

// to = f(cells, column) for the `count` cells at `cells`, in place.
template <class Function>
HWY_INLINE void transform(float* cells, Index count, const Function& function) {
  Index col = 0;
  for (; col + kStep <= count; col += kStep) {
    hn::StoreU(function(hn::LoadU(F(), cells + col), col), F(), cells + col);
  }
  if (col < count) store_some(function(load_some(cells + col, count - col), col), cells + col, count - col);
}

struct ScaleCells {
  RowScaling scaling;
  Index key;
  HWY_INLINE V operator()(V scores, Index col) const { return scaling.general(scores, key + col); }
};

// One key's cells of rows that lie side by side.
bool is_column(const FloatBlock& cells) { return cells.cols == 1 && cells.stride == 1; }

void scale(const HeadInput& input, const Rect& rect, FloatBlock cells) {
  if (is_column(cells) && is_plain(input.scaling)) {  // the same for all rows
    transform(cells.data, cells.rows, ScaleCells{RowScaling(input.scaling, rect.row, 0), rect.col});
    return;
  }
  for (Index r = 0; r < rect.rows; ++r) {
    transform(cells.row(r), rect.cols, ScaleCells{RowScaling(input.scaling, rect.row + r, 0), rect.col});
  }
}

struct WeighCells {
  WeightExp exp;
  V base, factor;
  HWY_INLINE V operator()(V scaled, Index) const { return hn::Mul(drop_smallest(exp(hn::Sub(scaled, base))), factor); }
};

// A vector of rows at a time.
void weigh_column(const HeadInput& input, const Rect& rect, std::span<const RowSoftmax> rows, float* cells) {
  HWY_ALIGN float exponents[kLanes] = {}, bases[kLanes] = {}, factors[kLanes] = {};
  for (Index first = 0; first < rect.rows; first += kStep) {
    const Index count = std::min(kStep, rect.rows - first);
    for (Index i = 0; i < count; ++i) {
      const RowSoftmax& stats = rows[static_cast<size_t>(first + i)];
      exponents[i] = static_cast<float>(stats.exponent);
      bases[i] = stats.base;
      factors[i] = normalizer(stats);
    }
    const F d;
    transform(cells + first, count,
              WeighCells{WeightExp(hn::Load(d, exponents)), hn::Load(d, bases), hn::Load(d, factors)});
    for (Index i = 0; i < count; ++i) {
      const KeyRange range = visible_range(input.mask, rect.row + first + i, input.kv->keys());
      if (!sees(input, range, rect.col)) cells[first + i] = 0;
    }
  }
}

void weigh(const HeadInput& input, const Rect& rect, std::span<const RowSoftmax> rows, FloatBlock cells) {
  if (is_column(cells)) return weigh_column(input, rect, rows, cells.data);
  for (Index r = 0; r < rect.rows; ++r) {
    const RowSoftmax& stats = rows[static_cast<size_t>(r)];
    const KeyRange range = visible_range(input.mask, rect.row + r, input.kv->keys());
    const Index first = std::clamp<Index>(range.first - rect.col, 0, rect.cols);
    const Index last = std::clamp<Index>(range.last - rect.col, first, rect.cols);
    float* const row = cells.row(r);
    clear(row, row + first);
    clear(row + last, row + rect.cols);
    transform(row + first, last - first,
              WeighCells{WeightExp(stats.exponent), hn::Set(F(), stats.base), hn::Set(F(), normalizer(stats))});
    if (input.mask.key_valid == nullptr) continue;
    for (Index c = first; c < last; ++c) {
      if (input.mask.key_valid[rect.col + c] == 0) row[c] = 0;
    }
  }
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(scores_of);
HWY_EXPORT(scale);
HWY_EXPORT(weigh);

void score_cells(const HeadInput& input, const Rect& rect, FloatBlock out) {
  HWY_DYNAMIC_DISPATCH(scores_of)(input, rect, out);
}

void scale_cells(const HeadInput& input, const Rect& rect, FloatBlock cells) {
  HWY_DYNAMIC_DISPATCH(scale)(input, rect, cells);
}

void weigh_cells(const HeadInput& input, const Rect& rect, std::span<const RowSoftmax> rows, FloatBlock cells) {
  HWY_DYNAMIC_DISPATCH(weigh)(input, rect, rows, cells);
}

}  // namespace qkv
#endif  // HWY_ONCE
