// The register tile that all products are made of: up to 6 rows times a few vectors of columns.
#include "hwy/highway.h"

#if defined(QKV_TILE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_TILE_INL_H
#undef QKV_TILE_INL_H
#else
#define QKV_TILE_INL_H
#endif

#include <utility>

#include "core/attention/kernels/load_store-inl.h"
#include "core/attention/kernels/panels.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

inline constexpr Index kTileRows = 6;

// Vectors of columns beside `rows` rows: enough sums to hide the latency of the additions, few enough to stay in
// registers (16, or 32 with AVX-512).
template <size_t kRows>
constexpr size_t tile_vectors() {
#if HWY_TARGET <= HWY_AVX3
  return kRows >= 4 ? 4 : 8;
#else
  return kRows >= 4 ? 2 : kRows >= 2 ? 4 : 8;
#endif
}

// Columns of a full tile of that many rows.
HWY_INLINE Index tile_columns(Index rows) {
  const size_t vecs = rows >= 4   ? tile_vectors<4>()
                      : rows == 3 ? tile_vectors<3>()
                      : rows == 2 ? tile_vectors<2>()
                                  : tile_vectors<1>();
  return static_cast<Index>(vecs) * kStep;
}

// Where the kVecs vectors of a chunk begin in a panelled matrix, from the start of the first. A chunk begins with a
// panel or lies within one.
constexpr Index vector_offset(size_t vec, Index panel_stride) {
  const size_t col = vec * kLanes;
  return static_cast<Index>(col / kPanel) * panel_stride + static_cast<Index>(col % kPanel);
}

template <size_t... kC>
HWY_INLINE void add_products(V a, const V* b, V* sums, std::index_sequence<kC...>) {
  ((sums[kC] = hn::MulAdd(a, b[kC], sums[kC])), ...);
}

// Adds row k of `b` times column k of `a`.
template <size_t... kR, size_t... kC>
HWY_INLINE void add_step(const float* HWY_RESTRICT a, Index a_stride, const float* HWY_RESTRICT b, Index panel_stride,
                         V* sums, std::index_sequence<kR...>, std::index_sequence<kC...> columns) {
  const F d;
  constexpr size_t kVecs = sizeof...(kC);
  const V right[kVecs] = {hn::Load(d, b + vector_offset(kC, panel_stride))...};
  (add_products(hn::Set(d, a[static_cast<Index>(kR) * a_stride]), right, sums + kR * kVecs, columns), ...);
}

template <class Rows, class Columns>
HWY_INLINE void sum_products(const float* HWY_RESTRICT a, Index a_stride, const float* HWY_RESTRICT b,
                             Index panel_stride, Index depth, V* sums, Rows rows, Columns columns) {
  // Unrolled by the compiler: written out, GCC 12 moves the sums from register to register and to memory.
#pragma GCC unroll 4
  for (Index k = 0; k < depth; ++k) add_step(a + k, a_stride, b + k * kPanel, panel_stride, sums, rows, columns);
}

template <size_t kVecs, class Store, size_t... kR>
HWY_INLINE void store_rows(const V* sums, const Store& store, std::index_sequence<kR...>) {
  (store.template row<kVecs>(static_cast<Index>(kR), sums + kR * kVecs), ...);
}

// kI: the sums of a tile, row by row.
template <size_t kRows, size_t kVecs, class Store, size_t... kI>
HWY_INLINE void multiply_tile(const float* a, Index a_stride, const float* b, Index panel_stride, Index depth,
                              const Store& store, std::index_sequence<kI...>) {
  // Each by name, not in a loop: the compiler would clear an array in memory first.
  V sums[kRows * kVecs] = {(static_cast<void>(kI), hn::Zero(F()))...};
  sum_products(a, a_stride, b, panel_stride, depth, sums, std::make_index_sequence<kRows>(),
               std::make_index_sequence<kVecs>());
  store_rows<kVecs>(sums, store, std::make_index_sequence<kRows>());
}

// Σ_k a[r·a_stride + k] · b[v-th vector of row k], one sum over k in order each, handed to store.row<kVecs>(r, sums of
// the row). b: [depth, columns] in panels, at the chunk's first column; `depth` may be 0.
template <size_t kRows, size_t kVecs, class Store>
HWY_INLINE void multiply_tile(const float* a, Index a_stride, const float* b, Index panel_stride, Index depth,
                              const Store& store) {
  multiply_tile<kRows, kVecs>(a, a_stride, b, panel_stride, depth, store, std::make_index_sequence<kRows * kVecs>());
}

// job.run<kRows, n>(row, end, vec) for the vectors [vec, last), n = kVecs each time as long as that many are left. It
// is to do all rows [row, end) at once, kRows at a time, so that the columns stay in the first cache.
template <size_t kRows, size_t kVecs, class Job>
HWY_INLINE void run_columns(Index row, Index end, Index vec, Index last, const Job& job) {
  for (; vec + static_cast<Index>(kVecs) <= last; vec += static_cast<Index>(kVecs)) {
    job.template run<kRows, kVecs>(row, end, vec);
  }
  if constexpr (kVecs > 1) run_columns<kRows, kVecs / 2>(row, end, vec, last, job);
}

// Covers rows [0, rows) × vectors [vec, last), `vec` at the start of a panel, with tiles.
template <class Job>
HWY_INLINE void run_tiles(Index rows, Index vec, Index last, const Job& job) {
  const Index row = rows / kTileRows * kTileRows;
  if (row > 0) run_columns<kTileRows, tile_vectors<kTileRows>()>(0, row, vec, last, job);
  switch (rows - row) {
    case 1:
      return run_columns<1, tile_vectors<1>()>(row, rows, vec, last, job);
    case 2:
      return run_columns<2, tile_vectors<2>()>(row, rows, vec, last, job);
    case 3:
      return run_columns<3, tile_vectors<3>()>(row, rows, vec, last, job);
    case 4:
      return run_columns<4, tile_vectors<4>()>(row, rows, vec, last, job);
    case 5:
      return run_columns<5, tile_vectors<5>()>(row, rows, vec, last, job);
    default:
      return;
  }
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, once for each target
