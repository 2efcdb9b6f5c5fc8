// What tests of session files and tensor files share.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "core/base/file.h"
#include "core/session/session_file.h"
#include "tests/core/session_equal.h"

namespace qkv::test {

namespace fs = std::filesystem;

// A folder of this test alone, removed with it.
class TempFolder {
 public:
  TempFolder() {
    static int count = 0;
    const std::string name = "qkv_session_test_" + std::to_string(::getpid()) + "_" + std::to_string(count++);
    path_ = fs::temp_directory_path() / name;
    fs::create_directories(path_);
  }
  ~TempFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  fs::path write(const std::string& name, std::span<const std::byte> content) const {
    const Status status = write_file_atomically(path_ / name, content);
    REQUIRE_MESSAGE(status.ok(), status.error().message);
    return path_ / name;
  }
  fs::path write(const std::string& name, std::string_view content) const { return write(name, as_bytes(content)); }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

inline Matrix matrix_of(Index rows, Index cols, float start = 0) {
  Matrix matrix(rows, cols);
  for (Index i = 0; i < matrix.size(); ++i) matrix.data()[i] = start + 0.1f * static_cast<float>(i);
  return matrix;
}

inline void check_same(const Session& a, const Session& b) {
  CHECK(same_session(a, b));
  CHECK(a.view == b.view);
}

inline Session projected_session() {
  Session session;
  session.title = "Two heads \"side by side\"";
  session.note = "First line\nsecond\tline \\ \x01 end";
  session.tokens = {"a", "", "\u8001\u9f20"};
  session.split = TokenSplit::kCjk;
  ProjectedSource source;
  source.x = matrix_of(3, 4);
  source.wq = matrix_of(4, 6, -1);
  source.wk = matrix_of(4, 3, 2);
  source.wv = matrix_of(4, 2, 3);
  source.bq = matrix_of(1, 6);
  source.bk = matrix_of(1, 3);
  source.heads = 2;
  source.kv_heads = 1;
  session.problem.source = source;
  session.problem.wo = matrix_of(4, 5);
  session.problem.bo = matrix_of(1, 5);
  session.problem.options = {0.3f, true, CausalAlign::kTopLeft, {1, 0, 1}};
  session.view = {Tab::kConcat, 1, "magma", "other", {RangeMode::kCustom, -0.1f, 7}, {RangeMode::kAuto, -1, 1}, 6};
  return session;
}

// What is written reads back the same, bit for bit.
inline void check_round_trip(const Session& session) {
  REQUIRE(check_session(session).ok());
  const std::string json = session_to_json(session);
  const Result<Session> back = parse_session(json, {});
  REQUIRE_MESSAGE(back.ok(), back.error().message);
  check_same(session, back.value());
  CHECK(session_to_json(back.value()) == json);
}

// A session of two tokens and d = 2 with parts replaced.
struct Parts {
  std::string version = "1";
  std::string extra = {};  // members, each with a comma after it
  std::string q = "[[[1, 2], [3, 4]]]";
  std::string source_extra = {};
  std::string k = "[[[1, 2], [3, 4]]]";
  std::string json() const {
    return "{\"qkvlab\": " + version + ", " + extra + "\"source\": {\"kind\": \"qkv\", " + source_extra +
           "\"q\": " + q + ", \"k\": " + k + ", \"v\": [[[1, 2], [3, 4]]]}}";
  }
};

// Not a session, and why.
inline void check_error(const std::string& json, ErrorCode code, const std::string& words,
                        const fs::path& folder = {}) {
  CAPTURE(json.substr(0, 300));
  const Result<Session> session = parse_session(json, folder);
  REQUIRE_FALSE(session.ok());
  INFO(session.error().message);
  CHECK(session.error().code == code);
  CHECK(session.error().message.find(words) != std::string::npos);
  CHECK(session.error().message.find('\n') == std::string::npos);
}

}  // namespace qkv::test
