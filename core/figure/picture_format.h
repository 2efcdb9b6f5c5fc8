// The kinds of files that a figure can be written as, told apart by the ends of their names.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string_view>

#include "core/figure/paint.h"

namespace qkv {

enum class PictureFormat { kPng, kSvg, kPdf };
inline constexpr std::array kAllPictureFormats = {PictureFormat::kPng, PictureFormat::kSvg, PictureFormat::kPdf};

std::string_view extension_of(PictureFormat format);  // ".png"
// By the extension in any case; PNG where there is none; nullopt for others.
std::optional<PictureFormat> picture_format(const std::filesystem::path& path);

inline constexpr double kLeastPictureScale = 0.1, kMostPictureScale = 20;

// FigureSpec::pixels_per_unit of a picture.
double pixels_per_unit(PictureFormat format, double scale);
Result<Bytes> figure_bytes(const Figure& figure, const TextShaper& shaper, PictureFormat format, double scale = 1);
// "1240 × 830 pixels", "328 × 220 mm".
std::string picture_size(const Figure& figure, PictureFormat format, double scale = 1);

}  // namespace qkv
