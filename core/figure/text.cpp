#include "core/figure/text.h"

#include <pango/pangocairo.h>

#include <algorithm>
#include <cmath>

#include "core/base/ascii.h"
#include "core/base/utf8.h"
#include "core/figure/cairo_parts.h"
#include "core/figure/page_text.h"

namespace qkv {
namespace {

// Emoji fonts are left to Pango, which asks for one where a character has emoji presentation: named here, a language
// that only the emoji font claims to cover would give it the digits too.
constexpr const char* kFamilies = "Inter,Noto Sans,Noto Sans CJK TC,sans-serif";
// Han characters have one code point for several regional forms; the language picks the traditional one.
constexpr const char* kLanguage = "zh-Hant";
// A label is one short line; what is longer is not shaped at all.
constexpr std::size_t kMaxShownBytes = std::size_t{1} << 16;
constexpr int kMaxImageSide = 16384;

template <auto Free>
struct FreeWith {
  void operator()(auto* pointer) const { Free(pointer); }
};
template <class T>
using GObjectPtr = std::unique_ptr<T, FreeWith<&g_object_unref>>;
using FontDescriptionPtr = std::unique_ptr<PangoFontDescription, FreeWith<&pango_font_description_free>>;
using AttrListPtr = std::unique_ptr<PangoAttrList, FreeWith<&pango_attr_list_unref>>;
using LayoutIterPtr = std::unique_ptr<PangoLayoutIter, FreeWith<&pango_layout_iter_free>>;

// Characters that would break or empty the line are shown by their pictures (␊, ␉, …) or as U+FFFD.
char32_t shown_character(char32_t c) {
  if (c < 0x20) return 0x2400 + c;
  if (c == 0x7f) return 0x2421;
  if (c == 0x85 || c == 0x2028 || c == 0x2029) return 0x2424;
  if (c > 0x7f && c < 0xa0) return 0xfffd;
  return c;
}

// The text that is shaped, and where each byte of the caller's text went.
struct ShapedText {
  std::string text;
  std::vector<std::size_t> offsets;  // size of the caller's text + 1; only with `with_offsets`

