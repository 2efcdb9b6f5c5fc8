// Every step of a computation, worked out in one number format from its inputs on.
#pragma once

#include "core/attention/forward.h"
#include "core/attention/matrix_table.h"
#include "core/attention/number_format.h"

namespace qkv {

// With nothing rounded but by float64 itself: not even Q, K and V of a projected source, which a Trace rounds to
// float32. Every matrix of the trace but the mask and the ALiBi term. Sums run along the index, one product after the
// other. Errors: as forward.
Result<MatrixTable<MatrixD>> steps_in_float64(const Problem& problem, const StopFlag* stop = nullptr);

// The same as a processor with units for the format would do it, for kFloat32, kBfloat16, kFloat16:
// – the inputs are rounded to the format: Q, K, V or X, W and their biases, W^O, b^O, the bias, the sinks;
// – a sum of products is accumulated in float32, along its index, and starts from 0; a bias is added last;
// – what comes of it is stored in the format: Q, K, V; the rotated Q and K; scores; heads_out (and concat, the same
//   numbers); out, from that concat;
// – scaled is worked out in float32 from the stored scores (scale, softcap, ALiBi, bias) and stored in the format;
// – a row of weights is worked out in float32 from the stored scaled (maximum, exponentials, their sum, quotient), and
//   the weights are stored in the format.
// So nothing that these matrices show has more digits than the format, and a score beyond float16's 65504 is Inf there.
// `format` is not kFloat64. Errors: as forward.
Result<MatrixTable<Matrix>> steps_in(NumberFormat format, const Problem& problem, const StopFlag* stop = nullptr);

}  // namespace qkv
