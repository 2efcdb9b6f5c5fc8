// What the forward pass is made of: shapes, softmax, masks, statistics, names, reading.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "core/attention/forward.h"
#include "core/attention/head_stats.h"
#include "tests/core/attention_support.h"

using namespace qkv;
using namespace qkv::test;

TEST_SUITE("check_shapes") {
  TEST_CASE("a direct source") {
    const Problem good = random_problem(4, 2, 5, 6, 3, 2);
    REQUIRE(check_shapes(good).ok());
    CHECK(check_shapes(good).value() == Shapes{.nq = 5, .nk = 6, .heads = 4, .kv_heads = 2, .d_k = 3, .d_v = 2});
    const auto with = [&good](auto&& edit) {
      Problem problem = good;
      edit(source_of(problem));
      return objection(problem);
    };
    CHECK(with([](auto& s) { s.k = {Matrix(6, 4), Matrix(6, 4)}; }) == "k has 4 columns but q has 3: both need d_k");
    CHECK(with([](auto& s) {
            s.v = {Matrix(1, 2), Matrix(1, 2)};
          }) == "v has 1 row but k has 6: both need one row for each key");
    CHECK(with([](auto& s) { s.q.pop_back(); }) ==
          "q has 3 heads but k and v have 2: the heads of q must be a multiple of the heads of k and v");
    CHECK(with([](auto& s) { s.v.pop_back(); }) == "v has 1 head but k has 2: both need the same number of heads");
    CHECK(with([](auto& s) { s.q[2] = Matrix(5, 4); }) ==
          "q[2] is 5×4 but q[0] is 5×3: every head of q needs the same shape");
    CHECK(with([](auto& s) { s.k[1] = Matrix(7, 3); }) ==
          "k[1] is 7×3 but k[0] is 6×3: every head of k needs the same shape");
    CHECK(with([](auto& s) { s.v[1] = Matrix(6, 1); }) ==
          "v[1] is 6×1 but v[0] is 6×2: every head of v needs the same shape");
    CHECK(with([](auto& s) { s.q.clear(); }) == "q has 0 heads: it needs at least one");
    CHECK(with([](auto& s) { s.k.clear(); }) == "k has 0 heads: it needs at least one");
    CHECK(with([](auto& s) { s.v[0] = Matrix(6, 0); }) == "v is 6×0: it needs at least one row and one column");
    CHECK(objection({}) == "q has 0 heads: it needs at least one");
  }

  TEST_CASE("a projected source") {
    const Problem good = projected_problem();
    REQUIRE(check_shapes(good).ok());
    const auto with = [&good](auto&& edit) {
      Problem problem = good;
      edit(projected_of(problem));
      return objection(problem);
    };
    CHECK(with([](auto& s) { s.x = Matrix(0, 6); }) == "x is 0×6: it needs at least one row and one column");
    CHECK(with([](auto& s) { s.wq = Matrix(5, 8); }) == "wq has 5 rows but x has 6 columns: both need d_model");
    CHECK(with([](auto& s) { s.wk = Matrix(7, 4); }) == "wk has 7 rows but x has 6 columns: both need d_model");
    CHECK(with([](auto& s) { s.wv = Matrix(1, 6); }) == "wv has 1 row but x has 6 columns: both need d_model");
    CHECK(with([](auto& s) { s.wq = Matrix(6, 9); }) ==
          "wq has 9 columns but heads is 4: the columns must be a multiple of heads");
    CHECK(with([](auto& s) { s.wv = Matrix(6, 7); }) ==
          "wv has 7 columns but kv_heads is 2: the columns must be a multiple of kv_heads");
    CHECK(with([](auto& s) { s.wk = Matrix(6, 6); }) ==
          "wk gives 3 columns a head (6 / 2) but wq gives 2 (8 / 4): both need d_k");
    CHECK(with([](auto& s) { s.bq = Matrix(1, 7); }) == "bq is 1×7 but wq has 8 columns: bq needs to be 1×8");
    CHECK(with([](auto& s) { s.bk = Matrix(2, 4); }) == "bk is 2×4 but wk has 4 columns: bk needs to be 1×4");
    CHECK(with([](auto& s) { s.bv = Matrix(6, 1); }) == "bv is 6×1 but wv has 6 columns: bv needs to be 1×6");
    CHECK(with([](auto& s) { s.heads = 3; }) ==
          "q has 3 heads but k and v have 2: the heads of q must be a multiple of the heads of k and v");
    CHECK(with([](auto& s) { s.heads = 0; }) == "heads is 0: it needs to be at least 1");
    CHECK(with([](auto& s) { s.kv_heads = -1; }) == "kv_heads is -1: it needs to be at least 1");
  }

  TEST_CASE("the output projection and the options") {
    Problem problem = projected_problem();
    problem.wo = Matrix(11, 7);
    CHECK(objection(problem) == "wo has 11 rows but the heads side by side have 12 columns (4·3): both need heads·d_v");
    problem.wo = Matrix(12, 8);
    CHECK(objection(problem) == "bo is 1×7 but wo has 8 columns: bo needs to be 1×8");
    problem.wo.reset();
    CHECK(objection(problem) == "bo is 1×7 but there is no wo: add wo or remove bo");
    problem.bo.reset();
    CHECK(objection(problem) == "");

    problem.options.key_valid = {1, 1, 1};
    CHECK(objection(problem) == "key_valid has 3 entries but there are 5 keys: it needs one entry for each key");
    problem.options = {.scale = kNan};
    CHECK(objection(problem) == "scale is NaN: it needs to be a finite number, or absent for 1/√d_k");
    problem.options = {.scale = -kInf};
    CHECK(objection(problem) == "scale is -inf: it needs to be a finite number, or absent for 1/√d_k");
  }
}

