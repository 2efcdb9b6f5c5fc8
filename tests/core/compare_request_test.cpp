// What a person says of somebody else's arrays: which is what, their axes, their layer and batch.
#include "core/session/compare_request.h"

#include <doctest/doctest.h>

#include "core/session/compare_candidates.h"
#include "core/session/session_tensors.h"
#include "tests/core/mapping_support.h"

using namespace qkv;
using namespace qkv::test;

namespace {

constexpr std::uint64_t kHeads = 2, kTokens = 5, kSize = 3;

Session three_heads_less_one() {
  return opened({any_array("q", {kHeads, kTokens, kSize}, 1), any_array("k", {kHeads, kTokens, kSize}, 2),
                 any_array("v", {kHeads, kTokens, kSize}, 3)});
}

// The session's own weights or outputs, where `layer` and `batch` are those asked for, and zeros elsewhere.
NamedArray results_of(const Session& session, MatrixKind kind, const std::string& name, const Shape& shape,
                      const std::function<At(Index head, Index row, Index col)>& place) {
  InputCache cache(session.problem, check_session(session).value());
  const OtherMatrix ours = our_matrix(cache, kind);
  NamedArray array = array_of(name, shape, [](const At&) { return 0.0f; });
  auto& values = std::get<std::vector<float>>(array.values);
  for (std::size_t head = 0; head < ours.heads.size(); ++head) {
    const MatrixD& matrix = ours.heads[head];
    for (Index row = 0; row < matrix.rows(); ++row) {
      for (Index col = 0; col < matrix.cols(); ++col) {
        const At at = place(static_cast<Index>(head), row, col);
        std::uint64_t offset = 0;
        for (std::size_t axis = 0; axis < shape.size(); ++axis) offset = offset * shape[axis] + at[axis];
        values[offset] = static_cast<float>(matrix(row, col));
      }
    }
  }
  return array;
}

std::uint64_t u(Index index) { return static_cast<std::uint64_t>(index); }

Result<Comparison> compared(const Session& session, const std::vector<NamedArray>& arrays,
                            const MappingRequest& request, std::vector<NamePair> names = {}) {
  const NamedTensors file = file_of("theirs.npz", arrays);
  const Result<RequestedPairs> pairs = requested_pairs(file.file, request, std::move(names));
  if (!pairs.ok()) return pairs.error();
  return compare_arrays(session, file.file, pairs.value().pairs);
}

Comparison equal(const Session& session, const std::vector<NamedArray>& arrays, const MappingRequest& request) {
  Result<Comparison> comparison = compared(session, arrays, request);
  REQUIRE_MESSAGE(comparison.ok(), (comparison.ok() ? "" : comparison.error().message));
  CHECK(comparison.value().equal());
  return std::move(comparison).value();
}

void check_refused(const Session& session, const std::vector<NamedArray>& arrays, const MappingRequest& request,
                   const std::string& words) {
  const Result<Comparison> comparison = compared(session, arrays, request);
  REQUIRE_FALSE(comparison.ok());
  const std::string& message = comparison.error().message;
  CHECK_MESSAGE(message.find(words) != std::string::npos, message << " should say: " << words);
}

MappingRequest request_of(const std::string& map, const std::string& layout = "") {
  MappingRequest request;
  REQUIRE(read_map_text(map, request).ok());
  if (!layout.empty()) REQUIRE(read_layout_text(layout, request).ok());
  return request;
}

}  // namespace

TEST_CASE("compare request: a layer and a batch of attentions, by name and by layout") {
  const Session session = three_heads_less_one();
  const NamedArray attentions = results_of(session, MatrixKind::kAttn, "attentions", {3, 4, kHeads, kTokens, kTokens},
                                           [](Index head, Index row, Index col) {
                                             return At{2, 1, u(head), u(row), u(col)};
                                           });
  MappingRequest request = request_of("attn=attentions");
  request.layer = 2;
  request.batch = 1;
  const Comparison found = equal(session, {attentions}, request);
  REQUIRE(found.arrays.size() == 1);
  CHECK(found.arrays[0].shape == Shape{kHeads, kTokens, kTokens});
  CHECK(equal(session, {attentions},
              [&] {
                MappingRequest laid_out = request_of("attn=attentions", "attn=LBHNN");
                laid_out.layer = 2;
                laid_out.batch = 1;
                return laid_out;
              }())
            .arrays[0]
            .reading == "LBHNN");
  request.layer = 1;
  CHECK_FALSE(compared(session, {attentions}, request).value().equal());
  request.layer = 3;
  check_refused(session, {attentions}, request, "there is no index 3 on axis 0");
}

