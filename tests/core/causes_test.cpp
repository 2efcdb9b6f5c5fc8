// The usual mistakes, each made in a loop of its own: the search names it first.
#include <functional>

#include "core/attention/altered_pass.h"
#include "core/attention/steps.h"
#include "tests/core/causes_support.h"

using namespace qkv;
using namespace qkv::test;

namespace {

// Weights from each head's scaled scores and mask by a rule for one row.
using RowRule =
    std::function<void(const Eigen::RowVectorXd& scaled, const Eigen::RowVectorXd& keep, Eigen::RowVectorXd& weights)>;
OtherMatrix by_row(const Problem& problem, const RowRule& rule) {
  OtherMatrix attn{MatrixKind::kAttn};
  for (const Slow& head : slow_heads(problem)) {
    MatrixD weights = head.scaled;
    for (Index i = 0; i < weights.rows(); ++i) {
      Eigen::RowVectorXd row = Eigen::RowVectorXd::Zero(weights.cols());
      rule(head.scaled.row(i), head.keep.row(i), row);
      weights.row(i) = row;
    }
    attn.heads.push_back(weights);
  }
  return attn;
}

void softmax_of(const Eigen::RowVectorXd& scores, Eigen::RowVectorXd& weights) {
  double max = scores(0), sum = 0;
  for (const double score : scores) max = std::max(max, score);
  for (Index j = 0; j < scores.size(); ++j) sum += weights(j) = std::exp(scores(j) - max);
  for (double& weight : weights) weight /= sum;
}

// Four heads over two of 9 tokens.
Problem some(unsigned seed, AttentionOptions options = {}) {
  return with(random_problem(4, 2, 9, 9, 6, 5, seed), std::move(options));
}
Problem cross(unsigned seed, AttentionOptions options = {}) {
  return with(random_problem(2, 2, 5, 8, 6, 5, seed), std::move(options));
}

}  // namespace

TEST_CASE("the unaltered pass is ours: every matrix, every option") {
  RandomProblems problems(21);
  for (int n = 0; n < 60; ++n) {
    const Problem problem = problems.next();
    const Shapes s = shapes_of(problem);
    const std::vector<Slow> slow = slow_heads(problem);
    InputCache cache(problem, s);
    AlteredPass pass(cache, unaltered(problem, s));
    for (int h = 0; h < s.heads; ++h) {
      for (Index i = 0; i < s.nq; ++i) {
        const Slow& want = slow[static_cast<std::size_t>(h)];
        CHECK((pass.row({MatrixKind::kScores, h}, i) - want.scores.row(i)).array().abs().maxCoeff() <= 1e-12);
        CHECK((pass.row({MatrixKind::kScaled, h}, i) - want.scaled.row(i)).array().abs().maxCoeff() <= 1e-11);
        CHECK((pass.row({MatrixKind::kAttn, h}, i) - want.attn.row(i)).array().abs().maxCoeff() <= 1e-12);
        CHECK((pass.row({MatrixKind::kHeadsOut, h}, i) - want.out.row(i)).array().abs().maxCoeff() <= 1e-11);
        CHECK(
            (pass.row({MatrixKind::kConcat}, i).segment(h * s.d_v, s.d_v) - want.out.row(i)).array().abs().maxCoeff() <=
            1e-11);
      }
    }
  }
  const Problem problem = projected_problem();
  const Result<MatrixTable<MatrixD>> steps = steps_in_float64(problem);
  REQUIRE(steps.ok());
  InputCache cache(problem, shapes_of(problem));
  AlteredPass pass(cache, unaltered(problem, shapes_of(problem)));
  for (const MatrixKind kind : {MatrixKind::kQ, MatrixKind::kK, MatrixKind::kV, MatrixKind::kAttn, MatrixKind::kOut}) {
    for (std::size_t h = 0; h < steps.value().heads(kind).size(); ++h) {
      const MatrixD& want = steps.value().heads(kind)[h];
      for (Index i = 0; i < want.rows(); ++i) {
        CHECK((pass.row({kind, static_cast<int>(h)}, i) - want.row(i)).array().abs().maxCoeff() <= 1e-12);
      }
    }
  }
}

