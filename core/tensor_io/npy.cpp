#include "core/tensor_io/npy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <optional>
#include <string_view>

namespace qkv {

static_assert(std::endian::native == std::endian::little, "array data is written as it is held: little endian");

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMaxDimensions = 64;  // NumPy's own limit (2.0)

Error error_at(std::size_t offset, std::string message) { return {ErrorCode::kBadInput, std::move(message), offset}; }

// Where the header's text lies in the array's bytes.
struct HeaderExtent {
  std::size_t begin = 0;
  std::size_t length = 0;
};

Result<HeaderExtent> find_header(std::span<const std::byte> bytes) {
  const std::size_t compared = std::min(bytes.size(), kMagic.size());
  if (as_text(bytes.first(compared)) != kMagic.substr(0, compared)) {
    return error_at(0, "not an npy array: it does not start with \\x93NUMPY");
  }
  if (bytes.size() < 8) return error_at(bytes.size(), "the array ends within its magic and version");
  const auto byte_at = [&](std::size_t i) { return std::to_integer<std::size_t>(bytes[i]); };
  const std::size_t major = byte_at(6);
  const std::size_t minor = byte_at(7);
  if (major < 1 || major > 3 || minor != 0) {
    return error_at(6, "npy version " + std::to_string(major) + "." + std::to_string(minor) +
                           " is unknown: versions 1.0, 2.0 and 3.0 are read");
  }
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  if (bytes.size() < 8 + length_bytes) return error_at(bytes.size(), "the array ends within its header's length");
  HeaderExtent extent{8 + length_bytes, 0};
  for (std::size_t i = 0; i < length_bytes; ++i) extent.length |= byte_at(8 + i) << (8 * i);
  if (extent.length > kMaxNpyHeader) {
    return error_at(8, "the header claims " + std::to_string(extent.length) + " bytes, which no array needs");
  }
  return extent;
}

// A dtype such as "<f4": byte order, kind, size. nullopt for anything longer or of another form.
struct SimpleDescr {
  char order;
  char kind;
  std::uint64_t size;  // bytes of one element, characters for U
};

std::optional<SimpleDescr> simple_descr(std::string_view descr) {
  if (descr.size() < 3 || std::string_view("<>|=").find(descr[0]) == std::string_view::npos) return std::nullopt;
  SimpleDescr simple{descr[0], descr[1], 0};
  const char* const last = descr.data() + descr.size();
  const auto [end, error] = std::from_chars(descr.data() + 2, last, simple.size);
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 31;  // of one element in NumPy
  if (error != std::errc() || end != last || simple.size > kMostBytes) return std::nullopt;
  return simple;
}

// Bytes of one element of a dtype whose data lies in the file; 0 for others, whose size is not checked.
std::uint64_t item_bytes_of(std::string_view descr) {
  const std::optional<SimpleDescr> simple = simple_descr(descr);
  if (!simple) return 0;
  if (simple->kind == 'U') return 4 * simple->size;
  return std::string_view("biufcSV").find(simple->kind) != std::string_view::npos ? simple->size : 0;
}

// The element that a dtype stands for, if it is one that is read.
std::optional<Element> element_of(std::string_view descr) {
  const std::optional<SimpleDescr> simple = simple_descr(descr);
  if (!simple) return std::nullopt;
  const auto [order, kind, size] = *simple;
  const bool big = order == '>';
  if (kind == 'U' && size > 0) return Element{ElementType::kText, 4 * size, big};
  if (kind == 'V' && size == 2 && !big) return Element{ElementType::kBfloat16, 2, false};  // as ml_dtypes saves it
  struct Kind {
    char kind;
    ElementType type;
  };
  constexpr std::array<Kind, 12> kKinds{{{'f', ElementType::kFloat16},
                                         {'f', ElementType::kFloat32},
                                         {'f', ElementType::kFloat64},
                                         {'i', ElementType::kInt8},
                                         {'i', ElementType::kInt16},
                                         {'i', ElementType::kInt32},
                                         {'i', ElementType::kInt64},
                                         {'u', ElementType::kUint8},
                                         {'u', ElementType::kUint16},
                                         {'u', ElementType::kUint32},
                                         {'u', ElementType::kUint64},
                                         {'b', ElementType::kBool}}};
  for (const auto& [known, type] : kKinds) {
    if (known == kind && element_bytes(type) == size) return Element{type, size, big};
  }
  return std::nullopt;
}

// Reads the dictionary of a header: the subset of Python literals that NumPy writes.
class DictParser {
 public:
  // `start` is the text's offset within the array, for errors.
  DictParser(std::string_view text, std::size_t start) : text_(text), start_(start) {}

  std::optional<Error> parse(NpyHeader& header) {
    skip_space();
    if (!take('{')) return fail("the header is no dictionary: \"{\" is missing");
    for (;;) {
      skip_space();
      if (take('}')) break;
      if (auto error = parse_item(header)) return error;
      skip_space();
      if (take(',')) continue;
      if (take('}')) break;
      return fail("\",\" or \"}\" is missing in the header");
    }
    skip_space();
    if (pos_ != text_.size()) return fail("the header goes on after its dictionary");
    if (!seen_descr_) return fail("the header has no 'descr'");
    if (!seen_order_) return fail("the header has no 'fortran_order'");
    if (!seen_shape_) return fail("the header has no 'shape'");
    return std::nullopt;
  }

