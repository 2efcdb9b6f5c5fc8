// Sessions from tensor files, and every tensor of a computation as arrays.
#pragma once

#include <filesystem>
#include <vector>

#include "core/session/session.h"
#include "core/tensor_io/npz.h"

namespace qkv {

// Inputs found by name: q k v ([H, N, d] or [N, d]), or x wq wk wv (bq bk bv); wo bo; tokens are positions
// ("0", "1", …). Other arrays are left alone. kBadInput names what is missing and what the file holds.
// A projected file does not say its number of heads: it is read from q's shape where the file has q, else 1.
Result<Session> session_from_arrays(const NpzFile& file, std::string title);

// q k v scores scaled keep attn heads_out concat out, and x with the weights of a projected source:
// float32 with the head first, keep as uint8. Names as in matrix_id.h.
std::vector<NamedArray> arrays_of(const Trace& trace);

}  // namespace qkv
