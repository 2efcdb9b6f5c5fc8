// The last step of rows whose key blocks are done: sums and weights to the output, divided by the row's sum.
#include "hwy/highway.h"

#if defined(QKV_FINISH_ROWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_FINISH_ROWS_INL_H
#undef QKV_FINISH_ROWS_INL_H
#else
#define QKV_FINISH_ROWS_INL_H
#endif

#include <cmath>

#include "core/attention/kernels/attend-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

inline bool sees(const HeadInput& input, KeyRange range, Index key) {
  return key >= range.first && key < range.last && (input.mask.key_valid == nullptr || input.mask.key_valid[key] != 0);
}

// How far the exponent of a key block may be below its row's for FinishWeight: its numbers are then normal ones.
inline constexpr std::int32_t kNear = -80;

// A weight from the exponent of its key block to its row's, the smallest to 0, times `factor`. The power of two is in
// `smallest` and `factor`, which changes no digit. `lower`: from kNear to 0.
struct FinishWeight {
  V smallest, factor;

  HWY_INLINE FinishWeight(std::int32_t lower, float by)
      : smallest(hn::Set(F(), kSmallestWeight * power_of_two(-lower))),
        factor(hn::Set(F(), by * power_of_two(lower))) {}
  HWY_INLINE V operator()(const float* weights) const {
    const V weight = hn::Load(F(), weights);
    return hn::Mul(hn::IfThenZeroElse(hn::Lt(weight, smallest), weight), factor);
  }
};

// The same where `lower` may be anything up to 0.
struct FinishFarWeight {
  V rescale, again, factor;  // in two steps, since a weight may be up to 2^kHeadroom

  HWY_INLINE FinishFarWeight(std::int32_t lower, float by)
      : rescale(hn::Set(F(), power_of_two(std::max(lower, -126)))),
        again(hn::Set(F(), power_of_two(std::min(lower + 126, 0)))),
        factor(hn::Set(F(), by)) {}
  HWY_INLINE V operator()(const float* weights) const {
    const V weight = hn::Mul(hn::Mul(hn::Load(F(), weights), rescale), again);
    return hn::Mul(drop_smallest(weight), factor);
  }
};

// to[i] = finish(from + i) for i in [key, end). `streams`: past the caches, all of them whole vectors.
template <class Finish>
HWY_INLINE void finish_weights(const float* from, float* to, Index key, Index end, bool streams, const Finish& finish) {
  if (streams) {
    for (; key < end; key += kStep) hn::Stream(finish(from + key), F(), to + key);
    return;
  }
  for (; key + kStep <= end; key += kStep) hn::StoreU(finish(from + key), F(), to + key);
  if (key < end) store_some(finish(from + key), to + key, end - key);
}

// The same for weights that are 0.
HWY_INLINE void clear_weights(float* to, Index key, Index end, bool streams) {
  if (!streams) return clear(to + key, to + end);
  for (; key < end; key += kStep) hn::Stream(hn::Zero(F()), F(), to + key);
}

// The weights of a row times `factor`, with the exponent of the row. Written in whole vectors but for the last of the
// matrix.
HWY_INLINE void write_weights(const RowBlock& block, Index row, std::int32_t exponent, float factor) {
  const FloatBlock& weights = block.output.weights;
  const KeyRange range = block.online[row].range;
  const Index nk = block.nk(), first = range.first / kStep * kStep, last = std::min(round_up(range.last, kStep), nk);
  float* const to = weights.row(block.first + row);
  clear_weights(to, 0, first, block.streams_weights);
  clear_weights(to, last, nk, block.streams_weights);
  const float* const from = block.cells(row, 0);
  const std::int32_t* exponents = block.scratch.exponents.data() + row * block.key_blocks();
  for (Index key = first; key < last;) {
    const Index end = std::min((key / kKeyBlock + 1) * kKeyBlock, last);
    const std::int32_t lower = exponents[key / kKeyBlock] - exponent;
    if (lower >= kNear) {
      finish_weights(from, to, key, end, block.streams_weights, FinishWeight(lower, factor));
    } else {
      finish_weights(from, to, key, end, block.streams_weights, FinishFarWeight(lower, factor));
    }
    key = end;
  }
}

