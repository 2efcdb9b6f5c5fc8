#include "core/session/session_tensors.h"
