// The session that a mapping of tensors makes.
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/base/number_text.h"
#include "core/base/utf8.h"
#include "core/session/session_tensors.h"
#include "core/session/tensor_mapping.h"
#include "core/session/tensor_origin.h"

namespace qkv {

namespace {

Result<std::vector<SharedMatrix>> gather(const Tensor& tensor, const CellMap& map, ReadProgress* progress) {
  std::vector<SharedMatrix> matrices;
  for (const std::uint64_t first : map.matrices) {
    Matrix matrix(static_cast<Index>(map.rows.size()), static_cast<Index>(map.cols.size()));
    float* cell = matrix.data();
    for (const std::uint64_t row : map.rows) {
      if (const Status on = count_read(progress, 0); !on.ok()) return on.error();
      for (const std::uint64_t col : map.cols) *cell++ = tensor.values[first + row + col];
    }
    matrices.emplace_back(std::move(matrix));
  }
  return matrices;
}

// Tokens by bytes: UTF-8, a newline between them.
std::vector<std::string> split_lines(const Tensor& bytes) {
  std::vector<std::string> lines(1);
  for (const float value : bytes.values) {
    const char byte = static_cast<char>(static_cast<unsigned char>(std::clamp(value, 0.0f, 255.0f)));
    if (byte == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += byte;
    }
  }
  if (lines.back().empty()) lines.pop_back();
  for (std::string& line : lines) line = sanitize_utf8(line);
  return lines;
}

// The roles whose numbers apply_mapping reads, in its order.
std::vector<Role> roles_read(const TensorMapping& mapping) {
  const auto has = [&](Role role) { return mapping.find(role) != nullptr; };
  if (!has(Role::kX) && !has(Role::kQ) && has(Role::kAttn)) return {Role::kAttn};
  if (!has(Role::kX)) return {Role::kQ, Role::kK, Role::kV, Role::kWo, Role::kBo, Role::kBias};
  return {Role::kX,  Role::kWq, Role::kWk, Role::kWv, Role::kBq,
          Role::kBk, Role::kBv, Role::kWo, Role::kBo, Role::kBias};
}

// As MappingReader reads them: neighbours that are parts of one tensor are read once.
std::uint64_t bytes_of_roles(const TensorSet& files, const TensorMapping& mapping) {
  std::uint64_t bytes = 0;
  const MappedTensor* last = nullptr;
  for (const Role role : roles_read(mapping)) {
    const MappedTensor* mapped = mapping.find(role);
    if (mapped == nullptr) continue;
    const bool is_kept = last != nullptr && last->file == mapped->file && last->name == mapped->name;
    if (!is_kept) bytes += bytes_of_mapped(files[mapped->file].file, role, mapped->name, mapped->reading);
    last = mapped;
  }
  return bytes;
}

// Reads a mapping's tensors, each once, and keeps the first error.
class MappingReader {
 public:
  MappingReader(const TensorSet& files, const TensorMapping& mapping, ReadProgress* progress)
      : files_(files), mapping_(mapping), progress_(progress) {
    if (progress != nullptr) progress->expect(bytes_of_roles(files, mapping));
  }

  const std::optional<Error>& error() const { return error_; }
  bool has(Role role) const { return mapping_.find(role) != nullptr; }

  std::vector<SharedMatrix> matrices(Role role) {
    const MappedTensor* mapped = mapping_.find(role);
    if (mapped == nullptr) fail(bad_input(std::string(role_key(role)) + ": no tensor plays this role"));
    if (error_) return {};
    const TensorFile& file = files_[mapped->file].file;
    Result<std::vector<SharedMatrix>> read = cells(file, *mapped);
    if (!read.ok()) {
      fail(read.error());
      return {};
    }
    return std::move(read).value();
  }
  SharedMatrix matrix(Role role) {
    std::vector<SharedMatrix> all = matrices(role);
    return all.empty() ? SharedMatrix() : std::move(all.front());
  }
  std::optional<SharedMatrix> optional_matrix(Role role) {
    return has(role) ? std::optional(matrix(role)) : std::nullopt;
  }
  std::optional<std::vector<std::string>> words(Role role) {
    const MappedTensor* mapped = mapping_.find(role);
    if (mapped == nullptr || error_) return std::nullopt;
    Result<std::vector<std::string>> read = read_words(files_[mapped->file].file, mapped->name, mapped->reading);
    if (!read.ok()) {
      fail(read.error());
      return std::nullopt;
    }
    return std::move(read).value();
  }

