// Actions on cells of the matrices that a person edits. NaN and infinities are data like any other.
#include "core/session/apply_parts.h"

namespace qkv::parts {
namespace {

std::string by(Index rows, Index cols) { return std::to_string(rows) + " × " + std::to_string(cols); }

// "Q (3 × 3)", and which head where there are several.
std::string name_of(const Session& session, MatrixId id, const Matrix& matrix) {
  std::string name(symbol(id.kind));
  if (find_input(session, {id.kind, 1}) != nullptr && is_per_head(id.kind)) {
    name += " of head " + place_text(id.head);
  }
  return name + " (" + by(matrix.rows(), matrix.cols()) + ")";
}

// Why find_input() has no such matrix, and what to do.
Error no_input(const Session& session, MatrixId id) {
  const std::string name(symbol(id.kind));
  if (const auto* given = std::get_if<WeightsSource>(&session.problem.source)) {
    if (id.kind != MatrixKind::kAttn) return bad_input("there is no " + name + ": this session holds weights alone");
    return bad_input("there is no head " + place_text(id.head) + " of A: it has heads 1 … " +
                     std::to_string(given->attn.size()));
  }
  const auto* direct = std::get_if<DirectSource>(&session.problem.source);
  switch (id.kind) {
    case MatrixKind::kX:
    case MatrixKind::kWq:
    case MatrixKind::kWk:
    case MatrixKind::kWv:
      return bad_input("there is no " + name + ": Q, K and V are given directly in this session");
    case MatrixKind::kBq:
    case MatrixKind::kBk:
    case MatrixKind::kBv:
      return bad_input("there is no " + name +
                       (direct ? ": Q, K and V are given directly in this session" : ": turn the biases on first"));
    case MatrixKind::kQ:
    case MatrixKind::kK:
    case MatrixKind::kV:
      if (!direct)
        return bad_input(name + " is computed from X and its weights: edit those, or give Q, K and V directly");
      return bad_input("there is no head " + place_text(id.head) + " of " + name + ": it has heads 1 … " +
                       std::to_string((id.kind == MatrixKind::kQ ? direct->q : direct->k).size()));
    case MatrixKind::kBias:
      return bad_input("there is no " + name + ": turn the score bias on first");
    case MatrixKind::kAlibi:
      return bad_input(name + " follows from the distance of query and key and can't be edited: add a score bias, B");
    case MatrixKind::kWo:
      return bad_input("there is no " + name + ": turn the output projection on first");
    case MatrixKind::kBo:
      return bad_input("there is no " + name + ": turn the output projection and the biases on first");
    default:
      return bad_input(name + " is computed and can't be edited: edit what it is computed from");
  }
}

bool lies_inside(const Matrix& matrix, const Rect& rect) {
  return rect.row >= 0 && rect.col >= 0 && rect.rows >= 0 && rect.cols >= 0 && rect.rows <= matrix.rows() &&
         rect.cols <= matrix.cols() && rect.row <= matrix.rows() - rect.rows && rect.col <= matrix.cols() - rect.cols;
}

// The numbers of `rect` for writing.
Result<MatrixRef> writable(Session& session, MatrixId id, const Rect& rect) {
  SharedMatrix* matrix = find_input(session, id);
  if (matrix == nullptr) return no_input(session, id);
  if (rect.rows <= 0 || rect.cols <= 0)
    return bad_input("no cells of " + name_of(session, id, **matrix) + " are chosen");
  if (!lies_inside(**matrix, rect)) {
    const std::string place = "row " + place_text(rect.row) + ", column " + place_text(rect.col);
    const std::string name = name_of(session, id, **matrix);
    if (rect.rows == 1 && rect.cols == 1) return bad_input("there is no " + place + " in " + name);
    return bad_input(by(rect.rows, rect.cols) + " numbers do not fit at " + place + " of " + name);
  }
  return MatrixRef(matrix->edit_rows(rect.row, rect.rows).middleCols(rect.col, rect.cols));
}

}  // namespace

Outcome apply_to(Session session, const Shapes&, const SetCell& action) {
  Result<MatrixRef> cell = writable(session, action.id, {action.row, action.col, 1, 1});
  if (!cell) return cell.error();
  cell.value()(0, 0) = action.value;
  return session;
}

Outcome apply_to(Session session, const Shapes&, const SetBlock& action) {
  const Rect rect{action.row, action.col, action.values.rows(), action.values.cols()};
  Result<MatrixRef> block = writable(session, action.id, rect);
  if (!block) return block.error();
  block.value() = action.values;
  return session;
}

Outcome apply_to(Session session, const Shapes&, const FillBlock& action) {
  Result<MatrixRef> block = writable(session, action.id, action.rect);
  if (!block) return block.error();
  switch (action.fill) {
    case Fill::kValue:
      block.value().setConstant(action.value);
      break;
    case Fill::kIdentity:
      block.value().setIdentity();
      break;
    case Fill::kRandom:
      block.value() = random_matrix(action.seed, action.rect.rows, action.rect.cols);
      break;
  }
  return session;
}

}  // namespace qkv::parts