 private:
  std::optional<Error> parse_item(NpyHeader& header) {
    const std::size_t key_start = pos_;
    std::string key;
    if (!parse_string(key)) return fail("a key in quotes is missing in the header");
    skip_space();
    if (!take(':')) return fail("\":\" is missing after a key of the header");
    skip_space();
    bool* seen = key == "descr"           ? &seen_descr_
                 : key == "fortran_order" ? &seen_order_
                 : key == "shape"         ? &seen_shape_
                                          : nullptr;
    if (seen == nullptr || *seen) {
      pos_ = key_start;
      return fail(seen == nullptr ? "the header has a key other than descr, fortran_order and shape"
                                  : "the header has '" + key + "' twice");
    }
    *seen = true;
    if (seen == &seen_descr_) return parse_descr(header.descr);
    if (seen == &seen_order_) return parse_bool(header.fortran_order);
    return parse_shape(header.shape);
  }

  // A dtype in quotes, or a list of fields, which is kept as written.
  std::optional<Error> parse_descr(std::string& descr) {
    if (parse_string(descr)) return std::nullopt;
    if (!at('[')) return fail("'descr' is neither text nor a list of fields");
    const std::size_t begin = pos_;
    std::size_t depth = 0;
    while (pos_ < text_.size()) {
      const char c = text_[pos_];
      std::string skipped;
      if (c == '\'' || c == '"') {
        if (!parse_string(skipped)) break;
        continue;
      }
      ++pos_;
      if (c == '[' || c == '(' || c == '{') ++depth;
      if ((c == ']' || c == ')' || c == '}') && --depth == 0) {
        descr = text_.substr(begin, pos_ - begin);
        return std::nullopt;
      }
    }
    return fail("the list of 'descr' does not end");
  }

  std::optional<Error> parse_bool(bool& value) {
    for (const bool candidate : {true, false}) {
      const std::string_view word = candidate ? "True" : "False";
      if (text_.substr(pos_, word.size()) != word) continue;
      pos_ += word.size();
      value = candidate;
      return std::nullopt;
    }
    return fail("'fortran_order' is neither True nor False");
  }

  std::optional<Error> parse_shape(std::vector<std::uint64_t>& shape) {
    if (!take('(')) return fail("'shape' is no tuple");
    bool after_comma = true;
    for (;;) {
      skip_space();
      if (take(')')) break;
      if (!after_comma) return fail("\",\" or \")\" is missing in 'shape'");
      if (shape.size() == kMaxDimensions) return fail("'shape' has more than 64 dimensions");
      std::uint64_t dimension = 0;
      if (auto error = parse_dimension(dimension)) return error;
      shape.push_back(dimension);
      skip_space();
      after_comma = take(',');
    }
    if (shape.size() == 1 && !after_comma) return fail("'shape' is a number in brackets, not a tuple");
    return std::nullopt;
  }

  std::optional<Error> parse_dimension(std::uint64_t& dimension) {
    if (at('-')) return fail("'shape' has a negative dimension");
    const char* const begin = text_.data() + pos_;
    const auto [end, code] = std::from_chars(begin, text_.data() + text_.size(), dimension);
    if (code == std::errc::result_out_of_range) return fail("a dimension of 'shape' is beyond 64 bits");
    if (code != std::errc()) return fail("'shape' has something other than whole numbers");
    pos_ += static_cast<std::size_t>(end - begin);
    take('L');  // Python 2 long
    return std::nullopt;
  }

  // A string in either quotes; a backslash skips the character after it and both are kept.
  bool parse_string(std::string& out) {
    if (!at('\'') && !at('"')) return false;
    const char quote = text_[pos_];
    for (std::size_t i = pos_ + 1; i < text_.size(); ++i) {
      if (text_[i] == '\\') {
        ++i;
      } else if (text_[i] == quote) {
        out = text_.substr(pos_ + 1, i - pos_ - 1);
        pos_ = i + 1;
        return true;
      }
    }
    return false;
  }

  void skip_space() {
    while (pos_ < text_.size() && std::string_view(" \t\r\n").find(text_[pos_]) != std::string_view::npos) ++pos_;
  }
  bool at(char c) const { return pos_ < text_.size() && text_[pos_] == c; }
  bool take(char c) {
    if (!at(c)) return false;
    ++pos_;
    return true;
  }
  Error fail(std::string message) const { return error_at(start_ + pos_, std::move(message)); }

  std::string_view text_;
  std::size_t start_;
  std::size_t pos_ = 0;
  bool seen_descr_ = false, seen_order_ = false, seen_shape_ = false;
};

// A dtype fit for a message: printable ASCII, not endless.
std::string shown_descr(std::string_view descr) {
  std::string shown(descr.substr(0, 60));
  for (char& c : shown) {
    if (c < ' ' || c > '~') c = '?';
  }
  return shown;
}

Bytes array_bytes(ElementType type, std::span<const std::uint64_t> shape, std::span<const std::byte> data) {
  Bytes bytes = npy_header(shape, type);
  bytes.insert(bytes.end(), data.begin(), data.end());
  return bytes;
}

}  // namespace

