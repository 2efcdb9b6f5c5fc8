// What a person says of the arrays of somebody's own implementation, in the words of tensor_mapping.h.
#pragma once

#include "core/session/compare.h"
#include "core/session/read_array.h"
#include "core/session/tensor_mapping.h"

namespace qkv {

struct RequestedPairs {
  std::vector<NamePair> pairs;  // those that were given, then those of the request
  bool took_layer = false, took_batch = false;
};

// The request's tensors, layouts, layer and batch for the arrays of the file. Without a layout, layer and batch are the
// axes before [H, rows, columns] or [rows, columns]. Errors: kBadInput for a tensor that is not there, kUsage where one
// such axis may be the layer or the batch, and for a layout that no array can have.
Result<RequestedPairs> requested_pairs(const TensorFile& file, const MappingRequest& request,
                                       std::vector<NamePair> pairs);

// The array by the layout of pair.reading. kBadInput where it does not fit, or is of another shape than `shape`.
struct LaidOutArray {
  std::vector<std::uint64_t> shape;  // of what was read
  ArrayReading reading;
};
Result<LaidOutArray> read_laid_out(const TensorFile& file, const NamePair& pair, MatrixKind kind,
                                   const KindShape& shape, const Shapes& shapes);

}  // namespace qkv