  // Caller's byte index of the character that is shown at `shown`.
  std::size_t original(std::size_t shown) const {
    const auto found = std::ranges::lower_bound(offsets, shown);
    return std::min(static_cast<std::size_t>(found - offsets.begin()), offsets.size() - 1);
  }
};

ShapedText shaped_text(std::string_view text, bool with_offsets = false) {
  ShapedText shown;
  shown.text.reserve(text.size());
  std::size_t pos = 0;
  while (pos < text.size()) {
    if (!with_offsets && shown.text.size() >= kMaxShownBytes) break;
    const std::size_t before = shown.text.size();
    const std::size_t start = pos;
    append_utf8(shown.text, shown_character(next_code_point(text, pos)));
    // Bytes inside a character belong to its start, which is the first that `original` finds.
    if (with_offsets) shown.offsets.insert(shown.offsets.end(), pos - start, before);
  }
  if (with_offsets) shown.offsets.push_back(shown.text.size());
  return shown;
}

// "U+200B U+200D"
std::string code_points_of(std::string_view text) {
  std::string names;
  for (std::size_t pos = 0; pos < text.size();) {
    names += (names.empty() ? "" : " ") + code_point_name(next_code_point(text, pos));
  }
  return names;
}

// Outlines are filled rather than shown as cached glyph masks: Cairo 1.16 places masks on whole pixels,
// which makes the spacing of small text uneven.
void draw_run(cairo_t* cr, PangoGlyphItem* run, double x, double baseline) {
  PangoFont* font = run->item->analysis.font;
  cairo_move_to(cr, x, baseline);
  if (font == nullptr || has_unknown_glyphs(*run->glyphs) || has_color_glyphs(font)) {
    pango_cairo_show_glyph_string(cr, font, run->glyphs);
    cairo_new_path(cr);
    return;
  }
  pango_cairo_glyph_string_path(cr, font, run->glyphs);
  cairo_fill(cr);
}

void draw_line(cairo_t* cr, PangoLayout* layout, double left, double baseline) {
  const bool is_page = cairo_surface_has_show_text_glyphs(cairo_get_target(cr)) != 0;
  const LayoutIterPtr iter(pango_layout_get_iter(layout));
  do {
    PangoGlyphItem* run = pango_layout_iter_get_run_readonly(iter.get());
    if (run == nullptr) continue;
    PangoRectangle logical;
    pango_layout_iter_get_run_extents(iter.get(), nullptr, &logical);
    const double x = left + to_units(logical.x);
    if (is_page) {
      write_run(cr, pango_layout_get_text(layout), run, x, baseline);
    } else {
      draw_run(cr, run, x, baseline);
    }
  } while (pango_layout_iter_next_run(iter.get()) != 0);
}

// Pango widens the "…" until the line is as wide as its limit; right-aligned labels would then end too early.
void unstretch_ellipsis(PangoLayout* layout) {
  PangoLayoutLine* line = pango_layout_get_line(layout, 0);
  for (GSList* node = line->runs; node != nullptr; node = node->next) {
    const auto* run = static_cast<PangoGlyphItem*>(node->data);
    if ((run->item->analysis.flags & PANGO_ANALYSIS_FLAG_IS_ELLIPSIS) == 0) continue;
    for (int i = 0; i < run->glyphs->num_glyphs; ++i) {
      PangoGlyphInfo& info = run->glyphs->glyphs[i];
      PangoRectangle natural;
      pango_font_get_glyph_extents(run->item->analysis.font, info.glyph, nullptr, &natural);
      info.geometry.width = std::min(info.geometry.width, natural.width);
    }
  }
}

// Horizontal text sits on a whole device pixel: stems of hinted outlines then stay sharp. Pages have no pixels.
double snap_to_device(cairo_t* cr, double y) {
  if (cairo_surface_has_show_text_glyphs(cairo_get_target(cr)) != 0) return y;
  cairo_matrix_t matrix;
  cairo_get_matrix(cr, &matrix);
  if (matrix.xy != 0 || matrix.yx != 0 || matrix.yy == 0) return y;
  return (std::round(y * matrix.yy + matrix.y0) - matrix.y0) / matrix.yy;
}

}  // namespace

struct TextShaper::Impl {
  GObjectPtr<PangoFontMap> map{pango_cairo_font_map_new()};
  GObjectPtr<PangoContext> context{pango_font_map_create_context(map.get())};
  FontDescriptionPtr description{pango_font_description_new()};
  AttrListPtr attributes{pango_attr_list_new()};

  Impl() {
    pango_font_description_set_family_static(description.get(), kFamilies);
    pango_attr_list_insert(attributes.get(), pango_attr_font_features_new("tnum=1"));
    pango_context_set_language(context.get(), pango_language_from_string(kLanguage));
    pango_context_set_base_dir(context.get(), PANGO_DIRECTION_WEAK_LTR);
    pango_context_set_round_glyph_positions(context.get(), FALSE);
    cairo_font_options_t* options = cairo_font_options_create();
    cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
    cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_SLIGHT);
    cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
    pango_cairo_context_set_font_options(context.get(), options);
    cairo_font_options_destroy(options);
  }

  GObjectPtr<PangoLayout> line(const std::string& text, const TextStyle& style) const {
    GObjectPtr<PangoLayout> layout(pango_layout_new(context.get()));
    const double size = std::clamp(std::isnan(style.size) ? 0.0 : style.size, 1.0, 1000.0);
    pango_font_description_set_absolute_size(description.get(), size * PANGO_SCALE);
    pango_font_description_set_weight(description.get(), style.bold ? PANGO_WEIGHT_SEMIBOLD : PANGO_WEIGHT_NORMAL);
    pango_layout_set_font_description(layout.get(), description.get());
    pango_layout_set_attributes(layout.get(), attributes.get());
    pango_layout_set_single_paragraph_mode(layout.get(), TRUE);
    pango_layout_set_text(layout.get(), text.data(), static_cast<int>(text.size()));
    if (!text.empty() && width_of(layout.get()) == 0) show_ignorables(layout.get());
    // A width set in every case would push right-to-left text to its right end.
    if (style.max_width > 0 && width_of(layout.get()) > style.max_width) {
      pango_layout_set_width(layout.get(), static_cast<int>(std::min(style.max_width, 1e6) * PANGO_SCALE));
      pango_layout_set_ellipsize(layout.get(), PANGO_ELLIPSIZE_END);
      unstretch_ellipsis(layout.get());
    }
    return layout;
  }

