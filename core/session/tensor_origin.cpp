#include "core/session/tensor_origin.h"

#include <algorithm>
#include <cmath>
#include <system_error>
#include <utility>

#include "core/base/utf8.h"
#include "core/session/mapping_candidates.h"
#include "core/session/tensor_names.h"

namespace qkv {

namespace fs = std::filesystem;

namespace {

bool is_file(const fs::path& path) {
  std::error_code problem;
  return fs::is_regular_file(path, problem);
}

// The index of the file in the origin, or its size.
std::size_t index_in(const TensorOrigin& origin, const fs::path& path) {
  const auto by_place = std::ranges::find(origin.files, path, &OriginFile::path);
  if (by_place != origin.files.end()) return static_cast<std::size_t>(by_place - origin.files.begin());
  const auto by_name = std::ranges::find_if(origin.files, [&](const OriginFile& file) {
    return file.path.filename() == path.filename() && !is_file(file.path);
  });
  return static_cast<std::size_t>(by_name - origin.files.begin());
}

// The file with those of its tensors read as bfloat16 that were then, and are still there as integers.
NamedTensors read_as_then(NamedTensors file, const std::vector<std::string>& bfloat16) {
  std::vector<std::string> names;
  for (const std::string& name : bfloat16) {
    const TensorInfo* info = file.file.find(name);
    if (info != nullptr && info->dtype == "uint16") names.push_back(name);
  }
  Result<TensorFile> read = file.file.with({names});
  if (!read.ok()) return file;
  file.file = std::move(read).value();
  file.bfloat16 = std::move(names);
  return file;
}

Result<NamedTensors> open_again(const OriginFile& file, ReadProgress* progress = nullptr) {
  if (!is_file(file.path)) {
    return Error{ErrorCode::kCannotRead, "the file is not in " + sanitize_utf8(file.path.parent_path().string())};
  }
  Result<TensorFile> opened = TensorFile::open(file.path, {}, progress);
  if (!opened.ok()) return Error{opened.error().code, "the file cannot be read: " + opened.error().message};
  return read_as_then({file_name_text(file.path), std::move(opened).value(), file.path}, file.bfloat16);
}

bool same_number(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

OriginNow compared(Role role, const std::vector<const SharedMatrix*>& here, const std::vector<SharedMatrix>& there) {
  const auto has_shape = [](const SharedMatrix* a, const SharedMatrix& b) {
    return a->rows() == b.rows() && a->cols() == b.cols();
  };
  if (!std::ranges::equal(here, there, has_shape)) return {role, false, "of another shape than in the file"};
  Index cells = 0, changed = 0;
  for (std::size_t head = 0; head < here.size(); ++head) {
    const float *mine = (*here[head])->data(), *theirs = there[head]->data();
    for (Index i = 0; i < there[head]->size(); ++i) changed += same_number(mine[i], theirs[i]) ? 0 : 1;
    cells += there[head]->size();
  }
  if (changed == 0) return {role, true, "as in the file"};
  const std::string verb = changed == 1 ? "differs" : "differ";
  return {role, false,
          std::to_string(changed) + " of " + std::to_string(cells) + " cells " + verb + " from the file's"};
}

MatrixKind kind_of_role(Role role) { return *kind_from_key(role_key(role)); }

OriginNow check_tensor(const Session& session, const TensorFile& file, const MappedTensor& mapped) {
  const auto error = [&](const Error& problem) {
    return OriginNow{mapped.role, false, "the file has changed: " + problem.message};
  };
  if (form_of(mapped.role) == RoleForm::kWords) {
    const Result<std::vector<std::string>> words = read_words(file, mapped.name, mapped.reading);
    if (!words.ok()) return error(words.error());
    const bool is_same = words.value() == (mapped.role == Role::kTokens ? session.tokens : session.keys());
    return {mapped.role, is_same, is_same ? "as in the file" : "other tokens than in the file"};
  }
  std::vector<const SharedMatrix*> here;
  const MatrixKind kind = kind_of_role(mapped.role);
  while (const SharedMatrix* matrix = find_input(session, {kind, static_cast<int>(here.size())})) {
    here.push_back(matrix);
    if (!is_per_head(kind)) break;
  }
  if (here.empty()) return {mapped.role, false, "no longer in the session"};
  const Result<std::vector<SharedMatrix>> there = read_mapped(file, mapped.role, mapped.name, mapped.reading);
  return there.ok() ? compared(mapped.role, here, there.value()) : error(there.error());
}

// Layer and module of the first tensor that has one, by its axis or its name.
void request_place(const TensorSet& files, const TensorMapping& mapping, MappingRequest& request) {
  for (const MappedTensor& mapped : mapping.tensors) {
    if (has_axis(mapped.reading.layout, 'L')) request.layer = static_cast<int>(mapped.reading.layer);
    if (has_axis(mapped.reading.layout, 'B')) request.batch = static_cast<int>(mapped.reading.batch);
    for (const NameReading& reading : read_name(mapped.name)) {
      if (!request.layer && reading.layer) request.layer = reading.layer;
    }
    if (!request.layer) request.layer = layer_of_file(fs::path(files[mapped.file].name).stem().string());
  }
  for (const Role role : {Role::kWq, Role::kQ, Role::kAttn}) {
    const MappedTensor* mapped = mapping.find(role);
    if (mapped == nullptr || request.module) continue;
    for (const NameReading& reading : read_name(mapped->name)) request.module = reading.module;
  }
}

void request_heads(const TensorMapping& mapping, MappingRequest& request) {
  int heads = mapping.heads, kv_heads = mapping.kv_heads;
  for (const MappedTensor& mapped : mapping.tensors) {
    heads = std::max(heads, mapped.reading.heads);
    kv_heads = std::max(kv_heads, mapped.reading.kv_heads);
  }
  if (heads > 0) request.heads = heads;
  if (kv_heads > 0) request.kv_heads = kv_heads;
}

// Whether the two take the same cells of the same tensors.
bool is_same_mapping(const TensorMapping& a, const TensorMapping& b) {
  if (a.tensors.size() != b.tensors.size() || kind_of(a) != kind_of(b)) return false;
  if (a.heads != b.heads || a.kv_heads != b.kv_heads) return false;
  return std::ranges::all_of(a.tensors, [&](const MappedTensor& mapped) {
    const MappedTensor* other = b.find(mapped.role);
    if (other == nullptr || other->file != mapped.file || other->name != mapped.name) return false;
    const TensorReading &mine = mapped.reading, &theirs = other->reading;
    return mine.layout == theirs.layout && (!has_axis(mine.layout, 'L') || mine.layer == theirs.layer) &&
           (!has_axis(mine.layout, 'B') || mine.batch == theirs.batch);
  });
}

bool proposes(const TensorSet& files, const MappingRequest& request, const TensorMapping& mapping) {
  const MappingProposal proposal = propose_mapping(files, request);
  return !proposal.error && proposal.questions.empty() && is_same_mapping(proposal.mapping, mapping);
}

}  // namespace

fs::path remembered_place(const fs::path& path) {
  std::error_code problem;
  const fs::path whole = fs::absolute(path, problem);
  return problem ? fs::path() : whole.lexically_normal();
}

std::string file_name_text(const fs::path& path) { return sanitize_utf8(path.filename().string()); }

std::shared_ptr<const TensorOrigin> origin_of(const TensorSet& files, const TensorMapping& mapping) {
  TensorOrigin origin;
  origin.mapping = mapping;
  origin.mapping.part.clear();
  std::vector<std::optional<std::size_t>> place(files.size());
  for (MappedTensor& mapped : origin.mapping.tensors) {
    const NamedTensors& file = files[mapped.file];
    if (file.path.empty()) return nullptr;
    if (!place[mapped.file]) {
      place[mapped.file] = origin.files.size();
      origin.files.push_back({file.path, {}});
    }
    mapped.file = *place[mapped.file];
    mapped.why.clear();
    if (!has_axis(mapped.reading.layout, 'L')) mapped.reading.layer = 0;
    if (!has_axis(mapped.reading.layout, 'B')) mapped.reading.batch = 0;
    std::vector<std::string>& bfloat16 = origin.files[mapped.file].bfloat16;
    const bool is_bfloat16 = std::ranges::find(file.bfloat16, mapped.name) != file.bfloat16.end();
    const bool is_new = std::ranges::find(bfloat16, mapped.name) == bfloat16.end();
    if (is_bfloat16 && is_new) bfloat16.push_back(mapped.name);
  }
  if (origin.files.empty()) return nullptr;
  return std::make_shared<const TensorOrigin>(std::move(origin));
}

std::vector<OriginNow> check_origin(const Session& session) {
  std::vector<OriginNow> found;
  if (session.origin == nullptr) return found;
  std::vector<Result<NamedTensors>> files;
  for (const OriginFile& file : session.origin->files) files.push_back(open_again(file));
  for (const MappedTensor& mapped : session.origin->mapping.tensors) {
    const Result<NamedTensors>& file = files[mapped.file];
    found.push_back(file.ok() ? check_tensor(session, file.value().file, mapped)
                              : OriginNow{mapped.role, false, file.error().message});
  }
  return found;
}

MappingRequest request_of(const TensorSet& files, const TensorMapping& mapping) {
  MappingRequest request;
  request.kind = kind_of(mapping);
  request_heads(mapping, request);
  const MappingRequest only_heads = request;  // and the kind
  if (request.kv_heads == request.heads) request.kv_heads.reset();
  request_place(files, mapping, request);
  const MappingRequest by_place = request;
  if (proposes(files, request, mapping)) return request;

  for (const MappedTensor& mapped : mapping.tensors) {
    if (!mapped.reading.layout.empty()) request.layouts[mapped.role] = mapped.reading.layout;
  }
  if (proposes(files, request, mapping)) return request;

  const TensorMapping proposed = propose_mapping(files, request).mapping;
  for (const Role role : kAllRoles) {
    const MappedTensor *wanted = mapping.find(role), *there = proposed.find(role);
    if (wanted == nullptr && there != nullptr) request.tensors[role] = "";
    if (wanted == nullptr || (there != nullptr && there->file == wanted->file && there->name == wanted->name)) continue;
    request.tensors[role] = full_name(files, wanted->file, wanted->name);
  }
  if (proposes(files, request, mapping)) return request;

  // Every name, so that no layer or module is looked for but along the axes of a tensor.
  MappingRequest all = only_heads;
  all.layouts = request.layouts;
  for (const Role role : kAllRoles) {
    const MappedTensor* wanted = mapping.find(role);
    all.tensors[role] = wanted == nullptr ? "" : full_name(files, wanted->file, wanted->name);
    if (wanted == nullptr) continue;
    if (has_axis(wanted->reading.layout, 'L')) all.layer = static_cast<int>(wanted->reading.layer);
    if (has_axis(wanted->reading.layout, 'B')) all.batch = static_cast<int>(wanted->reading.batch);
  }
  // Where a tensor that is needed has gone, nothing proposes the mapping.
  return proposes(files, all, mapping) ? all : by_place;
}

bool is_from(const TensorOrigin& origin, const fs::path& path) { return index_in(origin, path) < origin.files.size(); }

Reopened reopen(const TensorOrigin& origin, NamedTensors file, ReadProgress* progress) {
  Reopened again;
  const std::size_t first = index_in(origin, file.path);
  TensorMapping mapping = origin.mapping;
  std::vector<std::optional<std::size_t>> place(origin.files.size());
  if (first < place.size()) place[first] = 0;
  again.files.push_back(first < place.size() ? read_as_then(std::move(file), origin.files[first].bfloat16)
                                             : std::move(file));
  for (std::size_t i = 0; i < origin.files.size(); ++i) {
    if (i == first) continue;
    Result<NamedTensors> other = open_again(origin.files[i], progress);
    if (!other.ok()) {
      again.missing.push_back(file_name_text(origin.files[i].path) + ": " + other.error().message);
      continue;
    }
    place[i] = again.files.size();
    again.files.push_back(std::move(other).value());
  }
  std::erase_if(mapping.tensors, [&](MappedTensor& mapped) {
    const std::optional<std::size_t> at = place[mapped.file];
    if (!at) return true;
    mapped.file = *at;
    if (again.files[*at].file.find(mapped.name) != nullptr) return false;
    again.missing.push_back(again.files[*at].name + ": there is no " + sanitize_utf8(mapped.name) + " any more");
    return true;
  });
  if (!mapping.tensors.empty()) again.request = request_of(again.files, mapping);
  return again;
}

}  // namespace qkv
