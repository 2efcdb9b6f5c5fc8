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
  template <size_t kVecs>
  HWY_INLINE void row(Index r, const V* sums) const {
#pragma GCC unroll 8  // sums are registers, which have no index
    for (size_t v = 0; v < kVecs; ++v) hn::Store(sums[v], F(), to + r * stride + static_cast<Index>(v) * kStep);
  }
};

// to = to · rescale[row] + sum; the `first` sums alone.
struct RescaleAndAdd {
  float* to;
  Index stride;
  const OnlineRow* rows;
  bool first;
  template <size_t kVecs>
  HWY_INLINE void row(Index r, const V* sums) const {
    if (first) return StoreTile{to, stride}.row<kVecs>(r, sums);
    const V rescale = hn::Set(F(), rows[r].rescale);
#pragma GCC unroll 8  // sums are registers, which have no index
    for (size_t v = 0; v < kVecs; ++v) {
      float* const at = to + r * stride + static_cast<Index>(v) * kStep;
      hn::Store(hn::MulAdd(hn::Load(F(), at), rescale, sums[v]), F(), at);
    }
  }
};

// A block of rows on its way through the key blocks.
struct RowBlock {
  const HeadInput& input;
  const HeadOutput& output;
  KernelScratch::Impl& scratch;
  Index first, rows;
  const float* q;  // of row `first`
  Index q_stride;
  bool whole_rows;  // the cells are those of all keys, not of one key block
  bool in_place;    // they are where the weights are wanted
  // Written past the caches, which could not hold them.
  bool streams_weights, streams_scores;
  float* first_cell;
  Index stride;  // of the cells
  Index sums_stride;
  bool again = false;  // with bases: what does not depend on them is done
  KeyRange groups[kMaxBlockRows / kGroupRows] = {};
  OnlineRow* online;
  float* lane_sums;  // of the weights of a key block, a vector for each row

  Index nk() const { return input.kv->impl().keys.cols; }
  Index d_v() const { return input.kv->impl().values.cols; }
  Index key_blocks() const { return (nk() + kKeyBlock - 1) / kKeyBlock; }
  Index summaries() const { return (nk() + output.blocks.width - 1) / output.blocks.width; }
  std::int32_t* summary_exponents(Index row) const { return scratch.summary_exponents.data() + row * summaries(); }
  float* cells(Index row, Index key) const { return first_cell + row * stride + (whole_rows ? key : key % kKeyBlock); }
  float* sums(Index row) const { return scratch.sums.data() + row * sums_stride; }
};

// A key block: keys [first, last) in reach of some row.
struct KeyBlock {
  Index first, last;
  const float* valid;  // of each key from `first`, 0 = hidden; nullptr = all are visible
  KeyRange within(KeyRange range) const { return {std::max(range.first, first), std::min(range.last, last)}; }
};

// QKᵀ of some rows: scores of key k to `to` + (k − first_key).
struct PlainScoreJob {
  const float* q;
  Index q_stride;
  const Panels& keys;
  float* to;
  Index stride, first_key;

  template <size_t kRows, size_t kVecs>
  HWY_NOINLINE void run(Index row, Index end, Index vec) const {
    const float* const columns = panel_vector(keys, 0, vec);
    float* const column = to + (vec * kStep - first_key);
    for (; row < end; row += static_cast<Index>(kRows)) {
      multiply_tile<kRows, kVecs>(q + row * q_stride, q_stride, columns, keys.panel_stride(), keys.rows,
                                  StoreTile{column + row * stride, stride});
    }
  }
};

// Asks for the cells of a tile that are written soon, of which no cache has anything yet.
template <size_t kRows, size_t kVecs>
HWY_INLINE void fetch_cells(const float* cells, Index stride) {
  for (size_t r = 0; r < kRows; ++r) {
    const float* const row = cells + static_cast<Index>(r) * stride;
    for (Index col = 0; col < static_cast<Index>(kVecs) * kStep; col += kPanel) __builtin_prefetch(row + col, 1);
  }
}