TEST_CASE("compare request: arrays that bear our names, in other orders of axes") {
  const Session session = three_heads_less_one();
  const NamedArray scores =
      results_of(session, MatrixKind::kScores, "scores", {kTokens, kHeads, kTokens}, [](Index h, Index i, Index j) {
        return At{u(i), u(h), u(j)};
      });
  const NamedArray outputs = results_of(session, MatrixKind::kHeadsOut, "heads_out", {2, kTokens, kHeads * kSize},
                                        [](Index h, Index i, Index c) {
                                          return At{1, u(i), u(h) * kSize + u(c)};
                                        });
  MappingRequest request;
  REQUIRE(read_layout_text("scores=NHN", request).ok());
  const Comparison by_role = equal(session, {scores}, request);
  CHECK(by_role.arrays[0].reading == "NHN");

  // One layout for all that can have it; a batch of it.
  MappingRequest all;
  REQUIRE(read_layout_text("BN(HD)", all).ok());
  all.batch = 1;
  const NamedTensors file = file_of("x", {outputs});
  const Result<RequestedPairs> pairs = requested_pairs(file.file, all, {});
  REQUIRE(pairs.ok());
  CHECK(pairs.value().took_batch);
  CHECK_FALSE(pairs.value().took_layer);
  CHECK(equal(session, {outputs}, all).arrays[0].reading == "BN(HD)");
  all.batch = 0;
  CHECK_FALSE(compared(session, {outputs}, all).value().equal());

  // What is not said stays as it is found.
  const NamedArray attn =
      results_of(session, MatrixKind::kAttn, "attn", {kHeads, kTokens, kTokens}, [](Index h, Index i, Index j) {
        return At{u(h), u(i), u(j)};
      });
  CHECK(equal(session, {scores, attn}, request).arrays.size() == 2);
}

TEST_CASE("compare request: one matrix of weights is the mean over the heads") {
  const Session session = three_heads_less_one();
  InputCache cache(session.problem, check_session(session).value());
  const OtherMatrix ours = our_matrix(cache, MatrixKind::kAttn);
  const MatrixD mean = (ours.heads[0] + ours.heads[1]) / 2;
  const NamedArray weights = array_of("w", {kTokens, kTokens}, [&](const At& at) {
    return static_cast<float>(mean(static_cast<Index>(at[0]), static_cast<Index>(at[1])));
  });
  const Comparison found = equal(session, {weights}, request_of("attn=w", "attn=NN"));
  CHECK(found.theirs[0].mean_of_heads);
  CHECK(found.arrays[0].reading == "NN, the mean over the heads");
}

TEST_CASE("compare request: what is not there, does not fit, or may be two things") {
  const Session session = three_heads_less_one();
  const NamedArray attn = any_array("a", {3, kHeads, kTokens, kTokens});
  check_refused(session, {attn}, request_of("attn=b"), "there is no array \"b\" for attn");
  check_refused(session, {attn}, request_of("tokens=a"), "tokens is nothing that is compared cell by cell");
  MappingRequest absent;
  REQUIRE(read_layout_text("attn=HNN", absent).ok());
  check_refused(session, {attn}, absent, "there is no attn to read as HNN");
  MappingRequest none;
  REQUIRE(read_layout_text("HDO", none).ok());
  check_refused(session, {attn}, none, "the layout HDO has an axis for none of the arrays");
  MappingRequest both = request_of("attn=a");
  both.layer = 1;
  both.batch = 0;
  check_refused(session, {attn}, both,
                "\"a\" (3, 2, 5, 5) has one axis before those of a matrix: give --layer or --batch, not both");
  check_refused(session, {attn}, request_of("attn=a", "attn=HNN"), "\"a\" has the shape (3, 2, 5, 5)");
  check_refused(session, {any_array("a", {kHeads, 4, kTokens})}, request_of("attn=a", "attn=HNN"),
                "\"a\" read as HNN is (2, 4, 5), but attn here is (2, 5, 5)");
}

TEST_CASE("compare candidates: arrays and parts of arrays that are read as a matrix") {
  const auto info = [](const std::string& name, Shape shape) {
    TensorInfo array;
    array.name = name;
    array.shape = std::move(shape);
    return array;
  };
  TensorInfo broken = info("broken", {2, 5, 5});
  broken.problem = "its data is too short";
  const std::vector<TensorInfo> arrays = {
      info("w", {1, 2, 5, 5}), info("flat", {50}),       info("all", {3, 2, 2, 5, 5}), info("mean", {2, 1, 5, 5}),
      info("rows", {5, 10}),   info("other", {2, 5, 4}), info("none", {0, 2, 5, 5}),   broken};
  const auto texts = [&](MatrixKind kind, const KindShape& shape) {
    std::vector<std::string> found;
    for (const auto& [pair, array] : candidates_for(arrays, kind, shape, 2)) {
      CHECK(array->name == pair.theirs);
      CHECK(pair.ours == kind);
      CHECK(parse_name_pair(part_text(pair) + "=" + std::string(file_key(kind))).value().leading == pair.leading);
      found.push_back(part_text(pair));
    }
    return found;
  };
  // The last is the mean of the weights over the heads.
  CHECK(texts(MatrixKind::kAttn, {2, 5, 5}) == std::vector<std::string>{"w", "all[0,0]", "all[0,1]", "all[1,0]",
                                                                        "all[1,1]", "all[2,0]", "all[2,1]", "mean[0,0]",
                                                                        "mean[1,0]"});
  CHECK(texts(MatrixKind::kHeadsOut, {2, 5, 4}) == std::vector<std::string>{"other"});
  CHECK(texts(MatrixKind::kHeadsOut, {2, 5, 5}).back() == "rows");  // side by side
  CHECK(texts(MatrixKind::kConcat, {1, 5, 8}) == std::vector<std::string>{"other"});
  CHECK(texts(MatrixKind::kBq, {1, 1, 50}) == std::vector<std::string>{"flat"});
  CHECK(texts(MatrixKind::kScores, {8, 7, 4}).empty());
  const std::vector<TensorInfo> many = {info("many", {600, 2, 3}), info("more", {2, 3})};
  CHECK(candidates_for(many, MatrixKind::kOut, {1, 2, 3}, 1).size() == kMostCandidates);
}
