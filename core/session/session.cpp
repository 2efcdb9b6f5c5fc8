#include "core/session/session.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "core/attention/problem_inputs.h"

namespace qkv {
namespace {

std::string limit_message(const char* what, Index value, Index most) {
  return std::string(what) + " = " + std::to_string(value) + " is out of range: 1 … " + std::to_string(most);
}

Status check_limits(const Shapes& shapes) {
  struct Limit {
    const char* what;
    Index value, most;
  };
  const Limit limits[] = {{"the number of tokens", shapes.nq, kMaxTokens},
                          {"the number of key tokens", shapes.nk, kMaxTokens},
                          {"heads", shapes.heads, kMaxHeads},
                          {"kv_heads", shapes.kv_heads, kMaxHeads},
                          {"d_k", shapes.d_k, kMaxHeadSize},
                          {"d_v", shapes.d_v, kMaxHeadSize},
                          {"d_model", shapes.d_model, kMaxModelSize},
                          {"d_out", shapes.d_out, kMaxModelSize}};
  for (const Limit& limit : limits) {
    if (limit.value > limit.most) return bad_input(limit_message(limit.what, limit.value, limit.most));
  }
  return Done{};
}

// Whose rows and columns tokens name: "x", "q" and "k", or "attn".
struct NamedSides {
  const char *queries, *keys, *of_keys;
};
NamedSides named_sides(const Source& source) {
  if (is_weights_only(source)) return {"attn", "attn", " columns: one token a column"};
  if (std::holds_alternative<ProjectedSource>(source)) return {"x", "k", " rows: one token a row"};
  return {"q", "k", " rows: one token a row"};
}

SharedMatrix matrix3(std::initializer_list<float> values) {
  Matrix matrix(3, 3);
  std::copy(values.begin(), values.end(), matrix.data());
  return matrix;
}

}  // namespace

Result<Shapes> check_session(const Session& session) {
  if (session.tokens.empty()) return bad_input("tokens: a session needs at least one token");
  const bool projected = std::holds_alternative<ProjectedSource>(session.problem.source);
  if (projected && session.key_tokens) {
    return bad_input(
        "key_tokens: Q, K and V all come from X here, so the keys are the tokens themselves; "
        "other keys need a source of q, k and v");
  }
  Result<Shapes> shapes = check_shapes(session.problem);
  if (!shapes) return shapes;
  const NamedSides sides = named_sides(session.problem.source);
  const auto count = [](const auto& tokens) { return static_cast<Index>(tokens.size()); };
  if (count(session.tokens) != shapes.value().nq) {
    return bad_input("tokens has " + std::to_string(count(session.tokens)) + " entries but " + sides.queries + " has " +
                     std::to_string(shapes.value().nq) + " rows: one token a row");
  }
  if (count(session.keys()) != shapes.value().nk) {
    return bad_input((session.key_tokens ? "key_tokens has " : "tokens has ") + std::to_string(count(session.keys())) +
                     " entries but " + sides.keys + " has " + std::to_string(shapes.value().nk) + sides.of_keys);
  }
  if (Status limits = check_limits(shapes.value()); !limits) return limits.error();
  if (session.view.head < 0) {
    return bad_input("view.head = " + std::to_string(session.view.head) + " is out of range: 0 … " +
                     std::to_string(shapes.value().heads - 1));
  }
  return shapes;
}

ViewSettings fitting_view(const Session& session) {
  ViewSettings view = session.view;
  const Source& source = session.problem.source;
  view.head = std::clamp(view.head, 0, std::max(0, head_count(source) - 1));
  if (!std::holds_alternative<ProjectedSource>(source) && view.tab == Tab::kProjection) view.tab = Tab::kHead;
  if (is_weights_only(source)) {
    if (view.tab == Tab::kConcat) view.tab = Tab::kHead;
    view.lens = Lens::kValues;
  }
  return view;
}

Session worked_example() {
  Session session;
  session.title = "The worked example";
  session.note =
      "The cat asks: its query (Q) meets the label (K) that every word wears, and what fits brings its content (V).\n"
      "Row 貓 of A looks at 追 and 老鼠 equally, .4319 each.\n"
      "The source text works with three decimals and rounds so that rows add up: it prints .614, .579 and .666.\n"
      "The exact values are .6134, .5799 and 2/3.";
  session.tokens = {"貓", "追", "老鼠"};
  DirectSource source;
  source.q = {matrix3({1, 0, 1, 1, 2, 1, 1, 1, 1})};
  source.k = {matrix3({0, 2, 1, 1, 0, 2, 2, 0, 1})};
  source.v = {matrix3({1, 0, 1, 2, 1, 0, 0, 2, 1})};
  session.problem.source = std::move(source);
  return session;
}

const SharedMatrix* find_input(const Session& session, MatrixId id) { return find_input(session.problem, id); }

SharedMatrix* find_input(Session& session, MatrixId id) {
  return const_cast<SharedMatrix*>(find_input(std::as_const(session), id));
}

TokenStyle token_style(const Session& session, const ViewSettings& view) {
  if (view.raw_tokens) return TokenStyle::kStored;
  return session.key_tokens ? detect_token_style(session.tokens, *session.key_tokens)
                            : detect_token_style(session.tokens);
}

AxisNames::AxisNames(const Session& session, Axis axis, Index count)
    : AxisNames(session, axis, count, token_style(session, session.view)) {}

AxisNames::AxisNames(const Session& session, Axis axis, Index count, TokenStyle style) : count_(count), style_(style) {
  if (axis == Axis::kQueries) tokens_ = &session.tokens;
  if (axis == Axis::kKeys) tokens_ = &session.keys();
}

const std::string* AxisNames::token(Index index) const {
  const auto at = static_cast<std::size_t>(index);
  return tokens_ != nullptr && at < tokens_->size() ? &(*tokens_)[at] : nullptr;
}

std::string AxisNames::operator[](Index index) const {
  if (token(index) == nullptr) return std::to_string(index + 1);
  return shown_token(*tokens_, static_cast<std::size_t>(index), style_);
}

bool AxisNames::is_special(Index index) const {
  const std::string* text = token(index);
  return text != nullptr && is_special_token(*text);
}

std::vector<std::string> axis_labels(const Session& session, Axis axis, Index count) {
  const AxisNames names(session, axis, count);
  std::vector<std::string> labels;
  labels.reserve(static_cast<std::size_t>(count));
  for (Index i = 0; i < count; ++i) labels.push_back(names[i]);
  return labels;
}

}  // namespace qkv