// Panels that come from memory, being more than caches hold, are asked for while the ones before are used: a panel may
// be a page, at whose start the processor's own foresight ends.
class PanelFetch {
 public:
  // What follows `columns`, those of `vecs` vectors, in equal parts beside `tiles` tiles; nothing where that cannot
  // pay.
  HWY_INLINE PanelFetch(const Panels& panels, const float* columns, Index vecs, Index tiles) {
    constexpr Index kFar = 1 << 19, kFewTiles = 4;  // floats; tiles
    const float* const end = panels.panel(panels_of(panels.cols));
    if (end - panels.cells.data() <= kFar || tiles < kFewTiles) return;
    const Index span = std::max(vecs * kStep, kPanel) * panels.rows;
    next_ = columns + span;
    step_ = end - next_ >= span ? round_up((span + tiles - 1) / tiles, kPanel) : 0;
  }
  HWY_INLINE void beside_tile() {
    for (Index n = 0; n < step_; n += kPanel) __builtin_prefetch(next_ + n);
    next_ += step_;
  }

 private:
  const float* next_ = nullptr;
  Index step_ = 0;  // floats for each tile
};

// QKᵀ of a block of rows to `cells`, but for panels of keys that no row of a group sees.
struct ScoreJob {
  const RowBlock& block;
  const KeyBlock& keys;

  template <size_t kRows, size_t kVecs>
  HWY_NOINLINE void run(Index row, Index end, Index vec) const {
    const Panels& k = block.input.kv->impl().keys;
    const float* const columns = panel_vector(k, 0, vec);
    const Index key = vec * kStep, first = key / kPanel * kPanel;
    const Index last = round_up(key + static_cast<Index>(kVecs) * kStep, kPanel);
    PanelFetch fetch(k, columns, kVecs, (end - row) / static_cast<Index>(kRows));
    for (; row < end; row += static_cast<Index>(kRows)) {
      fetch.beside_tile();
      const KeyRange seen = block.groups[row / kGroupRows];
      if (seen.last <= first || seen.first >= last) continue;
      float* const cells = block.cells(row, keys.first) + (key - keys.first);
      if (block.in_place) fetch_cells<kRows, kVecs>(cells + static_cast<Index>(kVecs) * kStep, block.stride);
      multiply_tile<kRows, kVecs>(block.q + row * block.q_stride, block.q_stride, columns, k.panel_stride(), k.rows,
                                  StoreTile{cells, block.stride});
    }
  }

  void run_row(Index row) const {
    run_columns<1, tile_vectors<1>()>(row, row + 1, keys.first / kStep, round_up(keys.last, kPanel) / kStep, *this);
  }
};

// Adds weights·V of the key block to `sums`.
struct ValueJob {
  const RowBlock& block;
  const KeyBlock& keys;

  template <size_t kRows, size_t kVecs>
  HWY_NOINLINE void run(Index row, Index end, Index vec) const {
    const Panels& v = block.input.kv->impl().values;
    for (; row < end; row += static_cast<Index>(kRows)) {
      const KeyRange group = block.groups[row / kGroupRows], seen = keys.within(group);
      if (seen.first >= seen.last) continue;
      multiply_tile<kRows, kVecs>(block.cells(row, keys.first) + (seen.first - keys.first), block.stride,
                                  panel_vector(v, seen.first, vec), v.panel_stride(), seen.last - seen.first,
                                  RescaleAndAdd{block.sums(row) + vec * kStep, block.sums_stride, block.online + row,
                                                seen.first == group.first});
    }
  }
};

