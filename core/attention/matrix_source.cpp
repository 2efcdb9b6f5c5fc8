#include "core/attention/matrix_source.h"