 private:
  void fail(Error error) {
    if (!error_) error_ = std::move(error);
  }

  // The three parts of one tensor come one after the other: the last tensor read is kept.
  Result<std::vector<SharedMatrix>> cells(const TensorFile& file, const MappedTensor& mapped) {
    const TensorInfo* info = file.find(mapped.name);
    if (info == nullptr) return bad_input("there is no tensor \"" + mapped.name + "\"");
    const Result<CellMap> map = map_cells(mapped.role, mapped.name, info->shape, mapped.reading);
    if (!map.ok()) return map.error();
    if (map.value().matrices.size() > static_cast<std::size_t>(kMaxHeads)) {
      return bad_input("\"" + mapped.name + "\" has " + std::to_string(map.value().matrices.size()) +
                       " heads: at most " + std::to_string(kMaxHeads) + " are read");
    }
    const bool is_kept = kept_file_ == mapped.file && kept_name_ == mapped.name && kept_leading_ == map.value().leading;
    if (!is_kept) {
      Result<Tensor> tensor = file.read(mapped.name, map.value().leading, progress_);
      if (!tensor.ok()) return tensor.error();
      kept_ = std::move(tensor).value();
      kept_file_ = mapped.file;
      kept_name_ = mapped.name;
      kept_leading_ = map.value().leading;
    }
    return gather(kept_, map.value(), progress_);
  }

