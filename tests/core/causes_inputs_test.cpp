// Mistakes in how Q, K, V and the output are made, and what no single cause explains.
#include "core/attention/steps.h"
#include "tests/core/causes_support.h"

using namespace qkv;
using namespace qkv::test;

namespace {

using Heads = std::vector<SharedMatrix>;

// [N, H·d] of a direct source's heads, as floats one row after the other.
std::vector<float> flat(const Heads& heads) {
  std::vector<float> numbers;
  for (Index row = 0; row < heads[0].rows(); ++row) {
    for (const SharedMatrix& head : heads) {
      for (Index j = 0; j < head.cols(); ++j) numbers.push_back((*head)(row, j));
    }
  }
  return numbers;
}

// The numbers of [N, H·d] read as [H, N, d], or column j of head h from column h + H·j.
Heads recut(const Heads& heads, bool interleaved) {
  const std::vector<float> numbers = flat(heads);
  const Index rows = heads[0].rows(), width = heads[0].cols(), count = static_cast<Index>(heads.size());
  Heads result;
  for (Index h = 0; h < count; ++h) {
    Matrix matrix(rows, width);
    for (Index i = 0; i < rows; ++i) {
      for (Index j = 0; j < width; ++j) {
        const Index at = interleaved ? i * count * width + h + count * j : (h * rows + i) * width + j;
        matrix(i, j) = numbers[static_cast<std::size_t>(at)];
      }
    }
    result.emplace_back(matrix);
  }
  return result;
}

// Rows turned by position (first + row)·sign, from the definition.
Matrix turned(const Matrix& rows, const Rope& rope, double first, double sign) {
  Matrix result = rows;
  const Index d = rows.cols();
  for (Index i = 0; i < rows.rows(); ++i) {
    for (Index pair = 0; pair < d / 2; ++pair) {
      const double angle = sign * (first + static_cast<double>(i)) *
                           std::pow(static_cast<double>(rope.base), -2.0 * static_cast<double>(pair) / double(d));
      const std::complex<double> value =
          std::complex<double>(static_cast<double>(rows(i, pair)), static_cast<double>(rows(i, pair + d / 2))) *
          std::polar(1.0, angle);
      result(i, pair) = static_cast<float>(value.real());
      result(i, pair + d / 2) = static_cast<float>(value.imag());
    }
  }
  return result;
}

// out of a projected problem by loops: steps_in_float64 of the changed problem.
OtherMatrix once(const Problem& problem, MatrixKind kind) {
  const Result<MatrixTable<MatrixD>> steps = steps_in_float64(problem);
  REQUIRE(steps.ok());
  return {kind, false, steps.value().heads(kind)};
}

// A square projected problem: d_model = H·d = d_out = 8, 2 heads, 6 tokens.
Problem square(unsigned seed) {
  ProjectedSource source{.x = random_matrix(6, 8, seed),
                         .wq = random_matrix(8, 8, seed + 1),
                         .wk = random_matrix(8, 8, seed + 2),
                         .wv = random_matrix(8, 8, seed + 3),
                         .bq = random_matrix(1, 8, seed + 4),
                         .bk = random_matrix(1, 8, seed + 5),
                         .bv = random_matrix(1, 8, seed + 6),
                         .heads = 2,
                         .kv_heads = 2};
  // With RoPE and small weights, so that b^K matters and the softmax is not all in one key.
  for (SharedMatrix* w : {&source.wq, &source.wk}) w->edit() *= 0.3F;
  return {.source = source,
          .wo = random_matrix(8, 8, seed + 7),
          .bo = random_matrix(1, 8, seed + 8),
          .options = {.causal = true, .rope = Rope{}}};
}

}  // namespace