TEST_CASE("right numbers have no cause") {
  RandomProblems problems(5);
  for (int n = 0; n < 30; ++n) {
    const Problem problem = problems.next();
    const std::vector<Slow> slow = slow_heads(problem);
    const Outcome outcome = compare(problem, {attn_of(slow), out_of(slow)});
    CHECK(outcome.differences[0].equal());
    CHECK(outcome.differences[1].equal());
    CHECK(outcome.diagnosis.explanations.empty());
    CHECK(!outcome.diagnosis.inputs_differ);
  }
}

// What is another value of an option there.
TEST_CASE("a scale, a mask, a window, a cap, ALiBi, a bias or a sink that is another") {
  struct Wrong {
    std::string id;
    AttentionOptions ours, theirs;
  };
  const float default_scale = 1 / std::sqrt(6.0F);
  for (unsigned seed = 1; seed <= 30; seed += 10) {
    const SharedMatrix bias(random_matrix(9, 9, seed + 3));
    const SharedMatrix minus(Matrix(-*bias)), zero(Matrix::Zero(9, 9)), across(Matrix(bias->transpose()));
    const std::vector<std::uint8_t> valid = {1, 1, 0, 1, 1, 1, 0, 1, 0}, inverted = {0, 0, 1, 0, 0, 0, 1, 0, 1};
    const std::vector<Wrong> all = {
        {"scale-missing", {}, {.scale = 1.0F}},
        {"scale-twice", {}, {.scale = 1 / 6.0F}},
        {"scale-twice", {.scale = 0.7F}, {.scale = 0.49F}},
        {"scale-default", {.scale = 0.7F}, {}},
        {"scale-by-d_k", {.scale = 0.7F}, {.scale = 1 / 6.0F}},
        {"scale-of-all-heads", {}, {.scale = default_scale / 2}},
        {"scale-inverted", {}, {.scale = 1 / default_scale}},
        {"causal-missing", {.causal = true}, {}},
        {"causal-added", {}, {.causal = true}},
        {"window-missing", {.window = 3}, {}},
        {"window-one-more", {.window = 4}, {.window = 5}},
        {"window-one-less", {.causal = true, .window = 4}, {.causal = true, .window = 3}},
        {"window-half", {.window = 7}, {.window = 4}},
        {"window-past", {.window = 3}, {.causal = true, .window = 3}},
        {"padding-ignored", {.key_valid = valid}, {}},
        {"padding-inverted", {.key_valid = valid}, {.key_valid = inverted}},
        {"softcap-missing", {.softcap = 1.5F}, {}},
        {"alibi-missing", {.alibi = true}, {}},
        {"alibi-added", {.causal = true}, {.causal = true, .alibi = true}},
        {"bias-missing", {.bias = bias}, {}},
        {"bias-sign", {.bias = bias}, {.bias = minus}},
        {"bias-transposed", {.bias = bias}, {.bias = across}},
        {"sink-missing", {.sink = {0.5F, 1, -1, 2}}, {}},
        {"sink-zero", {}, {.sink = {0, 0, 0, 0}}},
        {"rope-style", {.rope = Rope{}}, {.rope = Rope{10000, RopeStyle::kInterleaved}}},
        {"rope-style", {.rope = Rope{100, RopeStyle::kInterleaved}}, {.rope = Rope{100, RopeStyle::kHalf}}},
        {"rope-missing", {.rope = Rope{}}, {}},
        {"rope-added-half", {}, {.rope = Rope{}}},
        {"rope-added-interleaved", {}, {.rope = Rope{10000, RopeStyle::kInterleaved}}},
        {"rope-base-10000", {.rope = Rope{500}}, {.rope = Rope{}}},
        {"rope-base-500000", {.rope = Rope{}}, {.rope = Rope{500000}}},
        {"rope-base-1000000", {.rope = Rope{}}, {.rope = Rope{1000000}}},
    };
    for (const Wrong& wrong : all) {
      const std::vector<Slow> slow = slow_heads(some(seed, wrong.theirs));
      // window-past under a one-sided window is the causal window as well.
      const bool tie = wrong.id == "window-past" || wrong.id == "window-missing";
      check_named(compare(some(seed, wrong.ours), {attn_of(slow)}), wrong.id, tie);
      check_named(compare(some(seed, wrong.ours), {out_of(slow)}), wrong.id, tie);
    }
  }
}

