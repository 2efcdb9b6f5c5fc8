// Actions on where Q, K and V come from, on W^O, on the biases and on the score bias.
#include "core/session/apply_parts.h"

namespace qkv::parts {
namespace {

bool all_finite(const std::vector<SharedMatrix>& heads) {
  for (const SharedMatrix& matrix : heads) {
    if (!matrix->allFinite()) return false;
  }
  return true;
}

// [d_model, H·d] that picks the columns of `count` heads of X which begin at `first`.
SharedMatrix picking_weights(Index d_model, Index first, Index count) {
  Matrix weights = Matrix::Zero(d_model, count);
  weights.middleRows(first, count).setIdentity();
  return SharedMatrix(std::move(weights));
}

void put_side_by_side(const std::vector<SharedMatrix>& heads, Matrix& x, Index& column) {
  for (const SharedMatrix& matrix : heads) {
    x.middleCols(column, matrix.cols()) = *matrix;
    column += matrix.cols();
  }
}

// X = [Q heads | K heads | V heads], so each column of Q is one column of X times 1 and the rest times 0: exact.
Outcome to_projected(Session session, const Shapes& shapes) {
  if (session.key_tokens) {
    return bad_input(
        "the keys have their own tokens, and one X can't hold rows of both: turn cross-attention off first");
  }
  const auto& direct = std::get<DirectSource>(session.problem.source);
  if (!all_finite(direct.q) || !all_finite(direct.k) || !all_finite(direct.v)) {
    return bad_input(
        "Q, K or V holds NaN or ∞, which the products with W would spread along the row: replace it first");
  }
  const Index q = shapes.heads * shapes.d_k, k = shapes.kv_heads * shapes.d_k, v = shapes.kv_heads * shapes.d_v;
  Shapes after = shapes;
  after.d_model = q + k + v;
  if (Status range = check_range("d_model (all columns of Q, K and V)", after.d_model, kMaxModelSize); !range) {
    return range.error();
  }
  if (Status growth = check_growth(shapes, after); !growth) return growth.error();
  Matrix x(shapes.nq, after.d_model);
  Index column = 0;
  put_side_by_side(direct.q, x, column);
  put_side_by_side(direct.k, x, column);
  put_side_by_side(direct.v, x, column);
  ProjectedSource source;
  source.x = SharedMatrix(std::move(x));
  source.wq = picking_weights(after.d_model, 0, q);
  source.wk = picking_weights(after.d_model, q, k);
  source.wv = picking_weights(after.d_model, q + k, v);
  source.heads = shapes.heads;
  source.kv_heads = shapes.kv_heads;
  session.problem.source = std::move(source);
  return session;
}

Outcome to_direct(Session session, const Shapes& shapes) {
  Shapes after = shapes;
  after.d_model = 0;
  if (Status growth = check_growth(shapes, after); !growth) return growth.error();
  session.problem.source = project(std::get<ProjectedSource>(session.problem.source), shapes);
  return session;
}

SharedMatrix zero_row(Index columns) { return SharedMatrix(Matrix::Zero(1, columns)); }

}  // namespace

Outcome apply_to(Session session, const Shapes& shapes, const SetSourceKind& action) {
  if (is_weights_only(session.problem.source)) return only_weights("way back to what the weights were made of");
  const bool is_direct = std::holds_alternative<DirectSource>(session.problem.source);
  if (is_direct == (action.kind == SourceKind::kDirect)) return session;
  return is_direct ? to_projected(std::move(session), shapes) : to_direct(std::move(session), shapes);
}

Outcome apply_to(Session session, const Shapes& shapes, const SetOutputProjection& action) {
  if (!action.on) {
    session.problem.wo.reset();
    session.problem.bo.reset();
    return session;
  }
  if (is_weights_only(session.problem.source)) return only_weights("output for W^O to mix");
  if (session.problem.wo) return session;
  Shapes after = shapes;
  const Index rows = shapes.heads * shapes.d_v;
  after.d_out = shapes.d_model > 0 ? shapes.d_model : rows;
  if (Status range = check_range("d_out", after.d_out, kMaxModelSize); !range) return range.error();
  if (Status growth = check_growth(shapes, after); !growth) return growth.error();
  Matrix wo(rows, after.d_out);
  if (rows == after.d_out) {
    wo.setIdentity();
  } else {
    for (Index r = 0; r < rows; ++r) wo.row(r) = weight_row("wo", r / shapes.d_v, r % shapes.d_v, after.d_out);
  }
  session.problem.wo = SharedMatrix(std::move(wo));
  return session;
}

Outcome apply_to(Session session, const Shapes& shapes, const SetBiases& action) {
  auto* source = std::get_if<ProjectedSource>(&session.problem.source);
  Problem& problem = session.problem;
  if (!action.on) {
    if (source) source->bq = source->bk = source->bv = std::nullopt;
    problem.bo.reset();
    return session;
  }
  if (is_weights_only(problem.source)) return only_weights("product to add a bias to");
  if (!source && !problem.wo) {
    return bad_input("there is no product to add a bias to: Q, K and V are given directly and there is no W^O");
  }
  if (source) {
    if (!source->bq) source->bq = zero_row(shapes.heads * shapes.d_k);
    if (!source->bk) source->bk = zero_row(shapes.kv_heads * shapes.d_k);
    if (!source->bv) source->bv = zero_row(shapes.kv_heads * shapes.d_v);
  }
  if (problem.wo && !problem.bo) problem.bo = zero_row(shapes.d_out);
  return session;
}

Outcome apply_to(Session session, const Shapes& shapes, const SetScoreBias& action) {
  std::optional<SharedMatrix>& bias = session.problem.options.bias;
  if (!action.on) bias.reset();
  if (!action.on || bias) return session;
  if (is_weights_only(session.problem.source)) return only_weights("score to add a bias to");
  if (Status size = check_new_bias(shapes); !size) return size.error();
  bias = SharedMatrix(Matrix::Zero(shapes.nq, shapes.nk));
  return session;
}

}  // namespace qkv::parts
