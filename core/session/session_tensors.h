// Sessions from tensor files, and every tensor of a computation as arrays.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/session/session.h"
#include "core/tensor_io/npz.h"
#include "core/tensor_io/tensor_file.h"

namespace qkv {

// The session of what is proposed for the file's tensors (tensor_mapping.h): q k v, or x and weights, or attn alone;
// other arrays are left alone. kBadInput names what is missing and what the file holds, or what is not clear.
Result<Session> session_from_arrays(const TensorFile& file, std::string title);

// The tensor of `name` as heads ([H, N, d], or [N, d] as one head), as a matrix ([rows, cols]), as one row ([n] or
// [1, n]). kBadInput for another number of dimensions, a dimension of 0, or more than kMaxHeads heads.
Result<std::vector<SharedMatrix>> heads_from_tensor(const Tensor& tensor, std::string_view name);
Result<SharedMatrix> matrix_from_tensor(const Tensor& tensor, std::string_view name);
Result<SharedMatrix> row_from_tensor(const Tensor& tensor, std::string_view name);

// Names of tokens that have none: "0", "1", … for each row, and of keys where there are more or fewer of them than
// queries. kBadInput above kMaxTokens.
Status name_tokens_by_position(Session& session);

// q k v scores scaled keep attn heads_out concat out, alibi and bias where they are on, and x with the weights of a
// projected source: float32 with the head first, keep as uint8 [Nq, Nk], biases [n]; wo and bo where there are any.
// Names as in matrix_id.h. Of given weights: keep and attn. Of a streamed trace those with a cell for each query and
// key are left out.
std::vector<NamedArray> arrays_of(const Trace& trace);

}  // namespace qkv
