// Small dialogs: unsaved work, overwriting, the mouse and keys, about.
#pragma once

#include <string>

#include "app/ui/controls.h"

namespace qkv {

enum class Answer { kNone, kYes, kOther, kCancel };

struct QuestionState {
  bool open = false, just_opened = false;
  std::string title, text, yes, other;  // `other` may be empty
};
void ask(QuestionState& state, std::string title, std::string text, std::string yes, std::string other = {});
Answer draw_question(Ui& ui, QuestionState& state);

struct InfoState {
  bool open = false, just_opened = false;
};
void draw_shortcuts(Ui& ui, InfoState& state);
void draw_about(Ui& ui, InfoState& state);

}  // namespace qkv
