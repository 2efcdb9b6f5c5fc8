#include "core/session/session_tensors.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "core/session/json_reader.h"

namespace qkv {

namespace {

std::string quoted(std::string_view name) { return "\"" + std::string(name) + "\""; }

// What a file holds, for a message: "q (4, 9, 8), k (4, 9, 8) and 3 more".
std::string contents_of(const TensorFile& file) {
  constexpr std::size_t kNamed = 20;
  std::vector<std::string> parts;
  for (const TensorInfo& info : file.tensors()) {
    if (parts.size() == kNamed) break;
    parts.push_back(info.name + (info.dtype.empty() ? "" : " " + shape_text(info.shape)));
  }
  if (parts.empty()) return "nothing";
  const std::size_t rest = file.tensors().size() - parts.size();
  if (rest > 0) parts.push_back(std::to_string(rest) + " more");
  return joined(parts);
}

// Which of `names` the file does not have.
std::vector<std::string> missing_names(const TensorFile& file, std::initializer_list<std::string_view> names) {
  std::vector<std::string> missing;
  for (const std::string_view name : names) {
    if (file.find(name) == nullptr) missing.emplace_back(name);
  }
  return missing;
}

Status check_shape(const Tensor& tensor, std::string_view name, std::size_t low, std::size_t high,
                   std::string_view expected) {
  const std::size_t dimensions = tensor.shape.size();
  const bool wrong = dimensions < low || dimensions > high;
  if (!wrong && std::ranges::find(tensor.shape, 0u) == tensor.shape.end()) return Done{};
  return bad_input(quoted(name) + " has the shape " + shape_text(tensor.shape) +
                   (wrong ? ": it must be " + std::string(expected) : ": it is empty"));
}

Matrix copy_block(const float* values, Index rows, Index cols) { return Eigen::Map<const Matrix>(values, rows, cols); }

// Reads named inputs of a file and keeps the first error.
class InputReader {
 public:
  explicit InputReader(const TensorFile& file) : file_(&file) {}

