#include "core/session/view.h"

namespace qkv {

std::optional<NumberFormat> lens_format(Lens lens) {
  switch (lens) {
    case Lens::kFloat32:
      return NumberFormat::kFloat32;
    case Lens::kBfloat16:
      return NumberFormat::kBfloat16;
    case Lens::kFloat16:
      return NumberFormat::kFloat16;
    case Lens::kValues:
    case Lens::kGradient:
      break;
  }
  return std::nullopt;
}

std::string_view lens_name(Lens lens) {
  if (const std::optional<NumberFormat> format = lens_format(lens)) return format_name(*format);
  return lens == Lens::kGradient ? "gradient" : "values";
}

}  // namespace qkv
