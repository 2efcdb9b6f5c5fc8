#include "app/ui/keys.h"

#include <array>
#include <string>
#include <utility>

namespace qkv {
namespace {

#if IMGUI_VERSION_NUM >= 18700
ImGuiKey imgui_key(Key key) {
  const int code = static_cast<int>(key);
  if (key >= Key::k0 && key <= Key::k9) return static_cast<ImGuiKey>(ImGuiKey_0 + (code - 48));
  if (key >= Key::kA && key <= Key::kZ) return static_cast<ImGuiKey>(ImGuiKey_A + (code - 65));
  switch (key) {
    case Key::kSpace:
      return ImGuiKey_Space;
    case Key::kMinus:
      return ImGuiKey_Minus;
    case Key::kPeriod:
      return ImGuiKey_Period;
    case Key::kEqual:
      return ImGuiKey_Equal;
    case Key::kEscape:
      return ImGuiKey_Escape;
    case Key::kEnter:
      return ImGuiKey_Enter;
    case Key::kTab:
      return ImGuiKey_Tab;
    case Key::kBackspace:
      return ImGuiKey_Backspace;
    case Key::kDelete:
      return ImGuiKey_Delete;
    case Key::kRight:
      return ImGuiKey_RightArrow;
    case Key::kLeft:
      return ImGuiKey_LeftArrow;
    case Key::kDown:
      return ImGuiKey_DownArrow;
    case Key::kUp:
      return ImGuiKey_UpArrow;
    case Key::kPageUp:
      return ImGuiKey_PageUp;
    case Key::kPageDown:
      return ImGuiKey_PageDown;
    case Key::kHome:
      return ImGuiKey_Home;
    case Key::kEnd:
      return ImGuiKey_End;
    case Key::kF1:
      return ImGuiKey_F1;
    case Key::kF2:
      return ImGuiKey_F2;
    case Key::kKeypadEnter:
      return ImGuiKey_KeypadEnter;
    default:
      return ImGuiKey_None;
  }
}
#endif

}  // namespace

bool key_pressed(Key key, bool repeat) {
#if IMGUI_VERSION_NUM >= 18700
  return ImGui::IsKeyPressed(imgui_key(key), repeat);
#else
  return ImGui::IsKeyPressed(static_cast<int>(key), repeat);
#endif
}

bool enter_pressed() { return key_pressed(Key::kEnter, false) || key_pressed(Key::kKeypadEnter, false); }

bool chord_pressed(const Chord& chord) {
  const ImGuiIO& io = ImGui::GetIO();
  return static_cast<int>(chord.key) != 0 && io.KeyCtrl == chord.ctrl && io.KeyShift == chord.shift && !io.KeyAlt &&
         key_pressed(chord.key, false);
}

const char* key_name(Key key) {
  static constexpr std::pair<Key, const char*> kNames[] = {
      {Key::kA, "A"},         {Key::kB, "B"},           {Key::kC, "C"},       {Key::kD, "D"},
      {Key::kE, "E"},         {Key::kF, "F"},           {Key::kG, "G"},       {Key::kH, "H"},
      {Key::kI, "I"},         {Key::kJ, "J"},           {Key::kK, "K"},       {Key::kL, "L"},
      {Key::kM, "M"},         {Key::kN, "N"},           {Key::kO, "O"},       {Key::kP, "P"},
      {Key::kQ, "Q"},         {Key::kR, "R"},           {Key::kS, "S"},       {Key::kT, "T"},
      {Key::kU, "U"},         {Key::kV, "V"},           {Key::kW, "W"},       {Key::kX, "X"},
      {Key::kY, "Y"},         {Key::kZ, "Z"},           {Key::k0, "0"},       {Key::k1, "1"},
      {Key::k2, "2"},         {Key::k3, "3"},           {Key::k4, "4"},       {Key::kDelete, "Del"},
      {Key::kF1, "F1"},       {Key::kF2, "F2"},         {Key::kMinus, "-"},   {Key::kEqual, "="},
      {Key::kEnter, "Enter"}, {Key::kTab, "Tab"},       {Key::kLeft, "Left"}, {Key::kRight, "Right"},
      {Key::kPageUp, "PgUp"}, {Key::kPageDown, "PgDn"}, {Key::kPeriod, "."}};
  for (const auto& [named, name] : kNames)
    if (named == key) return name;
  return "";
}

void map_keys(ImGuiIO& io) {
#if IMGUI_VERSION_NUM < 18700
  static constexpr std::pair<int, Key> kMap[] = {{ImGuiKey_Tab, Key::kTab},
                                                 {ImGuiKey_LeftArrow, Key::kLeft},
                                                 {ImGuiKey_RightArrow, Key::kRight},
                                                 {ImGuiKey_UpArrow, Key::kUp},
                                                 {ImGuiKey_DownArrow, Key::kDown},
                                                 {ImGuiKey_PageUp, Key::kPageUp},
                                                 {ImGuiKey_PageDown, Key::kPageDown},
                                                 {ImGuiKey_Home, Key::kHome},
                                                 {ImGuiKey_End, Key::kEnd},
                                                 {ImGuiKey_Delete, Key::kDelete},
                                                 {ImGuiKey_Backspace, Key::kBackspace},
                                                 {ImGuiKey_Space, Key::kSpace},
                                                 {ImGuiKey_Enter, Key::kEnter},
                                                 {ImGuiKey_Escape, Key::kEscape},
                                                 {ImGuiKey_KeyPadEnter, Key::kKeypadEnter},
                                                 {ImGuiKey_A, Key::kA},
                                                 {ImGuiKey_C, Key::kC},
                                                 {ImGuiKey_V, Key::kV},
                                                 {ImGuiKey_X, Key::kX},
                                                 {ImGuiKey_Y, Key::kY},
                                                 {ImGuiKey_Z, Key::kZ}};
  for (const auto& [name, key] : kMap) io.KeyMap[name] = static_cast<int>(key);
#else
  (void)io;
#endif
}

void feed_key(ImGuiIO& io, Key key, bool down) {
#if IMGUI_VERSION_NUM >= 18700
  io.AddKeyEvent(imgui_key(key), down);
#else
  io.KeysDown[static_cast<int>(key)] = down;
#endif
}

}  // namespace qkv
