#include "app/panels/source_picture.h"

#include <algorithm>
#include <cmath>

#include "core/attention/streamed_head.h"

namespace qkv {
namespace {

// Rows that a picture of O has while it is being computed.
constexpr Index kSampledRows = 1024;

using Cells = std::shared_ptr<const MatrixSource>;

Index blocks_of(Index cells, int level) { return (cells + (Index{1} << level) - 1) >> level; }

// The cells of blocks at `level`, cut off at the matrix' ends.
Rect cells_of(const Rect& blocks, int level, const MatrixSource& source) {
  const Index row = blocks.row << level, col = blocks.col << level;
  return {row, col, std::min(blocks.rows << level, source.rows() - row),
          std::min(blocks.cols << level, source.cols() - col)};
}

// `to` is `blocks` at `level`; `from` are coarser ones, (row, col) the first of them.
void enlarge(const Matrix& from, Index row, Index col, int coarser, const Rect& blocks, MatrixRef to) {
  for (Index r = 0; r < blocks.rows; ++r) {
    for (Index c = 0; c < blocks.cols; ++c) {
      to(r, c) = from(((blocks.row + r) >> coarser) - row, ((blocks.col + c) >> coarser) - col);
    }
  }
}

// The whole of a reduced level: what is read off without computing.
void show_overview(Picture& picture, const MatrixSource& source, Reduction how) {
  picture.values.resize(picture.blocks.rows, picture.blocks.cols);
  source.reduce({0, 0, source.rows(), source.cols()}, picture.row_level, how, picture.values);
}

// One row of each block of rows; NaN until it is computed.
void show_sampled_rows(Picture& picture, const MatrixSource& source) {
  const Index side = Index{1} << picture.row_level;
  picture.values.resize(picture.blocks.rows, picture.blocks.cols);
  for (Index r = 0; r < picture.blocks.rows; ++r) {
    const Index row = std::min(r * side + side / 2, source.rows() - 1);
    source.read({row, 0, 1, source.cols()}, picture.values.middleRows(r, 1));
  }
  picture.keep = picture.values.array().isNaN().select(Matrix::Zero(picture.values.rows(), picture.values.cols()), 1);
}

// A picture being put together from tiles.
class Mosaic {
 public:
  Mosaic(TileStore& tiles, Picture& picture, Cells source, Cells keep, const PictureRequest& request)
      : tiles_(tiles), picture_(picture), source_(std::move(source)), keep_(std::move(keep)), id_(request.id) {}

  // Asks for the tiles, those in the middle first. True when one has come that the picture does not have.
  bool ask() {
    bool any = false;
    found_.resize(picture_.ready.size());
    for (const Index n : from_the_middle()) {
      const auto at = static_cast<std::size_t>(n);
      found_[at] = tiles_.get(source_, key(n / columns(), n % columns()), SourcePictures::reduction(id_.kind));
      any = any || (found_[at] && !picture_.ready[at]);
    }
    return any;
  }

  void put_together() {
    picture_.values.resize(picture_.blocks.rows, picture_.blocks.cols);
    picture_.keep = keep_ ? Matrix::Ones(picture_.blocks.rows, picture_.blocks.cols) : Matrix();
    picture_.complete = true;
    for (Index n = 0; n < static_cast<Index>(picture_.ready.size()); ++n) {
      const auto at = static_cast<std::size_t>(n);
      put(key(n / columns(), n % columns()), found_[at].get());
      picture_.ready[at] = found_[at] != nullptr;
      picture_.complete = picture_.complete && picture_.ready[at];
    }
  }

 private:
  int level() const { return picture_.row_level; }
  Index columns() const { return (picture_.blocks.cols + picture_.tile - 1) / picture_.tile; }
  Index rows() const { return (picture_.blocks.rows + picture_.tile - 1) / picture_.tile; }
  TileKey key(Index row, Index col) const {
    return {id_, level(), picture_.blocks.row / picture_.tile + row, picture_.blocks.col / picture_.tile + col};
  }

  std::vector<Index> from_the_middle() const {
    std::vector<Index> order(picture_.ready.size());
    for (std::size_t n = 0; n < order.size(); ++n) order[n] = static_cast<Index>(n);
    const auto distance = [&](Index n) {
      const Index down = 2 * (n / columns()) + 1 - rows(), across = 2 * (n % columns()) + 1 - columns();
      return down * down + across * across;
    };
    std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return distance(a) < distance(b); });
    return order;
  }

  void put(const TileKey& at, const Matrix* tile) {
    const Rect cells = tile_cells(at, source_->rows(), source_->cols());
    const Rect blocks = {at.row * picture_.tile, at.col * picture_.tile, blocks_of(cells.rows, level()),
                         blocks_of(cells.cols, level())};
    const Index row = blocks.row - picture_.blocks.row, col = blocks.col - picture_.blocks.col;
    MatrixRef to = picture_.values.block(row, col, blocks.rows, blocks.cols);
    if (tile != nullptr) {
      to = *tile;
    } else {
      put_coarser(blocks, to);
    }
    // Hidden cells of scores and scaled have values that can be seen near by; from afar they are left out.
    const bool hides = tile == nullptr || level() > 0 || id_.kind == MatrixKind::kAttn;
    if (keep_ && hides) {
      keep_->reduce(cells, level(), Reduction::kMax, picture_.keep.block(row, col, blocks.rows, blocks.cols));
    }
  }

