#include "core/attention/kernels/head_kernel.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace qkv {

struct PackedKeyValues::Impl {
  Index keys = 0, d_k = 0, d_v = 0;
  std::vector<float> k, v;
};

PackedKeyValues::PackedKeyValues(FloatView k, FloatView v) : impl_(std::make_unique<Impl>()) {
  impl_->keys = k.rows;
  impl_->d_k = k.cols;
  impl_->d_v = v.cols;
  impl_->k.resize(static_cast<std::size_t>(k.rows * k.cols));
  impl_->v.resize(static_cast<std::size_t>(v.rows * v.cols));
  for (Index key = 0; key < k.rows; ++key) {
    set_key(key, k.row(key));
    set_value(key, v.row(key));
  }
}

PackedKeyValues::~PackedKeyValues() = default;

Index PackedKeyValues::keys() const { return impl_->keys; }
Index PackedKeyValues::d_k() const { return impl_->d_k; }
Index PackedKeyValues::d_v() const { return impl_->d_v; }

void PackedKeyValues::set_key(Index key, const float* row) {
  std::copy_n(row, impl_->d_k, impl_->k.begin() + key * impl_->d_k);
}

void PackedKeyValues::set_value(Index key, const float* row) {
  std::copy_n(row, impl_->d_v, impl_->v.begin() + key * impl_->d_v);
}

struct KernelScratch::Impl {
  std::vector<float> row;
};

std::size_t PackedKeyValues::bytes() const { return (impl_->k.size() + impl_->v.size()) * sizeof(float); }

KernelScratch::KernelScratch() : impl_(std::make_unique<Impl>()) {}
KernelScratch::~KernelScratch() = default;
KernelScratch::KernelScratch(KernelScratch&&) noexcept = default;
KernelScratch& KernelScratch::operator=(KernelScratch&&) noexcept = default;

KeyRange visible_range(const KernelMask& mask, Index row, Index nk) {
  const Index at = row * mask.step + mask.shift;
  Index first = 0, last = nk;
  if (mask.causal) last = std::min(last, at + 1);
  if (mask.window > 0) {
    first = std::max(first, at - mask.window + 1);
    last = std::min(last, at + mask.window);
  }
  first = std::clamp<Index>(first, 0, nk);
  return {first, std::clamp(last, first, nk)};
}

Index preferred_row_block(const HeadInput&, const HeadOutput&) { return 48; }

namespace {

bool sees(const HeadInput& input, const KeyRange& range, Index key) {
  return key >= range.first && key < range.last && (!input.mask.key_valid || input.mask.key_valid[key]);
}

RowSoftmax row_softmax(const HeadInput& input, const KeyRange& range, const float* scaled) {
  RowSoftmax stats;
  stats.max = input.sink.value_or(-std::numeric_limits<float>::infinity());
  bool is_nan = false;
  for (Index j = range.first; j < range.last; ++j) {
    if (!sees(input, range, j)) continue;
    ++stats.visible;
    is_nan = is_nan || std::isnan(scaled[j]) || scaled[j] == std::numeric_limits<float>::infinity();
    stats.max = std::max(stats.max, scaled[j]);
  }
  if (stats.visible == 0) return {};
  stats.base = stats.max;
  if (input.sink) stats.sum = std::exp(static_cast<double>(*input.sink - stats.base));
  for (Index j = range.first; j < range.last; ++j) {
    if (sees(input, range, j)) stats.sum += static_cast<double>(std::exp(scaled[j] - stats.base));
  }
  if (is_nan) stats.sum = std::numeric_limits<double>::quiet_NaN();
  return stats;
}

}  // namespace

namespace {

// Visible cells of one row, key j at cells[j], to blocks of keys.
void summarize(const HeadInput& input, const KeyRange& range, const float* cells, Index width, Index row,
               const BlockSummary& to) {
  const Index nk = input.kv->keys();
  for (Index first = 0; first < nk; first += width) {
    float sum = 0, low = std::numeric_limits<float>::infinity(), high = -low;
    for (Index j = first; j < std::min(nk, first + width); ++j) {
      if (!sees(input, range, j)) continue;
      sum += cells[j];
      low = std::min(low, cells[j]);
      high = std::max(high, cells[j]);
    }
    if (to.sum) to.sum.row(row)[first / width] = sum;
    if (to.min) to.min.row(row)[first / width] = low;
    if (to.max) to.max.row(row)[first / width] = high;
  }
}

// The same of its weights, from the scaled scores.
void summarize_weights(const HeadInput& input, const KeyRange& range, const RowSoftmax& stats, const float* scaled,
                       Index row, const KeyBlockOutput& to) {
  const Index nk = input.kv->keys();
  for (Index first = 0; first < nk; first += to.width) {
    float sum = 0, high = 0;
    for (Index j = first; j < std::min(nk, first + to.width); ++j) {
      if (!sees(input, range, j)) continue;
      const float weight = std::ldexp(std::exp(scaled[j] - stats.base), -stats.exponent);
      sum += weight;
      high = std::max(high, weight);
    }
    if (to.weights_sum) to.weights_sum.row(row)[first / to.width] = sum;
    if (to.weights_max) to.weights_max.row(row)[first / to.width] = high;
  }
}

}  // namespace

