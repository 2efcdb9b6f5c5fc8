#include "core/tensor_io/npy.h"
