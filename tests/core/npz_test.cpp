#include "core/tensor_io/npz.h"

#include <doctest/doctest.h>

#include <cstring>

#include "core/tensor_io/tensor_file.h"

using namespace qkv;

namespace {

std::vector<NamedArray> two_arrays() {
  return {{"q", {2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6.5f}},
          {"keep", {2, 2}, std::vector<std::uint8_t>{1, 0, 1, 1}}};
}

Bytes two_arrays_bytes() {
  Result<Bytes> bytes = npz_bytes(two_arrays());
  REQUIRE_MESSAGE(bytes.ok(), bytes.error().message);
  return std::move(bytes).value();
}

// Every place where `needle` starts.
std::vector<std::size_t> places(const Bytes& bytes, std::string_view needle) {
  std::vector<std::size_t> found;
  for (std::size_t at = 0; (at = as_text(bytes).find(needle, at)) != std::string_view::npos; ++at) found.push_back(at);
  return found;
}

void put(Bytes& bytes, std::size_t at, std::uint64_t value, int count) {
  for (int i = 0; i < count; ++i) bytes[at + static_cast<std::size_t>(i)] = static_cast<std::byte>(value >> (8 * i));
}

constexpr std::string_view kLocalHeader = "PK\x03\x04";
constexpr std::string_view kDirectoryEntry = "PK\x01\x02";

// Changes a field of every directory entry and of every local header. Offsets as in the zip specification.
Bytes with_field(std::size_t directory_offset, std::size_t local_offset, std::uint64_t value, int count) {
  Bytes bytes = two_arrays_bytes();
  for (const std::size_t at : places(bytes, kDirectoryEntry)) put(bytes, at + directory_offset, value, count);
  for (const std::size_t at : places(bytes, kLocalHeader)) put(bytes, at + local_offset, value, count);
  return bytes;
}

// The array opens as listed with a problem, and reading it is an error that names it.
void check_unreadable(Bytes bytes, ErrorCode code, const std::string& words) {
  const Result<TensorFile> file = TensorFile::from_bytes(std::move(bytes), "x");
  REQUIRE_MESSAGE(file.ok(), file.error().message);
  const TensorInfo* info = file.value().find("q");
  REQUIRE(info != nullptr);
  CHECK_MESSAGE(info->problem.find(words) != std::string::npos, info->problem);
  const Result<Tensor> tensor = file.value().read("q");
  REQUIRE_FALSE(tensor.ok());
  CHECK(tensor.error().code == code);
  CHECK_MESSAGE(tensor.error().message.find("array \"q\": ") == 0, tensor.error().message);
  CHECK_MESSAGE(tensor.error().message.find(words) != std::string::npos, tensor.error().message);
}

}  // namespace

TEST_CASE("npz: arrays read back as written, and the bytes are the same each time") {
  const Bytes bytes = two_arrays_bytes();
  CHECK(bytes == two_arrays_bytes());
  CHECK(looks_like_npz(bytes));
  CHECK_FALSE(looks_like_npy(bytes));
  const Result<TensorFile> file = TensorFile::from_bytes(bytes, "unused");
  REQUIRE(file.ok());
  REQUIRE(file.value().tensors().size() == 2);
  CHECK(file.value().tensors()[0].name == "q");
  CHECK(file.value().tensors()[0].problem.empty());
  CHECK(file.value().tensors()[1].name == "keep");
  CHECK(file.value().tensors()[1].dtype == "uint8");
  CHECK(file.value().read("keep").value().values == std::vector<float>{1, 0, 1, 1});
  const Result<Tensor> q = file.value().read("q");
  REQUIRE(q.ok());
  CHECK(q.value().shape == std::vector<std::uint64_t>{2, 3});
  CHECK(q.value().values == std::get<0>(two_arrays()[0].values));
  CHECK(file.value().read_float64("q").value().values[5] == 6.5);
}

TEST_CASE("npz: entries are dated on the first day of zip, not today") {
  const Bytes bytes = two_arrays_bytes();
  for (const std::size_t at : places(bytes, kDirectoryEntry)) {
    CHECK(as_text(bytes).substr(at + 12, 4) == std::string_view("\x00\x00\x21\x00", 4));
  }
}

TEST_CASE("npz: an archive without arrays is read but not written") {
  Bytes bytes(22);
  std::memcpy(bytes.data(), "PK\x05\x06", 4);
  const Result<TensorFile> file = TensorFile::from_bytes(bytes, "x");
  REQUIRE_MESSAGE(file.ok(), file.error().message);
  CHECK(file.value().tensors().empty());
  const Result<Bytes> written = npz_bytes({});
  REQUIRE_FALSE(written.ok());
  CHECK(written.error().message == "there are no arrays to write");
}

