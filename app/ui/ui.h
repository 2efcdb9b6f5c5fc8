// What every panel draws with: theme, fonts, labels, and small drawing helpers.
#pragma once

#include <imgui.h>

#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/ui/fonts.h"
#include "app/ui/heatmap_draw.h"
#include "app/ui/label_cache.h"
#include "app/ui/widget_registry.h"
#include "core/figure/color.h"
#include "core/figure/colormap.h"

namespace qkv {

enum class TextAlign { kLeft, kCenter, kRight };

// Lives as long as the App; refreshed at the start of each frame.
struct Ui {
  ThemeName theme = ThemeName::kLight;
  float scale = 1;  // device pixels per logical pixel
  double time = 0;  // seconds since start
  FontSet* fonts = nullptr;
  LabelCache* labels = nullptr;
  WidgetRegistry* widgets = nullptr;
  HeatmapSink* sink = nullptr;
  std::deque<HeatmapDraw> heatmaps;  // of this frame: draw lists point into it
  std::string typed;                 // UTF-8 typed since the last frame; whoever has the focus takes it
  std::string focus;                 // name of the text field that owns the keyboard; empty = none
  bool was_typing = false;           // a text field had the keyboard when the frame began
  bool escape_taken = false;         // the innermost popup had it
  bool focus_seen = false;           // the owner was drawn in this frame
  double next_frame_in = 1e9;        // seconds until something changes by itself (a caret, a toast)

  std::map<std::pair<std::string, ThemeName>, ColorTable> color_tables;

  const Palette& colors() const { return palette(theme); }
  const ColorTable& table(const std::string& colormap);  // an unknown name gives viridis
  // No text field has the keyboard, nor had it when this frame's keys were pressed.
  bool keyboard_is_free() const { return focus.empty() && !was_typing; }
  void redraw_within(double seconds) { next_frame_in = seconds < next_frame_in ? seconds : next_frame_in; }
};

inline ImU32 to_u32(Color c) { return IM_COL32(c.r, c.g, c.b, c.a); }
inline Color with_alpha(Color c, double alpha) {
  c.a = static_cast<std::uint8_t>(c.a * alpha + 0.5);
  return c;
}
// Escape, for whoever asks first in this frame.
bool take_escape(Ui& ui);

// To the nearest device pixel.
ImVec2 snap(const Ui& ui, ImVec2 p);

// Program text in an ImGui font. Returns the width in logical pixels.
float text_width(const Ui& ui, FontRole role, std::string_view text);
void draw_text(const Ui& ui, ImDrawList* list, FontRole role, ImVec2 pos, Color color, std::string_view text);
// `box` spans the line's height; text is centred vertically, aligned horizontally.
void draw_text_in(const Ui& ui, ImDrawList* list, FontRole role, ImVec2 min, ImVec2 max, Color color,
                  std::string_view text, TextAlign align);
// The same with formulas: "W^Q" raises the character behind "^", for letters that Unicode has no superscript of.
// Returns the width.
float draw_formula(const Ui& ui, ImDrawList* list, FontRole role, ImVec2 pos, Color color, std::string_view text);
float formula_width(const Ui& ui, FontRole role, std::string_view text);

// Breaks at spaces to `width`; returns the height.
float draw_paragraph(const Ui& ui, ImDrawList* list, FontRole role, ImVec2 pos, float width, Color color,
                     std::string_view text);

// User text through Pango, vertically centred in min … max; shortened with "…" to `max_width` (0 = the box).
void draw_label_in(Ui& ui, ImDrawList* list, ImVec2 min, ImVec2 max, std::string_view text, double size, Color color,
                   TextAlign align, bool bold = false);
float label_width(Ui& ui, std::string_view text, double size, bool bold = false);
// Lines of user text broken at spaces and after CJK characters; returns the height.
float draw_label_paragraph(Ui& ui, ImDrawList* list, ImVec2 pos, float width, std::string_view text, double size,
                           Color color);

// Style of ImGui's own widgets (popups, menus, scroll bars) in the theme.
void apply_style(ThemeName theme);

// A small popup under the pointer after it rested on the last item.
void tooltip(Ui& ui, std::string_view text);

}  // namespace qkv
