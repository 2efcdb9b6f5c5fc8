// Rows of attention, a block of rows at a time: scores of a key block, softmax, weights times V while in cache.
#include "hwy/highway.h"

#if defined(QKV_ATTEND_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_ATTEND_INL_H
#undef QKV_ATTEND_INL_H
#else
#define QKV_ATTEND_INL_H
#endif

#include <algorithm>

#include "core/attention/kernels/block_summary-inl.h"
#include "core/attention/kernels/head_rows.h"
#include "core/attention/kernels/softmax_tile-inl.h"
#include "core/attention/kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

// Where the kVecs vectors from vector `vec` of a row of panels begin.
HWY_INLINE const float* panel_vector(const Panels& panels, Index row, Index vec) {
  const Index col = vec * kStep;
  return panels.panel(col / kPanel) + row * kPanel + col % kPanel;
}

struct StoreTile {
  float* to;
  Index stride;
  HWY_INLINE void operator()(size_t r, size_t v, V sum) const {
    hn::Store(sum, F(), to + static_cast<Index>(r) * stride + static_cast<Index>(v) * kStep);
  }
};

// to = to · rescale[row] + sum
struct RescaleAndAdd {
  float* to;
  Index stride;
  const OnlineRow* rows;
  HWY_INLINE void operator()(size_t r, size_t v, V sum) const {
    float* const at = to + static_cast<Index>(r) * stride + static_cast<Index>(v) * kStep;
    hn::Store(hn::MulAdd(hn::Load(F(), at), hn::Set(F(), rows[r].rescale), sum), F(), at);
  }
};

// A block of rows on its way through the key blocks.
struct RowBlock {
  const HeadInput& input;
  const HeadOutput& output;
  KernelScratch::Impl& scratch;
  Index first, rows;
  bool whole_rows;  // `cells` holds all keys, not one key block
  Index stride;     // of `cells`
  Index sums_stride;
  bool again = false;  // with bases: what does not depend on them is done
  KeyRange groups[kMaxBlockRows / kGroupRows] = {};
  OnlineRow online[kMaxBlockRows] = {};

  Index nk() const { return input.kv->keys(); }
  Index key_blocks() const { return (nk() + kKeyBlock - 1) / kKeyBlock; }
  Index summaries() const { return (nk() + output.blocks.width - 1) / output.blocks.width; }
  std::int32_t* summary_exponents(Index row) const { return scratch.summary_exponents.data() + row * summaries(); }
  float* cells(Index row, Index key) const {
    return scratch.cells.data() + row * stride + (whole_rows ? key : key % kKeyBlock);
  }
  float* sums(Index row) const { return scratch.sums.data() + row * sums_stride; }
};

// A key block: keys [first, last) in reach of some row.
struct KeyBlock {
  Index first, last;
  const float* valid;  // of each key from `first`, 0 = hidden; nullptr = all are visible
  KeyRange within(KeyRange range) const { return {std::max(range.first, first), std::min(range.last, last)}; }
};

// QKᵀ of some rows: scores of key k to `to` + (k − first_key). `groups`: panels of keys that no row of a group of rows
// sees are left out; nullptr = none are.
struct ScoreJob {
  const float* q;
  Index q_stride;
  const Panels& keys;
  float* to;
  Index stride, first_key;
  const KeyRange* groups;

  template <size_t kRows, size_t kVecs>
  HWY_INLINE void run(Index row, Index vec) const {
    const Index key = vec * kStep, end = round_up(key + static_cast<Index>(kVecs) * kStep, kPanel);
    if (groups != nullptr) {
      const KeyRange seen = groups[row / kGroupRows];
      if (seen.last <= key / kPanel * kPanel || seen.first >= end) return;
    }
    multiply_tile<kRows, kVecs>(q + row * q_stride, q_stride, panel_vector(keys, 0, vec), keys.panel_stride(),
                                keys.rows, StoreTile{to + row * stride + (key - first_key), stride});
  }
};

// Adds weights·V of the key block to `sums`.
struct ValueJob {
  const RowBlock& block;
  const KeyBlock& keys;

  template <size_t kRows, size_t kVecs>
  HWY_INLINE void run(Index row, Index vec) const {
    const Panels& v = block.input.kv->impl().values;
    const KeyRange seen = keys.within(block.groups[row / kGroupRows]);
    if (seen.first >= seen.last) return;
    multiply_tile<kRows, kVecs>(block.cells(row, keys.first) + (seen.first - keys.first), block.stride,
                                panel_vector(v, seen.first, vec), v.panel_stride(), seen.last - seen.first,
                                RescaleAndAdd{block.sums(row) + vec * kStep, block.sums_stride, block.online + row});
  }
};

// The raw scores of the panels that a row sees, to where they are wanted.
HWY_INLINE void write_scores(const RowBlock& block, const KeyBlock& keys, Index row, KeyRange seen) {
  const Index from = seen.first / kPanel * kPanel, to = std::min(round_up(seen.last, kPanel), block.nk());
  const float* cells = block.cells(row, keys.first) + (from - keys.first);
  std::copy_n(cells, to - from, block.output.scores.row(block.first + row) + from);
}

