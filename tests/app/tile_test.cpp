// Tiles and pictures of matrices that are not held.
#include <doctest/doctest.h>

#include <atomic>
#include <cmath>

#include "app/panels/source_picture.h"
#include "core/attention/streamed_head.h"
#include "core/attention/streamed_pass.h"
#include "core/session/tokenizer.h"

using namespace qkv;

namespace {

// 2,500 tokens: overviews are of blocks of 4 × 4.
Trace streamed_trace(bool causal, bool computed) {
  DirectSource source;
  source.q.emplace_back(random_matrix(1, 2500, 4));
  source.k.emplace_back(random_matrix(2, 2500, 4));
  source.v.emplace_back(random_matrix(3, 2500, 4));
  Problem problem{.source = std::move(source)};
  problem.options.causal = causal;
  Result<Trace> trace = begin_streamed(problem, check_shapes(problem).value(), {});
  REQUIRE(trace.ok());
  if (computed) {
    ThreadPool pool(2);
    REQUIRE(refine_streamed(trace.value(), pool, nullptr));
  }
  return std::move(trace).value();
}

// The picture once there is nothing more to wait for.
const Picture& settled(SourcePictures& pictures, const Trace& trace, const PictureRequest& request) {
  const Picture* picture = nullptr;
  do {
    pictures.begin_frame(trace);
    picture = pictures.get(trace, request);
    REQUIRE(picture != nullptr);
  } while (pictures.wait());
  return *picture;
}

bool same(const Matrix& a, const Matrix& b) {
  return a.rows() == b.rows() && a.cols() == b.cols() &&
         std::equal(a.data(), a.data() + a.size(), b.data(),
                    [](float x, float y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

// What the source says of the picture's blocks.
Matrix blocks_of(const Trace& trace, MatrixId id, const Picture& picture) {
  const auto source = trace.source(id);
  const Index side = Index{1} << picture.row_level;
  const Rect& b = picture.blocks;
  Matrix blocks(b.rows, b.cols);
  const Rect cells = {b.row * side, b.col * side, std::min(b.rows * side, source->rows() - b.row * side),
                      std::min(b.cols * side, source->cols() - b.col * side)};
  if (picture.row_level == 0) {
    source->read(cells, blocks);
  } else {
    source->reduce(cells, picture.row_level, SourcePictures::reduction(id.kind), blocks);
  }
  return blocks;
}

}  // namespace

TEST_SUITE("tiles") {
  TEST_CASE("a tile covers no more cells than take a moment, and ends where the matrix does") {
    CHECK(tile_side(0) == 256);
    CHECK(tile_side(4) == 256);
    CHECK(tile_side(6) == 64);
    CHECK(tile_side(12) == 1);
    CHECK(tile_side(30) == 1);
    CHECK(tile_cells({{MatrixKind::kAttn, 0}, 1, 0, 1}, 700, 700) == Rect{0, 512, 512, 188});
  }

  TEST_CASE("a tile is computed when it is asked for, and then kept") {
    const Trace trace = streamed_trace(true, true);
    const auto source = trace.source({MatrixKind::kScores, 0});
    std::atomic<int> woken = 0;
    TileStore tiles([&] { ++woken; });
    tiles.follow(trace.streams[0]);
    tiles.begin_frame();
    const TileKey key = {{MatrixKind::kScores, 0}, 0, 3, 9};
    CHECK(tiles.find(key) == nullptr);
    CHECK(tiles.get(source, key, Reduction::kMean) == nullptr);
    tiles.wait();
    const auto tile = tiles.get(source, key, Reduction::kMean);
    REQUIRE(tile != nullptr);
    CHECK(tile->rows() == 256);
    CHECK(tile->cols() == 2500 - 9 * 256);
    Matrix cells(tile->rows(), tile->cols());
    source->read({3 * 256, 9 * 256, cells.rows(), cells.cols()}, cells);
    CHECK(same(*tile, cells));
    CHECK(tiles.computed() == 1);
    CHECK(tiles.bytes() == static_cast<std::size_t>(cells.size()) * sizeof(float));
    tiles.follow(std::make_shared<int>(0));  // another computation
    CHECK(tiles.find(key) == nullptr);
    CHECK(tiles.bytes() == 0);
  }

  TEST_CASE("what no frame asks for any more is not computed; what is not on screen makes room") {
    const Trace trace = streamed_trace(false, true);
    const auto source = trace.source({MatrixKind::kScores, 0});
    constexpr std::size_t kTileBytes = 256 * 256 * sizeof(float);
    TileStore tiles({}, 3 * kTileBytes);
    const auto key = [](Index row, Index col) { return TileKey{{MatrixKind::kScores, 0}, 0, row, col}; };
    for (Index row = 0; row < 9; ++row) {
      tiles.begin_frame();
      for (Index col = 0; col < 9; ++col) tiles.get(source, key(row, col), Reduction::kMean);
    }
    tiles.begin_frame();
    tiles.begin_frame();
    tiles.wait();
    CHECK(tiles.computed() < 81);
    for (Index col = 0; col < 9; ++col) {
      tiles.begin_frame();
      tiles.get(source, key(8, col), Reduction::kMean);
      tiles.wait();
    }
    CHECK(tiles.bytes() <= 3 * kTileBytes);
    CHECK(tiles.find(key(8, 8)) != nullptr);
    CHECK(tiles.find(key(8, 0)) == nullptr);
  }
}

TEST_SUITE("pictures") {
  TEST_CASE("a block is a pixel or a little less") {
    CHECK(level_for(30) == 0);
    CHECK(level_for(1) == 0);
    CHECK(level_for(0.9) == 0);
    CHECK(level_for(0.5) == 1);
    CHECK(level_for(0.3) == 1);
    CHECK(level_for(1.0 / 128) == 7);
    CHECK(level_for(0) == 0);
  }

  TEST_CASE("from afar the overview is shown, whole, weights by their largest; hidden blocks are marked") {
    const Trace trace = streamed_trace(true, true);
    SourcePictures pictures({});
    pictures.begin_frame(trace);
    for (const MatrixKind kind : {MatrixKind::kScores, MatrixKind::kAttn, MatrixKind::kKeep}) {
      const PictureRequest request = {{kind, 0}, 0.1, true, {0, 0, 2500, 2500}};
      const Picture* picture = pictures.get(trace, request);
      REQUIRE(picture != nullptr);
      CHECK(picture->complete);
      CHECK(picture->row_level == 3);
      CHECK(picture->blocks == Rect{0, 0, 313, 313});
      CHECK(same(picture->values, blocks_of(trace, {kind, 0}, *picture)));
      if (kind == MatrixKind::kKeep) continue;
      CHECK((picture->keep.array() == 0).select(1, Matrix::Zero(313, 313)).sum() == 313 * 312 / 2);
      CHECK((picture->values.array().isNaN() == (picture->keep.array() == 0)).all());
      CHECK(!picture->cell(0, 0));
    }
    CHECK(!pictures.wait());
  }

  TEST_CASE("near by, cells: coarse until their tiles are there, then exact") {
    const Trace trace = streamed_trace(true, true);
    const MatrixId id = {MatrixKind::kAttn, 0};
    const PictureRequest request = {id, 20, true, {1500, 1000, 40, 60}};
    SourcePictures pictures({});
    pictures.begin_frame(trace);
    const Picture* first = pictures.get(trace, request);
    REQUIRE(first != nullptr);
    CHECK(first->blocks == Rect{1280, 768, 512, 512});
    CHECK(!first->complete);
    CHECK(!first->cell(1500, 1000));
    // Blocks of the overview in the place of cells.
    Matrix coarse(1, 1);
    trace.source(id)->reduce({1500, 1000, 4, 4}, 2, Reduction::kMax, coarse);
    CHECK(first->values(1501 - 1280, 1002 - 768) == coarse(0, 0));
    const std::uint64_t version = first->version;
    const Picture& exact = settled(pictures, trace, request);
    CHECK(exact.complete);
    CHECK(exact.version > version);
    CHECK(same(exact.values, blocks_of(trace, id, exact)));
    Matrix cell(1, 1);
    trace.source(id)->read({1510, 1030, 1, 1}, cell);
    CHECK(exact.cell(1510, 1030) == cell(0, 0));
    CHECK(!exact.cell(0, 0));
    // Moving within the tiles changes nothing.
    const std::uint64_t settled_version = exact.version;
    PictureRequest moved = request;
    moved.visible.row += 20;
    CHECK(settled(pictures, trace, moved).version == settled_version);
  }

  TEST_CASE("between cells and the overview, blocks are computed, from the nearest coarser ones at first") {
    const Trace trace = streamed_trace(true, true);
    const MatrixId id = {MatrixKind::kScaled, 0};
    SourcePictures pictures({});
    pictures.begin_frame(trace);
    const PictureRequest request = {id, 0.4, true, {0, 0, 2500, 2500}};
    const Picture& picture = settled(pictures, trace, request);
    CHECK(picture.row_level == 1);
    CHECK(picture.blocks == Rect{0, 0, 1250, 1250});
    CHECK(picture.complete);
    CHECK(same(picture.values, blocks_of(trace, id, picture)));
    // Cells of the part in the middle now come from level 1 until they are there.
    pictures.begin_frame(trace);
    const Picture* near = pictures.get(trace, {id, 5, true, {1500, 1200, 20, 20}});
    REQUIRE(near != nullptr);
    Matrix coarse(1, 1);
    trace.source(id)->reduce({1500, 1200, 2, 2}, 1, Reduction::kMean, coarse);
    CHECK(near->values(1501 - near->blocks.row, 1201 - near->blocks.col) == coarse(0, 0));
  }

  TEST_CASE("scores of hidden cells are shown near by, as where they are held") {
    const Trace trace = streamed_trace(true, true);
    SourcePictures pictures({});
    const PictureRequest request = {{MatrixKind::kScores, 0}, 20, true, {10, 100, 20, 20}};
    const Picture& scores = settled(pictures, trace, request);
    CHECK(scores.keep.minCoeff() == 1);
    PictureRequest weights = request;
    weights.id.kind = MatrixKind::kAttn;
    const Picture& attn = settled(pictures, trace, weights);
    CHECK(attn.keep(10, 10) == 1);
    CHECK(attn.keep(10, 11) == 0);
  }

  TEST_CASE("while it is computed, a picture follows; O shows the rows that are there") {
    const Trace trace = streamed_trace(false, false);
    SourcePictures pictures({});
    pictures.begin_frame(trace);
    const PictureRequest far = {{MatrixKind::kScores, 0}, 0.1, false, {0, 0, 2500, 2500}};
    const PictureRequest out = {{MatrixKind::kHeadsOut, 0}, 1, false, {0, 0, 2500, 4}};
    const std::uint64_t before = pictures.get(trace, far)->version;
    CHECK(pictures.get(trace, far)->values.array().isNaN().all());
    CHECK(pictures.get(trace, out)->keep.isZero());
    CHECK(pictures.get(trace, out)->blocks == Rect{0, 0, 625, 4});
    ThreadPool pool(1);
    REQUIRE(sample_streamed(trace, pool, nullptr));
    pictures.begin_frame(trace);
    CHECK(pictures.get(trace, far)->version > before);
    CHECK(pictures.get(trace, far)->values.array().isFinite().all());
    CHECK(pictures.get(trace, out)->keep.isZero());
    REQUIRE(refine_streamed(trace, pool, nullptr));
    pictures.begin_frame(trace);
    CHECK(pictures.get(trace, out)->keep.minCoeff() == 1);
    CHECK(pictures.get(trace, out)->values(3, 2) == (*trace.streams[0]->out())(3 * 4 + 2, 2));
    CHECK(same(pictures.get(trace, far)->values, blocks_of(trace, far.id, *pictures.get(trace, far))));
    CHECK(pictures.get(trace, {{MatrixKind::kWo, 0}, 1, false, {}}) == nullptr);
  }
}
