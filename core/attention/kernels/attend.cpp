#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/attention/kernels/head_rows.h"
#include "hwy/cache_control.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/attention/kernels/attend.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "core/attention/kernels/finish_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

void fill_row(const FloatBlock& plane, Index row, Index count, float value) {
  if (plane) std::fill_n(plane.row(row), count, value);
}

void start_summaries(RowBlock& block) {
  const KeyBlockOutput& to = block.output.blocks;
  const Index count = block.summaries();
  block.scratch.summary_exponents.assign(static_cast<size_t>(block.rows * count), kSmallestExponent);
  for (Index row = block.first; row < block.first + block.rows; ++row) {
    fill_row(to.weights_sum, row, count, 0);
    fill_row(to.weights_max, row, count, 0);
    if (block.again) continue;
    for (const BlockSummary& of : {to.scores, to.scaled}) {
      fill_row(of.sum, row, count, 0);
      fill_row(of.min, row, count, kInfinity);
      fill_row(of.max, row, count, -kInfinity);
    }
  }
}

// Weights with the exponent that a block of keys has to the row's own.
void finish_summaries(const RowBlock& block, Index row, std::int32_t exponent) {
  const KeyBlockOutput& to = block.output.blocks;
  const std::int32_t* const exponents = block.summary_exponents(row);
  for (Index n = 0; n < block.summaries(); ++n) {
    const float rescale = power_of_two(std::min(exponents[n] - exponent, 0));
    if (to.weights_sum) to.weights_sum.row(block.first + row)[n] *= rescale;
    if (!to.weights_max) continue;
    float& max = to.weights_max.row(block.first + row)[n];
    max = max * rescale < kSmallestWeight ? 0 : max * rescale;
  }
}

// What the row sees.
HWY_INLINE KeyRange start_row(const RowBlock& block, Index row) {
  OnlineRow& online = block.online[row];
  const KernelMask& mask = block.input.mask;
  const KeyRange range = visible_range(mask, block.first + row, block.nk());
  online.range = range;
  online.visible = range.last - range.first;
  if (mask.key_valid != nullptr) {
    const std::vector<Index>& before = block.scratch.valid_before;
    online.visible = before[static_cast<size_t>(range.last)] - before[static_cast<size_t>(range.first)];
  }
  online.max = block.input.sink ? *block.input.sink - online.base : -std::numeric_limits<float>::infinity();
  online.exponent = kNoExponent;
  online.sum = 0;
  return range;
}

void start_rows(RowBlock& block) {
  if (block.output.blocks.width > 0) start_summaries(block);
  std::fill(std::begin(block.groups), std::end(block.groups), KeyRange{});
  for (Index first = 0; first < block.rows; first += kGroupRows) {
    KeyRange seen;  // not in its place at once: a struct that is read just after it was written makes rows wait
    for (Index row = first; row < std::min(first + kGroupRows, block.rows); ++row) {
      seen = joint_range(seen, start_row(block, row));
    }
    block.groups[first / kGroupRows] = seen;
  }
  if (!block.output.out) return;
  const bool all_finite = block.input.kv->impl().non_finite.empty();
  block.scratch.non_finite.assign(all_finite ? 0 : static_cast<size_t>(block.rows * block.d_v()), 0.0f);
}

// True when some row's scores are so large that it has to be done again with the base that it now has.
bool set_bases(RowBlock& block) {
  bool again = false;
  for (Index row = 0; row < block.rows; ++row) {
    OnlineRow& online = block.online[row];
    if (online.visible == 0 || std::isnan(online.max) || std::abs(online.max) <= kLargestPlainScore) continue;
    online.base = online.max;
    again = true;
  }
  return again;
}

void attend_all_keys(RowBlock& block) {
  const bool plain = is_plain(block.input.scaling);
  start_rows(block);
  KeyRange seen;
  for (const KeyRange& group : block.groups) seen = joint_range(seen, group);
  attend_key_blocks(block, seen, plain);
  if (!set_bases(block)) return;
  block.again = true;
  start_rows(block);
  attend_key_blocks(block, seen, false);
}

// NaN where a visible score is; else the largest, which is not finite in a row without a sum.
HWY_NOINLINE float max_of_nan_row(const RowBlock& block, Index row) {
  const KeyRange range = block.online[row].range;
  block.scratch.line.reserve(round_up(block.nk(), kPanel));
  float* const line = block.scratch.line.data();
  scaled_line(block.input, block.first + row, range, 0, line);
  float max = block.input.sink.value_or(-std::numeric_limits<float>::infinity());
  for (Index key = range.first; key < range.last; ++key) {
    if (sees(block.input, range, key) && (line[key] > max || std::isnan(line[key]))) max = line[key];
  }
  return max;
}

// `stats` as they are made, where they are wanted: to copy a struct that was just written waits for the stores before.
HWY_INLINE void finish_softmax(const RowBlock& block, Index row, RowSoftmax& stats) {
  const OnlineRow& online = block.online[row];
  stats = {};
  if (online.visible == 0) return;
  stats.max = online.base == 0 ? online.max : online.base;
  stats.base = online.base;
  stats.exponent = weight_exponent(online.max);
  stats.sum = times_power_of_two(online.sum, online.exponent - stats.exponent);
  stats.visible = online.visible;
  if (block.input.sink) stats.sum += sink_weight(*block.input.sink, stats);
  if (std::isnan(stats.sum)) stats = {max_of_nan_row(block, row), 0, 0, stats.sum, online.visible};
}