TEST_SUITE("softmax_row") {
  TEST_CASE("in place, with its statistics") {
    std::vector<double> row = {1, 2, 700, 3};
    const std::vector<std::uint8_t> keep = {1, 1, 0, 1};
    const RowStats stats = softmax_row(row, keep, row);
    CHECK(stats.max == 3);
    CHECK(stats.visible == 3);
    CHECK(stats.denominator == doctest::Approx(1 + std::exp(-1.0) + std::exp(-2.0)).epsilon(1e-15));
    CHECK(row[2] == 0);
    CHECK(row[0] + row[1] + row[3] == doctest::Approx(1).epsilon(1e-15));
    CHECK(row[3] == 1 / stats.denominator);
  }

  TEST_CASE("visible NaN and Inf make every visible weight NaN, and leave hidden ones 0") {
    const double inf = std::numeric_limits<double>::infinity();
    for (const double value : {std::nan(""), inf}) {
      for (const std::size_t at : {std::size_t{0}, std::size_t{2}}) {
        std::vector<double> row = {1, 2, 3, 4}, weights(4);
        row[at] = value;
        softmax_row(row, std::vector<std::uint8_t>{1, 1, 1, 0}, weights);
        CHECK(std::isnan(weights[0]));
        CHECK(std::isnan(weights[1]));
        CHECK(std::isnan(weights[2]));
        CHECK(weights[3] == 0);
      }
    }
    std::vector<double> row = {-inf, 0, 0};
    softmax_row(row, std::vector<std::uint8_t>{1, 1, 1}, row);
    CHECK(row == std::vector<double>{0, 0.5, 0.5});
  }

  TEST_CASE("no visible key, or no key") {
    std::vector<double> row = {std::nan(""), 5};
    CHECK(softmax_row(row, std::vector<std::uint8_t>{0, 0}, row).visible == 0);
    CHECK(row == std::vector<double>{0, 0});
    CHECK(softmax_row({}, {}, {}).visible == 0);
  }
}