TEST_CASE("where queries and keys are not as many: alignment and positions") {
  for (const CausalAlign align : {CausalAlign::kBottomRight, CausalAlign::kTopLeft}) {
    const CausalAlign other = align == CausalAlign::kTopLeft ? CausalAlign::kBottomRight : CausalAlign::kTopLeft;
    const std::vector<Slow> slow = slow_heads(cross(3, {.causal = true, .align = other}));
    check_named(compare(cross(3, {.causal = true, .align = align}), {attn_of(slow)}), "causal-align");
    check_named(compare(cross(3, {.causal = true, .align = align}), {out_of(slow)}), "causal-align");
  }
  // ALiBi counted from the start on both sides, under a mask that is not.
  const Problem ours = cross(4, {.causal = true, .alibi = true});
  const Shapes s = shapes_of(ours);
  OtherMatrix attn = by_row(ours, [&](const auto& scaled, const auto&, auto& weights) { weights = scaled; });
  for (int h = 0; h < s.heads; ++h) {
    MatrixD& scores = attn.heads[static_cast<std::size_t>(h)];
    for (Index i = 0; i < s.nq; ++i) {
      Eigen::RowVectorXd row = scores.row(i), weights = row;
      for (Index j = 0; j < s.nk; ++j) {
        row(j) +=
            slow_slope(h, s.heads) * (std::abs(static_cast<double>(i + 3 - j)) - std::abs(static_cast<double>(i - j)));
        if (j > i + 3) row(j) = -HUGE_VAL;
      }
      softmax_of(row, weights);
      scores.row(i) = weights;
    }
  }
  check_named(compare(ours, {attn}), "alibi-unshifted");
}

TEST_CASE("masks that are off by one, upside down, or used in another way") {
  for (unsigned seed = 1; seed <= 30; seed += 10) {
    const Problem causal = some(seed, {.causal = true});
    const auto shifted = [&](Index diagonal, bool upside_down) {
      const std::vector<Slow> plain = slow_heads(some(seed));
      OtherMatrix attn{MatrixKind::kAttn};
      for (const Slow& head : plain) {
        MatrixD weights = MatrixD::Zero(9, 9);
        for (Index i = 0; i < 9; ++i) {
          double sum = 0;
          for (Index j = 0; j < 9; ++j) {
            if (upside_down ? j < i : j > i + diagonal) continue;
            sum += weights(i, j) = std::exp(head.scaled(i, j));
          }
          if (sum > 0) weights.row(i) /= sum;
        }
        attn.heads.push_back(weights);
      }
      return attn;
    };
    for (const auto& [id, diagonal, down] :
         {std::tuple("causal-strict", -1, false), std::tuple("causal-one-more", 1, false),
          std::tuple("causal-upside-down", 0, true)}) {
      check_named(compare(causal, {shifted(diagonal, down)}), id);
      check_named(compare(causal, {weigh(causal, shifted(diagonal, down))}), id);
    }
    const RowRule after = [](const auto& scaled, const auto& keep, auto& weights) {
      softmax_of(scaled, weights);
      for (Index j = 0; j < keep.size(); ++j) weights(j) = keep(j) != 0 ? weights(j) : 0;
    };
    const RowRule zeroed = [](const auto& scaled, const auto& keep, auto& weights) {
      Eigen::RowVectorXd scores = scaled;
      for (Index j = 0; j < keep.size(); ++j) scores(j) = keep(j) != 0 ? scores(j) : 0;
      softmax_of(scores, weights);
    };
    check_named(compare(causal, {by_row(causal, after)}), "mask-after-softmax");
    check_named(compare(causal, {weigh(causal, by_row(causal, after))}), "mask-after-softmax");
    check_named(compare(causal, {by_row(causal, zeroed)}), "mask-zero-scores");
    check_named(compare(causal, {weigh(causal, by_row(causal, zeroed))}), "mask-zero-scores");

    const Problem capped = some(seed, {.causal = true, .softcap = 1.5F});
    const RowRule cap_last = [](const auto& scaled, const auto& keep, auto& weights) {
      Eigen::RowVectorXd scores = scaled;
      for (Index j = 0; j < keep.size(); ++j) scores(j) = keep(j) != 0 ? scores(j) : -1.5;
      softmax_of(scores, weights);
    };
    check_named(compare(capped, {by_row(capped, cap_last)}), "softcap-after-mask");
  }
}