HWY_INLINE void finish_row(const RowBlock& block, Index row) {
  const HeadOutput& output = block.output;
  const Index i = block.first + row;
  RowSoftmax own;
  RowSoftmax& stats = output.rows.empty() ? own : output.rows[static_cast<size_t>(i)];
  finish_softmax(block, row, stats);
  if (output.blocks.width > 0) finish_summaries(block, row, stats.exponent);
  if (stats.visible == 0) {
    if (output.out) clear(output.out.row(i), output.out.row(i) + block.d_v());
    if (output.weights) clear(output.weights.row(i), output.weights.row(i) + block.nk());
    return;
  }
  if (std::isnan(stats.sum)) return write_nan_row(block, row);
  const float normalize = normalizer(stats);
  if (output.out) write_out(block, row, stats, normalize);
  if (output.weights) write_weights(block, row, stats.exponent, output.normalized ? normalize : 1.0f);
}

// Rows of Q where they do not lie in the same places of a cache: their own, or a copy of those of a wide matrix.
void place_queries(RowBlock& block) {
  constexpr Index kWide = 256;
  const FloatView& q = block.input.q;
  block.q = q.row(block.first);
  block.q_stride = q.stride;
  if (q.stride < kWide || block.rows == 1) return;
  block.q_stride = round_up(q.cols, kPanel) + kPanel;
  block.scratch.q.reserve(block.rows * block.q_stride);
  for (Index r = 0; r < block.rows; ++r) {
    std::copy_n(q.row(block.first + r), q.cols, block.scratch.q.data() + r * block.q_stride);
  }
  block.q = block.scratch.q.data();
}

// True where whole panels lie as they do in scratch memory: scores can become weights in their place.
bool has_whole_panels(const FloatBlock& cells) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(cells.data) % AlignedBuffer::kAlignment == 0;
  return aligned && cells.cols % kPanel == 0 && cells.stride % kPanel == 0;
}

// Cells of which a cache would keep little until somebody reads them: past the caches nothing has to be fetched that is
// overwritten, and K and V stay where they are.
bool is_better_streamed(const FloatBlock& cells) {
  constexpr Index kLarge = 1 << 20;
  return cells && has_whole_panels(cells) && cells.rows * cells.cols >= kLarge;
}

void reserve(const HeadInput& input, const HeadOutput& output, const RowBlock& block, KernelScratch::Impl& scratch) {
  if (output.out) scratch.sums.reserve(block.rows * block.sums_stride);
  if (block.whole_rows) scratch.exponents.resize(static_cast<size_t>(block.rows * block.key_blocks()));
  if (input.mask.key_valid == nullptr) return;
  scratch.valid_before.assign(1, 0);
  for (Index key = 0; key < block.nk(); ++key) {
    scratch.valid_before.push_back(scratch.valid_before.back() + (input.mask.key_valid[key] != 0));
  }
}

void attend(const HeadInput& input, Index first, Index count, const HeadOutput& output, KernelScratch::Impl& scratch) {
  if (count <= 0) return;
  const Index nk = input.kv->keys();
  const bool whole_rows = static_cast<bool>(output.weights);
  const bool streams_weights = is_better_streamed(output.weights), streams_scores = is_better_streamed(output.scores);
  const Index most = block_rows(input, whole_rows), blocks = (count + most - 1) / most;
  const Index rows = std::min(round_up((count + blocks - 1) / blocks, kGroupRows), most);
  scratch.online.resize(static_cast<size_t>(rows));
  scratch.lane_sums.reserve(rows * kStep);
  RowBlock block = {.input = input,
                    .output = output,
                    .scratch = scratch,
                    .first = first,
                    .rows = rows,
                    .q = nullptr,
                    .q_stride = 0,
                    .whole_rows = whole_rows,
                    .in_place = whole_rows && !streams_weights && has_whole_panels(output.weights),
                    .streams_weights = streams_weights,
                    .streams_scores = streams_scores,
                    .first_cell = nullptr,
                    // Not a power of two, which would put all rows in the same places of a cache.
                    .stride = round_up(whole_rows ? nk : std::min(nk, kKeyBlock), kKeyBlock) + kPanel,
                    .sums_stride = round_up(input.kv->d_v(), kPanel),
                    .online = scratch.online.data(),
                    .lane_sums = scratch.lane_sums.data()};
  if (block.in_place) block.stride = output.weights.stride;
  if (!block.in_place) scratch.cells.reserve(rows * block.stride);
  reserve(input, output, block, scratch);
  for (Index row = first; row < first + count; row += rows) {
    block.first = row;
    block.rows = std::min(rows, first + count - row);
    block.first_cell = block.in_place ? output.weights.row(row) : scratch.cells.data();
    block.again = false;
    for (OnlineRow& online : scratch.online) online.base = 0;
    place_queries(block);
    attend_all_keys(block);
    for (Index r = 0; r < block.rows; ++r) finish_row(block, r);
  }
  if (streams_weights || streams_scores) hwy::FlushStream();
}

const char* target_name() { return hwy::TargetName(HWY_TARGET); }

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(attend);
HWY_EXPORT(target_name);

void attend_rows(const HeadInput& input, Index first, Index count, const HeadOutput& output, KernelScratch& scratch) {
  HWY_DYNAMIC_DISPATCH(attend)(input, first, count, output, scratch.impl());
}

const char* kernel_target() { return HWY_DYNAMIC_DISPATCH(target_name)(); }

}  // namespace qkv
#endif  // HWY_ONCE