TEST_SUITE("masks") {
  TEST_CASE("the reason that a key is hidden") {
    const AttentionOptions options = {.causal = true, .key_valid = {1, 0, 1, 1}};
    CHECK(mask_reason(options, 2, 4, 0, 0) == MaskReason::kVisible);
    CHECK(mask_reason(options, 2, 4, 0, 1) == MaskReason::kPadding);
    CHECK(mask_reason(options, 2, 4, 0, 2) == MaskReason::kVisible);
    CHECK(mask_reason(options, 2, 4, 0, 3) == MaskReason::kCausal);
    const AttentionOptions top_left = {.causal = true, .align = CausalAlign::kTopLeft};
    CHECK(mask_reason(top_left, 2, 4, 0, 1) == MaskReason::kCausal);
    CHECK(mask_reason(top_left, 2, 4, 1, 1) == MaskReason::kVisible);
    const KeepMatrix keep = keep_matrix(options, 2, 4);
    CHECK(keep.cast<float>() == matrix({{1, 0, 1, 0}, {1, 0, 1, 1}}));
  }
}

TEST_SUITE("head_stats") {
  TEST_CASE("uniform, one-hot and mixed rows") {
    const std::vector<Index> all = {4, 4, 4};
    const HeadStats uniform = head_stats(Matrix(Matrix::Constant(3, 4, 0.25f)), all, 0);
    // Entropies come from float32 logarithms, which are off by an ulp or two.
    CHECK(uniform.entropy == doctest::Approx(std::log(4.0)).epsilon(3e-7));
    CHECK(uniform.max_entropy == doctest::Approx(std::log(4.0)).epsilon(1e-15));
    CHECK(uniform.first_token == 0.25);
    CHECK(uniform.previous_token == 0.25);
    CHECK(uniform.diagonal == 0.25);

    // The last query is aligned with the last key: query i stands at key i + 1.
    const HeadStats diagonal = head_stats(matrix({{0, 1, 0, 0}, {0, 0, 1, 0}, {0, 1, 0, 0}}), all, 1);
    CHECK(diagonal.entropy == 0);
    CHECK(diagonal.diagonal == doctest::Approx(2.0 / 3));
    CHECK(diagonal.previous_token == 0);
    CHECK(diagonal.first_token == 0);
    CHECK(head_stats(matrix({{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}}), all, 1).previous_token == 1);
  }

  TEST_CASE("dead rows, NaN rows and rows without a previous key are left out") {
    const Matrix attn = matrix({{1, 0, 0}, {kNan, kNan, 0}, {0, 0, 0}, {0.5f, 0, 0.5f}});
    const std::vector<Index> visible = {1, 2, 0, 2};
    const HeadStats stats = head_stats(attn, visible, 0);
    CHECK(stats.entropy == doctest::Approx(std::log(2.0) / 2).epsilon(3e-7));
    CHECK(stats.max_entropy == doctest::Approx(std::log(2.0) / 2));
    CHECK(stats.first_token == 0.75);
    CHECK(stats.diagonal == 1);          // row 0; there is no key 3
    CHECK(stats.previous_token == 0.5);  // row 3
    CHECK(std::isnan(row_entropy({attn.row(1).data(), 3})));
    CHECK(row_entropy({attn.row(2).data(), 3}) == 0);
    const HeadStats none = head_stats(attn, std::vector<Index>(4, 0), 0);
    CHECK(none.entropy == 0);
    CHECK(none.first_token == 0);
  }
}

