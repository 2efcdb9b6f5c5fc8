// A tensor's axes by name, and where the cells of a role's matrices lie in it.
//
// One letter an axis, in order; letters in parentheses share one axis, the last of them moving fastest:
//   L layer   B batch   H heads   N tokens   D numbers of a token in a head (of X: d_model)   3 query, key, value
//   I, O inputs and outputs of weights: IO is y = x·W (Conv1D, this program), OI is y = x·Wᵀ (torch Linear)
//   NN queries and keys, of weights and scores   1 an axis of size 1
// So NHD is [tokens, heads, d], N(HD) the heads side by side, BN(3HD) queries, keys and values side by side,
// (H3D)I weights with the three of each head together, LBHNN the attention of all layers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/session/tensor_role.h"

namespace qkv {

struct Layout {
  std::vector<std::string> axes;  // the letters of each; the second N of "NN" is held as M
  bool operator==(const Layout&) const = default;
  bool empty() const { return axes.empty(); }
};

// Any case. Errors: kBadInput naming the letter that is unknown, comes twice, or the parenthesis that is missing.
Result<Layout> parse_layout(std::string_view text);
std::string layout_text(const Layout& layout);
// Whether the letters are those that the role's matrices have. The error lists what the role can be.
Status check_layout(Role role, const Layout& layout);
// "B": whether an axis bears the letter.
bool has_axis(const Layout& layout, char letter);

// One tensor as a role reads it. Of a tensor that holds Q, K and V (a 3 in the layout) the role takes its own part.
struct TensorReading {
  Layout layout;
  int heads = 0, kv_heads = 0;  // where the shape does not say; 0 = not known
  std::uint64_t layer = 0, batch = 0;
};

// Where the cells are: cell (m, r, c) lies at matrices[m] + rows[r] + cols[c] of the part that TensorFile::read gives
// for `leading`.
struct CellMap {
  std::vector<std::uint64_t> leading;
  std::vector<std::uint64_t> matrices, rows, cols;
  int heads = 0;  // that the tensor has in this role; 0 where neither it nor the reading says
};

// Errors (kBadInput) name the tensor, its shape and what does not fit it. `name` is what messages call the tensor.
Result<CellMap> map_cells(Role role, std::string_view name, std::span<const std::uint64_t> shape,
                          const TensorReading& reading);

}  // namespace qkv