TEST_CASE("key/value heads tiled, heads cut another way, Q, K and V in each other's place, tokens reversed") {
  for (unsigned seed = 1; seed <= 30; seed += 10) {
    const Problem ours = with(random_problem(4, 2, 7, 7, 6, 6, seed), {.causal = true});
    const auto& source = std::get<DirectSource>(ours.source);
    const auto check = [&](const std::string& id, Heads q, Heads k, Heads v, bool with_attn = true) {
      Problem theirs = ours;
      theirs.source = DirectSource{std::move(q), std::move(k), std::move(v)};
      const std::vector<Slow> slow = slow_heads(theirs);
      // Weights alone do not tell what V is.
      const bool tie = id == "v-for-k" || id == "k-and-v-swapped";
      if (with_attn) check_named(compare(ours, {attn_of(slow)}), id, tie);
      check_named(compare(ours, {out_of(slow)}), id);
      check_named(compare(ours, {attn_of(slow), out_of(slow)}), id);
    };
    const auto& [q, k, v] = source;
    check("gqa-tiled", q, {k[0], k[1], k[0], k[1]}, {v[0], v[1], v[0], v[1]});
    check("heads-uncut", recut(q, false), recut(k, false), recut(v, false));
    check("heads-interleaved", recut(q, true), recut(k, true), recut(v, true));
    check("v-for-k", q, v, v);
    check("k-for-v", q, k, k, false);
    check("k-and-v-swapped", q, v, k);
    const auto reversed = [](const Heads& heads) {
      Heads result;
      for (const SharedMatrix& head : heads) result.emplace_back(Matrix(head->colwise().reverse()));
      return result;
    };
    check("tokens-reversed", reversed(q), reversed(k), reversed(v));
    check("queries-reversed", reversed(q), k, v);
    check("keys-reversed", q, reversed(k), reversed(v));

    const Problem alike = with(random_problem(2, 2, 7, 7, 6, 5, seed), {.causal = true});
    const auto& [q2, k2, v2] = std::get<DirectSource>(alike.source);
    for (const auto& [id, queries, keys] :
         {std::tuple("q-and-k-swapped", k2, q2), std::tuple("q-for-k", q2, q2), std::tuple("k-for-q", k2, k2)}) {
      Problem theirs = alike;
      theirs.source = DirectSource{queries, keys, v2};
      check_named(compare(alike, {attn_of(slow_heads(theirs))}), id);
      check_named(compare(alike, {out_of(slow_heads(theirs))}), id);
    }
  }
}

TEST_CASE("rotary positions: one off, one side alone, the other way, from the last key") {
  for (unsigned seed = 1; seed <= 30; seed += 10) {
    const Rope rope{100};
    const Problem ours = with(random_problem(2, 2, 5, 8, 6, 5, seed), {.rope = rope});
    const auto& [q, k, values] = std::get<DirectSource>(ours.source);
    const Heads& v = values;
    const auto turn = [&](const Heads& heads, double first, double sign) {
      Heads result;
      for (const SharedMatrix& head : heads) result.emplace_back(turned(*head, rope, first, sign));
      return result;
    };
    const auto check = [&](const std::string& id, const Heads& queries, const Heads& keys) {
      Problem theirs = {.source = DirectSource{queries, keys, v}};
      const std::vector<Slow> slow = slow_heads(theirs);
      check_named(compare(ours, {attn_of(slow)}), id);
      check_named(compare(ours, {out_of(slow)}), id);
    };
    check("rope-queries-ahead", turn(q, 1, 1), turn(k, 0, 1));
    check("rope-queries-behind", turn(q, -1, 1), turn(k, 0, 1));
    check("rope-queries-last", turn(q, 3, 1), turn(k, 0, 1));
    check("rope-backwards", turn(q, 0, -1), turn(k, 0, -1));
    check("rope-queries-only", turn(q, 0, 1), k);
    check("rope-keys-only", q, turn(k, 0, 1));
    OtherMatrix rotated{MatrixKind::kQ};
    for (const SharedMatrix& head : turn(q, 0, 1)) rotated.heads.push_back(head->cast<double>());
    const Outcome outcome = compare(ours, {rotated, attn_of(slow_heads(ours))});
    check_named(outcome, "rope-already-in");
    CHECK(!outcome.diagnosis.inputs_differ);
  }
}

