#include "app/ui/text_edit.h"

#include <utility>

#include "core/base/utf8.h"

namespace qkv {
namespace {

bool space_at(std::string_view text, std::size_t index) {
  return index < text.size() && is_white_space(next_code_point(text, index));
}

}  // namespace

void TextEdit::set(std::string new_text) {
  text = std::move(new_text);
  caret = anchor = text.size();
}

void TextEdit::select_all() {
  anchor = 0;
  caret = text.size();
}

void TextEdit::place(std::size_t index, bool keep_anchor) {
  caret = index < text.size() ? index : text.size();
  if (!keep_anchor) anchor = caret;
}

void TextEdit::insert(std::string_view inserted) {
  std::string clean = sanitize_utf8(inserted);
  for (char& c : clean)
    if (c == '\n' || c == '\r' || c == '\t') c = ' ';
  const std::size_t begin = selection_begin();
  text.replace(begin, selection_end() - begin, clean);
  caret = anchor = begin + clean.size();
}

void TextEdit::erase(int direction, bool word, const MoveCaret& move) {
  if (!has_selection()) move_by(direction, word, true, move);
  insert("");
}

void TextEdit::move_by(int direction, bool word, bool keep_anchor, const MoveCaret& move) {
  if (has_selection() && !keep_anchor && !word) {
    place(direction < 0 ? selection_begin() : selection_end(), false);
    return;
  }
  place(word ? word_boundary(text, caret, direction, move) : move(text, caret, direction), keep_anchor);
}

void TextEdit::select_word(std::size_t index, const MoveCaret& move) {
  std::size_t begin = index;
  while (begin > 0) {
    const std::size_t before = move(text, begin, -1);
    if (before >= begin || space_at(text, before)) break;
    begin = before;
  }
  std::size_t end = index;
  while (end < text.size() && !space_at(text, end)) {
    const std::size_t after = move(text, end, 1);
    if (after <= end) break;
    end = after;
  }
  anchor = begin;
  caret = end;
}

std::size_t word_boundary(std::string_view text, std::size_t index, int direction, const MoveCaret& move) {
  const auto blank = [&](std::size_t at) { return space_at(text, direction > 0 ? at : move(text, at, -1)); };
  const auto at_end = [&](std::size_t at) { return direction > 0 ? at >= text.size() : at == 0; };
  bool in_word = false;
  while (!at_end(index)) {
    const bool space = blank(index);
    if (space && in_word) break;
    in_word = in_word || !space;
    const std::size_t next = move(text, index, direction);
    if (next == index) break;
    index = next;
  }
  return index;
}

}  // namespace qkv
