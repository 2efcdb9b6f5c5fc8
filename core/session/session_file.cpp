#include "core/session/session_file.h"

#include <cmath>
#include <map>
#include <utility>

#include "core/base/utf8.h"
#include "core/session/json_reader.h"
#include "core/session/options_json.h"
#include "core/session/origin_json.h"
#include "core/session/session_tensors.h"
#include "core/session/tensor_mapping.h"
#include "core/tensor_io/safetensors.h"
#include "core/tensor_io/tensor_file.h"

namespace qkv {

namespace {

constexpr int kVersion = 1;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// Without what may stand before a JSON document.
std::string_view without_leading_space(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  return text;
}

// A path as UTF-8, for messages and titles.
std::string path_text(const std::filesystem::path& path) { return sanitize_utf8(path.string()); }

// Reads the parts of a session out of its document.
class SessionReader {
 public:
  SessionReader(const std::filesystem::path& folder, ReadProgress* progress) : folder_(folder), progress_(progress) {}

  Result<Session> read(const JsonValue& document) {
    const JsonValue::Members& top = json_.object(document, "the session");
    check_version(top);
    json_.only_keys(top,
                    {"qkvlab", "title", "note", "split", "tokens", "key_tokens", "source", "wo", "bo", "attention",
                     "mapping", "view"},
                    "key", "");
    if (progress_ != nullptr && json_.ok()) {
      progress_->expect(referenced_bytes(top));
      json_ = JsonReader();  // what is wrong with a reference is told where it is read
    }
    Session session;
    read_words(top, session);
    if (const JsonValue* source = json_.required(top, "source", "")) read_source(*source, session.problem);
    if (const JsonValue* wo = find_member(top, "wo")) session.problem.wo = matrix(*wo, Role::kWo);
    if (const JsonValue* bo = find_member(top, "bo")) session.problem.bo = row(*bo, Role::kBo);
    if (const JsonValue* options = find_member(top, "attention")) read_options(*options, session.problem);
    if (const JsonValue* mapping = find_member(top, "mapping")) session.origin = read_origin(json_, *mapping, folder_);
    if (const JsonValue* view = find_member(top, "view")) read_view(*view, session.view);
    if (!json_.ok()) return json_.error();

    if (find_member(top, "tokens") == nullptr) {
      const Status named = name_tokens_by_position(session);
      if (!named.ok()) return named.error();
    }
    const Result<Shapes> shapes = check_session(session);
    if (!shapes.ok()) return shapes.error();
    return session;
  }

 private:
  // Before anything else: a newer file may have any keys.
  void check_version(const JsonValue::Members& top) {
    const JsonValue* version = find_member(top, "qkvlab");
    if (version == nullptr) {
      json_.fail(bad_input("the key \"qkvlab\" is missing: a session file starts with {\"qkvlab\": 1, …"));
      return;
    }
    const float* number = version->get_if<float>();
    if (number != nullptr && *number > kVersion && *number == std::floor(*number) && *number < 1e6f) {
      json_.fail(unsupported("written by a newer version: qkvlab " + std::to_string(static_cast<int>(*number)) +
                             " is not read by this program, which reads qkvlab " + std::to_string(kVersion)));
    }
    json_.whole_number(*version, "qkvlab", kVersion, kVersion);
  }

  void read_words(const JsonValue::Members& top, Session& session) {
    if (const JsonValue* title = find_member(top, "title")) session.title = json_.text(*title, "title");
    if (const JsonValue* note = find_member(top, "note")) session.note = json_.text(*note, "note");
    if (const JsonValue* tokens = find_member(top, "tokens")) session.tokens = json_.texts(*tokens, "tokens");
    if (const JsonValue* tokens = find_member(top, "key_tokens")) {
      session.key_tokens = json_.texts(*tokens, "key_tokens");
    }
    if (const JsonValue* split = find_member(top, "split")) {
      constexpr TokenSplit kSplits[] = {TokenSplit::kWhiteSpace, TokenSplit::kCjk, TokenSplit::kCharacters};
      session.split = kSplits[json_.choice(*split, "split", {"white_space", "cjk", "characters"})];
    }
  }

  void read_source(const JsonValue& value, Problem& problem) {
    const JsonValue::Members& members = json_.object(value, "source");
    const JsonValue* kind = json_.required(members, "kind", " in source");
    if (kind == nullptr) return;
    switch (json_.choice(*kind, "source.kind", {"qkv", "projected", "weights"})) {
      case 0:
        problem.source = read_direct(members);
        break;
      case 1:
        problem.source = read_projected(members);
        break;
      default:
        problem.source = read_weights(members);
    }
  }

