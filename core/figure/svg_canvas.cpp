#include "core/figure/svg_canvas.h"

#include <glib.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <utility>

#include "core/base/ascii.h"
#include "core/base/utf8.h"
#include "core/figure/paint.h"

namespace qkv {
namespace {

// A length to a thousandth of a unit, with a decimal point under every locale.
std::string number(double value) {
  const double rounded = std::round(value * 1000) / 1000 + 0.0;  // + 0 turns −0 into 0
  char text[32];
  const auto [end, problem] = std::to_chars(text, text + sizeof text, rounded, std::chars_format::fixed);
  return {text, problem == std::errc{} ? end : text};
}

std::string attribute(std::string_view name, std::string_view value) {
  return " " + std::string(name) + "=\"" + std::string(value) + "\"";
}

std::string attribute(std::string_view name, double value) { return attribute(name, number(value)); }

std::string place(const CanvasBox& box) {
  return attribute("x", box.x) + attribute("y", box.y) + attribute("width", box.width) +
         attribute("height", box.height);
}

std::string rounding(const CanvasBox& box, double radius) {
  const double r = std::min({radius, box.width / 2, box.height / 2});
  return r > 0 ? attribute("rx", r) : "";
}

std::string fill(Color color) {
  std::string hex = "#";
  for (const std::uint8_t channel : {color.r, color.g, color.b}) hex += lower_ascii(hexadecimal(channel, 2));
  return attribute("fill", hex) + (color.a == 255 ? "" : attribute("fill-opacity", color.a / 255.0));
}

// Characters that XML has a meaning for, or does not have at all. `text` has no control characters.
std::string escaped(std::string_view text) {
  std::string out;
  for (std::size_t pos = 0; pos < text.size();) {
    const char32_t c = next_code_point(text, pos);
    if (c == U'&') {
      out += "&amp;";
    } else if (c == U'<') {
      out += "&lt;";
    } else if (c == U'>') {
      out += "&gt;";
    } else {
      append_utf8(out, c == 0xfffe || c == 0xffff ? 0xfffd : c);
    }
  }
  return out;
}

std::string base64(std::span<const std::byte> bytes) {
  gchar* text = g_base64_encode(reinterpret_cast<const guchar*>(bytes.data()), bytes.size());
  std::string result(text);
  g_free(text);
  return result;
}

// Families with spaces in quotes.
std::string quoted_families() {
  std::string quoted;
  std::string_view rest = text_families();
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string family(rest.substr(0, comma));
    quoted += (quoted.empty() ? "" : ", ") + (family.find(' ') == std::string::npos ? family : "'" + family + "'");
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return quoted;
}

// Which point of the line stands at its x. In right-to-left text it starts at its right end.
std::string_view anchor_name(double anchor, bool right_to_left) {
  if (anchor == 0.5) return "middle";
  return (anchor > 0.5) != right_to_left ? "end" : "start";
}

}  // namespace

SvgCanvas::SvgCanvas(double width, double height, double scale, const TextShaper& shaper) : shaper_(&shaper) {
  svg_ =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\""
      " xmlns:xlink=\"http://www.w3.org/1999/xlink\" version=\"1.1\"";
  svg_ += attribute("width", width * scale) + attribute("height", height * scale);
  svg_ += attribute("viewBox", "0 0 " + number(width) + " " + number(height));
  svg_ += attribute("font-family", quoted_families());
  svg_ += " xml:space=\"preserve\" style=\"font-variant-numeric:tabular-nums\">\n";
}

void SvgCanvas::fill_rectangle(const CanvasBox& box, double radius, Color color) {
  svg_ += "<rect" + place(box) + rounding(box, radius) + fill(color) + "/>\n";
}

void SvgCanvas::fill_polygons(std::span<const CanvasPolygon> polygons, Color color) {
  svg_ += "<path" + fill(color) + " d=\"";
  for (const CanvasPolygon& polygon : polygons) {
    char command = 'M';
    for (const CanvasPoint& point : polygon) {
      svg_ += command + number(point.x) + " " + number(point.y);
      command = 'L';
    }
    svg_ += 'Z';
  }
  svg_ += "\"/>\n";
}

void SvgCanvas::begin_clip(const CanvasBox& box, double radius) {
  const std::string name = "clip" + std::to_string(++clips_);
  svg_ += "<clipPath id=\"" + name + "\"><rect" + place(box) + rounding(box, radius) + "/></clipPath>\n";
  svg_ += "<g clip-path=\"url(#" + name + ")\">\n";
}

void SvgCanvas::end_clip() { svg_ += "</g>\n"; }

void SvgCanvas::paint_image(const OpaqueImage& image, const CanvasBox& box) {
  const Result<Bytes> png = png_bytes(image);
  if (!png.ok()) {
    problem_ = png.error();
    return;
  }
  svg_ += "<image" + place(box) + " preserveAspectRatio=\"none\" image-rendering=\"optimizeSpeed\"" +
          " style=\"image-rendering:pixelated\" xlink:href=\"data:image/png;base64," + base64(png.value()) + "\"/>\n";
}

void SvgCanvas::write_text(std::string_view text, const TextStyle& style, const TextPlace& place) {
  const ShownText shown = shaper_->shown(text, style);
  if (shown.text.empty()) return;
  const double along = place.anchor * place.size.width;
  const bool turned = place.angle != 0;
  svg_ += "<text" + attribute("x", along + (turned ? 0 : place.x)) +
          attribute("y", place.size.baseline + (turned ? 0 : place.y)) + attribute("font-size", style.size);
  if (style.bold) svg_ += attribute("font-weight", "600");
  svg_ += fill(style.color);
  if (shown.right_to_left) svg_ += attribute("direction", "rtl");
  const std::string_view anchor = anchor_name(place.anchor, shown.right_to_left);
  if (anchor != "start") svg_ += attribute("text-anchor", anchor);
  if (place.size.width > 0 && !shown.code_points) {
    svg_ += attribute("textLength", place.size.width) + attribute("lengthAdjust", "spacingAndGlyphs");
  }
  if (turned) {
    svg_ += attribute("transform", "translate(" + number(place.x) + " " + number(place.y) + ") rotate(" +
                                       number(place.angle * 180 / std::numbers::pi) + ")");
  }
  svg_ += ">";
  if (shown.cut) svg_ += "<title>" + escaped(shaper_->shown(text, {}).text) + "</title>";
  svg_ += escaped(shown.text) + "</text>\n";
}

Result<std::string> SvgCanvas::take() {
  if (problem_) return *problem_;
  return std::exchange(svg_, {}) + "</svg>\n";
}

}  // namespace qkv
