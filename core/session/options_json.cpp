#include "core/session/options_json.h"
