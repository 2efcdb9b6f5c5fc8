// Reading large files: bytes are counted up to what was announced, and a cancelled reading stops at its next step.
#include "core/base/read_progress.h"

#include <doctest/doctest.h>
#include <zip.h>

#include <cstring>
#include <string>
#include <thread>

#include "core/tensor_io/npz.h"
#include "core/tensor_io/table.h"
#include "core/tensor_io/tensor_file.h"

using namespace qkv;

namespace {

using Shape = std::vector<std::uint64_t>;

constexpr std::uint64_t kRows = 1300, kCols = 1024;  // about five steps of float32

std::vector<float> numbers(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>((i * 7919) % 1009) - 500;
  return values;
}

Bytes npy() { return npy_bytes(Shape{2, kRows, kCols / 2}, numbers(kRows * kCols)); }

// The same numbers with the axes' order turned round.
Bytes npy_in_fortran_order() {
  Bytes bytes = npy();
  const std::size_t at = as_text(bytes).find("False");
  std::memcpy(bytes.data() + at, "True ", 5);
  return bytes;
}

Bytes safetensors() {
  const std::vector<float> values = numbers(kRows * kCols);
  const std::string size = std::to_string(values.size() * sizeof(float));
  std::string text = "{\"x\":{\"dtype\":\"F32\",\"shape\":[2,1300,512],\"data_offsets\":[0," + size + "]}}";
  text.insert(0, 8, '\0');
  text[0] = static_cast<char>(text.size() - 8);
  text.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  const std::span<const std::byte> bytes = as_bytes(text);
  return {bytes.begin(), bytes.end()};
}

// An archive of one entry "x.npy".
Bytes npz(const Bytes& array, zip_int32_t method) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* const target = zip_source_buffer_create(nullptr, 0, 0, &error);
  zip_t* const archive = zip_open_from_source(target, ZIP_TRUNCATE, &error);
  REQUIRE(archive != nullptr);
  zip_source_keep(target);
  const zip_int64_t entry =
      zip_file_add(archive, "x.npy", zip_source_buffer(archive, array.data(), array.size(), 0), ZIP_FL_ENC_UTF_8);
  REQUIRE(zip_set_file_compression(archive, static_cast<zip_uint64_t>(entry), method, 1) == 0);
  REQUIRE(zip_close(archive) == 0);
  zip_stat_t stat;
  REQUIRE(zip_source_stat(target, &stat) == 0);
  Bytes bytes(static_cast<std::size_t>(stat.size));
  REQUIRE(zip_source_open(target) == 0);
  REQUIRE(zip_source_read(target, bytes.data(), bytes.size()) == static_cast<zip_int64_t>(bytes.size()));
  zip_source_close(target);
  zip_source_free(target);
  return bytes;
}

TensorFile opened(const Bytes& bytes) {
  Result<TensorFile> file = TensorFile::from_bytes(bytes, "x");
  REQUIRE_MESSAGE(file.ok(), file.error().message);
  return std::move(file).value();
}

struct Format {
  std::string name;
  Bytes bytes;
  std::uint64_t whole = 0, half = 0;  // bytes that reading [2, …] and its second half count
};

std::vector<Format> formats() {
  const std::uint64_t data = kRows * kCols * sizeof(float), file = npy().size();
  return {{"npy", npy(), data, data / 2},
          {"npy in Fortran order", npy_in_fortran_order(), data, data / 2},
          {"safetensors", safetensors(), data, data / 2},
          {"stored npz", npz(npy(), ZIP_CM_STORE), file, data / 2},
          {"deflated npz", npz(npy(), ZIP_CM_DEFLATE), file, file},
          {"deflated npz in Fortran order", npz(npy_in_fortran_order(), ZIP_CM_DEFLATE), file, file}};
}

// Calls `look` from another thread again and again while `work` goes on.
template <class Work, class Look>
void watched(const Work& work, const Look& look) {
  std::atomic<bool> ends = false;
  std::jthread watcher([&] {
    while (!ends) look();
  });
  work();
  ends = true;
}

}  // namespace

