#include "core/session/origin_json.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "core/base/utf8.h"

namespace qkv {

namespace fs = std::filesystem;

namespace {

// Roles that give a session something.
bool is_input(Role role) { return role != Role::kScores && role != Role::kOut; }

// The index of the file among those of the origin.
std::size_t file_index(TensorOrigin& origin, const fs::path& path) {
  const auto found = std::ranges::find(origin.files, path, &OriginFile::path);
  if (found != origin.files.end()) return static_cast<std::size_t>(found - origin.files.begin());
  origin.files.push_back({path, {}});
  return origin.files.size() - 1;
}

void read_tensor(JsonReader& json, const JsonMember& member, const fs::path& folder, TensorOrigin& origin) {
  const std::string place = "mapping.tensors." + member.key;
  const std::optional<Role> role = role_from_key(member.key);
  if (!role || !is_input(*role)) return json.fail(bad_input(place + " is not the name of an input"));
  const JsonValue::Members& members = json.object(member.value, place);
  json.only_keys(members, {"file", "name", "bfloat16", "layout", "layer", "batch", "heads", "kv_heads"}, "key",
                 " in " + place);
  const JsonValue* file = json.required(members, "file", " in " + place);
  const JsonValue* name = json.required(members, "name", " in " + place);
  if (file == nullptr || name == nullptr) return;
  const std::string path = json.text(*file, place + ".file");
  const bool is_path = !path.empty() && path.find('\0') == std::string::npos;
  if (json.ok() && !is_path) return json.fail(bad_input(place + ".file is not the path of a file"));
  MappedTensor mapped;
  mapped.role = *role;
  mapped.name = json.text(*name, place + ".name");
  const JsonValue* bfloat16 = find_member(members, "bfloat16");
  const bool is_bfloat16 = bfloat16 != nullptr && json.boolean(*bfloat16, place + ".bfloat16");
  const bool needs_layout = form_of(*role) != RoleForm::kWords;
  if (needs_layout || find_member(members, "layout") != nullptr) {
    json.required(members, "layout", " in " + place);
    const std::optional<TensorReading> reading = read_reading(json, members, place);
    if (!reading) return;
    const Status fits = check_layout(*role, reading->layout);
    if (!fits.ok()) return json.fail({fits.error().code, place + ".layout: " + fits.error().message});
    mapped.reading = *reading;
  }
  std::error_code problem;  // the folder in which the program runs may be gone
  const fs::path whole = fs::absolute(folder / path, problem);
  mapped.file = file_index(origin, (problem ? folder / path : whole).lexically_normal());
  std::vector<std::string>& names = origin.files[mapped.file].bfloat16;
  if (is_bfloat16 && std::ranges::find(names, mapped.name) == names.end()) names.push_back(mapped.name);
  origin.mapping.tensors.push_back(std::move(mapped));
}

}  // namespace

std::optional<TensorReading> read_reading(JsonReader& json, const JsonValue::Members& members,
                                          const std::string& place) {
  const auto number = [&](std::string_view key, int low, int high, int otherwise) {
    const JsonValue* value = find_member(members, key);
    return value == nullptr ? otherwise : json.whole_number(*value, place + "." + std::string(key), low, high);
  };
  const JsonValue* layout = find_member(members, "layout");
  if (layout == nullptr) {
    const auto needs_layout = [](const JsonMember& member) {
      return member.key != "file" && member.key != "name" && member.key != "bfloat16";
    };
    if (std::ranges::any_of(members, needs_layout))
      json.fail(bad_input("the key \"layout\" is missing in " + place + ": it says the axes"));
    return std::nullopt;
  }
  const Result<Layout> parsed = parse_layout(json.text(*layout, place + ".layout"));
  if (!parsed.ok()) json.fail({parsed.error().code, place + ".layout: " + parsed.error().message});
  if (!json.ok()) return std::nullopt;
  constexpr int kMost = 1 << 24;
  TensorReading reading{parsed.value(), number("heads", 1, kMaxHeads, 0), number("kv_heads", 1, kMaxHeads, 0)};
  reading.layer = static_cast<std::uint64_t>(number("layer", 0, kMost, 0));
  reading.batch = static_cast<std::uint64_t>(number("batch", 0, kMost, 0));
  return json.ok() ? std::optional(reading) : std::nullopt;
}

std::shared_ptr<const TensorOrigin> read_origin(JsonReader& json, const JsonValue& value, const fs::path& folder) {
  const JsonValue::Members& members = json.object(value, "mapping");
  json.only_keys(members, {"heads", "kv_heads", "tensors"}, "key", " in mapping");
  TensorOrigin origin;
  if (const JsonValue* heads = find_member(members, "heads")) {
    origin.mapping.heads = origin.mapping.kv_heads = json.whole_number(*heads, "mapping.heads", 1, kMaxHeads);
  }
  if (const JsonValue* heads = find_member(members, "kv_heads")) {
    origin.mapping.kv_heads = json.whole_number(*heads, "mapping.kv_heads", 1, kMaxHeads);
  }
  if (const JsonValue* tensors = json.required(members, "tensors", " in mapping")) {
    for (const JsonMember& member : json.object(*tensors, "mapping.tensors")) {
      if (json.ok()) read_tensor(json, member, folder, origin);
    }
  }
  if (!json.ok() || origin.mapping.tensors.empty()) return nullptr;
  std::ranges::sort(origin.mapping.tensors, {}, &MappedTensor::role);
  return std::make_shared<const TensorOrigin>(std::move(origin));
}

std::string origin_path_text(const fs::path& path, const fs::path& folder) {
  // By the names alone, as it is read: a folder that is a link to another is not left through its other end.
  std::error_code problem;
  const fs::path from = folder.empty() ? fs::path() : fs::absolute(folder, problem).lexically_normal();
  const fs::path relative = problem || from.empty() ? fs::path() : path.lexically_relative(from);
  return sanitize_utf8((relative.empty() ? path : relative).generic_string());
}

}  // namespace qkv