// The raw scores of panels that a row sees, to where they are wanted.
HWY_INLINE void write_scores(const RowBlock& block, const KeyBlock& keys, Index row, KeyRange seen) {
  const Index from = seen.first / kPanel * kPanel, to = std::min(round_up(seen.last, kPanel), block.nk());
  const float* cells = block.cells(row, keys.first) + (from - keys.first);
  float* const scores = block.output.scores.row(block.first + row) + from;
  if (!block.streams_scores) {
    std::copy_n(cells, to - from, scores);
    return;
  }
  for (Index i = 0; i < to - from; i += kStep) hn::Stream(hn::Load(F(), cells + i), F(), scores + i);
}

HWY_INLINE TileRow tile_row(const RowBlock& block, const KeyBlock& keys, Index row, KeyRange seen) {
  return {block.cells(row, keys.first), seen.first - keys.first, seen.last - keys.first, keys.valid, keys.first};
}

// Whether a row's weights and all summaries of its blocks are found together.
template <bool kPlain>
HWY_INLINE bool summarizes_at_once(const RowBlock& block, const TileRow& tile) {
  const Index width = block.output.blocks.width;
  return kPlain && width > 0 && !block.again && has_whole_blocks(tile, width);
}

// Whether a row sees the whole key block, which is whole vectors, and its scores are to be scaled and no more: most
// rows, and what is found out of the others costs as much as the weights of few keys.
template <bool kPlain>
HWY_INLINE bool is_whole(const RowBlock& block, const KeyBlock& keys, const OnlineRow& online) {
  return kPlain && keys.valid == nullptr && block.output.blocks.width == 0 && online.range.first <= keys.first &&
         online.range.last >= keys.last && (keys.last - keys.first) % kStep == 0;
}

HWY_INLINE void prepare_whole_row(RowBlock& block, const KeyBlock& keys, Index row) {
  OnlineRow& online = block.online[row];
  online.rescale = 1;
  if (block.output.scores) write_scores(block, keys, row, {keys.first, keys.last});
  if (online.exponent != kNoExponent) return;
  online.exponent = first_exponent(block.cells(row, keys.first), keys.last - keys.first, block.input.scaling.scale);
}

// Makes scores of a row weights by weigh(again), which gives the largest scaled score: again, from scores that are
// computed once more, where that is too large for the exponent that was foreseen.
template <class Weigh>
HWY_INLINE void weigh_within_headroom(RowBlock& block, const KeyBlock& keys, Index row, const Weigh& weigh) {
  OnlineRow& online = block.online[row];
  float max = weigh(false);
  while (!is_within_headroom(online, max) && raise_exponent(online, weight_exponent(max))) {
    ScoreJob{block, keys}.run_row(row);
    max = weigh(true);
  }
  online.max = std::max(online.max, max);
}

HWY_INLINE void weigh_whole_row(RowBlock& block, const KeyBlock& keys, Index row) {
  const OnlineRow& online = block.online[row];
  const V by = hn::Set(F(), block.input.scaling.scale);
  weigh_within_headroom(block, keys, row, [&](bool) HWY_ATTR {
    LaneSums lanes;
    weigh_columns(block.cells(row, keys.first), 0, keys.last - keys.first, by, WeightExp(online.exponent), lanes);
    hn::Store(lanes.sum, F(), block.lane_sums + row * kStep);
    return hn::GetLane(hn::MaxOfLanes(F(), lanes.largest));
  });
}