std::size_t npy_data_offset(std::span<const std::byte> first_bytes) {
  const Result<HeaderExtent> extent = find_header(first_bytes);
  return extent.ok() ? extent.value().begin + extent.value().length : 0;
}

Result<NpyHeader> parse_npy_header(std::span<const std::byte> bytes, std::uint64_t total_bytes) {
  const Result<HeaderExtent> found = find_header(bytes);
  if (!found.ok()) return found.error();
  const auto [begin, length] = found.value();
  if (bytes.size() - begin < length || total_bytes < begin + length) {
    return error_at(bytes.size(), "the array ends within its header of " + std::to_string(length) + " bytes");
  }
  NpyHeader header;
  DictParser parser(as_text(bytes.subspan(begin, length)), begin);
  if (std::optional<Error> error = parser.parse(header)) return *error;
  header.data_offset = begin + length;
  header.element = element_of(header.descr);
  header.item_bytes = item_bytes_of(header.descr);
  const std::optional<std::uint64_t> count = element_count(header.shape, header.item_bytes);
  if (!count) return error_at(begin, "the shape " + shape_text(header.shape) + " is larger than any memory");
  header.count = *count;
  if (header.item_bytes == 0) return header;
  const std::uint64_t needed = header.count * header.item_bytes;
  const std::uint64_t present = total_bytes - header.data_offset;
  if (needed != present) {
    return error_at(header.data_offset, "the shape " + shape_text(header.shape) + " of " + header.descr + " needs " +
                                            std::to_string(needed) + " bytes of data, but " + std::to_string(present) +
                                            " follow the header");
  }
  return header;
}

std::string unreadable_reason(const NpyHeader& header) {
  if (header.element) return {};
  const std::string descr = shown_descr(header.descr);
  const bool structured = descr.starts_with('[');
  const std::optional<SimpleDescr> simple = simple_descr(header.descr);
  const bool object = descr == "O" || (descr.size() == 2 && descr[1] == 'O') ||
                      (structured && header.descr.find("'|O'") != std::string::npos);
  if (object) {
    return "pickled Python objects are never read: make numbers of them with arr.astype(\"float32\") and save again "
           "with np.save";
  }
  if (structured) return "the structured dtype " + descr + " is not read: save each field by itself as float32";
  if (!simple) return "dtype " + descr + " is not read: save it as float32";
  switch (simple->kind) {
    case 'c':
      return "complex numbers (dtype " + descr + ") are not read: save arr.real and arr.imag by themselves";
    case 'S':
      return "byte strings (dtype " + descr + ") are not read: save text with arr.astype(\"U\")";
    case 'U':
      return "dtype " + descr + " holds empty texts only";
    default:
      return "dtype " + descr + " is not read: save it as float32";
  }
}

Bytes npy_header(std::span<const std::uint64_t> shape, ElementType type) {
  const std::string_view descr = type == ElementType::kFloat32 ? "<f4" : type == ElementType::kFloat64 ? "<f8" : "|u1";
  std::string head(kMagic);
  head.append("\x01\x00\x00\x00", 4);  // version 1.0, then the header's length
  head += "{'descr': '";
  head += descr;
  head += "', 'fortran_order': False, 'shape': " + shape_text(shape) + ", }";
  head.append(63 - head.size() % 64, ' ');  // data starts at a multiple of 64
  head += '\n';
  const std::size_t length = head.size() - 10;
  head[8] = static_cast<char>(length & 0xff);
  head[9] = static_cast<char>(length >> 8);
  const std::span<const std::byte> bytes = as_bytes(head);
  return {bytes.begin(), bytes.end()};
}

Bytes npy_bytes(std::span<const std::uint64_t> shape, std::span<const float> values) {
  return array_bytes(ElementType::kFloat32, shape, std::as_bytes(values));
}

Bytes npy_bytes(std::span<const std::uint64_t> shape, std::span<const double> values) {
  return array_bytes(ElementType::kFloat64, shape, std::as_bytes(values));
}

Bytes npy_bytes(std::span<const std::uint64_t> shape, std::span<const std::uint8_t> values) {
  return array_bytes(ElementType::kUint8, shape, std::as_bytes(values));
}

std::optional<std::uint64_t> element_count(std::span<const std::uint64_t> shape, std::uint64_t item_bytes) {
  std::uint64_t product = std::max<std::uint64_t>(item_bytes, 1);
  bool is_empty = false;
  for (const std::uint64_t dimension : shape) {
    is_empty = is_empty || dimension == 0;
    if (dimension != 0 && __builtin_mul_overflow(product, dimension, &product)) return std::nullopt;
  }
  return is_empty ? 0 : product / std::max<std::uint64_t>(item_bytes, 1);
}

std::string shape_text(std::span<const std::uint64_t> shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + (shape.size() == 1 ? ",)" : ")");
}

}  // namespace qkv
