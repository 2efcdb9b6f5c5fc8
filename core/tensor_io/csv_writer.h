// Matrices as comma- or tab-separated text: numbers alone, a row to a line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace qkv {

// `values` [·, cols], row-major, cols > 0. Every row ends with "\n". Numbers read back to the same bits, in NumPy
// (np.loadtxt(delimiter=",")) as here: shortest decimals, "nan", "inf", "-inf"; bytes as whole numbers.
std::string separated_text(std::span<const float> values, std::size_t cols, char separator = ',');
std::string separated_text(std::span<const double> values, std::size_t cols, char separator = ',');
std::string separated_text(std::span<const std::uint8_t> values, std::size_t cols, char separator = ',');

}  // namespace qkv