TEST_CASE("weights transposed, biases missing, W^O missing, the residual added, heads joined another way") {
  for (unsigned seed = 1; seed <= 60; seed += 20) {
    const Problem ours = square(seed);
    const auto check = [&](const std::string& id, const std::function<void(Problem&, ProjectedSource&)>& change) {
      Problem theirs = ours;
      change(theirs, std::get<ProjectedSource>(theirs.source));
      check_named(compare(ours, {once(theirs, MatrixKind::kOut)}), id);
    };
    const auto across = [](SharedMatrix& w) { w.edit() = Matrix(w->transpose()); };
    check("wq-transposed", [&](Problem&, ProjectedSource& s) { across(s.wq); });
    check("wk-transposed", [&](Problem&, ProjectedSource& s) { across(s.wk); });
    check("wv-transposed", [&](Problem&, ProjectedSource& s) { across(s.wv); });
    check("wo-transposed", [&](Problem& p, ProjectedSource&) { across(*p.wo); });
    const auto qkv = [&](ProjectedSource& s) {
      for (SharedMatrix* w : {&s.wq, &s.wk, &s.wv}) across(*w);
    };
    check("wqkv-transposed", [&](Problem&, ProjectedSource& s) { qkv(s); });
    check("weights-transposed", [&](Problem& p, ProjectedSource& s) {
      qkv(s);
      across(*p.wo);
    });
    check("bq-missing", [&](Problem&, ProjectedSource& s) { s.bq.reset(); });
    check("bk-missing", [&](Problem&, ProjectedSource& s) { s.bk.reset(); });
    check("bv-missing", [&](Problem&, ProjectedSource& s) { s.bv.reset(); });
    check("bo-missing", [&](Problem& p, ProjectedSource&) { p.bo.reset(); });
    const auto no_bias = [](ProjectedSource& s) {
      for (auto* b : {&s.bq, &s.bk, &s.bv}) b->reset();
    };
    check("bqkv-missing", [&](Problem&, ProjectedSource& s) { no_bias(s); });
    check("biases-missing", [&](Problem& p, ProjectedSource& s) {
      no_bias(s);
      p.bo.reset();
    });
    const MatrixD concat = once(ours, MatrixKind::kConcat).heads[0];
    check_named(compare(ours, {{MatrixKind::kOut, false, {concat}}}), "wo-missing");
    const MatrixD out = once(ours, MatrixKind::kOut).heads[0];
    const MatrixD residual = out + std::get<ProjectedSource>(ours.source).x->cast<double>();
    check_named(compare(ours, {{MatrixKind::kOut, false, {residual}}}), "residual-added");
    const MatrixD wo = (*ours.wo)->cast<double>();
    MatrixD uncut(6, 8), interleaved(6, 8);
    for (Index i = 0; i < 6; ++i) {
      for (Index c = 0; c < 8; ++c) {
        const Index at = i * 8 + c, head = at / 24, row = at % 24 / 4;
        uncut(i, c) = concat(row, head * 4 + at % 4);
        interleaved(i, c) = concat(i, c % 2 * 4 + c / 2);
      }
    }
    for (const auto& [id, joined] : {std::pair("concat-uncut", uncut), std::pair("concat-interleaved", interleaved)}) {
      MatrixD product = joined * wo;
      product.rowwise() += (*ours.bo)->row(0).cast<double>();
      check_named(compare(ours, {{MatrixKind::kOut, false, {product}}}), id);
      check_named(compare(ours, {{MatrixKind::kConcat, false, {joined}}}), id);
    }
  }
}

TEST_CASE("arrays of another step") {
  const Problem ours = with(random_problem(2, 1, 6, 6, 4, 3, 9), {.causal = true});
  const std::vector<Slow> slow = slow_heads(ours);
  OtherMatrix scores{MatrixKind::kScores}, scaled{MatrixKind::kScaled}, attn{MatrixKind::kAttn}, masked = scaled;
  for (const Slow& head : slow) {
    scores.heads.push_back(head.scaled);
    scaled.heads.push_back(head.scores);
    attn.heads.push_back(head.scaled);
    masked.heads.push_back(head.scaled);
    for (Index i = 0; i < 6; ++i) {
      for (Index j = i + 1; j < 6; ++j) masked.heads.back()(i, j) = -HUGE_VAL;
    }
  }
  check_named(compare(ours, {scores}), "scores-are-scaled");
  check_named(compare(ours, {scaled}), "scaled-are-raw", true);  // or the scale is missing: the numbers are the same
  check_named(compare(ours, {attn}), "attn-before-softmax");
  check_named(compare(ours, {masked}), "scores-are-masked");
  masked.kind = MatrixKind::kAttn;
  check_named(compare(ours, {masked}), "attn-is-masked");
}

