#include "core/attention/forward.h"
