#include "core/figure/picture_format.h"

#include <algorithm>
#include <string>

#include "core/base/ascii.h"
#include "core/base/number_text.h"

namespace qkv {

std::string_view extension_of(PictureFormat format) {
  switch (format) {
    case PictureFormat::kSvg:
      return ".svg";
    case PictureFormat::kPdf:
      return ".pdf";
    case PictureFormat::kPng:
      break;
  }
  return ".png";
}

std::optional<PictureFormat> picture_format(const std::filesystem::path& path) {
  const std::string extension = lower_ascii(path.extension().string());
  if (extension.empty()) return PictureFormat::kPng;
  const auto found = std::ranges::find(kAllPictureFormats, extension, extension_of);
  if (found == kAllPictureFormats.end()) return std::nullopt;
  return *found;
}

double pixels_per_unit(PictureFormat format, double scale) { return format == PictureFormat::kPng ? scale : 0; }

Result<Bytes> figure_bytes(const Figure& figure, const TextShaper& shaper, PictureFormat format, double scale) {
  switch (format) {
    case PictureFormat::kSvg:
      return figure_svg(figure, shaper, scale);
    case PictureFormat::kPdf:
      return figure_pdf(figure, shaper, scale);
    case PictureFormat::kPng:
      break;
  }
  return figure_png(figure, shaper, scale);
}

std::string picture_size(const Figure& figure, PictureFormat format, double scale) {
  if (format == PictureFormat::kPng) {
    return std::to_string(pixels_of(figure.width, scale)) + " × " + std::to_string(pixels_of(figure.height, scale)) +
           " pixels";
  }
  const auto millimetres = [&](double units) { return format_fixed(units * scale * kMillimetresPerUnit, 0); };
  return millimetres(figure.width) + " × " + millimetres(figure.height) + " mm";
}

}  // namespace qkv
