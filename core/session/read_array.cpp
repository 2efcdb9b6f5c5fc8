#include "core/session/read_array.h"

#include <functional>

namespace qkv {
namespace {

using Sizes = std::vector<std::uint64_t>;

// Where the cell of a head is in the array.
using At = std::function<Index(Index head, Index row, Index col)>;

// One order of axes, and the sizes that it needs.
struct Layout {
  std::string words;
  Sizes sizes;
  bool mean = false;
  At at;
};

bool is_square(MatrixKind kind) { return row_axis(kind) == Axis::kQueries && col_axis(kind) == Axis::kKeys; }

std::vector<Layout> layouts(MatrixKind kind, const KindShape& shape, int query_heads) {
  const auto size = [](Index value) { return static_cast<std::uint64_t>(value); };
  const Index heads = shape.heads, rows = shape.rows, cols = shape.cols;
  const std::string last = is_square(kind) ? "N, N" : "N, d";
  const At in_rows = [=](Index, Index row, Index col) { return row * cols + col; };
  std::vector<Layout> all;
  if (is_per_head(kind)) {
    all.push_back(
        {"[H, " + last + "]", {size(heads), size(rows), size(cols)}, false, [=](Index head, Index row, Index col) {
           return (head * rows + row) * cols + col;
         }});
    if (!is_square(kind)) {
      const At across = [=](Index head, Index row, Index col) { return (row * heads + head) * cols + col; };
      if (heads > 1) all.push_back({"[N, H, d]", {size(rows), size(heads), size(cols)}, false, across});
      all.push_back({"[N, H·d]", {size(rows), size(heads * cols)}, false, across});
    } else if (heads == 1) {
      all.push_back({"[N, N]", {size(rows), size(cols)}, false, in_rows});
    } else {
      all.push_back({"[N, N], the mean over the heads", {size(rows), size(cols)}, true, in_rows});
    }
    return all;
  }
  all.push_back({is_square(kind) ? "[N, N]" : "[rows, columns]", {size(rows), size(cols)}, false, in_rows});
  if (rows == 1) all.push_back({"[columns]", {size(cols)}, false, in_rows});
  if (kind == MatrixKind::kConcat) {
    const Index count = query_heads, width = cols / count;
    all.push_back({"[H, N, d]", {size(count), size(rows), size(width)}, false, [=](Index, Index row, Index col) {
                     return (col / width * rows + row) * width + col % width;
                   }});
    all.push_back({"[N, H, d]", {size(rows), size(count), size(width)}, false, in_rows});
  }
  return all;
}

std::string expected_words(const std::vector<Layout>& all) {
  std::string text;
  for (std::size_t i = 0; i < all.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == all.size() ? " or " : ", ") + shape_text(all[i].sizes) + " " + all[i].words;
  }
  return text;
}

}  // namespace

std::vector<Sizes> shapes_read(MatrixKind kind, const KindShape& shape, int heads) {
  std::vector<Sizes> shapes;
  for (Layout& layout : layouts(kind, shape, heads)) shapes.push_back(std::move(layout.sizes));
  return shapes;
}

Result<std::vector<ArrayReading>> read_array(const Tensor64& tensor, std::string_view name, MatrixKind kind,
                                             const KindShape& shape, int heads) {
  const std::vector<Layout> all = layouts(kind, shape, heads);
  std::vector<ArrayReading> readings;
  Sizes sizes = tensor.shape;
  while (readings.empty()) {
    for (const Layout& layout : all) {
      if (layout.sizes != sizes) continue;
      OtherMatrix matrix{kind, layout.mean, {}};
      for (Index head = 0; head < (layout.mean ? 1 : shape.heads); ++head) {
        MatrixD& cells = matrix.heads.emplace_back(shape.rows, shape.cols);
        for (Index row = 0; row < shape.rows; ++row) {
          for (Index col = 0; col < shape.cols; ++col) {
            cells(row, col) = tensor.values[static_cast<std::size_t>(layout.at(head, row, col))];
          }
        }
      }
      readings.push_back({std::move(matrix), layout.words});
    }
    if (sizes.empty() || sizes[0] != 1) break;
    sizes.erase(sizes.begin());
  }
  if (!readings.empty()) return readings;
  const bool has_more = tensor.shape.size() > all[0].sizes.size();
  return bad_input("\"" + std::string(name) + "\" has the shape " + shape_text(tensor.shape) + ", but " +
                   std::string(file_key(kind)) + " here is " + expected_words(all) +
                   (has_more ? ": choose a part of it, on the command line with --name " + std::string(name) +
                                   "[0]=" + std::string(file_key(kind))
                             : ""));
}

}  // namespace qkv
