#include "core/session/action.h"