  WeightsSource read_weights(const JsonValue::Members& members) {
    json_.only_keys(members, {"kind", "attn"}, "key", " in source");
    WeightsSource source;
    if (const JsonValue* attn = json_.required(members, "attn", " in source")) source.attn = heads(*attn, Role::kAttn);
    return source;
  }

  DirectSource read_direct(const JsonValue::Members& members) {
    json_.only_keys(members, {"kind", "q", "k", "v"}, "key", " in source");
    DirectSource source;
    for (const auto& [role, target] :
         {std::pair(Role::kQ, &source.q), std::pair(Role::kK, &source.k), std::pair(Role::kV, &source.v)}) {
      const JsonValue* value = json_.required(members, role_key(role), " in source");
      if (value != nullptr) *target = heads(*value, role);
    }
    return source;
  }

  ProjectedSource read_projected(const JsonValue::Members& members) {
    json_.only_keys(members, {"kind", "x", "wq", "wk", "wv", "bq", "bk", "bv", "heads", "kv_heads"}, "key",
                    " in source");
    ProjectedSource source;
    for (const auto& [role, target] : {std::pair(Role::kX, &source.x), std::pair(Role::kWq, &source.wq),
                                       std::pair(Role::kWk, &source.wk), std::pair(Role::kWv, &source.wv)}) {
      const JsonValue* value = json_.required(members, role_key(role), " in source");
      if (value != nullptr) *target = matrix(*value, role);
    }
    for (const auto& [role, target] :
         {std::pair(Role::kBq, &source.bq), std::pair(Role::kBk, &source.bk), std::pair(Role::kBv, &source.bv)}) {
      if (const JsonValue* value = find_member(members, role_key(role))) *target = row(*value, role);
    }
    if (const JsonValue* value = json_.required(members, "heads", " in source")) {
      source.heads = source.kv_heads = json_.whole_number(*value, "source.heads", 1, kMaxHeads);
    }
    if (const JsonValue* value = find_member(members, "kv_heads")) {
      source.kv_heads = json_.whole_number(*value, "source.kv_heads", 1, kMaxHeads);
    }
    return source;
  }

  void read_options(const JsonValue& value, Problem& problem) {
    const auto from_other_file = [this](const JsonValue& tensor, const std::string& place) {
      return from_file(tensor, place, Role::kBias, matrix_from_tensor);
    };
    const Result<AttentionOptions> options = options_from_json(value, {}, from_other_file);
    if (options.ok()) {
      problem.options = options.value();
    } else {
      json_.fail({options.error().code, "attention: " + options.error().message});
    }
  }

  void read_view(const JsonValue& value, ViewSettings& view) {
    const JsonValue::Members& members = json_.object(value, "view");
    json_.only_keys(
        members,
        {"tab", "head", "lens", "weights_map", "signed_map", "weights_range", "signed_range", "decimals", "raw_tokens"},
        "key", " in view");
    if (const JsonValue* tab = find_member(members, "tab")) {
      constexpr Tab kTabs[] = {Tab::kHead, Tab::kHeads, Tab::kConcat, Tab::kProjection};
      view.tab = kTabs[json_.choice(*tab, "view.tab", {"head", "heads", "concat", "projection"})];
    }
    if (const JsonValue* head = find_member(members, "head")) {
      view.head = json_.whole_number(*head, "view.head", 0, kMaxHeads - 1);
    }
    if (const JsonValue* lens = find_member(members, "lens")) {
      view.lens =
          kAllLenses[json_.choice(*lens, "view.lens", {"values", "gradient", "float32", "bfloat16", "float16"})];
    }
    if (const JsonValue* decimals = find_member(members, "decimals")) {
      view.decimals = json_.whole_number(*decimals, "view.decimals", 0, 6);
    }
    if (const JsonValue* raw = find_member(members, "raw_tokens")) {
      view.raw_tokens = json_.boolean(*raw, "view.raw_tokens");
    }
    read_map_name(members, "weights_map", view.weights_map);
    read_map_name(members, "signed_map", view.signed_map);
    read_range(members, "weights_range", view.weights_range, true);
    read_range(members, "signed_range", view.signed_range, false);
  }

  // Which names exist is the figure layer's knowledge, and it has a map for those that do not.
  void read_map_name(const JsonValue::Members& members, std::string_view key, std::string& name) {
    const JsonValue* value = find_member(members, key);
    if (value == nullptr) return;
    const std::string place = "view." + std::string(key);
    name = json_.text(*value, place);
    if (name.empty()) json_.fail(bad_input(place + " is empty: it must be the name of a colour map"));
  }