TEST_CASE("what their weights show: keys that nobody sees, a window, dropout") {
  for (unsigned seed = 1; seed <= 30; seed += 10) {
    const Problem ours = with(random_problem(4, 2, 9, 9, 6, 5, seed), {.causal = true});
    const Problem padded = with(ours, {.causal = true, .key_valid = {1, 0, 1, 1, 1, 1, 0, 1, 1}});
    const Outcome padding = compare(ours, {attn_of(slow_heads(padded)), out_of(slow_heads(padded))});
    check_named(padding, "padding-other");
    CHECK(padding.diagnosis.explanations[0].causes[0].meaning == "No query gives a weight to keys 1, 6.");
    const Problem narrow = with(ours, {.causal = true, .window = 4});
    const Outcome window = compare(ours, {attn_of(slow_heads(narrow)), out_of(slow_heads(narrow))});
    check_named(window, "window-other");
    CHECK(window.diagnosis.explanations[0].causes[0].name == "there is a window of 4");
    OtherMatrix attn = attn_of(slow_heads(ours));
    std::mt19937 random(seed);
    for (MatrixD& head : attn.heads) {
      for (Index n = 0; n < head.size(); ++n) head.data()[n] = random() % 4 == 0 ? 0 : head.data()[n] / 0.75;
    }
    const Outcome dropout = compare(ours, {attn, weigh(ours, attn)});
    check_named(dropout, "dropout");
    CHECK(dropout.diagnosis.explanations[0].causes[0].name == "dropout is on, p = 0.25");
  }
}

TEST_CASE("numbers in half precision: the difference is rounding, and a mistake shows through it") {
  for (const NumberFormat format : {NumberFormat::kBfloat16, NumberFormat::kFloat16}) {
    for (unsigned seed = 1; seed <= 60; seed += 10) {
      const Problem ours = with(random_problem(4, 2, 12, 12, 16, 8, seed), {.causal = true});
      const Problem wrong = with(ours, {});
      const auto in_format = [&](const Problem& problem, MatrixKind kind) {
        const Result<MatrixTable<Matrix>> steps = steps_in(format, problem);
        REQUIRE(steps.ok());
        OtherMatrix other{kind};
        for (const Matrix& head : steps.value().heads(kind)) other.heads.push_back(head.cast<double>());
        return other;
      };
      for (const MatrixKind kind : {MatrixKind::kAttn, MatrixKind::kHeadsOut}) {
        const Outcome right = compare(ours, {in_format(ours, kind)});
        CHECK(!right.differences[0].equal());
        CHECK(right.diagnosis.rounding == format);
        const Outcome outcome = compare(ours, {in_format(wrong, kind)});
        CAPTURE(all_named(outcome.diagnosis));
        REQUIRE(!outcome.diagnosis.explanations.empty());
        CHECK(outcome.diagnosis.rounding == NumberFormat::kFloat64);
        CHECK(outcome.diagnosis.explanations[0].complete);
        CHECK(outcome.diagnosis.explanations[0].format == format);
        CHECK(named(outcome.diagnosis.explanations[0]) == "causal-missing");
      }
    }
  }
}

TEST_CASE("two causes at once, a cause of the first step alone, and none") {
  const Problem ours = with(random_problem(4, 2, 8, 8, 6, 5, 3), {.causal = true, .rope = Rope{}});
  const AttentionOptions two = {.scale = 1.0F, .causal = true, .rope = Rope{10000, RopeStyle::kInterleaved}};
  const Problem theirs = with(ours, two);
  const Outcome pair = compare(ours, {attn_of(slow_heads(theirs))});
  check_named(pair, "scale-missing + rope-style");
  CHECK(pair.diagnosis.pairs > 500);

  // The weights lack the mask; the output is of nothing that is known.
  const Problem unmasked = with(ours, {.rope = Rope{}});
  OtherMatrix out{MatrixKind::kHeadsOut};
  for (unsigned head = 0; head < 4; ++head) out.heads.push_back(random_matrix(8, 5, 50 + head).cast<double>());
  const Outcome first = compare(ours, {attn_of(slow_heads(unmasked)), out});
  check_named(first, "causal-missing");
  CHECK(first.diagnosis.explained == MatrixKind::kAttn);

  // A mask that hides the diagonal, in a softmax that gives NaN where nothing is seen.
  const Problem causal = with(random_problem(2, 2, 8, 8, 6, 5, 3), {.causal = true});
  OtherMatrix strict{MatrixKind::kAttn};
  for (const Slow& head : slow_heads(with(causal, {}))) {
    MatrixD weights = MatrixD::Zero(8, 8);
    for (Index i = 0; i < 8; ++i) {
      const double sum = head.attn.row(i).head(i).sum();
      for (Index j = 0; j < 8; ++j) weights(i, j) = j < i ? head.attn(i, j) / sum : 0;
      if (i == 0) weights.row(0).setConstant(std::nan(""));
    }
    strict.heads.push_back(weights);
  }
  check_named(compare(causal, {strict}), "causal-strict + dead-nan");

  // The first query is another one: what explains all the others is a part of the cause, and said to be no more.
  for (MatrixD& head : strict.heads) head.row(0).setConstant(0.5);
  const Outcome part = compare(causal, {strict});
  CAPTURE(all_named(part.diagnosis));
  REQUIRE(!part.diagnosis.explanations.empty());
  CHECK(named(part.diagnosis.explanations[0]) == "causal-strict");
  CHECK(!part.diagnosis.explanations[0].complete);
  CHECK(part.diagnosis.explanations[0].wrong_left > 0);
  CHECK(part.diagnosis.explanations[0].wrong_left < 0.2);

  const Outcome none = compare(ours, {out});
  CHECK(none.diagnosis.explanations.empty());
  CHECK(none.diagnosis.rounding == NumberFormat::kFloat64);
  CHECK(none.diagnosis.singles > 40);
  CHECK(none.diagnosis.pairs == none.diagnosis.all_pairs);
}

