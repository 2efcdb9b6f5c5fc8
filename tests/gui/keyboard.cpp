#include "tests/gui/keyboard.h"

#include <X11/Xlib.h>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

namespace qkv::test {
namespace {

struct Closer {
  void operator()(Display* display) const { XCloseDisplay(display); }  // sends what is waiting, too
};
using DisplayPtr = std::unique_ptr<Display, Closer>;

// As X11 numbers characters: those of Latin-1 by themselves, others behind an offset (Xlib's keysymdef.h).
KeySym symbol_of(char32_t character) { return character < 0x100 ? character : 0x01000000 + character; }

struct FreeFree {
  void operator()(void* memory) const { XFree(memory); }
};

}  // namespace

std::string stop_repeating_keys(const std::string& display) {
  const DisplayPtr server(XOpenDisplay(display.c_str()));
  if (!server) return "the display " + display + " cannot be opened";
  XAutoRepeatOff(server.get());
  XSync(server.get(), False);
  return "";
}

std::string give_keys(const std::string& display, std::u32string_view characters) {
  const DisplayPtr server(XOpenDisplay(display.c_str()));
  if (!server) return "the display " + display + " cannot be opened";
  int first = 0, last = 0, each = 0;
  XDisplayKeycodes(server.get(), &first, &last);
  const std::unique_ptr<KeySym, FreeFree> symbols(
      XGetKeyboardMapping(server.get(), static_cast<KeyCode>(first), last - first + 1, &each));
  std::set<KeySym> known;
  std::vector<int> spare;  // keys without a symbol
  for (int key = first; key <= last; ++key) {
    const KeySym* const begin = symbols.get() + static_cast<std::ptrdiff_t>(key - first) * each;
    known.insert(begin, begin + each);
    if (std::all_of(begin, begin + each, [](KeySym symbol) { return symbol == NoSymbol; })) spare.push_back(key);
  }
  for (const char32_t character : characters) {
    KeySym with_and_without_shift[] = {symbol_of(character), symbol_of(character)};
    if (!known.insert(with_and_without_shift[0]).second) continue;
    if (spare.empty()) return "the keyboard has no key left";
    XChangeKeyboardMapping(server.get(), spare.back(), 2, with_and_without_shift, 1);
    spare.pop_back();
  }
  XSync(server.get(), False);
  return "";
}

}  // namespace qkv::test