TEST_CASE("npz: two arrays of one name cannot be written") {
  const Result<Bytes> bytes = npz_bytes({two_arrays()[0], two_arrays()[0]});
  REQUIRE_FALSE(bytes.ok());
  CHECK(bytes.error().message.find("array \"q\" cannot be added") != std::string::npos);
}

TEST_CASE("npz: NumPy's own file") {
  const Result<TensorFile> file = TensorFile::open(QKV_TEST_DATA "/multi_head_layer.npz");
  REQUIRE_MESSAGE(file.ok(), file.error().message);
  CHECK(file.value().tensors().size() == 16);
  const TensorInfo* q = file.value().find("q");
  REQUIRE(q != nullptr);
  CHECK(q->dtype == "float64");
  CHECK(q->shape == std::vector<std::uint64_t>{4, 9, 8});
  CHECK(q->bytes == 288 * 8);
  CHECK(file.value().read("q").ok());
  CHECK(file.value().read_float64("q").ok());
  CHECK(file.value().find("nothing") == nullptr);
  const Result<Tensor> missing = file.value().read("nothing");
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().message == "there is no array \"nothing\"");
}

TEST_CASE("npz: a .npy is a file of one array") {
  const std::vector<std::uint64_t> shape = {2};
  const std::vector<float> values = {1, 2};
  const Result<TensorFile> file = TensorFile::from_bytes(npy_bytes(shape, values), "weights");
  REQUIRE(file.ok());
  REQUIRE(file.value().tensors().size() == 1);
  CHECK(file.value().tensors()[0].name == "weights");
  CHECK(file.value().read("weights").value().values == values);
  CHECK(file.value().read_float64("weights").value().values[1] == 2);
}

TEST_CASE("npz: a file of no kind that is read") {
  for (const std::string_view text : {"", "PK", "hello", "{}"}) {
    const auto bytes = as_bytes(text);
    const Result<TensorFile> file = TensorFile::from_bytes({bytes.begin(), bytes.end()}, "x");
    REQUIRE_FALSE(file.ok());
    CHECK(file.error().code == ErrorCode::kBadInput);
    CHECK(file.error().message.find(kAcceptedFiles) != std::string::npos);
  }
  const Result<TensorFile> missing = TensorFile::open("/nonexistent/x.npz");
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().code == ErrorCode::kCannotRead);
}

TEST_CASE("npz: every length short of the whole is an error") {
  const Bytes whole = two_arrays_bytes();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const Bytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    const Result<TensorFile> file = TensorFile::from_bytes(part, "x");
    REQUIRE_FALSE(file.ok());
    CHECK(file.error().code == ErrorCode::kBadInput);
  }
}

TEST_CASE("npz: every single changed byte is read or refused, never worse") {
  const Bytes whole = two_arrays_bytes();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const int value : {0, 1, 0x7f, 0xff}) {
      Bytes changed = whole;
      changed[i] = static_cast<std::byte>(value);
      const Result<TensorFile> file = TensorFile::from_bytes(std::move(changed), "x");
      if (!file.ok()) continue;
      for (const TensorInfo& info : file.value().tensors()) {
        const Result<Tensor> tensor = file.value().read(info.name);
        if (!tensor.ok()) continue;
        std::uint64_t count = 1;
        for (const std::uint64_t dimension : info.shape) count *= dimension;
        CHECK(tensor.value().values.size() == count);
      }
    }
  }
}

TEST_CASE("npz: encrypted entries are refused by name") {
  check_unreadable(with_field(8, 6, 1, 2), ErrorCode::kUnsupported, "encrypted entries are not read");
}

TEST_CASE("npz: other compression methods are refused by number") {
  check_unreadable(with_field(10, 8, 14, 2), ErrorCode::kUnsupported, "zip compression method 14 is not read");
}

TEST_CASE("npz: an entry that declares more than it can hold is refused before memory is taken for it") {
  check_unreadable(with_field(24, 22, 0xf0000000, 4), ErrorCode::kBadInput, "it declares 4026531840 bytes, more than");
  Bytes deflated = with_field(24, 22, 0xf0000000, 4);
  for (const std::size_t at : places(deflated, kDirectoryEntry)) put(deflated, at + 10, 8, 2);
  for (const std::size_t at : places(deflated, kLocalHeader)) put(deflated, at + 8, 8, 2);
  check_unreadable(deflated, ErrorCode::kBadInput, "it declares 4026531840 bytes, more than");
  check_unreadable(with_field(20, 18, 0xf0000000, 4), ErrorCode::kBadInput,
                   "it claims 4026531840 bytes of an archive of");
}

TEST_CASE("npz: a stored entry whose two sizes differ is refused") {
  const std::uint64_t size = npy_bytes(std::vector<std::uint64_t>{2, 3}, std::get<0>(two_arrays()[0].values)).size();
  check_unreadable(with_field(24, 22, size - 8, 4), ErrorCode::kBadInput, "but holds 152, and is not compressed");
}

