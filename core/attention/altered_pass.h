// The rows of an altered computation, worked out in float64 where they are asked for.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/attention/altered_inputs.h"
#include "core/attention/matrix_id.h"

namespace qkv {

// Memory: Q, K and V, and one row of each head; with a softmax over the queries or transposed weights, which need all
// rows at once, the weights of all heads. Not for two threads.
class AlteredPass {
 public:
  // can_be(altered.inputs, …) holds; transposed weights and bias need Nq = Nk. `cache` outlives the pass.
  AlteredPass(InputCache& cache, const Altered& altered);

  // A row of q k v scores alibi scaled keep attn heads_out concat out, [cols]. `id` and `row` are in range; out needs a
  // W^O, or altered.output.no_wo. The reference holds until the next call.
  const Eigen::RowVectorXd& row(MatrixId id, Index row);
  // The mean over the query heads.
  const Eigen::RowVectorXd& mean_row(MatrixKind kind, Index row);

  // Floating-point operations of one row of all heads, about.
  static double operations_a_row(const Shapes& shapes);
  // Whether a row needs every row.
  static bool needs_all_rows(const Altered& altered);

 private:
  using Row = Eigen::RowVectorXd;
  struct HeadRow {
    Index row = -1;
    Row scores, scaled, attn, out;
    Row keep;  // 1 = visible
    bool has_scaled = false, has_attn = false, has_out = false;
  };

  std::size_t kv_of(std::size_t head) const;
  bool sees(Index i, Index j) const;
  HeadRow& at(std::size_t head, Index row);
  void make_scaled(std::size_t head, HeadRow& of);
  void make_attn(std::size_t head, HeadRow& of);
  void make_out(std::size_t head, HeadRow& of);
  Row masked(const HeadRow& of, Row& takes_part) const;
  Row softmax(const Row& scores, const Row& takes_part, std::size_t head) const;
  void make_weights_over_heads(Index row);
  void make_all_weights();
  double alibi_cell(std::size_t head, Index i, Index j) const;  // what ALiBi adds; 0 without it
  double scaled_cell(double score, std::size_t head, Index i, Index j) const;
  void make_concat(Index row);
  void make_output(Index row);
  const Row& held(HeldStep what, HeadRow& of, std::size_t head);
  void round_row(Row& row) const;

  const Problem& problem_;
  Shapes shapes_;
  Altered altered_;
  std::shared_ptr<const AlteredHeads> inputs_;
  std::vector<HeadRow> rows_;     // H, the last one asked for
  std::vector<MatrixD> weights_;  // H, where all rows are needed
  MatrixD over_heads_;            // [H, Nk], the weights of row `over_heads_row_` with a softmax over the heads
  Index over_heads_row_ = -1;
  std::vector<double> slopes_;  // H
  std::optional<MatrixD> wo_;
  Row concat_, result_, mean_;
};

}  // namespace qkv
