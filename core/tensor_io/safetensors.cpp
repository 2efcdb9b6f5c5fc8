#include "core/tensor_io/safetensors.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "core/base/file.h"
#include "core/base/utf8.h"
#include "core/tensor_io/name_text.h"
#include "core/tensor_io/npy.h"

namespace qkv {

namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kMaxDimensions = 64;
constexpr std::string_view kMetadata = "__metadata__";

Error error_at(std::size_t offset, std::string message) { return {ErrorCode::kBadInput, std::move(message), offset}; }

std::optional<Element> element_of(std::string_view dtype) {
  constexpr std::array<std::pair<std::string_view, ElementType>, 13> kTypes{{{"F16", ElementType::kFloat16},
                                                                             {"BF16", ElementType::kBfloat16},
                                                                             {"F32", ElementType::kFloat32},
                                                                             {"F64", ElementType::kFloat64},
                                                                             {"I8", ElementType::kInt8},
                                                                             {"I16", ElementType::kInt16},
                                                                             {"I32", ElementType::kInt32},
                                                                             {"I64", ElementType::kInt64},
                                                                             {"U8", ElementType::kUint8},
                                                                             {"U16", ElementType::kUint16},
                                                                             {"U32", ElementType::kUint32},
                                                                             {"U64", ElementType::kUint64},
                                                                             {"BOOL", ElementType::kBool}}};
  const auto* const found = std::ranges::find(kTypes, dtype, &std::pair<std::string_view, ElementType>::first);
  if (found == kTypes.end()) return std::nullopt;
  return Element{found->second, element_bytes(found->second), false};
}

// Reads the header from the parser's events. Only what the format allows at a place is taken there, so nothing
// nests deeper than the format does; the first thing that breaks a rule stops the parser.
class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  const std::optional<Error>& error() const { return error_; }
  std::vector<SafetensorsEntry> take_entries() { return std::move(entries_); }

  bool null() override { return unexpected(); }
  bool boolean(bool) override { return unexpected(); }
  bool number_integer(std::int64_t) override { return unexpected(); }
  bool number_unsigned(std::uint64_t value) override {
    if (place_ == Place::kShape) {
      std::vector<std::uint64_t>& shape = entries_.back().shape;
      if (shape.size() == kMaxDimensions) return fail(tensor() + " has more than 64 dimensions");
      shape.push_back(value);
      return true;
    }
    if (place_ != Place::kOffsets) return unexpected();
    if (offsets_seen_ == 2) return fail(tensor() + " must have two \"data_offsets\", begin and end");
    (offsets_seen_++ == 0 ? entries_.back().begin : entries_.back().end) = value;
    return true;
  }
  bool number_float(double, const std::string&) override { return unexpected(); }
  bool string(std::string& value) override {
    if (place_ == Place::kMetadataObject) return true;
    if (place_ != Place::kTensor || key_ != "dtype") return unexpected();
    entries_.back().dtype = std::move(value);
    return true;
  }
  bool binary(nlohmann::json::binary_t&) override { return unexpected(); }

