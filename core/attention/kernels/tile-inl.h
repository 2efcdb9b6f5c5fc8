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

template <size_t... kR, size_t... kC>
HWY_INLINE void sum_products(const float* HWY_RESTRICT a, Index a_stride, const float* HWY_RESTRICT b,
                             Index panel_stride, Index depth, V* sums, std::index_sequence<kR...>,
                             std::index_sequence<kC...> columns) {
  constexpr size_t kVecs = sizeof...(kC);
  const F d;
  for (Index k = 0; k < depth; ++k) {
    const V right[kVecs] = {hn::Load(d, b + vector_offset(kC, panel_stride) + k * kPanel)...};
    (add_products(hn::Set(d, a[static_cast<Index>(kR) * a_stride + k]), right, sums + kR * kVecs, columns), ...);
  }
}

template <size_t... kI, class Store>
HWY_INLINE void store_sums(const V* sums, const Store& store, size_t vecs, std::index_sequence<kI...>) {
  (store(kI / vecs, kI % vecs, sums[kI]), ...);
}

// Σ_k a[r·a_stride + k] · b[v-th vector of row k], one sum over k in order each, handed to store(r, v, sum).
// b: [depth, columns] in panels, at the chunk's first column; `depth` may be 0.
template <size_t kRows, size_t kVecs, class Store>
HWY_INLINE void multiply_tile(const float* a, Index a_stride, const float* b, Index panel_stride, Index depth,
                              const Store& store) {
  V sums[kRows * kVecs];
  for (V& sum : sums) sum = hn::Zero(F());
  sum_products(a, a_stride, b, panel_stride, depth, sums, std::make_index_sequence<kRows>(),
               std::make_index_sequence<kVecs>());
  store_sums(sums, store, kVecs, std::make_index_sequence<kRows * kVecs>());
}

// job.run<kRows, n>(row, vec) for the vectors [vec, last), n = kVecs each time as long as that many are left.
template <size_t kRows, size_t kVecs, class Job>
HWY_INLINE void run_columns(Index row, Index vec, Index last, const Job& job) {
  for (; vec + static_cast<Index>(kVecs) <= last; vec += static_cast<Index>(kVecs)) {
    job.template run<kRows, kVecs>(row, vec);
  }
  if constexpr (kVecs > 1) run_columns<kRows, kVecs / 2>(row, vec, last, job);
}

// The full groups of rows below a chunk of columns, so that the chunk stays in the first cache.
template <size_t kVecs, class Job>
HWY_INLINE void run_full_groups(Index rows, Index vec, Index last, const Job& job) {
  for (; vec + static_cast<Index>(kVecs) <= last; vec += static_cast<Index>(kVecs)) {
    for (Index row = 0; row + kTileRows <= rows; row += kTileRows) job.template run<kTileRows, kVecs>(row, vec);
  }
  if constexpr (kVecs > 1) run_full_groups<kVecs / 2>(rows, vec, last, job);
}

// Covers rows [0, rows) × vectors [vec, last), `vec` at the start of a panel, with tiles.
template <class Job>
HWY_INLINE void run_tiles(Index rows, Index vec, Index last, const Job& job) {
  run_full_groups<tile_vectors<kTileRows>()>(rows, vec, last, job);
  const Index row = rows / kTileRows * kTileRows;
  switch (rows - row) {
    case 1:
      return run_columns<1, tile_vectors<1>()>(row, vec, last, job);
    case 2:
      return run_columns<2, tile_vectors<2>()>(row, vec, last, job);
    case 3:
      return run_columns<3, tile_vectors<3>()>(row, vec, last, job);
    case 4:
      return run_columns<4, tile_vectors<4>()>(row, vec, last, job);
    case 5:
      return run_columns<5, tile_vectors<5>()>(row, vec, last, job);
    default:
      return;
  }
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, once for each target
