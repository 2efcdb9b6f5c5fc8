#include "core/attention/matrix_id.h"

namespace qkv {
namespace {

// What is known of a kind besides its numbers.
struct KindInfo {
  MatrixKind kind;
  std::string_view key;
  std::string_view symbol;
  std::string_view long_name;
  bool per_head;
  Axis rows, cols;
};

using enum MatrixKind;

// In the order of MatrixKind. Unicode has superscript K, V and O, but no Q that fonts carry: hence "W^Q".
constexpr std::array kInfos = {
    KindInfo{kX, "x", "X", "input", false, Axis::kQueries, Axis::kModel},
    KindInfo{kWq, "wq", "W^Q", "query weights", false, Axis::kModel, Axis::kHeadsDk},
    KindInfo{kWk, "wk", "Wᴷ", "key weights", false, Axis::kModel, Axis::kKvHeadsDk},
    KindInfo{kWv, "wv", "Wⱽ", "value weights", false, Axis::kModel, Axis::kKvHeadsDv},
    KindInfo{kBq, "bq", "b^Q", "query bias", false, Axis::kSingle, Axis::kHeadsDk},
    KindInfo{kBk, "bk", "bᴷ", "key bias", false, Axis::kSingle, Axis::kKvHeadsDk},
    KindInfo{kBv, "bv", "bⱽ", "value bias", false, Axis::kSingle, Axis::kKvHeadsDv},
    KindInfo{kQ, "q", "Q", "queries", true, Axis::kQueries, Axis::kDk},
    KindInfo{kK, "k", "K", "keys", true, Axis::kKeys, Axis::kDk},
    KindInfo{kV, "v", "V", "values", true, Axis::kKeys, Axis::kDv},
    KindInfo{kScores, "scores", "S", "scores", true, Axis::kQueries, Axis::kKeys},
    KindInfo{kAlibi, "alibi", "ALiBi", "distance penalty", true, Axis::kQueries, Axis::kKeys},
    KindInfo{kBias, "bias", "B", "score bias", false, Axis::kQueries, Axis::kKeys},
    KindInfo{kScaled, "scaled", "S/√dₖ", "scaled scores", true, Axis::kQueries, Axis::kKeys},
    KindInfo{kKeep, "keep", "mask", "mask", false, Axis::kQueries, Axis::kKeys},
    KindInfo{kAttn, "attn", "A", "attention weights", true, Axis::kQueries, Axis::kKeys},
    KindInfo{kHeadsOut, "heads_out", "O", "head output", true, Axis::kQueries, Axis::kDv},
    KindInfo{kConcat, "concat", "Concat", "heads side by side", false, Axis::kQueries, Axis::kHeadsDv},
    KindInfo{kWo, "wo", "Wᴼ", "output weights", false, Axis::kHeadsDv, Axis::kOut},
    KindInfo{kBo, "bo", "bᴼ", "output bias", false, Axis::kSingle, Axis::kOut},
    KindInfo{kOut, "out", "Out", "output", false, Axis::kQueries, Axis::kOut},
};

const KindInfo& info(MatrixKind kind) { return kInfos[static_cast<std::size_t>(kind)]; }

constexpr bool is_in_enum_order() {
  for (std::size_t i = 0; i < kInfos.size(); ++i) {
    if (static_cast<std::size_t>(kInfos[i].kind) != i || kAllMatrixKinds[i] != kInfos[i].kind) return false;
  }
  return kInfos.size() == kAllMatrixKinds.size();
}
static_assert(is_in_enum_order());

}  // namespace

std::string_view file_key(MatrixKind kind) { return info(kind).key; }

std::optional<MatrixKind> kind_from_key(std::string_view key) {
  for (const KindInfo& known : kInfos) {
    if (known.key == key) return known.kind;
  }
  return std::nullopt;
}

std::string_view symbol(MatrixKind kind) { return info(kind).symbol; }
std::string_view long_name(MatrixKind kind) { return info(kind).long_name; }
bool is_per_head(MatrixKind kind) { return info(kind).per_head; }
bool is_weights(MatrixKind kind) { return kind == kAttn || kind == kKeep; }
Axis row_axis(MatrixKind kind) { return info(kind).rows; }
Axis col_axis(MatrixKind kind) { return info(kind).cols; }

}  // namespace qkv