  std::vector<SharedMatrix> heads(std::string_view name) {
    return get(name, heads_from_tensor).value_or(std::vector<SharedMatrix>());
  }
  SharedMatrix matrix(std::string_view name) { return get(name, matrix_from_tensor).value_or(SharedMatrix()); }
  // Nothing where the file has no such array.
  std::optional<SharedMatrix> optional_matrix(std::string_view name) {
    return file_->find(name) != nullptr ? get(name, matrix_from_tensor) : std::nullopt;
  }
  std::optional<SharedMatrix> optional_row(std::string_view name) {
    return file_->find(name) != nullptr ? get(name, row_from_tensor) : std::nullopt;
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  template <class T>
  std::optional<T> get(std::string_view name, Result<T> (*convert)(const Tensor&, std::string_view)) {
    if (error_) return std::nullopt;
    const Result<Tensor> tensor = file_->read(name);
    if (!tensor.ok()) {
      error_ = tensor.error();
      return std::nullopt;
    }
    Result<T> converted = convert(tensor.value(), name);
    if (!converted.ok()) {
      error_ = converted.error();
      return std::nullopt;
    }
    return std::move(converted).value();
  }

  const TensorFile* file_;
  std::optional<Error> error_;
};

// Heads of an array that a file may hold beside the projections: the first of three dimensions, else 1.
int heads_of(const TensorFile& file, std::string_view name, int otherwise) {
  const TensorInfo* info = file.find(name);
  if (info == nullptr || info->shape.size() != 3) return otherwise;
  const std::uint64_t heads = info->shape[0];
  return heads >= 1 && heads <= static_cast<std::uint64_t>(kMaxHeads) ? static_cast<int>(heads) : otherwise;
}

ProjectedSource read_projected(const TensorFile& file, InputReader& reader) {
  ProjectedSource source;
  source.x = reader.matrix("x");
  source.wq = reader.matrix("wq");
  source.wk = reader.matrix("wk");
  source.wv = reader.matrix("wv");
  source.bq = reader.optional_row("bq");
  source.bk = reader.optional_row("bk");
  source.bv = reader.optional_row("bv");
  source.heads = heads_of(file, "q", 1);
  source.kv_heads = heads_of(file, "k", source.heads);
  return source;
}

DirectSource read_direct(InputReader& reader) {
  DirectSource source;
  source.q = reader.heads("q");
  source.k = reader.heads("k");
  source.v = reader.heads("v");
  return source;
}

Error inputs_missing(const TensorFile& file, const std::vector<std::string>& direct,
                     const std::vector<std::string>& projected) {
  // The kind of source that the file comes closer to is the one that is meant.
  const bool projected_meant = direct.size() == 3 && projected.size() < 4;
  const std::vector<std::string>& missing = projected_meant ? projected : direct;
  const std::string needed = projected_meant ? "x, wq, wk and wv" : "q, k and v (or x, wq, wk and wv, or attn alone)";
  return bad_input("the inputs are arrays named " + needed + ", but " + joined(missing) +
                   (missing.size() == 1 ? " is" : " are") + " missing: the file has " + contents_of(file));
}

std::vector<float> values_of(const Matrix& matrix) { return {matrix.data(), matrix.data() + matrix.size()}; }

std::uint64_t size(Index value) { return static_cast<std::uint64_t>(value); }

NamedArray matrix_array(MatrixKind kind, const Matrix& matrix) {
  return {std::string(file_key(kind)), {size(matrix.rows()), size(matrix.cols())}, values_of(matrix)};
}

NamedArray row_array(MatrixKind kind, const Matrix& row) {
  return {std::string(file_key(kind)), {size(row.cols())}, values_of(row)};
}

// Matrices of one shape, the head first. `matrix_of` gives the matrix of a head.
template <class Heads, class MatrixOf>
NamedArray head_array(MatrixKind kind, const Heads& heads, MatrixOf matrix_of) {
  std::vector<float> values;
  Index rows = 0;
  Index cols = 0;
  for (const auto& head : heads) {
    const Matrix& matrix = matrix_of(head);
    rows = matrix.rows();
    cols = matrix.cols();
    values.insert(values.end(), matrix.data(), matrix.data() + matrix.size());
  }
  return {std::string(file_key(kind)), {heads.size(), size(rows), size(cols)}, std::move(values)};
}

void add_projected(std::vector<NamedArray>& arrays, const ProjectedSource& source) {
  arrays.push_back(matrix_array(MatrixKind::kX, source.x.get()));
  arrays.push_back(matrix_array(MatrixKind::kWq, source.wq.get()));
  arrays.push_back(matrix_array(MatrixKind::kWk, source.wk.get()));
  arrays.push_back(matrix_array(MatrixKind::kWv, source.wv.get()));
  if (source.bq) arrays.push_back(row_array(MatrixKind::kBq, source.bq->get()));
  if (source.bk) arrays.push_back(row_array(MatrixKind::kBk, source.bk->get()));
  if (source.bv) arrays.push_back(row_array(MatrixKind::kBv, source.bv->get()));
}

NamedArray keep_array(const Matrix& keep) {
  std::vector<std::uint8_t> values(static_cast<std::size_t>(keep.size()));
  std::transform(keep.data(), keep.data() + keep.size(), values.begin(),
                 [](float visible) -> std::uint8_t { return visible != 0 ? 1 : 0; });
  return {std::string(file_key(MatrixKind::kKeep)), {size(keep.rows()), size(keep.cols())}, std::move(values)};
}

// Of given weights: there is nothing else.
std::vector<NamedArray> given_arrays(const Trace& trace) {
  const auto weights = [](const HeadTrace& head) -> const Matrix& { return head.attn; };
  return {keep_array(trace.keep), head_array(MatrixKind::kAttn, trace.heads, weights)};
}

std::vector<std::string> positions(Index count) {
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(count));
  for (Index i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

}  // namespace

Result<std::vector<SharedMatrix>> heads_from_tensor(const Tensor& tensor, std::string_view name) {
  const Status status = check_shape(tensor, name, 2, 3, "[heads, tokens, d] or [tokens, d]");
  if (!status.ok()) return status.error();
  const std::size_t last = tensor.shape.size() - 1;
  const std::uint64_t heads = last == 2 ? tensor.shape[0] : 1;
  if (heads > static_cast<std::uint64_t>(kMaxHeads)) {
    return bad_input(quoted(name) + " has " + std::to_string(heads) + " heads: at most " + std::to_string(kMaxHeads) +
                     " are read");
  }
  const auto rows = static_cast<Index>(tensor.shape[last - 1]);
  const auto cols = static_cast<Index>(tensor.shape[last]);
  std::vector<SharedMatrix> matrices;
  for (std::uint64_t h = 0; h < heads; ++h) {
    matrices.emplace_back(copy_block(tensor.values.data() + static_cast<Index>(h) * rows * cols, rows, cols));
  }
  return matrices;
}

Result<SharedMatrix> matrix_from_tensor(const Tensor& tensor, std::string_view name) {
  const Status status = check_shape(tensor, name, 2, 2, "a matrix [rows, columns]");
  if (!status.ok()) return status.error();
  return SharedMatrix(
      copy_block(tensor.values.data(), static_cast<Index>(tensor.shape[0]), static_cast<Index>(tensor.shape[1])));
}

Result<SharedMatrix> row_from_tensor(const Tensor& tensor, std::string_view name) {
  const std::string_view expected = "one row: [n] or [1, n]";
  const Status status = check_shape(tensor, name, 1, 2, expected);
  if (!status.ok()) return status.error();
  if (tensor.shape.size() == 2 && tensor.shape[0] != 1) return check_shape(tensor, name, 1, 1, expected).error();
  return SharedMatrix(copy_block(tensor.values.data(), 1, static_cast<Index>(tensor.shape.back())));
}

Status name_tokens_by_position(Session& session) {
  Index queries = 0;
  Index keys = 0;
  if (const auto* direct = std::get_if<DirectSource>(&session.problem.source)) {
    if (!direct->q.empty()) queries = direct->q[0].rows();
    if (!direct->k.empty()) keys = direct->k[0].rows();
  } else if (const auto* given = std::get_if<WeightsSource>(&session.problem.source)) {
    if (!given->attn.empty()) queries = given->attn[0].rows(), keys = given->attn[0].cols();
  } else {
    queries = keys = std::get<ProjectedSource>(session.problem.source).x.rows();
  }
  if (std::max(queries, keys) > kMaxTokens) {
    return bad_input(std::to_string(std::max(queries, keys)) + " tokens are too many: at most " +
                     std::to_string(kMaxTokens) + " are read");
  }
  session.tokens = positions(queries);
  if (keys != queries && !session.key_tokens) session.key_tokens = positions(keys);
  return Done{};
}

Result<Session> session_from_arrays(const TensorFile& file, std::string title) {
  const std::vector<std::string> projected = missing_names(file, {"x", "wq", "wk", "wv"});
  const std::vector<std::string> direct = missing_names(file, {"q", "k", "v"});
  // Of q, k, v and x not one: then attn is not a result beside inputs that are spelt differently.
  const bool weights_alone = direct.size() == 3 && file.find("x") == nullptr && file.find("attn") != nullptr;
  if (!projected.empty() && !direct.empty() && !weights_alone) return inputs_missing(file, direct, projected);

  Session session;
  session.title = std::move(title);
  InputReader reader(file);
  if (projected.empty()) {
    session.problem.source = read_projected(file, reader);
  } else if (direct.empty()) {
    session.problem.source = read_direct(reader);
  } else {
    session.problem.source = WeightsSource{reader.heads("attn")};
  }
  if (!is_weights_only(session.problem.source)) {
    session.problem.wo = reader.optional_matrix("wo");
    session.problem.bo = reader.optional_row("bo");
  }
  if (reader.error()) return *reader.error();
  const Status named = name_tokens_by_position(session);
  if (!named.ok()) return named.error();
  const Result<Shapes> shapes = check_session(session);
  if (!shapes.ok()) return shapes.error();
  return session;
}

std::vector<NamedArray> arrays_of(const Trace& trace) {
  if (is_weights_only(trace.problem.source)) return given_arrays(trace);
  const auto shared = [](const SharedMatrix& matrix) -> const Matrix& { return matrix.get(); };
  std::vector<NamedArray> arrays;
  if (const auto* source = std::get_if<ProjectedSource>(&trace.problem.source)) add_projected(arrays, *source);
  arrays.push_back(head_array(MatrixKind::kQ, trace.q, shared));
  arrays.push_back(head_array(MatrixKind::kK, trace.k, shared));
  arrays.push_back(head_array(MatrixKind::kV, trace.v, shared));
  const auto& heads = trace.heads;
  const auto member = [](const auto HeadTrace::*matrix) {
    return [matrix](const HeadTrace& head) -> const Matrix& { return head.*matrix; };
  };
  const bool holds_cells = trace.streams.empty();
  if (holds_cells) arrays.push_back(head_array(MatrixKind::kScores, heads, member(&HeadTrace::scores)));
  if (holds_cells && !trace.alibi.empty()) {
    arrays.push_back(head_array(MatrixKind::kAlibi, trace.alibi,
                                [](const LazyMatrix& term) -> const Matrix& { return term.get(); }));
  }
  if (trace.problem.options.bias) {
    arrays.push_back(matrix_array(MatrixKind::kBias, trace.problem.options.bias->get()));
  }
  if (holds_cells) {
    arrays.push_back(head_array(MatrixKind::kScaled, heads, member(&HeadTrace::scaled)));
    arrays.push_back(keep_array(trace.keep));
    arrays.push_back(head_array(MatrixKind::kAttn, heads, member(&HeadTrace::attn)));
  }
  arrays.push_back(head_array(MatrixKind::kHeadsOut, heads, member(&HeadTrace::out)));
  arrays.push_back(matrix_array(MatrixKind::kConcat, trace.concat));
  if (trace.problem.wo) arrays.push_back(matrix_array(MatrixKind::kWo, trace.problem.wo->get()));
  if (trace.problem.bo) arrays.push_back(row_array(MatrixKind::kBo, trace.problem.bo->get()));
  if (trace.out) arrays.push_back(matrix_array(MatrixKind::kOut, *trace.out));
  return arrays;
}

}  // namespace qkv