  bool start_object(std::size_t) override {
    if (place_ == Place::kStart) {
      place_ = Place::kTop;
    } else if (place_ == Place::kTop) {
      place_ = key_ == kMetadata ? Place::kMetadataObject : Place::kTensor;
    } else {
      return unexpected();
    }
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kTensor) {
      for (std::size_t i = 0; i < kTensorKeys.size(); ++i) {
        if (!seen_[i]) return fail(tensor() + " has no \"" + std::string(kTensorKeys[i]) + "\"");
      }
    }
    place_ = place_ == Place::kTop ? Place::kEnd : Place::kTop;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::kTensor || key_ == "dtype") return unexpected();
    place_ = key_ == "shape" ? Place::kShape : Place::kOffsets;
    return true;
  }

  bool end_array() override {
    if (place_ == Place::kOffsets && offsets_seen_ != 2) {
      return fail(tensor() + " must have two \"data_offsets\", begin and end");
    }
    place_ = Place::kTensor;
    return true;
  }

  bool key(std::string& name) override {
    key_ = name;
    if (place_ == Place::kTensor) return tensor_key();
    const bool is_metadata = place_ == Place::kMetadataObject;
    if (!(is_metadata ? metadata_names_ : names_).insert(name).second) {
      return fail("the key " + quoted_name(name) + " comes twice in " +
                  (is_metadata ? std::string(kMetadata) : "the header"));
    }
    if (is_metadata || name == kMetadata) return true;
    entries_.emplace_back().name = std::move(name);
    seen_ = {};
    offsets_seen_ = 0;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    if (error_) return false;
    const std::size_t offset = kLengthBytes + (position > 0 ? position - 1 : 0);
    error_ = error_at(offset, "the header is not valid JSON at byte " + std::to_string(offset) + " of the file");
    return false;
  }

 private:
  enum class Place { kStart, kTop, kMetadataObject, kTensor, kShape, kOffsets, kEnd };
  static constexpr std::array<std::string_view, 3> kTensorKeys{"dtype", "shape", "data_offsets"};

  bool tensor_key() {
    const auto* const known = std::ranges::find(kTensorKeys, std::string_view(key_));
    if (known == kTensorKeys.end()) {
      return fail(tensor() + " has the key " + quoted_name(key_) + ": only dtype, shape and data_offsets are allowed");
    }
    bool& seen = seen_[static_cast<std::size_t>(known - kTensorKeys.begin())];
    if (seen) return fail(tensor() + " has \"" + key_ + "\" twice");
    seen = true;
    return true;
  }

  bool fail(std::string message) {
    if (!error_) error_ = bad_input(std::move(message));
    return false;
  }

  // A value of another kind than the format has at this place.
  bool unexpected() {
    switch (place_) {
      case Place::kStart:
      case Place::kEnd:
        return fail("the header is not a JSON object");
      case Place::kTop:
        return fail(quoted_name(key_) + " in the header must be an object");
      case Place::kMetadataObject:
        return fail("the value of " + quoted_name(key_) + " in " + std::string(kMetadata) + " must be text");
      case Place::kTensor:
        return fail(tensor() + ": \"" + key_ + "\" must be " + (key_ == "dtype" ? "text" : "an array"));
      case Place::kShape:
      case Place::kOffsets:
        return fail(tensor() + ": \"" + key_ + "\" may hold whole numbers from 0 only");
    }
    return false;
  }

  std::string tensor() const { return "tensor " + quoted_name(entries_.back().name); }

  Place place_ = Place::kStart;
  std::string key_;
  std::vector<SafetensorsEntry> entries_;
  std::unordered_set<std::string> names_, metadata_names_;
  std::array<bool, 3> seen_{};  // keys of the last entry
  int offsets_seen_ = 0;
  std::optional<Error> error_;
};

// The entry's own offsets, still relative to the data, of which there are `data_bytes`.
Status check_entry(const SafetensorsEntry& entry, std::uint64_t data_bytes) {
  const std::string tensor = "tensor " + quoted_name(entry.name);
  const std::string offsets = "[" + std::to_string(entry.begin) + ", " + std::to_string(entry.end) + "]";
  if (entry.begin > entry.end) return bad_input(tensor + ": its data_offsets " + offsets + " end before they begin");
  if (entry.end > data_bytes) {
    return bad_input(tensor + ": its data_offsets " + offsets + " go beyond the " + std::to_string(data_bytes) +
                     " bytes of data; the file may be cut short");
  }
  const std::uint64_t item_bytes = entry.element ? entry.element->bytes : 0;
  const std::optional<std::uint64_t> count = element_count(entry.shape, item_bytes);
  if (!count) return bad_input(tensor + ": the shape " + shape_text(entry.shape) + " is larger than any memory");
  const std::uint64_t present = entry.end - entry.begin;
  if (!entry.element || *count * item_bytes == present) return Done{};
  return bad_input(tensor + ": the shape " + shape_text(entry.shape) + " of " + entry.dtype + " needs " +
                   std::to_string(*count * item_bytes) + " bytes, but its data_offsets " + offsets + " hold " +
                   std::to_string(present));
}

