#include "core/tensor_io/npz.h"
