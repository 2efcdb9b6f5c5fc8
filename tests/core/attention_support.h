// Small attention problems for tests.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <initializer_list>
#include <limits>
#include <random>
#include <string>
#include <utility>

#include "core/attention/forward.h"

namespace qkv::test {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInf = std::numeric_limits<float>::infinity();

inline Matrix matrix(std::initializer_list<std::initializer_list<float>> rows) { return Matrix(rows); }

inline Matrix random_matrix(Index rows, Index cols, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  return Matrix::NullaryExpr(rows, cols, [&] { return normal(random); });
}

inline Problem direct(Matrix q, Matrix k, Matrix v, AttentionOptions options = {}) {
  return {.source = DirectSource{{std::move(q)}, {std::move(k)}, {std::move(v)}}, .options = std::move(options)};
}

// `heads` query heads over `kv_heads`, of random numbers.
inline Problem random_problem(int heads, int kv_heads, Index nq, Index nk, Index d_k, Index d_v, unsigned seed = 1) {
  DirectSource source;
  for (int h = 0; h < heads; ++h) source.q.emplace_back(random_matrix(nq, d_k, seed++));
  for (int h = 0; h < kv_heads; ++h) {
    source.k.emplace_back(random_matrix(nk, d_k, seed++));
    source.v.emplace_back(random_matrix(nk, d_v, seed++));
  }
  return {.source = std::move(source)};
}

inline Problem projected_problem() {
  return {.source = ProjectedSource{.x = random_matrix(5, 6, 1),
                                    .wq = random_matrix(6, 8, 2),
                                    .wk = random_matrix(6, 4, 3),
                                    .wv = random_matrix(6, 6, 4),
                                    .bq = random_matrix(1, 8, 5),
                                    .bk = random_matrix(1, 4, 6),
                                    .bv = random_matrix(1, 6, 7),
                                    .heads = 4,
                                    .kv_heads = 2},
          .wo = random_matrix(12, 7, 8),
          .bo = random_matrix(1, 7, 9)};
}

inline DirectSource& source_of(Problem& problem) { return std::get<DirectSource>(problem.source); }
inline ProjectedSource& projected_of(Problem& problem) { return std::get<ProjectedSource>(problem.source); }

inline Trace run(const Problem& problem) {
  Result<Trace> trace = forward(problem);
  REQUIRE_MESSAGE(trace.ok(), (trace.ok() ? "" : trace.error().message));
  return std::move(trace).value();
}

inline void check_near(const Matrix& got, const Matrix& want, float tolerance) {
  REQUIRE(got.rows() == want.rows());
  REQUIRE(got.cols() == want.cols());
  for (Index i = 0; i < got.size(); ++i) {
    CHECK_MESSAGE(std::abs(got.data()[i] - want.data()[i]) <= tolerance, i, ": ", got.data()[i], " ", want.data()[i]);
  }
}

// The message of the error that check_shapes gives.
inline std::string objection(const Problem& problem) {
  const Result<Shapes> shapes = check_shapes(problem);
  if (shapes.ok()) return "";
  CHECK(shapes.error().code == ErrorCode::kBadInput);
  CHECK(!forward(problem).ok());
  return shapes.error().message;
}

}  // namespace qkv::test
