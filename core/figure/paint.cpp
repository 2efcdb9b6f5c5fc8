#include "core/figure/paint.h"