TEST_CASE("rows with no visible key: what a finite mask value, NaN and uniform rows look like") {
  // Keys 0 and 1 are padding, so that the first two queries see none.
  const Problem ours = some(7, {.causal = true, .key_valid = {0, 0, 1, 1, 1, 1, 1, 1, 1}});
  const auto filled = [](double fill, bool add) {
    return [=](const auto& scaled, const auto& keep, auto& weights) {
      Eigen::RowVectorXd scores = scaled;
      for (Index j = 0; j < keep.size(); ++j) {
        if (keep(j) != 0) continue;
        scores(j) = add ? static_cast<double>(static_cast<float>(scores(j)) + static_cast<float>(fill)) : fill;
      }
      softmax_of(scores, weights);
    };
  };
  for (const double fill : {-1e4, -1e9, -65504.0}) {
    const std::string id = fill == -1e4 ? "mask-fill-1e4" : fill == -1e9 ? "mask-fill-1e9" : "mask-fill-float16";
    const Outcome outcome = compare(ours, {by_row(ours, filled(fill, false))});
    check_named(outcome, id, true);
    CHECK(outcome.diagnosis.ties == 3);  // each value, and rows that are made uniform: the numbers are the same
    CHECK(outcome.differences[0].first_wrong->cell.row == 0);
    CHECK(outcome.differences[0].wrong == 4 * 2 * 9);
  }
  check_named(compare(ours, {by_row(ours, filled(-1e4, true))}), "mask-add-1e4");
  const RowRule nan = [](const auto& scaled, const auto& keep, auto& weights) {
    Eigen::RowVectorXd scores = scaled;
    for (Index j = 0; j < keep.size(); ++j) scores(j) = keep(j) != 0 ? scores(j) : -HUGE_VAL;
    softmax_of(scores, weights);
  };
  const Outcome outcome = compare(ours, {by_row(ours, nan)});
  CHECK(outcome.differences[0].not_finite == 4 * 2 * 9);
  CHECK(!outcome.differences[0].largest_relative.has_value());
  CHECK(std::isinf(outcome.diagnosis.before));
  check_named(outcome, "dead-nan");
}

TEST_CASE("softmax: another axis, no division, no maximum, transposed") {
  for (unsigned seed = 1; seed <= 30; seed += 10) {
    for (const bool causal : {false, true}) {
      const Problem ours = some(seed, {.causal = causal});
      const std::vector<Slow> slow = slow_heads(ours);
      OtherMatrix columns{MatrixKind::kAttn}, heads{MatrixKind::kAttn}, across{MatrixKind::kAttn};
      const MatrixD zero = MatrixD::Zero(9, 9);
      MatrixD of_heads = zero;
      for (const Slow& head : slow) of_heads += MatrixD(head.scaled.array().exp() * head.keep.array());
      for (const Slow& head : slow) {
        MatrixD exponentials = MatrixD(head.scaled.array().exp() * head.keep.array());
        MatrixD by_column = exponentials, by_head = zero;
        for (Index j = 0; j < 9; ++j) by_column.col(j) /= exponentials.col(j).sum();
        for (Index i = 0; i < 9; ++i) {
          for (Index j = 0; j < 9; ++j) {
            if (head.keep(i, j) != 0) by_head(i, j) = exponentials(i, j) / of_heads(i, j);
          }
        }
        columns.heads.push_back(by_column);
        heads.heads.push_back(by_head);
        across.heads.emplace_back(head.attn.transpose());
      }
      check_named(compare(ours, {columns}), "softmax-over-queries");
      check_named(compare(ours, {weigh(ours, columns)}), "softmax-over-queries");
      check_named(compare(ours, {heads}), "softmax-over-heads");
      check_named(compare(ours, {weigh(ours, heads)}), "softmax-over-heads");
      check_named(compare(ours, {across}), "attn-transposed");
      check_named(compare(ours, {weigh(ours, across)}), "attn-transposed");
      const RowRule undivided = [](const auto& scaled, const auto& keep, auto& weights) {
        double max = -HUGE_VAL;
        for (Index j = 0; j < keep.size(); ++j) max = keep(j) != 0 ? std::max(max, scaled(j)) : max;
        for (Index j = 0; j < keep.size(); ++j) weights(j) = keep(j) != 0 ? std::exp(scaled(j) - max) : 0;
      };
      check_named(compare(ours, {by_row(ours, undivided)}), "softmax-not-divided");
    }
    const Problem steep = some(seed, {.scale = 40.0F});
    const RowRule naive = [](const auto& scaled, const auto&, auto& weights) {
      float sum = 0;
      for (const double score : scaled) sum += std::exp(static_cast<float>(score));
      for (Index j = 0; j < scaled.size(); ++j) {
        weights(j) = static_cast<double>(std::exp(static_cast<float>(scaled(j))) / sum);
      }
    };
    const OtherMatrix overflown = by_row(steep, naive);
    const Outcome outcome = compare(steep, {overflown});
    CHECK(outcome.differences[0].not_finite > 0);
    REQUIRE(!outcome.diagnosis.explanations.empty());
    CHECK(named(outcome.diagnosis.explanations[0]) == "softmax-overflow");
  }
}