TEST_SUITE("matrix_id") {
  TEST_CASE("keys, symbols and names are unique and found again") {
    std::set<std::string_view> keys, symbols, names;
    for (const MatrixKind kind : kAllMatrixKinds) {
      CHECK(kind_from_key(file_key(kind)) == kind);
      keys.insert(file_key(kind));
      symbols.insert(symbol(kind));
      names.insert(long_name(kind));
    }
    CHECK(keys.size() == kAllMatrixKinds.size());
    CHECK(symbols.size() == kAllMatrixKinds.size());
    CHECK(names.size() >= kAllMatrixKinds.size());
    CHECK(!kind_from_key("Q").has_value());
    CHECK(!kind_from_key("").has_value());
    CHECK(file_key(MatrixKind::kHeadsOut) == "heads_out");
    CHECK(symbol(MatrixKind::kWk) == "W\u1D37");
    CHECK(symbol(MatrixKind::kWv) == "W\u2C7D");
    CHECK(symbol(MatrixKind::kWo) == "W\u1D3C");
  }

  TEST_CASE("the axes agree with the sizes of a computation whose dimensions all differ") {
    Problem problem = projected_problem();
    problem.options.alibi = true;
    const Shapes shapes = run(problem).shapes;
    problem.options.bias = random_matrix(shapes.nq, shapes.nk, 5);
    const Trace trace = run(problem);
    const auto size = [&s = trace.shapes](Axis axis) -> Index {
      switch (axis) {
        case Axis::kQueries:
          return s.nq;
        case Axis::kKeys:
          return s.nk;
        case Axis::kDk:
          return s.d_k;
        case Axis::kDv:
          return s.d_v;
        case Axis::kModel:
          return s.d_model;
        case Axis::kHeadsDk:
          return s.heads * s.d_k;
        case Axis::kKvHeadsDk:
          return s.kv_heads * s.d_k;
        case Axis::kKvHeadsDv:
          return s.kv_heads * s.d_v;
        case Axis::kHeadsDv:
          return s.heads * s.d_v;
        case Axis::kOut:
          return s.d_out;
        case Axis::kSingle:
          return 1;
      }
      return -1;
    };
    for (const MatrixKind kind : kAllMatrixKinds) {
      CAPTURE(file_key(kind));
      const Matrix& matrix = *trace.find({kind, 0});
      CHECK(matrix.rows() == size(row_axis(kind)));
      CHECK(matrix.cols() == size(col_axis(kind)));
      CHECK((trace.find({kind, 1}) != &matrix) == is_per_head(kind));
      if (is_weights(kind)) CHECK((matrix.array() >= 0.0f && matrix.array() <= 1.0f).all());
    }
  }
}

TEST_SUITE("DenseSource") {
  TEST_CASE("reads blocks and reduces them, leaving NaN out") {
    Matrix cells(3, 5);
    cells << 1, 2, 3, 4, 5, 6, 7, kNan, kNan, 10, kNan, 12, kNan, kNan, -15;
    const DenseSource source(cells);
    CHECK(source.rows() == 3);
    CHECK(source.cols() == 5);
    CHECK(source.data() == cells.data());
    Matrix block(1, 2);
    source.read({0, 3, 1, 2}, block);
    CHECK(block == matrix({{4, 5}}));

    Matrix reduced(2, 3);
    source.reduce({0, 0, 3, 5}, 1, Reduction::kMean, reduced);
    CHECK(reduced(0, 0) == 4);
    CHECK(reduced(0, 1) == 3.5f);
    CHECK(reduced(0, 2) == 7.5f);
    CHECK(reduced(1, 0) == 12);
    CHECK(std::isnan(reduced(1, 1)));
    CHECK(reduced(1, 2) == -15);
    source.reduce({0, 0, 3, 5}, 1, Reduction::kMax, reduced);
    CHECK(reduced(0, 0) == 7);
    CHECK(std::isnan(reduced(1, 1)));
    CHECK(reduced(1, 2) == -15);

    Matrix one(1, 1);
    source.reduce({1, 1, 2, 4}, 30, Reduction::kMax, one);
    CHECK(one(0, 0) == 12);
    source.reduce({0, 0, 1, 1}, 0, Reduction::kMean, one);
    CHECK(one(0, 0) == 1);
  }
}
