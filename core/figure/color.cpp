#include "core/figure/color.h"