  // A label of invisible characters alone (zero-width space, …) shows their code points.
  void show_ignorables(PangoLayout* layout) const {
    const AttrListPtr visible(pango_attr_list_copy(attributes.get()));
    pango_attr_list_insert(visible.get(), pango_attr_show_new(PANGO_SHOW_IGNORABLES));
    pango_layout_set_attributes(layout, visible.get());
  }

  // The line from its first run to its last: Pango's own extents are as wide as the limit wherever text is cut.
  static PangoRectangle line_of(PangoLayout* layout) {
    PangoRectangle line, run;
    const LayoutIterPtr iter(pango_layout_get_iter(layout));
    pango_layout_iter_get_line_extents(iter.get(), nullptr, &line);
    bool first = true;
    do {
      if (pango_layout_iter_get_run_readonly(iter.get()) == nullptr) continue;
      pango_layout_iter_get_run_extents(iter.get(), nullptr, &run);
      if (first) line.x = run.x;
      line.width = run.x + run.width - line.x;
      first = false;
    } while (pango_layout_iter_next_run(iter.get()) != 0);
    return line;
  }

  static double width_of(PangoLayout* layout) { return to_units(line_of(layout).width); }

  // The baseline and the height are whole pixels, so that lines of different fonts can be aligned exactly.
  static TextSize size_of(PangoLayout* layout) {
    const PangoRectangle logical = line_of(layout);
    const double baseline = to_units(pango_layout_get_baseline(layout));
    const double below = to_units(logical.height) - baseline;
    return {to_units(logical.width), std::ceil(baseline) + std::ceil(below), std::ceil(baseline)};
  }
};

std::string_view text_families() { return kFamilies; }

TextShaper::TextShaper() : impl_(std::make_unique<Impl>()) {}
TextShaper::~TextShaper() = default;
TextShaper::TextShaper(TextShaper&&) noexcept = default;
TextShaper& TextShaper::operator=(TextShaper&&) noexcept = default;

TextSize TextShaper::measure(std::string_view text, const TextStyle& style) const {
  pango_context_set_matrix(impl_->context.get(), nullptr);
  return Impl::size_of(impl_->line(shaped_text(text).text, style).get());
}

void TextShaper::draw(cairo_t* cr, std::string_view text, const TextStyle& style, double x, double y,
                      double angle) const {
  if (text.empty()) return;
  cairo_save(cr);
  if (angle != 0) {
    cairo_translate(cr, x, y);
    cairo_rotate(cr, angle);
    x = y = 0;
  }
  pango_cairo_update_context(cr, impl_->context.get());
  const GObjectPtr<PangoLayout> layout = impl_->line(shaped_text(text).text, style);
  set_color(cr, style.color);
  const double baseline = snap_to_device(cr, y + Impl::size_of(layout.get()).baseline);
  draw_line(cr, layout.get(), x - to_units(Impl::line_of(layout.get()).x), baseline);
  cairo_restore(cr);
}

ShownText TextShaper::shown(std::string_view text, const TextStyle& style) const {
  ShownText result{shaped_text(text).text};
  pango_context_set_matrix(impl_->context.get(), nullptr);
  const GObjectPtr<PangoLayout> layout = impl_->line(result.text, style);
  PangoLayoutLine* line = pango_layout_get_line_readonly(layout.get(), 0);
  result.right_to_left = line->resolved_dir == PANGO_DIRECTION_RTL;
  if (pango_layout_get_attributes(layout.get()) != impl_->attributes.get()) {
    result.text = code_points_of(result.text);
    result.code_points = true;
    return result;
  }
  for (GSList* node = line->runs; node != nullptr; node = node->next) {
    const PangoItem* item = static_cast<PangoGlyphItem*>(node->data)->item;
    if ((item->analysis.flags & PANGO_ANALYSIS_FLAG_IS_ELLIPSIS) == 0) continue;
    result.cut = true;
    result.text.resize(static_cast<std::size_t>(item->offset));
    result.text += "…";
    break;
  }
  return result;
}

