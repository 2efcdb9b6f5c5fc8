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
      run_tiles(rows, first / kStep, round_up(last, kPanel) / kStep, job);
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

void scale(const HeadInput& input, const Rect& rect, FloatBlock cells) {
  for (Index r = 0; r < rect.rows; ++r) {
    transform(cells.row(r), rect.cols, ScaleCells{RowScaling(input.scaling, rect.row + r, 0), rect.col});
  }
}

struct WeighCells {
  WeightExp exp;
  V base, factor;
  HWY_INLINE V operator()(V scaled, Index) const { return hn::Mul(drop_smallest(exp(hn::Sub(scaled, base))), factor); }
};

void weigh(const HeadInput& input, const Rect& rect, std::span<const RowSoftmax> rows, FloatBlock cells) {
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
