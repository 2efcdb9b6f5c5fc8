// The editing of one line of text: caret, selection, insertion, deletion. Knows no screen.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace qkv {

// Byte index of the next (1) or previous (−1) place where a caret may stand.
using MoveCaret = std::function<std::size_t(std::string_view text, std::size_t index, int direction)>;

// Indices are bytes and always stand between characters.
struct TextEdit {
  std::string text;
  std::size_t caret = 0, anchor = 0;  // equal = nothing selected

  std::size_t selection_begin() const { return caret < anchor ? caret : anchor; }
  std::size_t selection_end() const { return caret < anchor ? anchor : caret; }
  bool has_selection() const { return caret != anchor; }
  std::string_view selected() const {
    return std::string_view(text).substr(selection_begin(), selection_end() - selection_begin());
  }

  void set(std::string new_text);  // caret at the end
  void select_all();
  void place(std::size_t index, bool keep_anchor);
  void insert(std::string_view inserted);  // replaces the selection; line breaks and tabs become spaces
  void erase(int direction, bool word, const MoveCaret& move);
  void move_by(int direction, bool word, bool keep_anchor, const MoveCaret& move);
  void select_word(std::size_t index, const MoveCaret& move);
};

// Where a move over a word from `index` ends.
std::size_t word_boundary(std::string_view text, std::size_t index, int direction, const MoveCaret& move);

}  // namespace qkv
