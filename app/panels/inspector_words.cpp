#include "app/panels/inspector_words.h"

#include <cctype>

namespace qkv {
namespace {

// A token by its text, anything else by its number from 1.
std::string place(Axis axis, Index index, const Session& session, TokenStyle tokens) {
  return AxisNames(session, axis, index + 1, tokens)[index];
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

std::string ordinal(Index index) {
  static constexpr const char* kWords[] = {"first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"};
  if (index < 8) return kWords[index];
  const Index number = index + 1, last = number % 10;
  const bool teen = number % 100 >= 11 && number % 100 <= 13;
  return std::to_string(number) + (teen ? "th" : last == 1 ? "st" : last == 2 ? "nd" : last == 3 ? "rd" : "th");
}

}  // namespace

std::string cell_heading(MatrixId id, Index row, Index col, const Session& session, TokenStyle tokens) {
  const Axis rows = row_axis(id.kind), cols = col_axis(id.kind);
  std::string text = is_per_head(id.kind) && head_count(session.problem.source) > 1
                         ? "HEAD " + std::to_string(id.head + 1) + " · "
                         : "";
  // The weights are what the program is about: in a head they need no name.
  if (id.kind != MatrixKind::kAttn)
    text += upper(id.kind == MatrixKind::kHeadsOut ? "output" : long_name(id.kind)) + " · ";
  else if (text.empty())
    text = "ATTENTION · ";
  if (cols == Axis::kKeys) return text + place(rows, row, session, tokens) + " → " + place(cols, col, session, tokens);
  if (rows != Axis::kSingle) text += "ROW " + place(rows, row, session, tokens) + ", ";
  return text + "COLUMN " + place(cols, col, session, tokens);
}

std::string cell_name(MatrixId id, Index row, Index col, const Session& session, TokenStyle tokens) {
  return std::string(symbol(id.kind)) + "[" + place(row_axis(id.kind), row, session, tokens) + ", " +
         place(col_axis(id.kind), col, session, tokens) + "]";
}

std::string cell_sentence(const Explanation& e, const Session& session, TokenStyle tokens) {
  const std::string row = place(row_axis(e.id.kind), e.row, session, tokens),
                    col = place(col_axis(e.id.kind), e.col, session, tokens);
  switch (e.id.kind) {
    case MatrixKind::kQ:
      return "The query of " + row + ", its " + ordinal(e.col) + " number: part of what it looks for.";
    case MatrixKind::kK:
      return "The key of " + row + ", its " + ordinal(e.col) + " number: part of the label it wears.";
    case MatrixKind::kV:
      return "The value of " + row + ", its " + ordinal(e.col) + " number: part of what it has to say.";
    case MatrixKind::kScores:
      return "How well the query of " + row + " matches the key of " + col + ": their dot product" +
             (session.problem.options.rope ? ", each turned by its position." : ".");
    case MatrixKind::kScaled:
      return "The score, scaled so that long vectors do not drive the softmax into saturation.";
    case MatrixKind::kAlibi:
      return "What ALiBi adds to the score of " + row + " and " + col + ": less the farther apart they stand.";
    case MatrixKind::kBias:
      return "Added to the scaled score of " + row + " and " + col + ", in every head.";
    case MatrixKind::kKeep:
      return e.mask == MaskReason::kVisible  ? row + " may look at " + col + "."
             : e.mask == MaskReason::kCausal ? row + " may not look at " + col + ": it comes later."
             : e.mask == MaskReason::kWindow ? row + " may not look at " + col + ": it is outside the window."
                                             : col + " is padding: no query may look at it.";
    case MatrixKind::kAttn:
      if (is_weights_only(session.problem.source))
        return "The weight that " + row + " gives to " + col + ", as given: there are no Q and K to explain it by.";
      return "The share of its attention that " + row + " gives to " + col +
             (e.sink ? "; the sink takes its part without a value." : ".");
    case MatrixKind::kHeadsOut:
      return "The weights of " + row + ", times the " + ordinal(e.col) + " number of each value.";
    case MatrixKind::kConcat:
      return "Column " + col + " is the " + ordinal(e.column) + " of head " + std::to_string(e.head + 1) +
             ": the heads stand side by side.";
    case MatrixKind::kOut:
      return "The heads of " + row + ", mixed by column " + col + " of Wᴼ.";
    case MatrixKind::kX:
      return "The input of " + row + ", its " + ordinal(e.col) + " number.";
    case MatrixKind::kWo:
      return "How much of concat column " + row + " goes into output column " + col + ".";
    case MatrixKind::kWq:
    case MatrixKind::kWk:
    case MatrixKind::kWv:
      return "How much of input number " + row + " goes into column " + col + ".";
    case MatrixKind::kBq:
    case MatrixKind::kBk:
    case MatrixKind::kBv:
    case MatrixKind::kBo:
      return "Added to column " + col + " of every row.";
  }
  return {};
}

}  // namespace qkv
