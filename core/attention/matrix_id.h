// Names of the matrices of a computation, as files, the command line and the window use them.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace qkv {

enum class MatrixKind {
  kX,
  kWq,
  kWk,
  kWv,
  kBq,
  kBk,
  kBv,  // projected source
  kQ,
  kK,
  kV,  // per head
  kScores,
  kAlibi,
  kBias,
  kScaled,
  kKeep,
  kAttn,
  kHeadsOut,  // per query head, but kBias and kKeep: one for all of them
  kConcat,
  kWo,
  kBo,
  kOut,  // once
};
inline constexpr std::array kAllMatrixKinds = {
    MatrixKind::kX,      MatrixKind::kWq,       MatrixKind::kWk,     MatrixKind::kWv,     MatrixKind::kBq,
    MatrixKind::kBk,     MatrixKind::kBv,       MatrixKind::kQ,      MatrixKind::kK,      MatrixKind::kV,
    MatrixKind::kScores, MatrixKind::kAlibi,    MatrixKind::kBias,   MatrixKind::kScaled, MatrixKind::kKeep,
    MatrixKind::kAttn,   MatrixKind::kHeadsOut, MatrixKind::kConcat, MatrixKind::kWo,     MatrixKind::kBo,
    MatrixKind::kOut};

// One matrix: its kind and, for the kinds that exist per head, which. K and V count H_kv heads.
struct MatrixId {
  MatrixKind kind = MatrixKind::kAttn;
  int head = 0;
  bool operator==(const MatrixId&) const = default;
};

// "q", "scores", "heads_out", … : the key in files.
std::string_view file_key(MatrixKind kind);
std::optional<MatrixKind> kind_from_key(std::string_view key);

// "Q", "S", "A", "W^O" in Unicode, for titles.
std::string_view symbol(MatrixKind kind);
// "attention weights" and the like, for sentences.
std::string_view long_name(MatrixKind kind);

bool is_per_head(MatrixKind kind);
// Weights (and the mask) lie in [0, 1] and take the sequential colours; every other matrix is signed.
bool is_weights(MatrixKind kind);

// What the rows or columns of a matrix stand for.
enum class Axis { kQueries, kKeys, kDk, kDv, kModel, kHeadsDk, kKvHeadsDk, kKvHeadsDv, kHeadsDv, kOut, kSingle };
Axis row_axis(MatrixKind kind);
Axis col_axis(MatrixKind kind);

}  // namespace qkv
