// Actions on tokens: the rows of every matrix that a token owns follow it.
#include <algorithm>
#include <numeric>

#include "core/base/utf8.h"
#include "core/session/apply_parts.h"

namespace qkv::parts {
namespace {

// Where each new row comes from: an old row, or −1 for the vector of its token.
using RowOrigins = std::vector<int>;

bool is_unchanged(const RowOrigins& from, Index old_rows) {
  if (static_cast<Index>(from.size()) != old_rows) return false;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] != static_cast<int>(i)) return false;
  }
  return true;
}

void follow(SharedMatrix& matrix, const RowOrigins& from, const std::vector<std::string>& tokens,
            const std::string& salt) {
  if (is_unchanged(from, matrix.rows())) return;
  const Matrix& old = matrix.get();
  Matrix rows(static_cast<Index>(from.size()), old.cols());
  for (std::size_t i = 0; i < from.size(); ++i) {
    const auto r = static_cast<Index>(i);
    if (from[i] >= 0) {
      rows.row(r) = old.row(from[i]);
    } else {
      rows.row(r) = token_vector(tokens[i], salt, old.cols());
    }
  }
  matrix = SharedMatrix(std::move(rows));
}

void follow(std::vector<SharedMatrix>& heads, const RowOrigins& from, const std::vector<std::string>& tokens,
            const char* name) {
  for (std::size_t h = 0; h < heads.size(); ++h) {
    follow(heads[h], from, tokens, head_name(name, static_cast<Index>(h)));
  }
}

// Rows that have no origin are 0: of a bias they change nothing, of given weights nothing is known.
void follow_with_zeros(SharedMatrix& matrix, const RowOrigins& from) {
  if (is_unchanged(from, matrix.rows())) return;
  Matrix moved = Matrix::Zero(static_cast<Index>(from.size()), matrix.cols());
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] >= 0) moved.row(static_cast<Index>(i)) = matrix->row(from[i]);
  }
  matrix = SharedMatrix(std::move(moved));
}

void follow_columns_with_zeros(SharedMatrix& matrix, const RowOrigins& from) {
  if (is_unchanged(from, matrix.cols())) return;
  Matrix moved = Matrix::Zero(matrix.rows(), static_cast<Index>(from.size()));
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] >= 0) moved.col(static_cast<Index>(i)) = matrix->col(from[i]);
  }
  matrix = SharedMatrix(std::move(moved));
}

void follow_keys(Session& session, const RowOrigins& from, const std::vector<std::string>& tokens) {
  if (auto* direct = std::get_if<DirectSource>(&session.problem.source)) {
    follow(direct->k, from, tokens, "k");
    follow(direct->v, from, tokens, "v");
  } else if (auto* given = std::get_if<WeightsSource>(&session.problem.source)) {
    for (SharedMatrix& attn : given->attn) follow_columns_with_zeros(attn, from);
  }
  if (auto& bias = session.problem.options.bias) follow_columns_with_zeros(*bias, from);
  std::vector<std::uint8_t>& valid = session.problem.options.key_valid;
  if (valid.empty()) return;
  std::vector<std::uint8_t> moved(from.size(), 1);
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] >= 0) moved[i] = valid[static_cast<std::size_t>(from[i])];
  }
  valid = std::move(moved);
}

void follow_queries(Session& session, const RowOrigins& from, const std::vector<std::string>& tokens) {
  if (auto* direct = std::get_if<DirectSource>(&session.problem.source)) {
    follow(direct->q, from, tokens, "q");
  } else if (auto* given = std::get_if<WeightsSource>(&session.problem.source)) {
    for (SharedMatrix& attn : given->attn) follow_with_zeros(attn, from);
  } else {
    follow(std::get<ProjectedSource>(session.problem.source).x, from, tokens, "x");
  }
  if (auto& bias = session.problem.options.bias) follow_with_zeros(*bias, from);
}

Status check_side(const Session& session, Side side) {
  if (side == Side::kKeys && !session.key_tokens) {
    return bad_input("the keys are the queries' tokens here: turn on cross-attention to give the keys their own");
  }
  return Done{};
}

const std::vector<std::string>& tokens_of(const Session& session, Side side) {
  return side == Side::kKeys ? session.keys() : session.tokens;
}

Status check_index(Index index, Index first, Index last, const char* what) {
  if (index >= first && index <= last) return Done{};
  return bad_input(std::string(what) + " " + place_text(index) + " is out of range: " + place_text(first) + " … " +
                   place_text(last));
}

Status check_text(const std::string& text, Index index) {
  if (!text.empty()) return Done{};
  return bad_input("token " + place_text(index) + " is empty: a token needs at least one character");
}

// Replaces the tokens of a side and lets rows, key_valid and the bias follow.
Outcome retoken(Session session, const Shapes& shapes, Side side, std::vector<std::string> tokens,
                const RowOrigins& from) {
  const auto count = static_cast<Index>(tokens.size());
  if (count == 0) return bad_input("a session needs at least one token");
  if (Status range = check_range("the number of tokens", count, kMaxTokens); !range) return range.error();
  const bool queries = side == Side::kQueries;
  const bool keys = side == Side::kKeys || !session.key_tokens;
  Shapes after = shapes;
  if (queries) after.nq = count;
  if (keys) after.nk = count;
  if (Status growth = check_growth(shapes, after, session.problem.options.bias.has_value()); !growth)
    return growth.error();
  if (queries) follow_queries(session, from, tokens);
  if (keys) follow_keys(session, from, tokens);
  (queries ? session.tokens : *session.key_tokens) = std::move(tokens);
  return session;
}

