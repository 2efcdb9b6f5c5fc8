#include "core/figure/colormap.h"
