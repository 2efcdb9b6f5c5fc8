#include "core/figure/range.h"