template <bool kPlain>
HWY_INLINE void softmax_row(RowBlock& block, const KeyBlock& keys, Index row) {
  OnlineRow& online = block.online[row];
  const KeyRange group = keys.within(block.groups[row / kGroupRows]), seen = keys.within(online.range);
  float* const cells = block.cells(row, keys.first);
  if (seen.first >= seen.last) {
    online.rescale = 1;
    if (group.first < group.last)
      std::fill(cells + (group.first - keys.first), cells + (group.last - keys.first), 0.0f);
    return;
  }
  if (block.output.scores) write_scores(block, keys, row, seen);
  const TileRow tile = {cells, seen.first - keys.first, seen.last - keys.first, keys.valid, keys.first};
  const RowScaling scaling(block.input.scaling, block.first + row, online.base);
  const KeyBlockOutput& summaries = block.output.blocks;
  const bool summarizes = summaries.width > 0 && !block.again;
  if (summarizes) summarize_scores(tile, summaries.width, summaries.scores, block.first + row);
  const float max = scale_row<kPlain>(tile, scaling);
  if (summarizes) summarize_scores(tile, summaries.width, summaries.scaled, block.first + row);
  raise_exponent(online, max, weight_exponent(max));
  online.sum += weigh_row(tile, online.exponent);
  if (summaries.width > 0) {
    summarize_weights(tile, summaries, block.first + row, online.exponent, block.summary_exponents(row));
  }
  // The products with V run over all keys that the group sees.
  const Index before = group.first - keys.first, after = group.last - keys.first;
  if (before < tile.first_vector()) std::fill(cells + before, cells + tile.first_vector(), 0.0f);
  if (tile.last_vector() < after) std::fill(cells + tile.last_vector(), cells + after, 0.0f);
}

// NaN and infinite values of keys that a row sees, times their weights.
inline void add_non_finite(RowBlock& block, const KeyBlock& keys) {
  const std::vector<NonFinite>& all = block.input.kv->impl().non_finite;
  const Index d_v = block.input.kv->d_v();
  const auto before = [](const NonFinite& one, Index key) { return one.key < key; };
  auto at = std::lower_bound(all.begin(), all.end(), keys.first, before);
  for (Index row = 0; row < block.rows; ++row) {
    float* const to = block.scratch.non_finite.data() + row * d_v;
    for (Index c = 0; c < d_v; ++c) to[c] *= block.online[row].rescale;
  }
  for (; at != all.end() && at->key < keys.last; ++at) {
    const Index key = at->key - keys.first;
    if (keys.valid != nullptr && keys.valid[key] == 0) continue;
    for (Index row = 0; row < block.rows; ++row) {
      const KeyRange range = block.online[row].range;
      if (at->key < range.first || at->key >= range.last) continue;
      block.scratch.non_finite[static_cast<size_t>(row * d_v + at->col)] +=
          block.cells(row, keys.first)[key] * at->value;
    }
  }
}

template <bool kPlain>
HWY_INLINE void attend_key_block(RowBlock& block, const KeyBlock& keys) {
  const FloatView& q = block.input.q;
  const ScoreJob scores = {
      q.row(block.first), q.stride,    block.input.kv->impl().keys, block.cells(0, keys.first), block.stride,
      keys.first,         block.groups};
  run_tiles(block.rows, keys.first / kStep, round_up(keys.last, kPanel) / kStep, scores);
  for (Index row = 0; row < block.rows; ++row) {
    softmax_row<kPlain>(block, keys, row);
    if (block.whole_rows) {
      block.scratch.exponents[static_cast<size_t>(row * block.key_blocks() + keys.first / kKeyBlock)] =
          block.online[row].exponent;
    }
  }
  if (!block.output.out) return;
  run_tiles(block.rows, 0, (block.input.kv->d_v() + kStep - 1) / kStep, ValueJob{block, keys});
  if (!block.input.kv->impl().non_finite.empty()) add_non_finite(block, keys);
}

// The keys `seen` of all rows, block by block.
inline void attend_key_blocks(RowBlock& block, KeyRange seen, bool plain) {
  HWY_ALIGN float valid[kKeyBlock];
  const std::uint8_t* const key_valid = block.input.mask.key_valid;
  for (Index first = seen.first / kKeyBlock * kKeyBlock; first < seen.last; first += kKeyBlock) {
    KeyBlock keys = {first, std::min(first + kKeyBlock, seen.last), nullptr};
    if (key_valid != nullptr && std::find(key_valid + keys.first, key_valid + keys.last, 0) != key_valid + keys.last) {
      std::fill_n(valid, kKeyBlock, 0.0f);
      for (Index key = keys.first; key < keys.last; ++key) valid[key - first] = key_valid[key] != 0 ? 1.0f : 0.0f;
      keys.valid = valid;
    }
    plain ? attend_key_block<true>(block, keys) : attend_key_block<false>(block, keys);
  }
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, once for each target
