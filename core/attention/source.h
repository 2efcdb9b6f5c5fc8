// Where attention comes from: from Q, K and V, given directly or projected from X, or ready weights.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/attention/options.h"
#include "core/attention/shared_matrix.h"
#include "core/base/result.h"

namespace qkv {

// Q, K, V per head, as given.
struct DirectSource {
  std::vector<SharedMatrix> q;  // H × [Nq, d_k]
  std::vector<SharedMatrix> k;  // H_kv × [Nk, d_k]
  std::vector<SharedMatrix> v;  // H_kv × [Nk, d_v]
};

// Q = X·W^Q + b^Q and so on; head h owns columns h·d … (h+1)·d − 1 of each product.
struct ProjectedSource {
  SharedMatrix x;                       // [N, d_model], rows = tokens
  SharedMatrix wq;                      // [d_model, H·d_k]
  SharedMatrix wk;                      // [d_model, H_kv·d_k]
  SharedMatrix wv;                      // [d_model, H_kv·d_v]
  std::optional<SharedMatrix> bq = {};  // [1, H·d_k]
  std::optional<SharedMatrix> bk = {};  // [1, H_kv·d_k]
  std::optional<SharedMatrix> bv = {};  // [1, H_kv·d_v]
  int heads = 1;
  int kv_heads = 1;
};

// Ready attention weights from elsewhere, as they are: there are no Q, K and V, and rows need not sum to 1.
struct WeightsSource {
  std::vector<SharedMatrix> attn;  // H × [Nq, Nk]
};

using Source = std::variant<DirectSource, ProjectedSource, WeightsSource>;

inline bool is_weights_only(const Source& source) { return std::holds_alternative<WeightsSource>(source); }

// H, whatever the source.
int head_count(const Source& source);

// Everything that the forward pass reads.
struct Problem {
  Source source;
  std::optional<SharedMatrix> wo = {};  // [H·d_v, d_out]
  std::optional<SharedMatrix> bo = {};  // [1, d_out]; only with wo
  AttentionOptions options = {};
};

struct Shapes {
  Index nq = 0, nk = 0;         // queries, keys
  int heads = 0, kv_heads = 0;  // H, H_kv
  Index d_k = 0, d_v = 0;       // per head; 0 where only weights are given
  Index d_model = 0;            // columns of X, 0 for a direct source
  Index d_out = 0;              // columns of W^O, 0 without one
  bool operator==(const Shapes&) const = default;
};

// The shapes of a problem that agrees with itself, or kBadInput naming the two sides that do not
// and both numbers ("k has 4 columns (d_k) but q has 3: …"). Also checks the options' values. Given weights take
// neither options, but for `align`, nor W^O: both act on what is not there.
Result<Shapes> check_shapes(const Problem& problem);

// H_kv key/value head that query head `head` reads: floor(head / (H / H_kv)).
int kv_head_of(const Shapes& shapes, int head);

}  // namespace qkv
