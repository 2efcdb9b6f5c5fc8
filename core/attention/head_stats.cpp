#include "core/attention/head_stats.h"
