// Actions that change shapes. Every one goes through reshape(): a number keeps its meaning (token, head,
// column of the head) and stays where that meaning still has a place.
#include <algorithm>
#include <functional>
#include <limits>

#include "core/session/apply_parts.h"

namespace qkv::parts {
namespace {

// 1 GiB of float32 together: beyond that an edit, which copies matrices, is no longer an edit.
constexpr Index kMaxInputNumbers = Index{1} << 28;

Index input_numbers(const Shapes& s) {
  const Index q = s.heads * s.d_k, k = s.kv_heads * s.d_k, v = s.kv_heads * s.d_v;
  if (s.d_k == 0) return s.heads * s.nq * s.nk;  // weights alone
  const Index source = s.d_model > 0 ? s.nq * s.d_model + s.d_model * (q + k + v) : s.nq * q + s.nk * (k + v);
  return source + s.heads * s.d_v * s.d_out;
}

// Columns in groups: `count` heads of `width` columns.
struct Bands {
  Index count = 1, width = 0;
  bool operator==(const Bands&) const = default;
};

// Numbers for the columns of a band in a row, where no old ones are left.
using NewRow = std::function<RowVector(Index row, Index band, Index width)>;

RowVector zeros(Index, Index, Index width) { return RowVector::Zero(width); }

// `matrix` [rows, before] as [rows, after]: cell (row, band, column) stays itself.
void reshape_columns(SharedMatrix& matrix, Index rows, Bands before, Bands after, const NewRow& new_row) {
  if (rows == matrix.rows() && before == after) return;
  const Matrix& old = matrix.get();
  Matrix result(rows, after.count * after.width);
  for (Index r = 0; r < rows; ++r) {
    for (Index b = 0; b < after.count; ++b) {
      const Index kept = r < old.rows() && b < before.count ? std::min(before.width, after.width) : 0;
      auto band = result.row(r).segment(b * after.width, after.width);
      if (kept < after.width) band = new_row(r, b, after.width);
      if (kept > 0) band.head(kept) = old.row(r).segment(b * before.width, kept);
    }
  }
  matrix = SharedMatrix(std::move(result));
}

// W^O, whose rows are the columns of concat: heads of d_v.
void reshape_output(SharedMatrix& wo, Bands before, Bands after, Index d_out) {
  if (before == after && wo.cols() == d_out) return;
  const Matrix& old = wo.get();
  const Index kept_cols = std::min(old.cols(), d_out);
  Matrix result(after.count * after.width, d_out);
  for (Index b = 0; b < after.count; ++b) {
    for (Index c = 0; c < after.width; ++c) {
      auto row = result.row(b * after.width + c);
      const Index kept = b < before.count && c < before.width ? kept_cols : 0;
      if (kept < d_out) row = weight_row("wo", b, c, d_out);
      if (kept > 0) row.head(kept) = old.row(b * before.width + c).head(kept);
    }
  }
  wo = SharedMatrix(std::move(result));
}

void reshape_heads(std::vector<SharedMatrix>& heads, const char* name, int count, Index columns,
                   const std::vector<std::string>& tokens) {
  const auto rows = static_cast<Index>(tokens.size());
  const std::size_t old_count = heads.size();
  heads.resize(static_cast<std::size_t>(count));
  for (std::size_t h = 0; h < heads.size(); ++h) {
    const std::string salt = head_name(name, static_cast<Index>(h));
    const Bands before{1, h < old_count ? heads[h].cols() : 0};
    reshape_columns(heads[h], rows, before, {1, columns}, [&](Index r, Index, Index width) {
      return token_vector(tokens[static_cast<std::size_t>(r)], salt, width);
    });
  }
}

void reshape_weights(SharedMatrix& weights, std::optional<SharedMatrix>& bias, const char* name, Index d_model,
                     Bands before, Bands after) {
  reshape_columns(weights, d_model, before, after,
                  [&](Index r, Index band, Index width) { return weight_row(name, band, r, width); });
  if (bias) reshape_columns(*bias, 1, before, after, zeros);
}

// Brings every matrix from the shapes `before` to `after`, which differ in anything but the tokens.
void reshape(Session& session, const Shapes& before, const Shapes& after) {
  if (auto* direct = std::get_if<DirectSource>(&session.problem.source)) {
    reshape_heads(direct->q, "q", after.heads, after.d_k, session.tokens);
    reshape_heads(direct->k, "k", after.kv_heads, after.d_k, session.keys());
    reshape_heads(direct->v, "v", after.kv_heads, after.d_v, session.keys());
  } else if (auto* given = std::get_if<WeightsSource>(&session.problem.source)) {
    given->attn.resize(static_cast<std::size_t>(after.heads), SharedMatrix(Matrix::Zero(after.nq, after.nk)));
  } else {
    auto& source = std::get<ProjectedSource>(session.problem.source);
    reshape_columns(source.x, before.nq, {1, before.d_model}, {1, after.d_model}, [&](Index r, Index, Index width) {
      return token_vector(session.tokens[static_cast<std::size_t>(r)], "x", width);
    });
    reshape_weights(source.wq, source.bq, "wq", after.d_model, {before.heads, before.d_k}, {after.heads, after.d_k});
    reshape_weights(source.wk, source.bk, "wk", after.d_model, {before.kv_heads, before.d_k},
                    {after.kv_heads, after.d_k});
    reshape_weights(source.wv, source.bv, "wv", after.d_model, {before.kv_heads, before.d_v},
                    {after.kv_heads, after.d_v});
    source.heads = after.heads;
    source.kv_heads = after.kv_heads;
  }
  if (session.problem.wo) {
    reshape_output(*session.problem.wo, {before.heads, before.d_v}, {after.heads, after.d_v}, after.d_out);
  }
  if (session.problem.bo) reshape_columns(*session.problem.bo, 1, {1, before.d_out}, {1, after.d_out}, zeros);
}

Outcome checked_reshape(Session session, const Shapes& before, const Shapes& after) {
  if (Status growth = check_growth(before, after); !growth) return growth.error();
  reshape(session, before, after);
  return session;
}

Error too_many(Index numbers) {
  return bad_input("that would make " + std::to_string(numbers) + " numbers to edit: at most " +
                   std::to_string(kMaxInputNumbers) + " (1 GiB) are allowed");
}

int largest_divisor(int number, int most) {
  int divisor = std::min(number, most);
  while (number % divisor != 0) --divisor;
  return divisor;
}

}  // namespace

std::string head_name(const char* matrix, Index head) { return matrix + std::to_string(head); }

RowVector weight_row(const char* matrix, Index head, Index row, Index size) {
  return random_matrix(stable_hash(head_name(matrix, head) + "," + std::to_string(row)), 1, size);
}

Status check_growth(const Shapes& before, const Shapes& after, bool with_bias) {
  const auto all_numbers = [&](const Shapes& s) { return input_numbers(s) + (with_bias ? s.nq * s.nk : 0); };
  const Index numbers = all_numbers(after);
  if (numbers <= kMaxInputNumbers || numbers <= all_numbers(before)) return Done{};
  return too_many(numbers);
}

Status check_new_bias(const Shapes& shapes) {
  const Index numbers = input_numbers(shapes) + shapes.nq * shapes.nk;
  if (numbers <= kMaxInputNumbers) return Done{};
  return too_many(numbers);
}

Error only_weights(const std::string& what) {
  return bad_input("there is no " + what + ": this session holds attention weights alone, without Q, K and V");
}

std::string place_text(Index index) {
  constexpr Index kLast = std::numeric_limits<Index>::max();
  return std::to_string(index == kLast ? kLast : index + 1);
}

Status check_range(const char* what, Index value, Index most) {
  if (value >= 1 && value <= most) return Done{};
  return bad_input(std::string(what) + " = " + std::to_string(value) + " is out of range: 1 … " + std::to_string(most));
}

Outcome apply_to(Session session, const Shapes& shapes, const SetHeads& action) {
  if (Status range = check_range("heads", action.heads, kMaxHeads); !range) return range.error();
  Shapes after = shapes;
  after.heads = action.heads;
  after.kv_heads = shapes.heads == shapes.kv_heads ? action.heads : largest_divisor(action.heads, shapes.kv_heads);
  std::vector<float>& sink = session.problem.options.sink;
  if (!sink.empty()) sink.resize(static_cast<std::size_t>(action.heads));  // new ones are 0
  return checked_reshape(std::move(session), shapes, after);
}

Outcome apply_to(Session session, const Shapes& shapes, const SetKvHeads& action) {
  if (is_weights_only(session.problem.source)) return only_weights("number of key/value heads");
  if (Status range = check_range("key/value heads", action.kv_heads, shapes.heads); !range) return range.error();
  if (shapes.heads % action.kv_heads != 0) {
    return bad_input(std::to_string(action.kv_heads) + " key/value heads can't be shared evenly by " +
                     std::to_string(shapes.heads) + " heads: choose a divisor of " + std::to_string(shapes.heads));
  }
  Shapes after = shapes;
  after.kv_heads = action.kv_heads;
  return checked_reshape(std::move(session), shapes, after);
}

Outcome apply_to(Session session, const Shapes& shapes, const SetDk& action) {
  if (is_weights_only(session.problem.source)) return only_weights("d_k");
  if (Status range = check_range("d_k", action.d_k, kMaxHeadSize); !range) return range.error();
  Shapes after = shapes;
  after.d_k = action.d_k;
  return checked_reshape(std::move(session), shapes, after);
}

Outcome apply_to(Session session, const Shapes& shapes, const SetDv& action) {
  if (is_weights_only(session.problem.source)) return only_weights("d_v");
  if (Status range = check_range("d_v", action.d_v, kMaxHeadSize); !range) return range.error();
  Shapes after = shapes;
  after.d_v = action.d_v;
  return checked_reshape(std::move(session), shapes, after);
}

Outcome apply_to(Session session, const Shapes& shapes, const SetDModel& action) {
  if (is_weights_only(session.problem.source)) return only_weights("d_model");
  if (std::holds_alternative<DirectSource>(session.problem.source)) {
    return bad_input("there is no d_model: Q, K and V are given directly in this session");
  }
  if (Status range = check_range("d_model", action.d_model, kMaxModelSize); !range) return range.error();
  Shapes after = shapes;
  after.d_model = action.d_model;
  return checked_reshape(std::move(session), shapes, after);
}

Outcome apply_to(Session session, const Shapes& shapes, const SetDOut& action) {
  if (!session.problem.wo) return bad_input("there is no W^O: turn the output projection on first");
  if (Status range = check_range("d_out", action.d_out, kMaxModelSize); !range) return range.error();
  Shapes after = shapes;
  after.d_out = action.d_out;
  return checked_reshape(std::move(session), shapes, after);
}

}  // namespace qkv::parts
