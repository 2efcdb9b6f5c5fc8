#include "core/base/utf8.h"
