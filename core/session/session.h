// What a person edits and saves: tokens, the source of Q, K, V, the options, the view.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/attention/forward.h"
#include "core/session/token_text.h"
#include "core/session/tokenizer.h"
#include "core/session/view.h"

namespace qkv {

struct TensorOrigin;

// A value: copies share their numbers (SharedMatrix), so undo steps and threads hold copies.
// Invariant after make_/apply/read: check_session() is ok.
struct Session {
  std::string title;
  std::string note;                                    // a few lines that say what to look at
  std::vector<std::string> tokens;                     // Nq, query side
  std::optional<std::vector<std::string>> key_tokens;  // Nk, where keys are other tokens (cross-attention)
  TokenSplit split = TokenSplit::kWhiteSpace;
  Problem problem;
  ViewSettings view;
  std::shared_ptr<const TensorOrigin> origin;  // where the numbers were read from; null where that is not known

  const std::vector<std::string>& keys() const { return key_tokens ? *key_tokens : tokens; }
};

// What an error message or a limit needs: the most of each kind that the window and files accept.
inline constexpr Index kMaxTokens = 1 << 17;
inline constexpr int kMaxHeads = 256;
inline constexpr Index kMaxHeadSize = 1024;    // d_k, d_v
inline constexpr Index kMaxModelSize = 65536;  // d_model, d_out

// Shapes that agree among tokens and matrices, or kBadInput naming both sides and both numbers.
Result<Shapes> check_session(const Session& session);

// The session's view with a head, a tab and a lens that it has.
ViewSettings fitting_view(const Session& session);

// 貓 追 老鼠 with the numbers of the source text.
Session worked_example();

// The matrix that the person edits, or nullptr: q k v of a direct source, x and the weights and biases
// of a projected one, attn of weights alone; wo, bo, the options' bias.
const SharedMatrix* find_input(const Session& session, MatrixId id);
SharedMatrix* find_input(Session& session, MatrixId id);

// How the session's tokens are shown: as stored where `view` asks for raw tokens, else in the style that all of them
// speak for. Reads thousands of tokens, so what draws each frame keeps it.
TokenStyle token_style(const Session& session, const ViewSettings& view);

// Text on the rows or columns of an axis: tokens as they are shown, or 1-based numbers. Refers to the session's tokens.
class AxisNames {
 public:
  AxisNames(const Session& session, Axis axis, Index count);  // as the session's view asks for
  AxisNames(const Session& session, Axis axis, Index count, TokenStyle style);
  Index size() const { return count_; }
  std::string operator[](Index index) const;
  bool is_special(Index index) const;  // a token like [CLS], which is drawn quieter than the text around it

 private:
  const std::string* token(Index index) const;  // nullptr for a number

  const std::vector<std::string>* tokens_ = nullptr;
  Index count_;
  TokenStyle style_;
};
// All of them, as the session's view asks for.
std::vector<std::string> axis_labels(const Session& session, Axis axis, Index count);

}  // namespace qkv
