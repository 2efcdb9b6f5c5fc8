// Gradients and the steps in one number format as arrays for a file.
#pragma once

#include <string>
#include <vector>

#include "core/attention/gradient.h"
#include "core/attention/steps.h"
#include "core/tensor_io/npz.h"

namespace qkv {

// As arrays_of(trace): the same names and shapes, keep among them. float64 arrays from float64 steps, else float32.
std::vector<NamedArray> arrays_of(const MatrixTable<Matrix>& steps, const KeepMatrix& keep);
std::vector<NamedArray> arrays_of(const MatrixTable<MatrixD>& steps, const KeepMatrix& keep);

// "d_q", "d_scores", …: ∂L/∂ of the array of that name, in its shape; d_sink where there are sinks.
// float64 arrays where `wide`, else float32.
std::vector<NamedArray> arrays_of(const Gradient& gradient, bool wide);

}  // namespace qkv