RowOrigins all_rows(std::size_t count) {
  RowOrigins from(count);
  std::iota(from.begin(), from.end(), 0);
  return from;
}

// Between two tokens that stayed, those that went lend their rows to those that came, in order.
RowOrigins renamed_in_place(RowOrigins from, std::size_t old_count) {
  int next = 0;  // the first old row that is not spoken for
  for (std::size_t i = 0; i < from.size();) {
    std::size_t end = i;
    while (end < from.size() && from[end] < 0) ++end;
    const int limit = end < from.size() ? from[end] : static_cast<int>(old_count);
    for (; i < end; ++i) {
      if (next < limit) from[i] = next++;
    }
    if (end == from.size()) break;
    next = limit + 1;
    i = end + 1;
  }
  return from;
}

// Where the rows of tokens come from that replace others. The numbers of given weights do not depend on the tokens,
// which only label them: as many tokens as before are new labels, and otherwise as many rows as can be stay.
RowOrigins origins(const Session& session, const std::vector<std::string>& before,
                   const std::vector<std::string>& after) {
  if (!is_weights_only(session.problem.source)) return align_tokens(before, after);
  if (before.size() == after.size()) return all_rows(after.size());
  return renamed_in_place(align_tokens(before, after), before.size());
}

}  // namespace

Outcome apply_to(Session session, const Shapes& shapes, const SetTokens& action) {
  if (Status side = check_side(session, action.side); !side) return side.error();
  std::vector<std::string> tokens;
  tokens.reserve(action.tokens.size());
  for (const std::string& text : action.tokens) {
    if (Status status = check_text(text, static_cast<Index>(tokens.size())); !status) return status.error();
    tokens.push_back(sanitize_utf8(text));
  }
  const RowOrigins from = origins(session, tokens_of(session, action.side), tokens);
  return retoken(std::move(session), shapes, action.side, std::move(tokens), from);
}

Outcome apply_to(Session session, const Shapes&, const RenameToken& action) {
  if (Status side = check_side(session, action.side); !side) return side.error();
  std::vector<std::string>& tokens = action.side == Side::kKeys ? *session.key_tokens : session.tokens;
  const Index last = static_cast<Index>(tokens.size()) - 1;
  if (Status index = check_index(action.index, 0, last, "token"); !index) return index.error();
  if (Status text = check_text(action.text, action.index); !text) return text.error();
  tokens[static_cast<std::size_t>(action.index)] = sanitize_utf8(action.text);
  return session;
}

Outcome apply_to(Session session, const Shapes& shapes, const InsertToken& action) {
  if (Status side = check_side(session, action.side); !side) return side.error();
  std::vector<std::string> tokens = tokens_of(session, action.side);
  const auto count = static_cast<Index>(tokens.size());
  if (Status index = check_index(action.index, 0, count, "place"); !index) return index.error();
  if (Status text = check_text(action.text, action.index); !text) return text.error();
  RowOrigins from = all_rows(tokens.size());
  tokens.insert(tokens.begin() + action.index, sanitize_utf8(action.text));
  from.insert(from.begin() + action.index, -1);
  return retoken(std::move(session), shapes, action.side, std::move(tokens), from);
}

Outcome apply_to(Session session, const Shapes& shapes, const RemoveToken& action) {
  if (Status side = check_side(session, action.side); !side) return side.error();
  std::vector<std::string> tokens = tokens_of(session, action.side);
  const Index last = static_cast<Index>(tokens.size()) - 1;
  if (Status index = check_index(action.index, 0, last, "token"); !index) return index.error();
  RowOrigins from = all_rows(tokens.size());
  tokens.erase(tokens.begin() + action.index);
  from.erase(from.begin() + action.index);
  return retoken(std::move(session), shapes, action.side, std::move(tokens), from);
}

Outcome apply_to(Session session, const Shapes& shapes, const MoveToken& action) {
  if (Status side = check_side(session, action.side); !side) return side.error();
  std::vector<std::string> tokens = tokens_of(session, action.side);
  const Index last = static_cast<Index>(tokens.size()) - 1;
  if (Status index = check_index(action.from, 0, last, "token"); !index) return index.error();
  if (Status index = check_index(action.to, 0, last, "place"); !index) return index.error();
  RowOrigins from = all_rows(tokens.size());
  const auto move_item = [&](auto& list) {
    const auto first = list.begin();
    if (action.from < action.to) {
      std::rotate(first + action.from, first + action.from + 1, first + action.to + 1);
    } else {
      std::rotate(first + action.to, first + action.from, first + action.from + 1);
    }
  };
  move_item(tokens);
  move_item(from);
  return retoken(std::move(session), shapes, action.side, std::move(tokens), from);
}

Outcome apply_to(Session session, const Shapes& shapes, const SetCrossAttention& action) {
  if (action.on == session.key_tokens.has_value()) return session;
  if (action.on) {
    if (std::holds_alternative<ProjectedSource>(session.problem.source)) {
      return bad_input(
          "Q, K and V all come from X here, so the keys are the tokens themselves: "
          "give Q, K and V directly to have other keys");
    }
    session.key_tokens = session.tokens;
    return session;
  }
  Shapes after = shapes;
  after.nk = shapes.nq;
  if (Status growth = check_growth(shapes, after, session.problem.options.bias.has_value()); !growth)
    return growth.error();
  follow_keys(session, origins(session, *session.key_tokens, session.tokens), session.tokens);
  session.key_tokens.reset();
  return session;
}

}  // namespace qkv::parts
