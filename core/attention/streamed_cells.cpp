#include "core/attention/streamed_cells.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/attention/kernel_input.h"

namespace qkv {
namespace {

// Cells that are worked on at once: 256 KiB, which the second-level cache holds.
constexpr Index kTileRows = 64, kTileCols = 1024;

// Calls work(tile) for tiles of at most `rows` × `cols` cells that cover `rect`.
template <class Work>
void for_each_tile(const Rect& rect, Index rows, Index cols, const Work& work) {
  for (Index r = 0; r < rect.rows; r += rows) {
    for (Index c = 0; c < rect.cols; c += cols) {
      work(Rect{rect.row + r, rect.col + c, std::min(rows, rect.rows - r), std::min(cols, rect.cols - c)});
    }
  }
}

Rect within(const Rect& tile, const Rect& rect) {
  return {tile.row - rect.row, tile.col - rect.col, tile.rows, tile.cols};
}

void fill(FloatBlock cells, float value) {
  for (Index r = 0; r < cells.rows; ++r) std::fill_n(cells.row(r), cells.cols, value);
}

}  // namespace

StreamedCells::StreamedCells(SharedMatrix q, std::shared_ptr<const PackedKeyValues> kv, AttentionOptions options,
                             const Shapes& shapes, int head)
    : q_(rotated(q, options.rope)),
      kv_(std::move(kv)),
      options_(std::move(options)),
      shapes_(shapes),
      input_(head_input(*q_, *kv_, options_, shapes_, head)),
      visible_(kernel_mask(options_, shapes_), shapes_.nq, shapes_.nk),
      rows_(shapes_.nq) {}

void StreamedCells::complete_rows(Index first, Index count) const {
  KernelScratch scratch;
  std::vector<RowSoftmax> found(static_cast<std::size_t>(std::min(count, kTileRows)));
  for (Index row = first; row < first + count;) {
    if (rows_.ready(row)) {
      ++row;
      continue;
    }
    Index run = 1;
    while (run < kTileRows && row + run < first + count && !rows_.ready(row + run)) ++run;
    const std::span<RowSoftmax> results(found.data(), static_cast<std::size_t>(run));
    HeadOutput output;
    output.rows = results;
    attend_rows(sample_rows(input_, row, run), 0, run, output, scratch);
    rows_.set(row, results);
    row += run;
  }
}

void StreamedCells::read(CellKind kind, const Rect& rect, FloatBlock out) const {
  if (kind == CellKind::kWeights) complete_rows(rect.row, rect.rows);
  for_each_tile(rect, kTileRows, kTileCols, [&](const Rect& tile) {
    const FloatBlock cells = block_of(out, within(tile, rect));
    if (kind == CellKind::kWeights && visible_.hides(tile)) return fill(cells, 0);
    score_cells(input_, tile, cells);
    if (kind == CellKind::kScores) return;
    scale_cells(input_, tile, cells);
    if (kind == CellKind::kWeights) weigh_cells(input_, tile, rows_.rows(tile.row, tile.rows), cells);
  });
}

void StreamedCells::blank_hidden(const Rect& rect, FloatBlock cells) const {
  const KernelMask& mask = input_.mask;
  for (Index r = 0; r < rect.rows; ++r) {
    const KeyRange range = visible_range(mask, rect.row + r, shapes_.nk);
    for (Index c = 0; c < rect.cols; ++c) {
      const Index key = rect.col + c;
      const bool valid = mask.key_valid == nullptr || mask.key_valid[key] != 0;
      if (key < range.first || key >= range.last || !valid) {
        cells.row(r)[c] = std::numeric_limits<float>::quiet_NaN();
      }
    }
  }
}

void StreamedCells::reduce(CellKind kind, const Rect& rect, Index side, Reduction how, MatrixRef out) const {
  // Tiles of whole blocks; a block larger than a tile is one all the same.
  const auto blocks = [side](Index cells) { return std::max(side, cells / side * side); };
  const Index rows = std::min(blocks(kTileRows), rect.rows), cols = std::min(blocks(kTileCols), rect.cols);
  Matrix buffer(rows, cols);
  for_each_tile(rect, rows, cols, [&](const Rect& tile) {
    const Index r = (tile.row - rect.row) / side, c = (tile.col - rect.col) / side;
    auto target = out.block(r, c, (tile.rows + side - 1) / side, (tile.cols + side - 1) / side);
    Index visible = 0;
    visible_.count_blocks(tile, tile.cols, {&visible, 1});
    if (visible == 0) return void(target.setConstant(std::numeric_limits<float>::quiet_NaN()));
    const FloatBlock cells = {buffer.data(), tile.rows, tile.cols, buffer.cols()};
    read(kind, tile, cells);
    if (visible < tile.rows * tile.cols) blank_hidden(tile, cells);
    reduce_cells(buffer.topLeftCorner(tile.rows, tile.cols), side, how, target);
  });
}

std::size_t StreamedCells::bytes() const {
  return static_cast<std::size_t>(q_->size()) * sizeof(float) + kv_->bytes() + visible_.bytes() + rows_.bytes();
}

}  // namespace qkv
