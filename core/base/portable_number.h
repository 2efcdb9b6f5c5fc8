// Decimal text of a float32 for readers that are not this program.
#pragma once

#include <string>

namespace qkv {

// The shortest decimal text that reads back to the same float32, also in a reader that goes through float64 (NumPy,
// Python, spreadsheets): rounded twice, the shortest text of a few numbers would come out one unit off. "0.1", "1e+30",
// "-0.0", "nan", "inf", "-inf".
std::string portable_number(float value);

// The shortest decimal text that reads back to the same float64, "-0.0" with its sign.
std::string portable_number(double value);

}  // namespace qkv
