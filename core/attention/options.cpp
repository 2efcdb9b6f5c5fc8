#include "core/attention/options.h"
