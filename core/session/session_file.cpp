#include "core/session/session_file.h"
