#include "core/attention/matrix_id.h"