TEST_CASE("read progress: every format counts what it said it would read, and reads the same numbers") {
  for (const Format& format : formats()) {
    CAPTURE(format.name);
    const TensorFile file = opened(format.bytes);
    for (const Shape& leading : {Shape{}, Shape{1}}) {
      const std::uint64_t expected = leading.empty() ? format.whole : format.half;
      CHECK(file.bytes_to_read("x", leading) == expected);
      ReadProgress progress;
      progress.expect(file.bytes_to_read("x", leading));
      const Result<Tensor> tensor = file.read("x", leading, &progress);
      REQUIRE(tensor.ok());
      CHECK(progress.done() == expected);
      CHECK(progress.total() == expected);
      const Result<Tensor> plain = file.read("x", leading);
      CHECK(tensor.value().values == plain.value().values);
      CHECK(tensor.value().shape == plain.value().shape);
    }
    CHECK(file.bytes_to_read("y") == 0);
    CHECK(file.bytes_to_read("x", Shape{2}) == 0);
  }
}

TEST_CASE("read progress: it only grows, up to the total") {
  const TensorFile file = opened(npz(npy(), ZIP_CM_DEFLATE));
  ReadProgress progress;
  progress.expect(file.bytes_to_read("x"));
  std::uint64_t last = 0;
  bool falls = false, exceeds = false;
  watched([&] { CHECK(file.read("x", {}, &progress).ok()); },
          [&] {
            const std::uint64_t done = progress.done();
            falls = falls || done < last;
            exceeds = exceeds || done > progress.total();
            last = done;
          });
  CHECK_FALSE(falls);
  CHECK_FALSE(exceeds);
  CHECK(progress.done() == progress.total());
}

TEST_CASE("read progress: a cancelled reading ends at its first step and says nothing else") {
  for (const Format& format : formats()) {
    CAPTURE(format.name);
    const TensorFile file = opened(format.bytes);
    ReadProgress progress;
    progress.cancel();
    const Result<Tensor> tensor = file.read("x", {}, &progress);
    REQUIRE_FALSE(tensor.ok());
    CHECK(tensor.error().code == ErrorCode::kCancelled);
    CHECK(tensor.error().message == "reading was cancelled");
    CHECK(progress.done() > 0);
    CHECK(progress.done() <= kReadStep);
  }
}

TEST_CASE("read progress: a reading is cancelled midway") {
  for (const Format& format : formats()) {
    CAPTURE(format.name);
    const TensorFile file = opened(format.bytes);
    // A machine under load may finish before the other thread has its turn: then again.
    bool midway = false;
    for (int attempt = 0; attempt < 1000 && !midway; ++attempt) {
      ReadProgress progress;
      std::optional<Result<Tensor>> tensor;
      watched([&] { tensor = file.read("x", {}, &progress); },
              [&] {
                if (progress.done() > 0) progress.cancel();
              });
      if (tensor->ok()) continue;
      CHECK(tensor->error().code == ErrorCode::kCancelled);
      midway = progress.done() > 0 && progress.done() < format.whole;
    }
    CHECK(midway);
  }
}

TEST_CASE("read progress: a table counts its text and can be cancelled") {
  std::string text;
  for (int row = 0; row < 5000; ++row) text += std::to_string(row) + ",0.5,-1.25\n";
  ReadProgress progress;
  const Result<Table> table = parse_table(text, &progress);
  REQUIRE(table.ok());
  CHECK(table.value().rows == 5000);
  CHECK(progress.done() == text.size());
  CHECK(progress.total() == text.size());

  ReadProgress cancelled;
  cancelled.cancel();
  const Result<Table> nothing = parse_table(text, &cancelled);
  REQUIRE_FALSE(nothing.ok());
  CHECK(nothing.error().code == ErrorCode::kCancelled);
  CHECK(cancelled.done() == text.find('\n') + 1);  // one row

  const std::span<const std::byte> bytes = as_bytes(text);
  const TensorFile file = opened({bytes.begin(), bytes.end()});
  CHECK(file.bytes_to_read("x") == 0);  // it is held
}
