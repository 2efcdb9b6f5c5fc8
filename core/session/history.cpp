#include "core/session/history.h"
