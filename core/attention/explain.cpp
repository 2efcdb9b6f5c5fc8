#include "core/attention/explain.h"
