// The session file (.qkv.json): read with every rule checked, written so that it reads back the same.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <variant>

#include "core/base/file.h"
#include "core/session/session.h"
#include "core/tensor_io/tensor_file.h"

namespace qkv {

// Whether the bytes look like a session file (a JSON object) rather than tensors.
bool looks_like_session(std::span<const std::byte> head);

// Where a file that the session at `path` names is looked for.
std::filesystem::path folder_of(const std::filesystem::path& path);

// `folder` resolves {"file": …, "name": …} tensors, which are refused where it is empty: text that is no file has
// nothing beside it. Errors name the key and both numbers where shapes differ;
// JSON errors carry line and column.
// `progress` expects and counts the text and the tensors that it refers to.
Result<Session> parse_session(std::string_view json, const std::filesystem::path& folder,
                              ReadProgress* progress = nullptr);

// One matrix row per line, shortest numbers that read back to the same float32, keys in a fixed order.
// NaN and infinities, which JSON lacks, are the strings "nan", "inf", "-inf". Files that the numbers came from are
// named relative to `folder`, by their whole path where it is empty.
std::string session_to_json(const Session& session, const std::filesystem::path& folder = {});

Result<Session> read_session(const std::filesystem::path& path);
Status write_session(const Session& session, const std::filesystem::path& path);

// Any input file by content: a session, or the tensors that one is yet to be made of (tensor_mapping.h).
Result<std::variant<Session, TensorFile>> open_session_or_tensors(const std::filesystem::path& path,
                                                                  ReadProgress* progress = nullptr);
// The same with tensors made a session: whose inputs are found by name and shape.
Result<Session> open_any(const std::filesystem::path& path);

}  // namespace qkv
