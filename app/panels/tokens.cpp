#include <algorithm>
#include <cmath>

#include "app/panels/setup_panel.h"
#include "app/ui/keys.h"

namespace qkv {
namespace {

constexpr float kChipHeight = 26, kChipGap = 6;
constexpr std::size_t kMostChips = 1000;
constexpr float kMostChipArea = 5 * kChipHeight + 4 * kChipGap;  // more chips scroll
constexpr const char* kNewToken = "□";                           // one token, however text is split
constexpr const char* kLabelsTip =
    "Tokens label the rows and columns of the weights. As many as before are new labels; more or fewer add or take "
    "away rows and columns, and new ones are 0.";
constexpr const char* kTokensTip =
    "What you type becomes tokens. Tokens that stay keep their numbers; a new token gets a row that depends only on "
    "its text, so the same word is the same vector everywhere.";

std::string side_name(Side side) { return side == Side::kQueries ? "tokens" : "key-tokens"; }

// The field keeps what was typed while it means the session's tokens; after undo, chips or another file it shows
// their text instead.
void sync_text(const StageInput& in, const std::vector<std::string>& tokens, TokenListState& state) {
  if (state.synced == tokens) return;
  state.synced = tokens;
  if (split_tokens(state.text.edit.text, in.session.split) != tokens)
    state.text.edit.set(join_tokens(tokens, in.session.split));
}

void draw_text_entry(Ui& ui, const StageInput& in, Side side, const std::vector<std::string>& tokens,
                     TokenListState& state, ActionQueue& queue) {
  const Session& session = in.session;
  const std::string name = side_name(side) + "/text";
  sync_text(in, tokens, state);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  TextFieldLook look;
  look.hint = "type tokens";
  const TextFieldResult result = text_field(ui, name, at, {at.x + width, at.y + 36}, state.text, look);
  if (ui.focus != name) tooltip(ui, is_weights_only(session.problem.source) ? kLabelsTip : kTokensTip);
  ImGui::SetCursorScreenPos(at);
  ImGui::Dummy({width, 36});
  if (result.activated) state.gesture = queue.new_gesture();
  if (result.changed) {
    std::vector<std::string> typed = split_tokens(state.text.edit.text, session.split);
    if (!typed.empty() && typed != tokens) queue.push(SetTokens{side, std::move(typed)}, state.gesture);
  }
  // An empty field stands for no change: there is at least one token.
  if (result.left && split_tokens(state.text.edit.text, session.split).empty()) state.synced.clear();
}

void start_rename(Ui& ui, Side side, Index index, const std::string& token, TokenListState& state) {
  state.renaming = index;
  state.rename.edit.set(token);
  state.rename.edit.select_all();
  focus_text_field(ui, side_name(side) + "/rename", state.rename);
}

void draw_chip_menu(Ui& ui, Side side, Index index, const std::vector<std::string>& tokens, const Session& session,
                    TokenListState& state, ActionQueue& queue) {
  const auto item = [&](const char* text, bool enabled = true) {
    const bool picked = ImGui::MenuItem(text, nullptr, false, enabled);
    ui.widgets->add_last_item("chip-menu/" + std::string(text));
    return picked;
  };
  if (item("Rename")) start_rename(ui, side, index, tokens[static_cast<std::size_t>(index)], state);
  // A new token waits for its name.
  const auto insert = [&](Index at) {
    queue.push(InsertToken{side, at, kNewToken});
    start_rename(ui, side, at, kNewToken, state);
  };
  if (item("Insert before")) insert(index);
  if (item("Insert after")) insert(index + 1);
  if (item("Move left", index > 0)) queue.push(MoveToken{side, index, index - 1});
  if (item("Move right", index + 1 < static_cast<Index>(tokens.size()))) queue.push(MoveToken{side, index, index + 1});
  if (item("Remove", tokens.size() > 1)) queue.push(RemoveToken{side, index});
  const bool is_key = side == Side::kKeys || !session.key_tokens;
  if (!is_key || is_weights_only(session.problem.source)) return;
  ImGui::Separator();
  const auto& valid = session.problem.options.key_valid;
  const bool hidden = !valid.empty() && valid[static_cast<std::size_t>(index)] == 0;
  if (item(hidden ? "Show this key again" : "Hide this key (padding)")) {
    AttentionOptions options = session.problem.options;
    if (options.key_valid.empty()) options.key_valid.assign(tokens.size(), 1);
    options.key_valid[static_cast<std::size_t>(index)] = hidden ? 1 : 0;
    if (std::all_of(options.key_valid.begin(), options.key_valid.end(), [](auto v) { return v == 1; }))
      options.key_valid.clear();
    queue.push(SetAttention{options});
  }
}

struct ChipLook {
  bool lit = false, hidden = false, dragged = false, special = false;
};

void draw_chip(Ui& ui, ImVec2 min, ImVec2 max, const std::string& token, const ChipLook& look) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const Color fill = look.lit ? ui.colors().accent_soft : ui.colors().field;
  list->AddRectFilled(min, max, to_u32(look.dragged ? with_alpha(fill, 0.5) : fill), 6);
  if (ImGui::IsItemHovered() || look.lit)
    list->AddRect(min, max, to_u32(look.lit ? ui.colors().accent : ui.colors().faint), 6, 0, 1);
  const Color ink = look.hidden    ? ui.colors().faint
                    : look.lit     ? ui.colors().accent
                    : look.special ? ui.colors().dim
                                   : ui.colors().text;
  draw_label_in(ui, list, {min.x + 8, min.y}, {max.x - 8, max.y}, token, 13, ink, TextAlign::kCenter);
  if (look.hidden) {
    const float y = std::round((min.y + max.y) / 2) + 0.5f;
    list->AddLine({min.x + 6, y}, {max.x - 6, y}, to_u32(ui.colors().dim));
  }
}

// Typed text is split again with every key, so a token that the split would take apart could not stay.
bool stays_whole(const std::string& token, TokenSplit split) { return split_tokens(token, split).size() == 1; }

void draw_rename(Ui& ui, const Session& session, Side side, ImVec2 at, float width, TokenListState& state,
                 ActionQueue& queue) {
  const std::string name = side_name(side) + "/rename";
  TextFieldLook look;
  look.text_size = 13;
  const TextFieldResult result = text_field(ui, name, at, {at.x + width, at.y + kChipHeight}, state.rename, look);
  const std::string& text = state.rename.edit.text;
  const bool left = result.left || ui.focus != name;
  if (left && !result.cancelled && !text.empty()) {
    if (stays_whole(text, session.split))
      queue.push(RenameToken{side, state.renaming, text});
    else
      queue.messages.push_back("“" + text + "” would be several tokens: a name is one piece of the way text is split");
  }
  if (left) state.renaming = -1;
}

// Dragging a chip over another moves the token there.
void handle_chip_drag(Side side, Index index, Index count, TokenListState& state, ActionQueue& queue) {
  if (ImGui::IsItemActive() && ImGui::IsMouseDragging(0, 4)) state.dragged = index;
  if (state.dragged < 0 || state.dragged >= count) return;
  if (ImGui::IsMouseReleased(0) && ImGui::IsMouseHoveringRect(ImGui::GetItemRectMin(), ImGui::GetItemRectMax()) &&
      state.dragged != index)
    queue.push(MoveToken{side, state.dragged, index});
}

float chip_width(Ui& ui, const std::string& token, float width) {
  return std::min(label_width(ui, token, 13) + 18, width);
}

// Rows that the chips need, counted up to six.
int chip_rows(Ui& ui, const AxisNames& names, float width) {
  int rows = 1;
  float x = 0;
  for (Index i = 0; i < names.size() && rows < 6; ++i) {
    const float chip = chip_width(ui, names[i], width);
    if (x > 0 && x + chip > width) x = 0, ++rows;
    x += chip + kChipGap;
  }
  return rows;
}

std::string chip_tip(const std::string& shown, const std::string& stored) {
  const std::string how = "Double-click to rename, drag to move, right-click for more.";
  return shown == stored ? how : shown + " is stored as " + stored + "\n" + how;
}

void draw_chips(Ui& ui, const StageInput& in, const StageState& stage, Side side,
                const std::vector<std::string>& tokens, TokenListState& state, ActionQueue& queue) {
  const auto focus = focus_cell(stage);
  const TokenLink link = focus ? linked_tokens(*focus) : TokenLink{};
  const bool is_key = side == Side::kKeys || !in.session.key_tokens;
  const auto& valid = in.session.problem.options.key_valid;
  const AxisNames names(in.session, side == Side::kKeys ? Axis::kKeys : Axis::kQueries,
                        static_cast<Index>(tokens.size()), in.tokens);
  const bool scrolls = chip_rows(ui, names, ImGui::GetContentRegionAvail().x) > 5;
  if (scrolls)
    ImGui::BeginChild((side_name(side) + "/chips").c_str(), {0, kMostChipArea}, false, ImGuiWindowFlags_NoNav);
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  float x = 0, y = 0;
  for (std::size_t i = 0; i < tokens.size() && i < kMostChips; ++i) {
    const auto index = static_cast<Index>(i);
    const bool renaming = state.renaming == index;
    const std::string shown = names[index];
    const float chip = renaming ? 96 : chip_width(ui, shown, width);
    if (x > 0 && x + chip > width) x = 0, y += kChipHeight + kChipGap;
    const ImVec2 min{origin.x + x, origin.y + y}, max{min.x + chip, min.y + kChipHeight};
    x += chip + kChipGap;
    if (renaming) {
      draw_rename(ui, in.session, side, min, chip, state, queue);
      continue;
    }
    const std::string name = side_name(side) + "/chip/" + std::to_string(i);
    ImGui::SetCursorScreenPos(min);
    ImGui::InvisibleButton(name.c_str(), {chip, kChipHeight});
    ui.widgets->add(name, min, max);
    handle_chip_drag(side, index, static_cast<Index>(tokens.size()), state, queue);
    const bool lit = side == Side::kQueries ? link.query == index : link.key == index;
    const bool hidden = is_key && i < valid.size() && valid[i] == 0;
    draw_chip(ui, min, max, shown, {lit, hidden, state.dragged == index, names.is_special(index)});
    if (ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(0)) start_rename(ui, side, index, tokens[i], state);
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {8, 9});
    ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {12, 10});
    if (ImGui::BeginPopupContextItem((name + "/menu").c_str())) {
      if (take_escape(ui)) ImGui::CloseCurrentPopup();
      draw_chip_menu(ui, side, index, tokens, in.session, state, queue);
      ImGui::EndPopup();
    }
    ImGui::PopStyleVar(2);
    if (state.dragged < 0) tooltip(ui, chip_tip(shown, tokens[i]));
  }
  if (!ImGui::IsMouseDown(0)) state.dragged = -1;
  ImGui::SetCursorScreenPos(origin);
  ImGui::Dummy({width, y + kChipHeight});
  if (tokens.size() > kMostChips) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    draw_text(ui, ImGui::GetWindowDrawList(), FontRole::kSmall11, at, ui.colors().dim,
              "and " + std::to_string(tokens.size() - kMostChips) + " more");
    ImGui::Dummy({width, 16});
  }
  if (scrolls) ImGui::EndChild();
}

}  // namespace

void draw_tokens(Ui& ui, const StageInput& in, const StageState& stage, Side side, TokenListState& state,
                 ActionQueue& queue) {
  const std::vector<std::string>& tokens = side == Side::kKeys ? in.session.keys() : in.session.tokens;
  draw_text_entry(ui, in, side, tokens, state, queue);
  gap(8);
  draw_chips(ui, in, stage, side, tokens, state, queue);
}

}  // namespace qkv