// Gets a row ready for weigh_tile_row: its scores, and its exponent.
template <bool kPlain>
HWY_INLINE void prepare_tile_row(RowBlock& block, const KeyBlock& keys, Index row) {
  OnlineRow& online = block.online[row];
  if (is_whole<kPlain>(block, keys, online)) return prepare_whole_row(block, keys, row);
  const KeyRange seen = keys.within(online.range);
  online.rescale = 1;
  if (seen.first >= seen.last) return;
  if (block.output.scores) write_scores(block, keys, row, seen);
  const TileRow tile = tile_row(block, keys, row, seen);
  const KeyBlockOutput& summaries = block.output.blocks;
  const bool summarizes = summaries.width > 0 && !block.again && !summarizes_at_once<kPlain>(block, tile);
  if (summarizes && kPlain) {
    summarize_multiples(tile, block.input.scaling.scale, summaries, block.first + row);
  } else if (summarizes) {
    summarize_scores(tile, summaries.width, summaries.scores, block.first + row);
  }
  const bool look = online.exponent == kNoExponent;
  if (!look && all_plain<kPlain>(tile)) return;
  const RowScaling scaling(block.input.scaling, block.first + row, online.base);
  raise_exponent(online, foreseen_exponent<kPlain>(tile, scaling, look));
  if (!kPlain && summarizes) summarize_scores(tile, summaries.width, summaries.scaled, block.first + row);
}

// Scores of a row to weights, and 0 to the other keys that its group sees: products with V run over all of them.
template <bool kPlain>
HWY_INLINE void weigh_tile_row(RowBlock& block, const KeyBlock& keys, Index row) {
  OnlineRow& online = block.online[row];
  if (is_whole<kPlain>(block, keys, online)) return weigh_whole_row(block, keys, row);
  const KeyRange group = keys.within(block.groups[row / kGroupRows]), seen = keys.within(online.range);
  float* const cells = block.cells(row, keys.first) - keys.first;
  float* const lane_sums = block.lane_sums + row * kStep;
  if (seen.first >= seen.last) {
    hn::Store(hn::Zero(F()), F(), lane_sums);
    if (group.first < group.last) clear(cells + group.first, cells + group.last);
    return;
  }
  const TileRow tile = tile_row(block, keys, row, seen);
  const RowScaling scaling(block.input.scaling, block.first + row, online.base);
  const KeyBlockOutput& summaries = block.output.blocks;
  const bool at_once = summarizes_at_once<kPlain>(block, tile);
  weigh_within_headroom(block, keys, row, [&](bool again) HWY_ATTR {
    if (again) foreseen_exponent<kPlain>(tile, scaling, false);
    return at_once ? weigh_blocks(tile, block.input.scaling.scale, online.exponent, summaries, block.first + row,
                                  block.summary_exponents(row), lane_sums)
                   : weigh_row<kPlain>(tile, scaling, online.exponent, lane_sums);
  });
  if (summaries.width > 0 && !at_once) {
    summarize_weights(tile, summaries, block.first + row, online.exponent, block.summary_exponents(row));
  }
  const Index before = keys.first + tile.first_vector(), after = keys.first + tile.last_vector();
  if (group.first < before) clear(cells + group.first, cells + before);
  if (after < group.last) clear(cells + after, cells + group.last);
}

// NaN and infinite values of keys that a row sees, times their weights.
inline void add_non_finite(RowBlock& block, const KeyBlock& keys) {
  const std::vector<NonFinite>& all = block.input.kv->impl().non_finite;
  const Index d_v = block.d_v();
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
  run_tiles(block.rows, keys.first / kStep, round_up(keys.last, kPanel) / kStep, ScoreJob{block, keys});
  // One after the other for all rows, so that no row waits for what is slow to come from the one before.
  for (Index row = 0; row < block.rows; ++row) prepare_tile_row<kPlain>(block, keys, row);
  for (Index row = 0; row < block.rows; ++row) weigh_tile_row<kPlain>(block, keys, row);
  for (Index row = 0; row < block.rows; ++row) {
    block.online[row].sum += sum_in_double(hn::Load(F(), block.lane_sums + row * kStep));
    if (block.whole_rows) {
      block.scratch.exponents[static_cast<size_t>(row * block.key_blocks() + keys.first / kKeyBlock)] =
          block.online[row].exponent;
    }
  }
  if (!block.output.out) return;
  run_tiles(block.rows, 0, (block.d_v() + kStep - 1) / kStep, ValueJob{block, keys});
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
