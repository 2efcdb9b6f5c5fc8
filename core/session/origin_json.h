// The key "mapping" of a session file, and how a tensor of another file is read: the keys beside "file" and "name".
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "core/session/json_reader.h"
#include "core/session/tensor_origin.h"

namespace qkv {

// "layout": "N(HD)", "heads": 12, "kv_heads": 4, "layer": 3, "batch": 0; nullopt without a layout, which the others
// need, or after an error.
std::optional<TensorReading> read_reading(JsonReader& json, const JsonValue::Members& members,
                                          const std::string& place);

// {"heads": 12, "tensors": {"x": {"file": …, "name": …, "layout": …}, "wq": …}}, paths relative to the session's
// folder. The files are not looked at. nullptr after an error.
std::shared_ptr<const TensorOrigin> read_origin(JsonReader& json, const JsonValue& value,
                                                const std::filesystem::path& folder);

// The path as a session file in `folder` writes it; absolute without a folder.
std::string origin_path_text(const std::filesystem::path& path, const std::filesystem::path& folder);

}  // namespace qkv