float normalizer(const RowSoftmax& row) { return row.visible == 0 ? 0.0f : static_cast<float>(1 / row.sum); }

void score_cells(const HeadInput& input, const Rect& rect, FloatBlock out) {
  const PackedKeyValues::Impl& kv = input.kv->impl();
  for (Index r = 0; r < rect.rows; ++r) {
    const float* q = input.q.row(rect.row + r);
    for (Index c = 0; c < rect.cols; ++c) {
      const float* k = kv.k.data() + (rect.col + c) * kv.d_k;
      float sum = 0;
      for (Index i = 0; i < kv.d_k; ++i) sum = std::fma(q[i], k[i], sum);
      out.row(r)[c] = sum;
    }
  }
}

void scale_cells(const HeadInput& input, const Rect& rect, FloatBlock cells) {
  const KernelScaling& scaling = input.scaling;
  for (Index r = 0; r < rect.rows; ++r) {
    for (Index c = 0; c < rect.cols; ++c) {
      const Index row = rect.row + r, key = rect.col + c;
      float s = cells.row(r)[c] * scaling.scale;
      if (scaling.softcap > 0) s = scaling.softcap * std::tanh(s / scaling.softcap);
      if (scaling.slope != 0)
        s -= scaling.slope * static_cast<float>(std::abs(row * scaling.step + scaling.shift - key));
      if (scaling.bias) s += scaling.bias.row(row)[key];
      cells.row(r)[c] = s;
    }
  }
}

void weigh_cells(const HeadInput& input, const Rect& rect, std::span<const RowSoftmax> rows, FloatBlock cells) {
  for (Index r = 0; r < rect.rows; ++r) {
    const RowSoftmax& stats = rows[static_cast<std::size_t>(r)];
    const KeyRange range = visible_range(input.mask, rect.row + r, input.kv->keys());
    for (Index c = 0; c < rect.cols; ++c) {
      float& cell = cells.row(r)[c];
      cell = sees(input, range, rect.col + c)
                 ? std::ldexp(std::exp(cell - stats.base), -stats.exponent) * normalizer(stats)
                 : 0.0f;
    }
  }
}

void attend_rows(const HeadInput& input, Index first, Index count, const HeadOutput& output, KernelScratch& scratch) {
  const PackedKeyValues::Impl& kv = input.kv->impl();
  std::vector<float>& cells = scratch.impl().row;
  cells.resize(static_cast<std::size_t>(kv.keys));
  for (Index row = first; row < first + count; ++row) {
    const Rect rect = {row, 0, 1, kv.keys};
    const FloatBlock block = {cells.data(), 1, kv.keys, kv.keys};
    const KeyRange range = visible_range(input.mask, row, kv.keys);
    score_cells(input, rect, block);
    if (output.scores) std::copy(cells.begin(), cells.end(), output.scores.row(row));
    const KeyBlockOutput& blocks = output.blocks;
    if (blocks.width > 0) summarize(input, range, cells.data(), blocks.width, row, blocks.scores);
    scale_cells(input, rect, block);
    if (blocks.width > 0) summarize(input, range, cells.data(), blocks.width, row, blocks.scaled);
    const RowSoftmax stats = row_softmax(input, range, cells.data());
    if (!output.rows.empty()) output.rows[static_cast<std::size_t>(row)] = stats;
    if (blocks.width > 0) summarize_weights(input, range, stats, cells.data(), row, blocks);
    RowSoftmax unit = stats;  // weights without the division
    if (!std::isnan(unit.sum)) unit.sum = 1;
    weigh_cells(input, rect, {&unit, 1}, block);
    if (output.weights && !output.normalized) std::copy(cells.begin(), cells.end(), output.weights.row(row));
    for (float& cell : cells) cell *= std::isnan(stats.sum) ? 1.0f : normalizer(stats);
    if (output.out) {
      std::fill_n(output.out.row(row), kv.d_v, 0.0f);
      for (Index j = range.first; j < range.last; ++j) {
        if (!sees(input, range, j)) continue;
        for (Index c = 0; c < kv.d_v; ++c) {
          output.out.row(row)[c] += cells[static_cast<std::size_t>(j)] * kv.v[static_cast<std::size_t>(j * kv.d_v + c)];
        }
      }
    }
    if (output.weights && output.normalized) std::copy(cells.begin(), cells.end(), output.weights.row(row));
  }
}

const char* kernel_target() { return "scalar"; }

}  // namespace qkv