// A row in which a visible score is NaN or +Inf.
inline HWY_NOINLINE void write_nan_row(const RowBlock& block, Index row) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Index i = block.first + row;
  if (block.output.out) std::fill_n(block.output.out.row(i), block.d_v(), nan);
  if (!block.output.weights) return;
  for (Index key = 0; key < block.nk(); ++key) {
    block.output.weights.row(i)[key] = sees(block.input, block.online[row].range, key) ? nan : 0.0f;
  }
}

// Scaled scores less `base` of the keys [range.first, range.last) of one row, to `line` + key. Lanes around them are
// overwritten too.
inline void scaled_line(const HeadInput& input, Index row, KeyRange range, float base, float* line) {
  const F d;
  const Index first = range.first / kPanel * kPanel, last = round_up(range.last, kPanel);
  const PlainScoreJob job = {input.q.row(row), input.q.stride, input.kv->impl().keys, line, 0, 0};
  run_columns<1, tile_vectors<1>()>(0, 1, first / kStep, last / kStep, job);
  const RowScaling scaling(input.scaling, row, base);
  for (Index key = first; key < last; key += kStep) {
    hn::Store(scaling.general(hn::Load(d, line + key), key), d, line + key);
  }
}

// One row of the output in float64, from the float32 weights: for rows whose sums left the range of float32 on the way.
inline HWY_NOINLINE void write_wide_out(const RowBlock& block, Index row, const RowSoftmax& stats) {
  const F d;
  const OnlineRow& online = block.online[row];
  const Panels& values = block.input.kv->impl().values;
  block.scratch.line.reserve(round_up(block.nk(), kPanel));
  float* const line = block.scratch.line.data();
  scaled_line(block.input, block.first + row, online.range, online.base, line);
  const WeightExp exp(stats.exponent);
  const V normalize = hn::Set(d, normalizer(stats));
  for (Index key = online.range.first / kStep * kStep; key < online.range.last; key += kStep) {
    hn::Store(hn::Mul(drop_smallest(exp(hn::Load(d, line + key))), normalize), d, line + key);
  }
  for (Index col = 0; col < values.cols; ++col) {
    double sum = 0;
    for (Index key = online.range.first; key < online.range.last; ++key) {
      if (!sees(block.input, online.range, key)) continue;
      const float value = values.panel(col / kPanel)[key * kPanel + col % kPanel];
      sum += static_cast<double>(line[key]) * static_cast<double>(value);
    }
    block.output.out.row(block.first + row)[col] = static_cast<float>(sum);
  }
}

HWY_INLINE void write_out(const RowBlock& block, Index row, const RowSoftmax& stats, float normalize_by) {
  const F d;
  const Index d_v = block.d_v();
  float* const to = block.output.out.row(block.first + row);
  const float* const from = block.sums(row);
  const V rescale = hn::Set(d, power_of_two(block.online[row].exponent - stats.exponent));
  const V normalize = hn::Set(d, normalize_by);
  V all_finite = hn::Zero(d);
  for (Index col = 0; col < d_v; col += kStep) {
    const V sums = hn::Load(d, from + col);                  // a row of sums is a whole number of vectors, 0 beyond d_v
    all_finite = hn::MulAdd(sums, hn::Zero(d), all_finite);  // Inf · 0 is NaN
    const V out = hn::Mul(hn::Mul(sums, rescale), normalize);
    if (col + kStep <= d_v) {
      hn::StoreU(out, d, to + col);
    } else {
      store_some(out, to + col, d_v - col);
    }
  }
  if (!hn::AllTrue(d, hn::Eq(all_finite, all_finite))) write_wide_out(block, row, stats);
  if (block.input.kv->impl().non_finite.empty()) return;
  for (Index c = 0; c < d_v; ++c) to[c] += block.scratch.non_finite[static_cast<size_t>(row * d_v + c)];
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, once for each target
