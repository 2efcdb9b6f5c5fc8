#include "core/attention/softmax.h"
