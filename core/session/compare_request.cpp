#include "core/session/compare_request.h"

#include <algorithm>
#include <utility>

namespace qkv {

namespace {

std::string in_quotes(std::string_view name) { return "\"" + std::string(name) + "\""; }

// The role whose layouts a kind has: of results that are none, one whose matrices are of the same form.
Role role_of(MatrixKind kind) {
  if (const std::optional<Role> role = role_from_key(file_key(kind))) return *role;
  const bool is_cells = row_axis(kind) == Axis::kQueries && col_axis(kind) == Axis::kKeys;
  return is_cells ? Role::kScores : is_per_head(kind) ? Role::kQ : Role::kX;
}

class RequestReader {
 public:
  RequestReader(const TensorFile& file, const MappingRequest& request, std::vector<NamePair> pairs)
      : file_(file), request_(request) {
    result_.pairs = std::move(pairs);
  }

  Result<RequestedPairs> read() {
    for (const auto& [role, name] : request_.tensors) add_named(role, name);
    if (!error_) add_recognised();
    for (const auto& [role, layout] : request_.layouts) lay_out(role, layout);
    if (request_.layout) lay_out_all(*request_.layout);
    for (NamePair& pair : result_.pairs) choose_part(pair);
    if (error_) return *error_;
    std::erase_if(result_.pairs, [](const NamePair& pair) { return !pair.is_required && !pair.is_said_more(); });
    return std::move(result_);
  }

 private:
  void fail(Error error) {
    if (!error_) error_ = std::move(error);
  }

  void add_named(Role role, const std::string& name) {
    const std::optional<MatrixKind> kind = kind_from_key(role_key(role));
    if (!kind) return fail(usage_error(std::string(role_key(role)) + " is nothing that is compared cell by cell"));
    if (file_.find(name) == nullptr) {
      return fail(bad_input("there is no array " + in_quotes(name) + " for " + std::string(role_key(role))));
    }
    std::erase_if(result_.pairs, [&](const NamePair& pair) { return pair.ours == *kind; });
    result_.pairs.push_back({name, {}, *kind});
  }

  // Those that bear our names; dropped again where nothing is said of them.
  void add_recognised() {
    for (const TensorInfo& info : file_.tensors()) {
      const std::optional<MatrixKind> kind = kind_from_key(info.name);
      const auto is_there = [&](const NamePair& pair) { return pair.theirs == info.name || pair.ours == *kind; };
      if (!kind || !info.problem.empty() || std::ranges::any_of(result_.pairs, is_there)) continue;
      result_.pairs.push_back({info.name, {}, *kind});
      result_.pairs.back().is_required = false;
    }
  }

  void lay_out(Role role, const Layout& layout) {
    const std::optional<MatrixKind> kind = kind_from_key(role_key(role));
    const auto found = std::ranges::find_if(result_.pairs, [&](const NamePair& pair) { return pair.ours == kind; });
    if (found == result_.pairs.end()) {
      return fail(bad_input("there is no " + std::string(role_key(role)) + " to read as " + layout_text(layout)));
    }
    found->reading = TensorReading{layout};
    found->is_required = true;
  }

  void lay_out_all(const Layout& layout) {
    bool is_used = false;
    for (NamePair& pair : result_.pairs) {
      const TensorInfo* info = file_.find(pair.theirs);
      const bool can_have = info != nullptr && info->shape.size() == layout.axes.size() && pair.leading.empty() &&
                            check_layout(role_of(pair.ours), layout).ok();
      if (!can_have || pair.reading) continue;
      pair.reading = TensorReading{layout};
      is_used = true;
    }
    if (!is_used) fail(usage_error("the layout " + layout_text(layout) + " has an axis for none of the arrays"));
  }