TEST_CASE("npz: damaged data is found by its checksum") {
  Bytes bytes = two_arrays_bytes();
  const std::size_t header = places(bytes, "\x93NUMPY")[0];
  bytes[header + 128] ^= std::byte{1};  // the first number
  const Result<TensorFile> file = TensorFile::from_bytes(std::move(bytes), "x");
  REQUIRE(file.ok());
  const Result<Tensor> tensor = file.value().read("q");
  REQUIRE_FALSE(tensor.ok());
  CHECK_MESSAGE(tensor.error().message.find("its bytes are damaged") != std::string::npos, tensor.error().message);
}

TEST_CASE("npz: an array whose header is broken is listed with its problem; the others are read") {
  Bytes bytes = two_arrays_bytes();
  const std::size_t header = places(bytes, "\x93NUMPY")[1];
  bytes[header] = std::byte{0};
  const Result<TensorFile> file = TensorFile::from_bytes(std::move(bytes), "x");
  REQUIRE(file.ok());
  CHECK(file.value().find("keep")->problem.find("not an npy array") == 0);
  CHECK(file.value().read("q").ok());
}

TEST_CASE("npz: names are unique, on one line, and end in .npy") {
  Result<Bytes> made = npz_bytes({{"a", {1}, std::vector<float>{1}}, {"b", {1}, std::vector<float>{2}}});
  REQUIRE(made.ok());
  Bytes same = made.value();
  for (const std::size_t at : places(same, "b.npy")) same[at] = std::byte{'a'};
  const Result<TensorFile> twice = TensorFile::from_bytes(same, "x");
  REQUIRE_FALSE(twice.ok());
  CHECK(twice.error().message.find("two entries of the archive are named \"a\"") != std::string::npos);

  Bytes other = made.value();
  for (const std::size_t at : places(other, "b.npy")) std::memcpy(&other[at], "b.txt", 5);
  for (const std::size_t at : places(other, "a.npy")) other[at] = std::byte{'\n'};
  const Result<TensorFile> file = TensorFile::from_bytes(other, "x");
  REQUIRE(file.ok());
  CHECK(file.value().tensors()[0].name == "?");
  CHECK(file.value().read("?").ok());
  CHECK(file.value().find("b.txt")->problem == "not an array: its name does not end in .npy");
  CHECK(file.value().read("b.txt").error().message.find("array \"b.txt\": ") == 0);
}

TEST_CASE("npz: names that look like paths are names, and nothing is unpacked") {
  const std::vector<std::string> names{"../x", "/etc/x", "a/b/q", "..\\x", "C:\\x"};
  std::vector<NamedArray> arrays;
  for (const std::string& name : names) arrays.push_back({name, {1}, std::vector<float>{2}});
  Result<Bytes> bytes = npz_bytes(arrays);
  REQUIRE_MESSAGE(bytes.ok(), bytes.error().message);
  const Result<TensorFile> file = TensorFile::from_bytes(std::move(bytes).value(), "x");
  REQUIRE(file.ok());
  REQUIRE(file.value().tensors().size() == names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    CHECK(file.value().tensors()[i].name == names[i]);
    CHECK(file.value().read(names[i]).value().values == std::vector<float>{2});
  }
}

TEST_CASE("npz: a PyTorch checkpoint says how to save it") {
  Result<Bytes> made = npz_bytes({{"m/data1234", {1}, std::vector<float>{1}}});
  REQUIRE(made.ok());
  for (const std::size_t at : places(made.value(), "m/data1234.npy")) {
    std::memcpy(&made.value()[at], "model/data.pkl", 14);
  }
  const Result<TensorFile> file = TensorFile::from_bytes(std::move(made).value(), "x");
  REQUIRE_FALSE(file.ok());
  CHECK(file.error().code == ErrorCode::kUnsupported);
  CHECK(file.error().message.find("PyTorch checkpoints are pickled") == 0);
}