  // Only weights have a logarithmic scale: other values have signs.
  void read_range(const JsonValue::Members& members, std::string_view key, RangeSpec& range, bool of_weights) {
    const JsonValue* value = find_member(members, key);
    if (value == nullptr) return;
    const std::string place = "view." + std::string(key);
    const auto* ends = value->get_if<JsonValue::Numbers>();
    if (ends != nullptr && ends->size() == 2 && (*ends)[0] < (*ends)[1]) {
      range = {RangeMode::kCustom, (*ends)[0], (*ends)[1]};
    } else if (value->get_if<std::string>() != nullptr) {
      constexpr RangeMode kModes[] = {RangeMode::kUnit, RangeMode::kAuto, RangeMode::kSymmetric, RangeMode::kLog};
      range.mode = kModes[of_weights ? json_.choice(*value, place, {"unit", "auto", "symmetric", "log"})
                                     : json_.choice(*value, place, {"unit", "auto", "symmetric"})];
    } else {
      const std::string log = of_weights ? ", \"log\"" : "";
      json_.fail(
          bad_input(place + " must be \"unit\", \"auto\", \"symmetric\"" + log + " or [low, high] with low < high"));
    }
  }

  // Tensors: nested arrays, or an object that names an array of another file; they stand at the key of their role.
  std::vector<SharedMatrix> heads(const JsonValue& value, Role role) {
    const std::string place(role_key(role));
    if (is_reference(value)) return from_file(value, place, role, heads_from_tensor);
    std::vector<SharedMatrix> result;
    for (Matrix& head : json_.matrices(value, place)) result.emplace_back(std::move(head));
    return result;
  }
  SharedMatrix matrix(const JsonValue& value, Role role) {
    const std::string place(role_key(role));
    return is_reference(value) ? from_file(value, place, role, matrix_from_tensor) : json_.matrix(value, place);
  }
  SharedMatrix row(const JsonValue& value, Role role) {
    const std::string place(role_key(role));
    return is_reference(value) ? from_file(value, place, role, row_from_tensor) : json_.row(value, place);
  }

  // What from_file will read for the references among the members, and those of their objects.
  std::uint64_t referenced_bytes(const JsonValue::Members& members) {
    std::uint64_t bytes = 0;
    for (const JsonMember& member : members) {
      const auto* inner = member.value.get_if<JsonValue::Members>();
      if (inner == nullptr || member.key == "mapping") continue;  // whose files are not read
      const std::optional<Role> role = role_from_key(member.key);
      bytes += role ? bytes_of_reference(*inner, *role) : referenced_bytes(*inner);
    }
    return bytes;
  }

  std::uint64_t bytes_of_reference(const JsonValue::Members& members, Role role) {
    const std::string place(role_key(role));
    const JsonValue* file_value = find_member(members, "file");
    const JsonValue* name_value = find_member(members, "name");
    if (file_value == nullptr || name_value == nullptr) return 0;
    const TensorFile* file = open_tensors(json_.text(*file_value, place), place);
    const std::string name = json_.text(*name_value, place);
    if (file == nullptr || !json_.ok()) return 0;
    const std::optional<TensorReading> reading = read_reading(json_, members, place);
    return reading ? bytes_of_mapped(*file, role, name, *reading) : file->bytes_to_read(name);
  }

  static bool is_reference(const JsonValue& value) { return value.get_if<JsonValue::Members>() != nullptr; }

