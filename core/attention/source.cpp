#include "core/attention/source.h"
