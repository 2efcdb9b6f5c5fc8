#include "core/session/action.h"

#include <algorithm>

#include "core/session/apply_parts.h"

namespace qkv {
namespace parts {
namespace {

Status check_view(const ViewSettings& view) {
  if (view.head < 0) return bad_input("the head to show = " + std::to_string(view.head) + " is out of range: 0 and up");
  if (view.decimals < 0 || view.decimals > 6) {
    return bad_input("decimals = " + std::to_string(view.decimals) + " is out of range: 0 … 6");
  }
  for (const RangeSpec& range : {view.weights_range, view.signed_range}) {
    if (range.mode == RangeMode::kCustom && !(range.low < range.high)) {
      return bad_input("the lower end of a colour range must be below the upper end");
    }
  }
  if (view.signed_range.mode == RangeMode::kLog) return bad_input("only weights have a logarithmic colour range");
  return Done{};
}

// The label of each action; cells and tokens count from 1 as in the window.

std::string cell_name(MatrixId id, Index row, Index col) {
  return std::string(symbol(id.kind)) + "[" + place_text(row) + ", " + place_text(col) + "]";
}

std::string on_off(const char* what, bool on) { return std::string(what) + (on ? " on" : " off"); }

std::string label(const SetTokens&) { return "tokens"; }
std::string label(const RenameToken& action) { return "rename token " + place_text(action.index); }
std::string label(const InsertToken& action) { return "insert token " + place_text(action.index); }
std::string label(const RemoveToken& action) { return "remove token " + place_text(action.index); }
std::string label(const MoveToken& action) { return "move token " + place_text(action.from); }
std::string label(const SetSplit&) { return "splitting into tokens"; }
std::string label(const SetCell& action) { return "edit " + cell_name(action.id, action.row, action.col); }
std::string label(const SetBlock& action) { return "paste into " + std::string(symbol(action.id.kind)); }
std::string label(const FillBlock& action) { return "fill " + std::string(symbol(action.id.kind)); }
std::string label(const SetHeads&) { return "number of heads"; }
std::string label(const SetKvHeads&) { return "number of key/value heads"; }
std::string label(const SetDk&) { return "d_k"; }
std::string label(const SetDv&) { return "d_v"; }
std::string label(const SetDModel&) { return "d_model"; }
std::string label(const SetDOut&) { return "d_out"; }
std::string label(const SetSourceKind& action) {
  return action.kind == SourceKind::kDirect ? "Q, K, V as given" : "Q, K, V from X";
}
std::string label(const SetOutputProjection& action) { return on_off("output projection", action.on); }
std::string label(const SetBiases& action) { return on_off("biases", action.on); }
std::string label(const SetScoreBias& action) { return on_off("score bias", action.on); }
std::string label(const SetCrossAttention& action) { return on_off("cross-attention", action.on); }
std::string label(const SetAttention&) { return "attention options"; }
std::string label(const SetTitle&) { return "title"; }
std::string label(const SetView&) { return "view"; }
std::string label(const ReplaceSession&) { return "open session"; }

}  // namespace

Outcome apply_to(Session session, const Shapes&, const SetSplit& action) {
  session.split = action.split;
  return session;
}

Outcome apply_to(Session session, const Shapes&, const SetAttention& action) {
  session.problem.options = action.options;
  return session;
}

Outcome apply_to(Session session, const Shapes&, const SetTitle& action) {
  session.title = action.title;
  return session;
}

Outcome apply_to(Session session, const Shapes&, const SetView& action) {
  if (Status view = check_view(action.view); !view) return view.error();
  session.view = action.view;
  return session;
}

Outcome apply_to(Session, const Shapes&, const ReplaceSession& action) { return action.session; }

}  // namespace parts

Result<Session> apply(const Session& session, const Action& action) {
  Shapes shapes;
  if (!std::holds_alternative<ReplaceSession>(action)) {
    const Result<Shapes> checked = check_session(session);
    if (!checked) return checked.error();
    shapes = checked.value();
  }
  Result<Session> result =
      std::visit([&](const auto& chosen) { return parts::apply_to(session, shapes, chosen); }, action);
  if (!result) return result;
  const Result<Shapes> after = check_session(result.value());
  if (!after) return after.error();
  result.value().view = fitting_view(result.value());
  return result;
}

std::string describe(const Action& action) {
  return std::visit([](const auto& chosen) { return parts::label(chosen); }, action);
}

bool makes_undo_step(const Action& action) { return !std::holds_alternative<SetView>(action); }

}  // namespace qkv