  // The layer and batch that were asked for.
  void choose_part(NamePair& pair) {
    const std::optional<int>&layer = request_.layer, &batch = request_.batch;
    const auto index = [](const std::optional<int>& given) { return static_cast<std::uint64_t>(given.value_or(0)); };
    const TensorInfo* info = file_.find(pair.theirs);
    if (!pair.leading.empty() || info == nullptr || (!layer && !batch)) return;
    if (pair.reading) {
      result_.took_layer = result_.took_layer || (layer && has_axis(pair.reading->layout, 'L'));
      result_.took_batch = result_.took_batch || (batch && has_axis(pair.reading->layout, 'B'));
      pair.reading->layer = index(layer);
      pair.reading->batch = index(batch);
      return;
    }
    const std::size_t rank = info->shape.size(), inner = is_per_head(pair.ours) ? 3 : 2;
    if (rank == inner + 1 && layer && batch) {
      return fail(usage_error(in_quotes(pair.theirs) + " " + shape_text(info->shape) +
                              " has one axis before those of a matrix: give --layer or --batch, not both, or say which "
                              "it is with --layout"));
    }
    if (rank == inner + 1) pair.leading = {index(layer ? layer : batch)};
    if (rank == inner + 2) pair.leading = {index(layer), index(batch)};
    result_.took_layer = result_.took_layer || (layer && !pair.leading.empty());
    result_.took_batch = result_.took_batch || (batch && !pair.leading.empty());
  }

  const TensorFile& file_;
  const MappingRequest& request_;
  RequestedPairs result_;
  std::optional<Error> error_;
};

}  // namespace

Result<RequestedPairs> requested_pairs(const TensorFile& file, const MappingRequest& request,
                                       std::vector<NamePair> pairs) {
  return RequestReader(file, request, std::move(pairs)).read();
}

Result<LaidOutArray> read_laid_out(const TensorFile& file, const NamePair& pair, MatrixKind kind,
                                   const KindShape& shape, const Shapes& shapes) {
  const TensorInfo* info = file.find(pair.theirs);
  if (info == nullptr) return bad_input("there is no array " + in_quotes(pair.theirs));
  TensorReading reading = *pair.reading;
  reading.heads = shapes.heads;
  reading.kv_heads = shapes.kv_heads;
  const Result<CellMap> map = map_cells(role_of(kind), pair.theirs, info->shape, reading);
  if (!map.ok()) return map.error();
  const CellMap& cells = map.value();
  const Result<Tensor64> tensor = file.read_float64(pair.theirs, cells.leading);
  if (!tensor.ok()) return tensor.error();
  const std::string words = layout_text(reading.layout);
  const std::size_t heads = cells.matrices.size();
  const bool mean = is_per_head(kind) && heads == 1 && shape.heads > 1 && role_of(kind) == Role::kAttn;
  const bool fits = (mean || heads == static_cast<std::size_t>(shape.heads)) &&
                    cells.rows.size() == static_cast<std::size_t>(shape.rows) &&
                    cells.cols.size() == static_cast<std::size_t>(shape.cols);
  if (!fits) {
    return bad_input(in_quotes(pair.theirs) + " read as " + words + " is " +
                     shape_text(std::vector<std::uint64_t>{heads, cells.rows.size(), cells.cols.size()}) + ", but " +
                     std::string(file_key(kind)) + " here is " +
                     shape_text(std::vector<std::uint64_t>{static_cast<std::uint64_t>(shape.heads),
                                                           static_cast<std::uint64_t>(shape.rows),
                                                           static_cast<std::uint64_t>(shape.cols)}));
  }
  LaidOutArray read{tensor.value().shape, {{kind, mean, {}}, words + (mean ? ", the mean over the heads" : "")}};
  for (const std::uint64_t first : cells.matrices) {
    MatrixD& matrix = read.reading.matrix.heads.emplace_back(shape.rows, shape.cols);
    for (std::size_t row = 0; row < cells.rows.size(); ++row) {
      for (std::size_t col = 0; col < cells.cols.size(); ++col) {
        matrix(static_cast<Index>(row), static_cast<Index>(col)) =
            tensor.value().values[first + cells.rows[row] + cells.cols[col]];
      }
    }
  }
  return read;
}

}  // namespace qkv
