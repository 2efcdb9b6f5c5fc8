// Sessions made of large files: all that will be read is announced at once, and counted to its end.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>

#include "core/session/session_file.h"
#include "core/session/session_tensors.h"
#include "tests/core/mapping_support.h"

using namespace qkv;
using namespace qkv::test;

namespace {

namespace fs = std::filesystem;

// Removed with all in it at the end of its scope.
struct Folder {
  fs::path path = fs::temp_directory_path() / ("qkvlab-progress-" + std::to_string(std::rand()));
  Folder() { fs::create_directory(path); }
  ~Folder() { fs::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
};

// What a cancelled reading of the same had read.
std::uint64_t check_counted(const TensorSet& files, std::uint64_t bytes, const MappingRequest& request = {}) {
  const MappingProposal proposal = propose_mapping(files, request);
  REQUIRE_FALSE(proposal.error);
  REQUIRE(proposal.questions.empty());
  ReadProgress progress;
  REQUIRE(apply_mapping(files, proposal.mapping, "t", &progress).ok());
  CHECK(progress.total() == bytes);
  CHECK(progress.done() == bytes);

  ReadProgress cancelled;
  cancelled.cancel();
  const Result<Session> nothing = apply_mapping(files, proposal.mapping, "t", &cancelled);
  REQUIRE_FALSE(nothing.ok());
  CHECK(nothing.error().code == ErrorCode::kCancelled);
  return cancelled.done();
}

constexpr std::uint64_t kHeader = 128;  // of a small .npy array that is read to its end, with its checksum

}  // namespace

TEST_CASE("session progress: a mapping announces what its roles read, and not what it leaves alone") {
  const TensorSet files = set_of({any_array("q", {2, 4, 3}, 1), any_array("k", {2, 4, 3}, 2),
                                  any_array("v", {2, 4, 5}, 3), any_array("other", {100}, 4)});
  CHECK(check_counted(files, 3 * kHeader + 4 * (24 + 24 + 40)) <= kHeader + 4 * 24);
}

TEST_CASE("session progress: one tensor of all three is announced and read once") {
  MappingRequest two_heads;
  two_heads.heads = 2;
  check_counted(set_of({any_array("x", {4, 8}, 1), any_array("wqkv", {8, 24}, 2), any_array("bqkv", {24}, 3),
                        any_array("wo", {8, 8}, 4)}),
                4 * kHeader + 4 * (32 + 192 + 24 + 64), two_heads);
}

TEST_CASE("session progress: attention weights alone") {
  check_counted(set_of({any_array("attn", {3, 2, 4, 4}, 1)}), 4 * 2 * 16);
}

TEST_CASE("session progress: a session file counts its text and the tensors that it refers to") {
  const Folder folder;
  const Result<Bytes> bytes = npz_bytes({any_array("q", {2, 4, 3}, 1), any_array("k", {2, 4, 3}, 2)});
  REQUIRE(bytes.ok());
  REQUIRE(write_file_atomically(folder.path / "t.npz", bytes.value()).ok());
  const std::string text = R"({"qkvlab": 1, "source": {"kind": "qkv", "q": {"file": "t.npz", "name": "q"},
 "k": {"file": "t.npz", "name": "k", "layout": "HND"}, "v": [[[1], [2], [3], [4]], [[5], [6], [7], [8]]]}})";
  ReadProgress progress;
  const Result<Session> session = parse_session(text, folder.path, &progress);
  REQUIRE_MESSAGE(session.ok(), session.error().message);
  CHECK(progress.total() == text.size() + 2 * (kHeader + 96));
  CHECK(progress.done() == progress.total());

  ReadProgress cancelled;
  cancelled.cancel();
  const Result<Session> nothing = parse_session(text, folder.path, &cancelled);
  REQUIRE_FALSE(nothing.ok());
  CHECK(nothing.error().code == ErrorCode::kCancelled);
}

TEST_CASE("session progress: a wrong reference says the same as without progress") {
  const Folder folder;
  const std::string text =
      R"({"qkvlab": 1, "source": {"kind": "qkv", "q": {"file": "none.npz", "name": "q"}, "k": [], "v": []}})";
  ReadProgress progress;
  const Result<Session> with = parse_session(text, folder.path, &progress), without = parse_session(text, folder.path);
  REQUIRE_FALSE(with.ok());
  REQUIRE_FALSE(without.ok());
  CHECK(with.error().message == without.error().message);
  CHECK(with.error().code == without.error().code);
}

TEST_CASE("session progress: a bias that refers to a file is announced and read as a bias") {
  const Folder folder;
  const NamedArray bias = any_array("b", {1, 4, 4}, 3);
  REQUIRE(write_file_atomically(folder.path / "t.npz", npz_bytes({bias}).value()).ok());
  const std::string head = R"({"qkvlab": 1, "source": {"kind": "qkv", "q": [[[1], [2], [3], [4]]],
 "k": [[[1], [2], [3], [4]]], "v": [[[1], [2], [3], [4]]]}, "attention": {"bias": {"file": "t.npz", "name": "b")";
  const std::string text = head + R"(, "layout": "1NN"}}})";
  ReadProgress progress;
  const Result<Session> session = parse_session(text, folder.path, &progress);
  REQUIRE_MESSAGE(session.ok(), session.error().message);
  CHECK(progress.total() == text.size() + kHeader + 64);
  CHECK(progress.done() == progress.total());
  REQUIRE(session.value().problem.options.bias);
  CHECK((*session.value().problem.options.bias)->coeff(2, 1) == std::get<std::vector<float>>(bias.values)[9]);

  // Axes that only Q could have.
  const Result<Session> wrong = parse_session(head + R"(, "layout": "HND"}}})", folder.path);
  REQUIRE_FALSE(wrong.ok());
  CHECK(wrong.error().message.find("bias") != std::string::npos);
}
