#include "core/figure/page_text.h"

#include <hb-ot.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "core/figure/cairo_parts.h"

namespace qkv {
namespace {

// Glyphs that stand together for some characters.
struct Cluster {
  int first_glyph = 0, glyphs = 0;  // in the order of the eye
  std::string_view text;
};

// Clusters from left to right.
std::vector<Cluster> clusters_of(const char* text, PangoGlyphItem* run) {
  std::vector<Cluster> clusters;
  const bool backward = (run->item->analysis.level & 1) != 0;
  PangoGlyphItemIter iter;
  gboolean more = pango_glyph_item_iter_init_start(&iter, run, text);
  for (; more != 0; more = pango_glyph_item_iter_next_cluster(&iter)) {
    const int count = std::abs(iter.end_glyph - iter.start_glyph);
    clusters.push_back({backward ? iter.end_glyph + 1 : iter.start_glyph, count,
                        std::string_view(text).substr(static_cast<std::size_t>(iter.start_index),
                                                      static_cast<std::size_t>(iter.end_index - iter.start_index))});
  }
  if (backward) std::reverse(clusters.begin(), clusters.end());
  return clusters;
}

double width_of(const PangoGlyphString& glyphs, const Cluster& cluster) {
  double width = 0;
  for (int i = 0; i < cluster.glyphs; ++i) width += to_units(glyphs.glyphs[cluster.first_glyph + i].geometry.width);
  return width;
}

void write_glyphs(cairo_t* cr, const char* text, PangoGlyphItem* run, double x, double baseline) {
  std::vector<cairo_glyph_t> glyphs;
  std::vector<cairo_text_cluster_t> clusters;
  std::string characters;
  for (const Cluster& cluster : clusters_of(text, run)) {
    const std::size_t before = glyphs.size();
    for (int i = 0; i < cluster.glyphs; ++i) {
      const PangoGlyphInfo& info = run->glyphs->glyphs[cluster.first_glyph + i];
      if (info.glyph != PANGO_GLYPH_EMPTY) {
        glyphs.push_back(
            {info.glyph, x + to_units(info.geometry.x_offset), baseline + to_units(info.geometry.y_offset)});
      }
      x += to_units(info.geometry.width);
    }
    clusters.push_back({static_cast<int>(cluster.text.size()), static_cast<int>(glyphs.size() - before)});
    characters += cluster.text;
  }
  // Without glyphs there is nothing that could stand for the characters.
  if (glyphs.empty()) return;
  cairo_set_scaled_font(cr, pango_cairo_font_get_scaled_font(PANGO_CAIRO_FONT(run->item->analysis.font)));
  cairo_show_text_glyphs(cr, characters.data(), static_cast<int>(characters.size()), glyphs.data(),
                         static_cast<int>(glyphs.size()), clusters.data(), static_cast<int>(clusters.size()),
                         static_cast<cairo_text_cluster_flags_t>(0));
}

// A stop, stretched over `width`, almost without colour: Cairo leaves out what has none or covers nothing.
void write_invisibly(cairo_t* cr, std::string_view characters, double x, double baseline, double width) {
  cairo_save(cr);
  cairo_select_font_face(cr, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
  cairo_set_font_size(cr, width);
  cairo_text_extents_t stop;
  cairo_text_extents(cr, ".", &stop);
  if (stop.x_advance > 0) {
    cairo_matrix_t matrix;
    cairo_get_font_matrix(cr, &matrix);
    matrix.xx *= width / stop.x_advance;
    cairo_set_font_matrix(cr, &matrix);
  }
  cairo_glyph_t* glyphs = nullptr;
  int count = 0;
  const cairo_status_t found = cairo_scaled_font_text_to_glyphs(cairo_get_scaled_font(cr), x, baseline, ".", 1, &glyphs,
                                                                &count, nullptr, nullptr, nullptr);
  if (found == CAIRO_STATUS_SUCCESS && count == 1) {
    const cairo_text_cluster_t cluster{static_cast<int>(characters.size()), 1};
    cairo_set_source_rgba(cr, 0, 0, 0, 1.0 / 255);
    cairo_show_text_glyphs(cr, characters.data(), cluster.num_bytes, glyphs, 1, &cluster, 1,
                           static_cast<cairo_text_cluster_flags_t>(0));
  }
  cairo_glyph_free(glyphs);
  cairo_restore(cr);
}

// As the font has them, on transparent pixels. Painted by Cairo itself they would have one pixel a unit.
void paint_pictures(cairo_t* cr, PangoGlyphItem* run, double x, double baseline) {
  PangoRectangle ink, logical;
  pango_glyph_string_extents(run->glyphs, run->item->analysis.font, &ink, &logical);
  const double left = std::floor(to_units(std::min(ink.x, logical.x)));
  const double top = std::floor(to_units(std::min(ink.y, logical.y)));
  const double right = std::ceil(to_units(std::max(ink.x + ink.width, logical.x + logical.width)));
  const double bottom = std::ceil(to_units(std::max(ink.y + ink.height, logical.y + logical.height)));
  const CairoSurfacePtr picture(cairo_image_surface_create(CAIRO_FORMAT_ARGB32,
                                                           static_cast<int>((right - left) * kEmojiPixels),
                                                           static_cast<int>((bottom - top) * kEmojiPixels)));
  const CairoContextPtr on_picture(cairo_create(picture.get()));
  cairo_scale(on_picture.get(), kEmojiPixels, kEmojiPixels);
  cairo_move_to(on_picture.get(), -left, -top);
  pango_cairo_show_glyph_string(on_picture.get(), run->item->analysis.font, run->glyphs);
  cairo_surface_flush(picture.get());

  cairo_save(cr);
  cairo_translate(cr, x + left, baseline + top);
  cairo_scale(cr, 1 / kEmojiPixels, 1 / kEmojiPixels);
  cairo_set_source_surface(cr, picture.get(), 0, 0);
  cairo_paint(cr);
  cairo_restore(cr);
}

}  // namespace

bool has_color_glyphs(PangoFont* font) {
  hb_font_t* hb_font = pango_font_get_hb_font(font);
  if (hb_font == nullptr) return false;
  hb_face_t* face = hb_font_get_face(hb_font);
  return hb_ot_color_has_png(face) || hb_ot_color_has_layers(face) || hb_ot_color_has_svg(face);
}

bool has_unknown_glyphs(const PangoGlyphString& glyphs) {
  return std::any_of(glyphs.glyphs, glyphs.glyphs + glyphs.num_glyphs,
                     [](const PangoGlyphInfo& info) { return (info.glyph & PANGO_GLYPH_UNKNOWN_FLAG) != 0; });
}

void write_run(cairo_t* cr, const char* text, PangoGlyphItem* run, double x, double baseline) {
  PangoFont* font = run->item->analysis.font;
  if (font == nullptr || has_unknown_glyphs(*run->glyphs)) {
    cairo_move_to(cr, x, baseline);
    pango_cairo_show_glyph_string(cr, font, run->glyphs);
    cairo_new_path(cr);
    return;
  }
  if (!has_color_glyphs(font)) {
    write_glyphs(cr, text, run, x, baseline);
    return;
  }
  double at = x;
  for (const Cluster& cluster : clusters_of(text, run)) {
    const double width = width_of(*run->glyphs, cluster);
    if (width > 0) write_invisibly(cr, cluster.text, at, baseline, width);
    at += width;
  }
  paint_pictures(cr, run, x, baseline);
}

}  // namespace qkv