  template <class T>
  T from_file(const JsonValue& value, const std::string& place, Role role,
              Result<T> (*convert)(const Tensor&, std::string_view)) {
    const JsonValue::Members& members = json_.object(value, place);
    json_.only_keys(members, {"file", "name", "bfloat16", "layout", "layer", "batch", "heads", "kv_heads"}, "key",
                    " in " + place);
    const JsonValue* file_value = json_.required(members, "file", " in " + place);
    const JsonValue* name_value = json_.required(members, "name", " in " + place);
    if (file_value == nullptr || name_value == nullptr) return {};
    const std::string file_name = json_.text(*file_value, place + ".file");
    const std::string name = json_.text(*name_value, place + ".name");
    const TensorFile* opened = json_.ok() ? open_tensors(file_name, place) : nullptr;
    if (opened == nullptr) return {};
    const auto fail = [&](const Error& error) {
      json_.fail({error.code, place + ": " + file_name + ": " + error.message});
      return T();
    };
    const JsonValue* bfloat16 = find_member(members, "bfloat16");
    const bool is_bfloat16 = bfloat16 != nullptr && json_.boolean(*bfloat16, place + ".bfloat16");
    const Result<TensorFile> file = is_bfloat16 ? opened->with({{name}}) : Result<TensorFile>(*opened);
    if (!file.ok()) return fail(file.error());
    if (const std::optional<TensorReading> reading = read_reading(json_, members, place)) {
      Result<std::vector<SharedMatrix>> cells = read_mapped(file.value(), role, name, *reading, progress_);
      if (!cells.ok()) return fail(cells.error());
      if constexpr (std::is_same_v<T, SharedMatrix>) return cells.value().front();
      if constexpr (!std::is_same_v<T, SharedMatrix>) return std::move(cells).value();
    }
    if (!json_.ok()) return {};
    const Result<Tensor> tensor = file.value().read(name, {}, progress_);
    if (!tensor.ok()) return fail(tensor.error());
    Result<T> converted = convert(tensor.value(), name);
    if (!converted.ok()) return fail(converted.error());
    return std::move(converted).value();
  }

  // Each file is opened once. nullptr after an error.
  const TensorFile* open_tensors(const std::string& name, const std::string& place) {
    const std::filesystem::path relative(name);
    if (name.empty() || name.find('\0') != std::string::npos || relative.is_absolute()) {
      json_.fail(bad_input(place + ".file must be a path relative to the session file, not " +
                           (name.empty() ? "empty" : "absolute")));
      return nullptr;
    }
    if (folder_.empty()) {
      json_.fail(bad_input(place + ": " + name + " is looked for beside the session file, but this is no file"));
      return nullptr;
    }
    const auto found = files_.find(name);
    if (found != files_.end()) return &found->second;
    Result<TensorFile> file = TensorFile::open(folder_ / relative, {}, progress_);
    if (!file.ok()) {
      json_.fail({file.error().code, place + ": " + name + ": " + file.error().message});
      return nullptr;
    }
    return &files_.emplace(name, std::move(file).value()).first->second;
  }

  const std::filesystem::path& folder_;
  ReadProgress* progress_;
  JsonReader json_;
  std::map<std::string, TensorFile> files_;
};

}  // namespace

const char* tab_name(Tab tab) {
  switch (tab) {
    case Tab::kHead:
      return "head";
    case Tab::kHeads:
      return "heads";
    case Tab::kConcat:
      return "concat";
    case Tab::kProjection:
      return "projection";
  }
  return "head";
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

bool looks_like_session(std::span<const std::byte> head) {
  if (looks_like_safetensors(head)) return false;  // its length may look like spaces and a brace
  return without_leading_space(as_text(head)).starts_with('{');
}

Result<Session> parse_session(std::string_view json, const std::filesystem::path& folder, ReadProgress* progress) {
  const Result<JsonValue> document = parse_json(json, progress);
  if (!document.ok()) return document.error();
  return SessionReader(folder, progress).read(document.value());
}

Result<Session> read_session(const std::filesystem::path& path) {
  const Result<Bytes> bytes = read_file(path);
  if (!bytes.ok()) return bytes.error();
  return parse_session(as_text(bytes.value()), folder_of(path));
}

Status write_session(const Session& session, const std::filesystem::path& path) {
  return write_file_atomically(path, session_to_json(session, folder_of(path)));
}

Result<std::variant<Session, TensorFile>> open_session_or_tensors(const std::filesystem::path& path,
                                                                  ReadProgress* progress) {
  Result<MappedFile> file = MappedFile::open(path);
  if (!file.ok()) return file.error();
  const std::span<const std::byte> bytes = file.value().bytes();
  if (looks_like_session(bytes)) {
    Result<Session> session = parse_session(as_text(bytes), folder_of(path), progress);
    if (!session.ok()) return session.error();
    return std::variant<Session, TensorFile>(std::move(session).value());
  }
  Result<TensorFile> tensors = TensorFile::from_file(std::move(file).value(), path_text(path.stem()), {}, progress);
  if (!tensors.ok()) return tensors.error();
  return std::variant<Session, TensorFile>(std::move(tensors).value());
}

Result<Session> open_any(const std::filesystem::path& path) {
  Result<std::variant<Session, TensorFile>> opened = open_session_or_tensors(path);
  if (!opened.ok()) return opened.error();
  if (Session* session = std::get_if<Session>(&opened.value())) return std::move(*session);
  return session_from_arrays(std::get<TensorFile>(opened.value()), path_text(path.stem()));
}

}  // namespace qkv