TEST_CASE("other inputs are said to be others, and nothing is tried") {
  const Problem ours = square(4);
  OtherMatrix x{MatrixKind::kX};
  x.heads.push_back(std::get<ProjectedSource>(ours.source).x->cast<double>());
  x.heads[0](2, 3) += 1;
  const Outcome outcome = compare(ours, {x});
  CHECK(outcome.diagnosis.inputs_differ);
  CHECK(outcome.diagnosis.singles == 0);
  CHECK(outcome.differences[0].wrong == 1);
  CHECK(outcome.differences[0].first_wrong->cell == MatrixCell{{MatrixKind::kX, 0}, 2, 3});
}

TEST_CASE("a difference: where, how much, of what") {
  const Problem ours = with(random_problem(2, 2, 4, 6, 4, 3, 5), {});
  OtherMatrix attn = attn_of(slow_heads(ours));
  const double largest = std::max(attn.heads[0].maxCoeff(), attn.heads[1].maxCoeff());
  const double before = attn.heads[1](2, 4);
  attn.heads[1](2, 4) = before + 0.25;
  attn.heads[1](3, 0) += 0.125;
  attn.heads[1](3, 1) += largest * 0.9e-5;
  attn.heads[1](3, 5) = std::nan("");
  const Difference found = compare(ours, {attn}).differences[0];
  CHECK(found.cells == 48);
  CHECK(found.wrong == 3);
  CHECK(found.not_finite == 1);
  CHECK(found.magnitude == doctest::Approx(largest));
  CHECK(found.largest->cell == MatrixCell{{MatrixKind::kAttn, 1}, 2, 4});
  CHECK(found.largest->ours == doctest::Approx(before));
  CHECK(found.largest->error() == doctest::Approx(0.25));
  CHECK(found.first_wrong->cell == found.largest->cell);
  CHECK(found.first_wrong->ours == doctest::Approx(before).epsilon(1e-12));
  CHECK(found.wrong_by_head == std::vector<Index>{0, 3});
  CHECK(found.largest_by_row[1][2] == 0.25F);
  CHECK(std::isnan(found.largest_by_row[1][3]));
  CHECK(std::isinf(found.relative_size()));
  // The mean over the heads stands against ours.
  const std::vector<Slow> slow = slow_heads(ours);
  const MatrixD mean = (slow[0].attn + slow[1].attn) / 2;
  CHECK(compare(ours, {{MatrixKind::kAttn, true, {mean}}}).differences[0].equal());
  const std::vector<Slow> hot = slow_heads(with(ours, {.scale = 1.0F}));
  check_named(compare(ours, {{MatrixKind::kAttn, true, {MatrixD((hot[0].attn + hot[1].attn) / 2)}}}), "scale-missing");
  CHECK(cell_error(1, 1.5) == 0.5);
  CHECK(cell_error(HUGE_VAL, HUGE_VAL) == 0);
  CHECK(cell_error(std::nan(""), std::nan("")) == 0);
  CHECK(std::isinf(cell_error(std::nan(""), 1)));
  CHECK(std::isinf(cell_error(HUGE_VAL, -HUGE_VAL)));
}
