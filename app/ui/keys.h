// Keys by name, whichever version of ImGui delivers them.
#pragma once

#include <imgui.h>

namespace qkv {

// Values are GLFW's key codes: up to 1.86 ImGui hands native codes through, later versions are mapped in keys.cpp.
enum class Key : int {
  kSpace = 32,
  kMinus = 45,
  kPeriod = 46,
  kEqual = 61,
  k0 = 48,
  k1,
  k2,
  k3,
  k4,
  k5,
  k6,
  k7,
  k8,
  k9,
  kA = 65,
  kB,
  kC,
  kD,
  kE,
  kF,
  kG,
  kH,
  kI,
  kJ,
  kK,
  kL,
  kM,
  kN,
  kO,
  kP,
  kQ,
  kR,
  kS,
  kT,
  kU,
  kV,
  kW,
  kX,
  kY,
  kZ,
  kEscape = 256,
  kEnter = 257,
  kTab = 258,
  kBackspace = 259,
  kDelete = 261,
  kRight = 262,
  kLeft = 263,
  kDown = 264,
  kUp = 265,
  kPageUp = 266,
  kPageDown = 267,
  kHome = 268,
  kEnd = 269,
  kF1 = 290,
  kF2 = 291,
  kKeypadEnter = 335,
};

bool key_pressed(Key key, bool repeat = true);
bool enter_pressed();  // either Enter key, no repeat

// A key with modifiers; key 0 stands for no shortcut.
struct Chord {
  Key key = Key{0};
  bool ctrl = false, shift = false;
};
bool chord_pressed(const Chord& chord);
// "Ctrl+Shift+P"; empty for no shortcut.
const char* key_name(Key key);

// For a host without a platform backend (offscreen, tests): sets up what ImGui needs to know about keys.
void map_keys(ImGuiIO& io);
// Feeds a key event in such a host.
void feed_key(ImGuiIO& io, Key key, bool down);

}  // namespace qkv
