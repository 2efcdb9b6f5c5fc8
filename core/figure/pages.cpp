// Figures as SVG, and as PDF through Cairo.
#include <cairo-pdf.h>

#include <algorithm>
#include <cmath>

#include "core/base/number_text.h"
#include "core/figure/cairo_canvas.h"
#include "core/figure/cairo_parts.h"
#include "core/figure/paint.h"
#include "core/figure/svg_canvas.h"

namespace qkv {
namespace {

Error too_large(double width, double height, double scale) {
  // Two digits, downwards, so that the scale is one that fits.
  const double most = scale * kMostPagePoints / std::max(width, height);
  const double digit = std::pow(10, std::floor(std::log10(most)) - 1);
  const auto centimetres = [](double points) { return format_fixed(std::round(points / 72 * 2.54), 0); };
  return bad_input("a page of " + centimetres(width) + " × " + centimetres(height) +
                   " cm is larger than readers of PDF show, which is 508 cm; the largest scale that fits is " +
                   format_value(std::floor(most / digit) * digit, 4));
}

}  // namespace

Result<Bytes> figure_svg(const Figure& figure, const TextShaper& shaper, double scale) {
  SvgCanvas canvas(figure.width, figure.height, scale, shaper);
  paint_figure(canvas, figure, shaper);
  const Result<std::string> svg = canvas.take();
  if (!svg.ok()) return svg.error();
  const std::span<const std::byte> bytes = as_bytes(svg.value());
  return Bytes(bytes.begin(), bytes.end());
}

Result<Bytes> figure_pdf(const Figure& figure, const TextShaper& shaper, double scale) {
  const double width = figure.width * scale * kPointsPerUnit, height = figure.height * scale * kPointsPerUnit;
  if (std::max(width, height) > kMostPagePoints) return too_large(width, height, scale);
  Bytes bytes;
  const CairoSurfacePtr surface(cairo_pdf_surface_create_for_stream(append_bytes, &bytes, width, height));
  // Without it Cairo writes the present time.
  cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_CREATE_DATE, "");
  const CairoContextPtr cr(cairo_create(surface.get()));
  cairo_scale(cr.get(), scale * kPointsPerUnit, scale * kPointsPerUnit);
  CairoCanvas canvas(cr.get(), shaper, 0);
  paint_figure(canvas, figure, shaper);
  cairo_show_page(cr.get());
  cairo_surface_finish(surface.get());
  cairo_status_t status = cairo_status(cr.get());
  if (status == CAIRO_STATUS_SUCCESS) status = cairo_surface_status(surface.get());
  if (status != CAIRO_STATUS_SUCCESS) {
    return Error{ErrorCode::kCannotWrite, std::string("cannot make a PDF: ") + cairo_status_to_string(status)};
  }
  return bytes;
}

}  // namespace qkv