TEST_CASE("terms of the score in another order or with other signs") {
  for (unsigned seed = 1; seed <= 30; seed += 10) {
    const SharedMatrix bias(random_matrix(9, 9, seed + 3));
    const Problem six = with(random_problem(6, 6, 9, 9, 6, 5, seed), {.alibi = true});
    struct Wrong {
      std::string id;
      Problem ours;
      std::function<double(double score, double bias, double slope, double distance)> scaled;  // distance = i − j
    };
    const double scale = 1 / std::sqrt(6.0);
    const auto cap = [](double value) { return 1.5 * std::tanh(value / 1.5); };
    const Problem alibi = some(seed, {.alibi = true}), biased = some(seed, {.bias = bias});
    const Problem capped = some(seed, {.softcap = 1.5F, .bias = bias});
    const std::vector<Wrong> all = {
        {"alibi-sign", alibi, [&](double s, double, double m, double d) { return s * scale + m * std::abs(d); }},
        {"alibi-signed", alibi, [&](double s, double, double m, double d) { return s * scale - m * d; }},
        {"alibi-before-scale", alibi,
         [&](double s, double, double m, double d) { return (s - m * std::abs(d)) * scale; }},
        {"alibi-slopes-from-zero", alibi,
         [&](double s, double, double m, double d) { return s * scale - 4 * m * std::abs(d); }},
        {"bias-before-scale", biased, [&](double s, double b, double, double) { return (s + b) * scale; }},
        {"softcap-last", capped, [&](double s, double b, double, double) { return cap(s * scale + b); }},
        {"softcap-before-scale", capped, [&](double s, double b, double, double) { return cap(s) * scale + b; }},
    };
    for (const Wrong& wrong : all) {
      OtherMatrix attn{MatrixKind::kAttn};
      const std::vector<Slow> slow = slow_heads(wrong.ours);
      for (std::size_t h = 0; h < slow.size(); ++h) {
        MatrixD weights(9, 9);
        for (Index i = 0; i < 9; ++i) {
          Eigen::RowVectorXd row(9), result(9);
          for (Index j = 0; j < 9; ++j) {
            row(j) = wrong.scaled(slow[h].scores(i, j), static_cast<double>((*bias)(i, j)),
                                  slow_slope(static_cast<int>(h), 4), static_cast<double>(i - j));
          }
          softmax_of(row, result);
          weights.row(i) = result;
        }
        attn.heads.push_back(weights);
      }
      check_named(compare(wrong.ours, {attn}), wrong.id);
      check_named(compare(wrong.ours, {weigh(wrong.ours, attn)}), wrong.id);
    }
    OtherMatrix plain{MatrixKind::kAttn};
    const std::vector<Slow> slow = slow_heads(six);
    for (int h = 0; h < 6; ++h) {
      MatrixD weights(9, 9);
      for (Index i = 0; i < 9; ++i) {
        Eigen::RowVectorXd row(9), result(9);
        for (Index j = 0; j < 9; ++j) {
          row(j) = slow[static_cast<std::size_t>(h)].scores(i, j) * scale -
                   std::pow(2.0, -8.0 * (h + 1) / 6) * std::abs(static_cast<double>(i - j));
        }
        softmax_of(row, result);
        weights.row(i) = result;
      }
      plain.heads.push_back(weights);
    }
    check_named(compare(six, {plain}), "alibi-slopes-plain");
  }
}
