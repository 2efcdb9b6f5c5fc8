// Pictures that the program wrote.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "core/figure/paint.h"

namespace qkv::test {

inline PixelImage decoded(const std::string& path) {
  const Result<Bytes> bytes = read_file(path);
  REQUIRE(bytes.ok());
  Result<PixelImage> image = decode_png(bytes.value());
  REQUIRE(image.ok());
  return std::move(image).value();
}

}  // namespace qkv::test
