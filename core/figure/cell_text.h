// Numbers in the cells of a heat map.
#pragma once

#include <string>

#include "core/attention/matrix.h"

namespace qkv {

// Every finite value is a whole number below 10⁶: then decimals would only be noise.
bool all_integers(ConstMatrixRef values);

// "0.432", "3" where `integers`, "NaN", "∞", "−∞".
std::string cell_text(float value, int decimals, bool integers);
// The same, but "2e−7" for what would show only zeros: no wider than the others.
std::string brief_cell_text(float value, int decimals);

}  // namespace qkv
