// Shaped text on a page (PDF), where it can be selected and searched. For core/figure's text alone.
#pragma once

#include <pango/pangocairo.h>

namespace qkv {

inline double to_units(int pango_units) { return static_cast<double>(pango_units) / PANGO_SCALE; }

// Fonts whose glyphs are pictures have no outlines.
bool has_color_glyphs(PangoFont* font);
bool has_unknown_glyphs(const PangoGlyphString& glyphs);

// Writes a run of `text` from x, each cluster of glyphs with the characters it stands for, in the order in which the
// eye meets them: readers of PDF put right-to-left text into its own order themselves. Colour emoji are pictures of
// kEmojiPixels a unit over an invisible letter that stands for their characters. A run with a character that no font
// has is drawn as its code point, and that is what a search finds.
inline constexpr double kEmojiPixels = 6;
void write_run(cairo_t* cr, const char* text, PangoGlyphItem* run, double x, double baseline);

}  // namespace qkv
