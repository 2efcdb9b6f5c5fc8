// The left panel: tokens, the source of Q, K, V, the attention options, colours.
#pragma once

#include <string>

#include "app/panels/option_pictures.h"
#include "app/panels/stage.h"

namespace qkv {

// One side of tokens: the text being typed and the chips.
struct TokenListState {
  TextFieldState text;
  std::vector<std::string> synced;  // the tokens that the text was last compared with
  TextFieldState rename;
  Index renaming = -1;
  Index dragged = -1;
  std::uint64_t gesture = 0;
};

struct SetupState {
  NumberEntry entry;
  TokenListState queries, keys;
};

inline constexpr float kNumberField = 76, kSetupRowGap = 6;  // width of a number's box; between rows

// Fills the current ImGui child window. `pictures` outlive the frame's rendering.
void draw_setup_panel(Ui& ui, const StageInput& in, const StageState& stage, SetupState& state,
                      OptionPictures& pictures, ActionQueue& queue);

// The attention options with their pictures; `shapes` of the session.
void draw_attention(Ui& ui, const StageInput& in, const StageState& stage, const Shapes& shapes, SetupState& state,
                    OptionPictures& pictures, ActionQueue& queue);

// The text field and chips of one side.
void draw_tokens(Ui& ui, const StageInput& in, const StageState& stage, Side side, TokenListState& state,
                 ActionQueue& queue);

}  // namespace qkv