  void put_coarser(const Rect& blocks, MatrixRef to) {
    const int overview = source_->overview_level();
    for (int coarser = level() + 1; coarser < overview; ++coarser) {
      const int by = coarser - level();
      const Index side = tile_side(coarser);
      const TileKey larger = {id_, coarser, (blocks.row >> by) / side, (blocks.col >> by) / side};
      if (const auto tile = tiles_.find(larger)) {
        return enlarge(*tile, larger.row * side, larger.col * side, by, blocks, to);
      }
    }
    const int by = overview - level();
    const Rect whole = {blocks.row >> by, blocks.col >> by,
                        ((blocks.row + blocks.rows - 1) >> by) - (blocks.row >> by) + 1,
                        ((blocks.col + blocks.cols - 1) >> by) - (blocks.col >> by) + 1};
    Matrix coarse(whole.rows, whole.cols);
    source_->reduce(cells_of(whole, overview, *source_), overview, SourcePictures::reduction(id_.kind), coarse);
    enlarge(coarse, whole.row, whole.col, by, blocks, to);
  }

  TileStore& tiles_;
  Picture& picture_;
  Cells source_, keep_;
  MatrixId id_;
  std::vector<std::shared_ptr<const Matrix>> found_;  // of the picture's tiles
};

// Whole tiles around the visible cells.
Rect tiled(const Rect& visible, int level, Index tile, const MatrixSource& source) {
  const auto first = [&](Index cell) { return (cell >> level) / tile * tile; };
  const auto last = [&](Index end, Index all) {
    return std::min(((blocks_of(end, level) + tile - 1) / tile) * tile, blocks_of(all, level));
  };
  const Index row = first(visible.row), col = first(visible.col);
  return {row, col, last(visible.row + visible.rows, source.rows()) - row,
          last(visible.col + visible.cols, source.cols()) - col};
}

}  // namespace

std::optional<float> Picture::cell(Index row, Index col) const {
  if (row_level != 0 || col_level != 0 || !blocks.contains(row, col)) return std::nullopt;
  const Index r = row - blocks.row, c = col - blocks.col;
  if (tile > 0) {
    const Index across = (blocks.cols + tile - 1) / tile;
    if (!ready[static_cast<std::size_t>(r / tile * across + c / tile)]) return std::nullopt;
  }
  return values(r, c);
}

int level_for(double cell_pixels) {
  return cell_pixels >= 1 || !(cell_pixels > 0) ? 0 : static_cast<int>(std::floor(std::log2(1 / cell_pixels)));
}

void SourcePictures::begin_frame(const Trace& trace) {
  const std::shared_ptr<const void> origin = trace.streams.empty() ? nullptr : trace.streams.front();
  tiles_.follow(origin);
  tiles_.begin_frame();
  tiles_before_ = tiles_.computed();
  if (!origin) shown_.clear();
}

bool SourcePictures::wait() const {
  tiles_.wait();
  return tiles_.computed() != tiles_before_;
}

const Picture* SourcePictures::get(const Trace& trace, const PictureRequest& request) {
  const auto source = trace.source(request.id);
  if (!source || trace.streams.empty()) return nullptr;
  Shown& shown = shown_[{request.id.kind, request.id.head}];
  update(shown, trace, request);
  return &shown.picture;
}

void SourcePictures::update(Shown& shown, const Trace& trace, const PictureRequest& request) {
  const Cells source = trace.source(request.id);
  const bool masked = request.masked && request.id.kind != MatrixKind::kKeep;
  const Cells keep = masked ? trace.source({MatrixKind::kKeep, 0}) : nullptr;
  const std::uint64_t generation = source->generation();
  const bool sampled = request.id.kind == MatrixKind::kHeadsOut;
  const int overview = source->overview_level(), level = level_for(request.cell_pixels);
  Picture wanted;
  if (sampled) {
    while (blocks_of(source->rows(), wanted.row_level) > kSampledRows) ++wanted.row_level;
    wanted.blocks = {0, 0, blocks_of(source->rows(), wanted.row_level), source->cols()};
  } else if (level >= overview) {
    wanted.row_level = wanted.col_level = level;
    wanted.blocks = {0, 0, blocks_of(source->rows(), level), blocks_of(source->cols(), level)};
  } else {
    wanted.row_level = wanted.col_level = level;
    wanted.tile = tile_side(level);
    wanted.blocks = tiled(request.visible, level, wanted.tile, *source);
  }
  Picture& picture = shown.picture;
  const bool same_place = picture.version != 0 && picture.row_level == wanted.row_level &&
                          picture.col_level == wanted.col_level && picture.blocks == wanted.blocks;
  const bool same_generation = same_place && shown.generation == generation;
  if (!same_place) {
    const auto tiles = [&](Index blocks) { return wanted.tile > 0 ? (blocks + wanted.tile - 1) / wanted.tile : 0; };
    wanted.ready.assign(static_cast<std::size_t>(tiles(wanted.blocks.rows) * tiles(wanted.blocks.cols)), false);
    picture = std::move(wanted);
  }
  shown.generation = generation;
  if (picture.tile > 0) {
    if (same_place && picture.complete) return;
    Mosaic mosaic(tiles_, picture, source, keep, request);
    if (!mosaic.ask() && same_generation) return;
    mosaic.put_together();
  } else {
    if (same_generation) return;
    picture.complete = true;
    if (sampled) {
      show_sampled_rows(picture, *source);
    } else {
      show_overview(picture, *source, reduction(request.id.kind));
      if (keep && !same_place) {
        picture.keep.resize(picture.values.rows(), picture.values.cols());
        keep->reduce({0, 0, keep->rows(), keep->cols()}, level, Reduction::kMax, picture.keep);
      }
    }
  }
  picture.version = ++versions_;
}

}  // namespace qkv
