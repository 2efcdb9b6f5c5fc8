#include "core/figure/figure.h"
