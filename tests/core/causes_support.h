// What tests of the comparison share: the search itself, and matrices made in slow loops.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/attention/causes.h"
#include "tests/core/slow_attention.h"

namespace qkv::test {

struct Outcome {
  std::vector<Difference> differences;
  Diagnosis diagnosis;
};

inline Outcome compare(const Problem& problem, const std::vector<OtherMatrix>& theirs,
                       double tolerance = kFloat32Tolerance) {
  const Result<Shapes> shapes = check_shapes(problem);
  REQUIRE(shapes.ok());
  InputCache cache(problem, shapes.value());
  Result<std::vector<Difference>> found = differences(cache, theirs, tolerance);
  REQUIRE(found.ok());
  Result<Diagnosis> diagnosis = find_causes(cache, theirs, found.value(), tolerance);
  REQUIRE(diagnosis.ok());
  return {std::move(found).value(), std::move(diagnosis).value()};
}

inline Shapes shapes_of(const Problem& problem) {
  const Result<Shapes> shapes = check_shapes(problem);
  REQUIRE(shapes.ok());
  return shapes.value();
}

// "a", or "a + b" for a pair.
inline std::string named(const CauseFit& explanation) {
  std::string text;
  for (const Cause& cause : explanation.causes) text += (text.empty() ? "" : " + ") + cause.id;
  return text;
}

inline std::string all_named(const Diagnosis& diagnosis) {
  std::string text;
  for (const CauseFit& each : diagnosis.explanations) text += named(each) + " " + std::to_string(each.remaining) + "; ";
  return text;
}

// `id` comes first, completely, or among those that it cannot be told from here.
inline void check_named(const Outcome& outcome, const std::string& id, bool may_tie = false) {
  const Diagnosis& diagnosis = outcome.diagnosis;
  CAPTURE(id);
  CAPTURE(all_named(diagnosis));
  REQUIRE(!diagnosis.explanations.empty());
  CHECK(diagnosis.explanations[0].complete);
  CHECK(diagnosis.explanations[0].remaining <= 1e-7);
  bool among = false;
  for (std::size_t i = 0; i <= diagnosis.ties; ++i) among = among || named(diagnosis.explanations[i]) == id;
  CHECK(among);
  if (!may_tie) {
    CHECK(named(diagnosis.explanations[0]) == id);
    CHECK(diagnosis.ties == 0);
  }
  CHECK(diagnosis.before > 1e-5);
}

// What slow_head makes of each head.
inline std::vector<Slow> slow_heads(const Problem& problem) {
  const Shapes s = shapes_of(problem);
  std::vector<Slow> heads;
  for (int h = 0; h < s.heads; ++h) heads.push_back(slow_head(problem, s, h));
  return heads;
}

inline OtherMatrix attn_of(const std::vector<Slow>& heads) {
  OtherMatrix other{MatrixKind::kAttn};
  for (const Slow& head : heads) other.heads.push_back(head.attn);
  return other;
}

inline OtherMatrix out_of(const std::vector<Slow>& heads) {
  OtherMatrix other{MatrixKind::kHeadsOut};
  for (const Slow& head : heads) other.heads.push_back(head.out);
  return other;
}

// Weights times V, head h reading key/value head floor(h / group).
inline OtherMatrix weigh(const Problem& problem, const OtherMatrix& attn) {
  const auto& source = std::get<DirectSource>(problem.source);
  OtherMatrix other{MatrixKind::kHeadsOut};
  for (std::size_t h = 0; h < attn.heads.size(); ++h) {
    const Matrix& v = source.v[h / (attn.heads.size() / source.v.size())].get();
    MatrixD out = MatrixD::Zero(attn.heads[h].rows(), v.cols());
    for (Index i = 0; i < out.rows(); ++i) {
      for (Index j = 0; j < v.rows(); ++j) {
        for (Index c = 0; c < out.cols(); ++c) out(i, c) += attn.heads[h](i, j) * static_cast<double>(v(j, c));
      }
    }
    other.heads.push_back(out);
  }
  return other;
}

inline Problem with(Problem problem, AttentionOptions options) {
  problem.options = std::move(options);
  return problem;
}

}  // namespace qkv::test
