#include "core/figure/text.h"