  const TensorSet& files_;
  const TensorMapping& mapping_;
  ReadProgress* progress_;
  std::optional<Error> error_;
  Tensor kept_;
  std::optional<std::size_t> kept_file_;
  std::string kept_name_;
  std::vector<std::uint64_t> kept_leading_;
};

ProjectedSource read_projected(MappingReader& reader, const TensorMapping& mapping) {
  ProjectedSource source;
  source.x = reader.matrix(Role::kX);
  source.wq = reader.matrix(Role::kWq);
  source.wk = reader.matrix(Role::kWk);
  source.wv = reader.matrix(Role::kWv);
  source.bq = reader.optional_matrix(Role::kBq);
  source.bk = reader.optional_matrix(Role::kBk);
  source.bv = reader.optional_matrix(Role::kBv);
  source.heads = std::max(1, mapping.heads);
  source.kv_heads = mapping.kv_heads > 0 ? mapping.kv_heads : source.heads;
  return source;
}

Source read_source(MappingReader& reader, const TensorMapping& mapping) {
  if (reader.has(Role::kX)) return read_projected(reader, mapping);
  if (!reader.has(Role::kQ) && reader.has(Role::kAttn)) return WeightsSource{reader.matrices(Role::kAttn)};
  DirectSource source;
  source.q = reader.matrices(Role::kQ);
  source.k = reader.matrices(Role::kK);
  source.v = reader.matrices(Role::kV);
  return source;
}

Status name_tokens(MappingReader& reader, Session& session) {
  if (const Status named = name_tokens_by_position(session); !named.ok()) return named;
  if (std::optional<std::vector<std::string>> tokens = reader.words(Role::kTokens)) {
    session.tokens = std::move(*tokens);
  }
  if (std::optional<std::vector<std::string>> keys = reader.words(Role::kKeyTokens)) {
    // Keys that are the queries' own tokens are no tokens of their own.
    if (*keys != session.tokens) session.key_tokens = std::move(*keys);
  }
  return reader.error() ? Status(*reader.error()) : Status(Done{});
}

}  // namespace

Result<std::vector<SharedMatrix>> read_mapped(const TensorFile& file, Role role, const std::string& name,
                                              const TensorReading& reading, ReadProgress* progress) {
  const TensorInfo* info = file.find(name);
  if (info == nullptr) return bad_input("there is no tensor \"" + name + "\"");
  const Result<CellMap> map = map_cells(role, name, info->shape, reading);
  if (!map.ok()) return map.error();
  const Result<Tensor> tensor = file.read(name, map.value().leading, progress);
  if (!tensor.ok()) return tensor.error();
  return gather(tensor.value(), map.value(), progress);
}

std::uint64_t bytes_of_mapped(const TensorFile& file, Role role, const std::string& name,
                              const TensorReading& reading) {
  const TensorInfo* info = file.find(name);
  if (info == nullptr) return 0;
  const Result<CellMap> map = map_cells(role, name, info->shape, reading);
  return map.ok() ? file.bytes_to_read(name, map.value().leading) : 0;
}

Result<std::vector<std::string>> read_words(const TensorFile& file, const std::string& name,
                                            const TensorReading& reading) {
  const TensorInfo* info = file.find(name);
  if (info == nullptr) return bad_input("there is no tensor \"" + name + "\"");
  TensorReading read = reading;
  constexpr std::string_view kByRank[] = {"", "N", "BN", "LBN"};
  if (info->shape.empty() || info->shape.size() > 3) {
    return bad_input("\"" + name + "\" is not a list of tokens: it needs one axis, or batch and layers before it");
  }
  if (read.layout.empty()) read.layout = parse_layout(kByRank[info->shape.size()]).value();
  const Result<CellMap> map = map_cells(Role::kTokens, name, info->shape, read);
  if (!map.ok()) return map.error();
  if (map.value().rows.size() > static_cast<std::size_t>(kMaxTokens) * 64) {
    return bad_input("\"" + name + "\" holds more than tokens would: at most " + std::to_string(kMaxTokens) +
                     " tokens are read");
  }
  if (info->is_text) {
    const Result<std::vector<std::string>> all = file.read_text(name);
    if (!all.ok()) return all.error();
    std::uint64_t first = map.value().matrices.front(), size = all.value().size();
    for (std::size_t i = 0; i < map.value().leading.size(); ++i) {
      size /= info->shape[i];
      first += map.value().leading[i] * size;
    }
    std::vector<std::string> words;
    for (const std::uint64_t row : map.value().rows) words.push_back(all.value()[first + row]);
    return words;
  }
  const Result<Tensor> numbers = file.read(name, map.value().leading);
  if (!numbers.ok()) return numbers.error();
  if (info->dtype == "uint8" && info->shape.size() == 1) return split_lines(numbers.value());
  std::vector<std::string> words;
  for (const std::uint64_t row : map.value().rows) {
    words.push_back(format_shortest(numbers.value().values[map.value().matrices.front() + row]));
  }
  return words;
}

// Among so many keys hardly a weight is large enough to be seen on a scale from 0 to 1.
constexpr Index kManyKeys = 128;

Result<Session> apply_mapping(const TensorSet& files, const TensorMapping& mapping, std::string title,
                              ReadProgress* progress) {
  Session session;
  session.title = std::move(title);
  if (!mapping.part.empty()) session.title += ", " + mapping.part;
  MappingReader reader(files, mapping, progress);
  session.problem.source = read_source(reader, mapping);
  if (!is_weights_only(session.problem.source)) {
    session.problem.wo = reader.optional_matrix(Role::kWo);
    session.problem.bo = reader.optional_matrix(Role::kBo);
    session.problem.options.bias = reader.optional_matrix(Role::kBias);
  }
  if (reader.error()) return *reader.error();
  if (const Status named = name_tokens(reader, session); !named.ok()) return named.error();
  const Result<Shapes> shapes = check_session(session);
  if (!shapes.ok()) return shapes.error();
  session.origin = origin_of(files, mapping);
  if (shapes.value().nk >= kManyKeys) session.view.weights_range.mode = RangeMode::kLog;
  return session;
}

}  // namespace qkv
