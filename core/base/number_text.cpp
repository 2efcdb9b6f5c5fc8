#include "core/base/number_text.h"
