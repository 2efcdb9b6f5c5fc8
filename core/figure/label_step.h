// Which labels of an axis are drawn where not all of them have room.
#pragma once

#include <functional>
#include <string>

#include "core/attention/matrix.h"

namespace qkv {

// Entries first, first + step, first + 2 · step … of an axis.
struct LabelSteps {
  Index first = 0, step = 1;
};

// Every 1st, 2nd, 5th, 10th, 20th, 50th … of `count` labels, so that those that follow each other are at least `apart`
// entries apart. Of numbers from 1 the round ones (10, 20, 30 …), of words the first and every so many after it.
LabelSteps label_steps(Index count, double apart, const std::function<std::string(Index)>& label);

}  // namespace qkv