PixelImage TextShaper::render(std::string_view text, const TextStyle& style, double scale) const {
  const TextSize size = measure(text, style);
  PixelImage image;
  image.width = static_cast<int>(std::clamp(std::ceil(size.width * scale), 1.0, double{kMaxImageSide}));
  image.height = static_cast<int>(std::clamp(std::ceil(size.height * scale), 1.0, double{kMaxImageSide}));
  image.rgba.assign(static_cast<std::size_t>(image.width) * image.height * 4, 0);

  const CairoSurfacePtr surface(cairo_image_surface_create(CAIRO_FORMAT_ARGB32, image.width, image.height));
  if (cairo_surface_status(surface.get()) != CAIRO_STATUS_SUCCESS) return image;
  const CairoContextPtr cr(cairo_create(surface.get()));
  cairo_scale(cr.get(), scale, scale);
  draw(cr.get(), text, style, 0, 0);
  cairo_surface_flush(surface.get());
  auto out = image.rgba.begin();
  for (int r = 0; r < image.height; ++r) {
    const std::uint32_t* row = pixel_row(surface.get(), r);
    for (int c = 0; c < image.width; ++c) {
      const std::uint32_t argb = row[c];
      for (const int shift : {16, 8, 0, 24}) *out++ = static_cast<std::uint8_t>(argb >> shift);
    }
  }
  return image;
}

double TextShaper::caret_x(std::string_view text, const TextStyle& style, std::size_t index) const {
  const ShapedText shown = shaped_text(text, true);
  pango_context_set_matrix(impl_->context.get(), nullptr);
  const GObjectPtr<PangoLayout> layout = impl_->line(shown.text, style);
  PangoRectangle strong;
  const auto position = static_cast<int>(shown.offsets[std::min(index, text.size())]);
  pango_layout_get_cursor_pos(layout.get(), position, &strong, nullptr);
  return to_units(strong.x);
}

std::size_t TextShaper::index_at_x(std::string_view text, const TextStyle& style, double x) const {
  const ShapedText shown = shaped_text(text, true);
  pango_context_set_matrix(impl_->context.get(), nullptr);
  const GObjectPtr<PangoLayout> layout = impl_->line(shown.text, style);
  int index = 0, trailing = 0;
  const double clamped = std::clamp(std::isnan(x) ? 0.0 : x, -1e6, 1e6);
  pango_layout_xy_to_index(layout.get(), static_cast<int>(clamped * PANGO_SCALE), 0, &index, &trailing);
  // `trailing` counts the characters of the grapheme when x is in its second half.
  auto position = static_cast<std::size_t>(index);
  for (; trailing > 0 && position < shown.text.size(); --trailing) next_code_point(shown.text, position);
  return shown.original(position);
}

std::size_t TextShaper::move_caret(std::string_view text, std::size_t index, int direction) const {
  const ShapedText shown = shaped_text(text, true);
  const GObjectPtr<PangoLayout> layout = impl_->line(shown.text, TextStyle{});
  int count = 0;
  const PangoLogAttr* attrs = pango_layout_get_log_attrs_readonly(layout.get(), &count);
  const std::size_t here = shown.offsets[std::min(index, text.size())];
  std::size_t best = direction > 0 ? shown.text.size() : 0;
  std::size_t position = 0;
  for (int i = 0; i < count; ++i) {
    if (attrs[i].is_cursor_position != 0) {
      if (direction > 0 && position > here) {
        best = position;
        break;
      }
      if (direction <= 0 && position < here) best = position;
    }
    if (position >= shown.text.size()) break;
    next_code_point(shown.text, position);
  }
  return shown.original(best);
}

}  // namespace qkv