TEST_CASE("npz: a part of a stored array is read alone, damage elsewhere does not matter; the whole is checked") {
  std::vector<float> values(1000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  Result<Bytes> made = npz_bytes({{"a", {10, 100}, values}});
  REQUIRE(made.ok());
  made.value()[places(made.value(), "\x93NUMPY")[0] + 128 + 4 * 950] ^= std::byte{1};
  const Result<TensorFile> file = TensorFile::from_bytes(std::move(made).value(), "x");
  REQUIRE(file.ok());
  const std::vector<std::uint64_t> row = {3};
  const Result<Tensor> part = file.value().read("a", row);
  REQUIRE_MESSAGE(part.ok(), part.error().message);
  CHECK(part.value().shape == std::vector<std::uint64_t>{100});
  CHECK(part.value().values.front() == 300);
  CHECK(part.value().values.back() == 399);
  CHECK_FALSE(file.value().read("a").ok());
}

namespace {

void append(Bytes& bytes, std::uint64_t value, int count) {
  for (int i = 0; i < count; ++i) bytes.push_back(static_cast<std::byte>(i < 8 ? value >> (8 * i) : 0));
}
void append(Bytes& bytes, std::span<const std::byte> more) { bytes.insert(bytes.end(), more.begin(), more.end()); }

std::uint32_t crc32(std::span<const std::byte> bytes) {
  std::uint32_t crc = ~0u;
  for (const std::byte byte : bytes) {
    crc ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320 : 0);
  }
  return ~crc;
}

// An archive of one deflated entry "q.npy" that declares `declared` bytes. Its content is one block without
// compression, which deflate allows.
Bytes deflated(std::span<const std::byte> content, std::uint64_t declared) {
  Bytes data{std::byte{1}};  // the last block
  append(data, content.size(), 2);
  append(data, ~content.size(), 2);
  append(data, content);
  const std::string_view name = "q.npy";
  const auto append_common = [&](Bytes& bytes) {  // what both headers say
    append(bytes, 20, 2);                         // version needed
    append(bytes, 0, 2);                          // flags
    append(bytes, 8, 2);                          // deflated
    append(bytes, 0x00210000, 4);                 // 1980-01-01
    append(bytes, crc32(content), 4);
    append(bytes, data.size(), 4);
    append(bytes, declared, 4);
    append(bytes, name.size(), 2);
    append(bytes, 0, 2);  // no extra field
  };
  Bytes bytes;
  append(bytes, as_bytes(kLocalHeader));
  append_common(bytes);
  append(bytes, as_bytes(name));
  append(bytes, data);
  const std::size_t directory = bytes.size();
  append(bytes, as_bytes(kDirectoryEntry));
  append(bytes, 20, 2);  // version made by
  append_common(bytes);
  append(bytes, 0, 14);  // no comment, first disk, attributes, offset of the local header
  append(bytes, as_bytes(name));
  const std::size_t directory_bytes = bytes.size() - directory;
  append(bytes, as_bytes("PK\x05\x06"));
  append(bytes, 0, 4);
  append(bytes, 0x00010001, 4);  // one entry
  append(bytes, directory_bytes, 4);
  append(bytes, directory, 4);
  append(bytes, 0, 2);
  return bytes;
}

}  // namespace

TEST_CASE("npz: deflated data that is longer or shorter than declared") {
  const std::vector<float> values{1, 2, 3, 4};
  const Bytes array = npy_bytes(std::vector<std::uint64_t>{4}, values);
  const Bytes shorter = npy_bytes(std::vector<std::uint64_t>{3}, std::vector<float>{1, 2, 3});
  const auto read = [](const Bytes& bytes) {
    const Result<TensorFile> file = TensorFile::from_bytes(bytes, "x");
    REQUIRE_MESSAGE(file.ok(), file.error().message);
    return file.value().read("q");
  };
  const Result<Tensor> right = read(deflated(array, array.size()));
  REQUIRE_MESSAGE(right.ok(), right.error().message);
  CHECK(right.value().values == values);

  // The header's shape agrees with the declared size, the data does not.
  Bytes cut = array;
  cut.resize(array.size() - 4);
  const Result<Tensor> early = read(deflated(cut, array.size()));
  REQUIRE_FALSE(early.ok());
  CHECK_MESSAGE(early.error().message.find("array \"q\": its bytes ") == 0, early.error().message);
  Bytes long_one = shorter;
  long_one.resize(shorter.size() + 4);
  const Result<Tensor> late = read(deflated(long_one, shorter.size()));
  REQUIRE_FALSE(late.ok());
  CHECK_MESSAGE(late.error().message == "array \"q\": it holds more bytes than it declares", late.error().message);
}

TEST_CASE("npz: a part of a deflated array is read with the checksum of the whole") {
  std::vector<float> values(100);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const Bytes array = npy_bytes(std::vector<std::uint64_t>{10, 10}, values);
  Bytes bytes = deflated(array, array.size());
  const std::vector<std::uint64_t> row = {9};
  const Result<TensorFile> file = TensorFile::from_bytes(bytes, "x");
  REQUIRE(file.ok());
  CHECK(file.value().read("q", row).value().values.back() == 99);
  bytes[places(bytes, "\x93NUMPY")[0] + 128] ^= std::byte{1};  // the first number
  const Result<TensorFile> damaged = TensorFile::from_bytes(bytes, "x");
  REQUIRE(damaged.ok());
  const Result<Tensor> part = damaged.value().read("q", row);
  REQUIRE_FALSE(part.ok());
  CHECK_MESSAGE(part.error().message.find("array \"q\": its bytes are damaged") == 0, part.error().message);
}