// Every byte of the data belongs to one tensor.
Status check_cover(const std::vector<SafetensorsEntry>& entries, std::uint64_t data_bytes) {
  std::vector<const SafetensorsEntry*> sorted;
  sorted.reserve(entries.size());
  for (const SafetensorsEntry& entry : entries) sorted.push_back(&entry);
  std::ranges::sort(sorted, {}, [](const SafetensorsEntry* entry) { return std::pair(entry->begin, entry->end); });
  std::uint64_t covered = 0;
  const SafetensorsEntry* before = nullptr;
  for (const SafetensorsEntry* entry : sorted) {
    if (entry->begin < covered) {
      return bad_input("tensors " + quoted_name(before->name) + " and " + quoted_name(entry->name) +
                       " overlap: the second begins at byte " + std::to_string(entry->begin) +
                       " of the data, before the first ends at " + std::to_string(covered));
    }
    if (entry->begin > covered) {
      return bad_input("bytes " + std::to_string(covered) + " to " + std::to_string(entry->begin) +
                       " of the data, before tensor " + quoted_name(entry->name) + ", belong to no tensor");
    }
    covered = entry->end;
    before = entry;
  }
  if (covered == data_bytes) return Done{};
  const std::uint64_t rest = data_bytes - covered;
  return bad_input(rest == 1 ? "the last byte of the file belongs to no tensor"
                             : "the last " + std::to_string(rest) + " bytes of the file belong to no tensor");
}

struct HeaderText {
  std::string_view json;         // without the spaces that may fill it up
  std::uint64_t data_begin = 0;  // bytes from the start of the file
};

Result<HeaderText> header_text(std::span<const std::byte> file) {
  if (file.size() < kLengthBytes) return error_at(file.size(), "the file ends within the length of its header");
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) length |= std::to_integer<std::uint64_t>(file[i]) << (8 * i);
  if (length > kMaxSafetensorsHeader) {
    return error_at(0, "the header claims " + std::to_string(length) + " bytes, more than the 100 MB that a " +
                           "safetensors header may have");
  }
  const std::uint64_t present = file.size() - kLengthBytes;
  if (length > present) {
    return error_at(0, "the header claims " + std::to_string(length) + " bytes, but only " + std::to_string(present) +
                           " follow: the file is cut short");
  }
  std::string_view text = as_text(file.subspan(kLengthBytes, static_cast<std::size_t>(length)));
  if (!text.starts_with('{')) return error_at(kLengthBytes, "the header does not start with \"{\"");
  text.remove_suffix(text.size() - 1 - text.find_last_not_of(' '));
  if (!text.ends_with('}')) {
    return error_at(kLengthBytes + text.size() - 1, "the header does not end with \"}\" and spaces");
  }
  return HeaderText{text, kLengthBytes + length};
}

}  // namespace

bool looks_like_safetensors(std::span<const std::byte> head) {
  if (head.size() <= kLengthBytes || head[kLengthBytes] != std::byte{'{'}) return false;
  const std::string_view length = as_text(head.first(kLengthBytes));  // 8 characters of a text are no length
  return length.find('\0') != std::string_view::npos || !is_valid_utf8(length);
}

Result<std::vector<SafetensorsEntry>> parse_safetensors(std::span<const std::byte> file) {
  const Result<HeaderText> header = header_text(file);
  if (!header.ok()) return header.error();
  const auto [json, data_begin] = header.value();
  HeaderReader reader;
  const bool done = nlohmann::json::sax_parse(json.begin(), json.end(), &reader);
  if (reader.error()) return *reader.error();
  if (!done) return bad_input("the header is not valid JSON");
  const std::uint64_t data_bytes = file.size() - data_begin;

  std::vector<SafetensorsEntry> entries = reader.take_entries();
  for (SafetensorsEntry& entry : entries) {
    entry.element = element_of(entry.dtype);
    const Status status = check_entry(entry, data_bytes);
    if (!status.ok()) return status.error();
  }
  const Status covered = check_cover(entries, data_bytes);
  if (!covered.ok()) return covered.error();
  for (SafetensorsEntry& entry : entries) {
    entry.begin += data_begin;
    entry.end += data_begin;
  }
  return entries;
}

}  // namespace qkv
