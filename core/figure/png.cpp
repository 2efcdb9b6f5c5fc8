// PNG through Cairo: figures, plain pixels, and back.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/figure/cairo_canvas.h"
#include "core/figure/cairo_parts.h"
#include "core/figure/paint.h"

namespace qkv {
namespace {

Error picture_error(int width, int height, cairo_status_t status) {
  return {ErrorCode::kCannotWrite, "cannot make a picture of " + std::to_string(width) + " × " +
                                       std::to_string(height) + " pixels: " + cairo_status_to_string(status)};
}

Result<Bytes> encode(cairo_surface_t* surface, int width, int height) {
  Bytes bytes;
  const cairo_status_t status = cairo_surface_write_to_png_stream(surface, append_bytes, &bytes);
  if (status != CAIRO_STATUS_SUCCESS) return picture_error(width, height, status);
  return bytes;
}

std::uint32_t premultiply(std::uint32_t channel, std::uint32_t alpha) { return (channel * alpha + 127) / 255; }
std::uint32_t straight(std::uint32_t channel, std::uint32_t alpha) {
  return alpha == 0 ? 0 : std::min<std::uint32_t>(255, (channel * 255 + alpha / 2) / alpha);
}

// What cairo_image_surface_create_from_png_stream reads from.
struct PngInput {
  std::span<const std::byte> rest;
};

cairo_status_t read_png(void* closure, unsigned char* data, unsigned int length) {
  auto& input = *static_cast<PngInput*>(closure);
  if (length > input.rest.size()) return CAIRO_STATUS_READ_ERROR;
  std::memcpy(data, input.rest.data(), length);
  input.rest = input.rest.subspan(length);
  return CAIRO_STATUS_SUCCESS;
}

}  // namespace

int pixels_of(double units, double scale) { return static_cast<int>(std::ceil(units * scale - 1e-9)); }

Result<Bytes> figure_png(const Figure& figure, const TextShaper& shaper, double scale) {
  const int width = pixels_of(figure.width, scale), height = pixels_of(figure.height, scale);
  const cairo_format_t format = figure.transparent ? CAIRO_FORMAT_ARGB32 : CAIRO_FORMAT_RGB24;
  const CairoSurfacePtr surface(cairo_image_surface_create(format, width, height));
  const CairoContextPtr cr(cairo_create(surface.get()));
  cairo_scale(cr.get(), scale, scale);
  CairoCanvas canvas(cr.get(), shaper, scale);
  paint_figure(canvas, figure, shaper);
  if (const cairo_status_t status = cairo_status(cr.get()); status != CAIRO_STATUS_SUCCESS) {
    return picture_error(width, height, status);
  }
  cairo_surface_flush(surface.get());
  return encode(surface.get(), width, height);
}

Result<Bytes> png_bytes(int width, int height, std::span<const std::uint8_t> rgba) {
  if (width < 1 || height < 1 || rgba.size() / 4 / static_cast<std::size_t>(width) < static_cast<std::size_t>(height)) {
    return picture_error(width, height, CAIRO_STATUS_INVALID_SIZE);
  }
  bool opaque = true;
  for (std::size_t i = 3; i < rgba.size() && opaque; i += 4) opaque = rgba[i] == 255;
  // Opaque pixels keep all their bits and need no alpha channel.
  const CairoSurfacePtr surface(
      cairo_image_surface_create(opaque ? CAIRO_FORMAT_RGB24 : CAIRO_FORMAT_ARGB32, width, height));
  if (const cairo_status_t status = cairo_surface_status(surface.get()); status != CAIRO_STATUS_SUCCESS) {
    return picture_error(width, height, status);
  }
  const std::uint8_t* in = rgba.data();
  for (int r = 0; r < height; ++r) {
    std::uint32_t* row = pixel_row(surface.get(), r);
    for (int c = 0; c < width; ++c, in += 4) {
      const std::uint32_t alpha = in[3];
      row[c] =
          alpha << 24 | premultiply(in[0], alpha) << 16 | premultiply(in[1], alpha) << 8 | premultiply(in[2], alpha);
    }
  }
  cairo_surface_mark_dirty(surface.get());
  return encode(surface.get(), width, height);
}

Result<Bytes> png_bytes(const OpaqueImage& image) {
  const CairoSurfacePtr surface = surface_of(image);
  return encode(surface.get(), image.width, image.height);
}

Result<PixelImage> decode_png(std::span<const std::byte> png) {
  PngInput input{png};
  const CairoSurfacePtr surface(cairo_image_surface_create_from_png_stream(read_png, &input));
  if (const cairo_status_t status = cairo_surface_status(surface.get()); status != CAIRO_STATUS_SUCCESS) {
    return bad_input(std::string("not a readable PNG: ") + cairo_status_to_string(status));
  }
  const cairo_format_t format = cairo_image_surface_get_format(surface.get());
  if (format != CAIRO_FORMAT_ARGB32 && format != CAIRO_FORMAT_RGB24) {
    return unsupported("a PNG with more than 8 bits a channel");
  }
  PixelImage image;
  image.width = cairo_image_surface_get_width(surface.get());
  image.height = cairo_image_surface_get_height(surface.get());
  image.rgba.reserve(static_cast<std::size_t>(image.width) * image.height * 4);
  for (int r = 0; r < image.height; ++r) {
    const std::uint32_t* row = pixel_row(surface.get(), r);
    for (int c = 0; c < image.width; ++c) {
      const std::uint32_t alpha = format == CAIRO_FORMAT_RGB24 ? 255 : row[c] >> 24;
      for (const int shift : {16, 8, 0}) {
        image.rgba.push_back(static_cast<std::uint8_t>(straight(row[c] >> shift & 0xff, alpha)));
      }
      image.rgba.push_back(static_cast<std::uint8_t>(alpha));
    }
  }
  return image;
}

}  // namespace qkv
