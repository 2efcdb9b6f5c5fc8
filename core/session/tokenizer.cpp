#include "core/session/tokenizer.h"
