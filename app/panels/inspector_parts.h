// How a cell came about, written out: its sum, its softmax, what each head adds.
#pragma once

#include "app/panels/inspector_writer.h"
#include "core/attention/explain.h"

namespace qkv {

// `weights` [1, Nk] of the cell's query, where the cell is of attn or heads_out.
void write_parts(InspectorWriter& w, const StageInput& in, const Explanation& e, const Matrix& weights);

}  // namespace qkv
