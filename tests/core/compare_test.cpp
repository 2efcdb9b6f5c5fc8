// Somebody else's arrays and sessions against a session: how arrays are read, and what is said of them.
#include "core/session/compare.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/session/compare_words.h"
#include "core/session/session_tensors.h"
#include "tests/core/slow_attention.h"

using namespace qkv;
using namespace qkv::test;

namespace {

using Shape = std::vector<std::uint64_t>;

Session session_of(Problem problem) {
  Session session;
  session.problem = std::move(problem);
  REQUIRE(name_tokens_by_position(session).ok());
  return session;
}

TensorFile file_of(const std::vector<NamedArray>& arrays) {
  Result<Bytes> bytes = npz_bytes(arrays);
  REQUIRE(bytes.ok());
  Result<TensorFile> file = TensorFile::from_bytes(std::move(bytes).value(), "theirs");
  REQUIRE(file.ok());
  return std::move(file).value();
}

Comparison compared(const Session& session, const std::vector<NamedArray>& arrays,
                    const std::vector<std::string>& names = {}) {
  std::vector<NamePair> pairs;
  for (const std::string& name : names) {
    const Result<NamePair> pair = parse_name_pair(name);
    REQUIRE(pair.ok());
    pairs.push_back(pair.value());
  }
  Result<Comparison> comparison = compare_arrays(session, file_of(arrays), pairs);
  REQUIRE_MESSAGE(comparison.ok(), (comparison.ok() ? "" : comparison.error().message));
  return std::move(comparison).value();
}

std::string refusal(const Session& session, const std::vector<NamedArray>& arrays,
                    const std::vector<std::string>& names = {}) {
  std::vector<NamePair> pairs;
  for (const std::string& name : names) pairs.push_back(parse_name_pair(name).value());
  const Result<Comparison> comparison = compare_arrays(session, file_of(arrays), pairs);
  REQUIRE(!comparison.ok());
  return comparison.error().message;
}

// Numbers of heads in an order of axes: at(head, row, col) is where a cell goes.
template <class At>
std::vector<double> laid_out(const std::vector<Slow>& heads, MatrixD Slow::*matrix, At at) {
  const MatrixD& first = heads[0].*matrix;
  std::vector<double> values(heads.size() * static_cast<std::size_t>(first.size()));
  for (std::size_t h = 0; h < heads.size(); ++h) {
    for (Index i = 0; i < first.rows(); ++i) {
      for (Index j = 0; j < first.cols(); ++j) {
        values[static_cast<std::size_t>(at(static_cast<Index>(h), i, j))] = (heads[h].*matrix)(i, j);
      }
    }
  }
  return values;
}

std::vector<Slow> slow_heads(const Problem& problem) {
  const Result<Shapes> shapes = check_shapes(problem);
  std::vector<Slow> heads;
  for (int h = 0; h < shapes.value().heads; ++h) heads.push_back(slow_head(problem, shapes.value(), h));
  return heads;
}

}  // namespace

TEST_CASE("an array is read in whatever order its axes are") {
  const Problem problem = random_problem(3, 3, 5, 7, 4, 2, 1);
  const Session session = session_of(problem);
  const std::vector<Slow> heads = slow_heads(problem);
  const auto first = [](Index h, Index i, Index j) { return (h * 5 + i) * 2 + j; };
  const auto across = [](Index h, Index i, Index j) { return (i * 3 + h) * 2 + j; };
  struct Order {
    Shape shape;
    std::vector<double> values;
    std::string reading;
  };
  const Order orders[] = {{{3, 5, 2}, laid_out(heads, &Slow::out, first), "[H, N, d]"},
                          {{1, 3, 5, 2}, laid_out(heads, &Slow::out, first), "[H, N, d]"},
                          {{5, 3, 2}, laid_out(heads, &Slow::out, across), "[N, H, d]"},
                          {{1, 1, 5, 3, 2}, laid_out(heads, &Slow::out, across), "[N, H, d]"},
                          {{5, 6}, laid_out(heads, &Slow::out, across), "[N, H·d]"}};
  for (const Order& order : orders) {
    for (const std::string name : {"out", "heads_out"}) {
      const Comparison comparison = compared(session, {{name, order.shape, order.values}});
      CHECK(comparison.equal());
      CHECK(comparison.arrays[0].reading == order.reading);
      CHECK(comparison.theirs[0].kind == MatrixKind::kHeadsOut);
    }
  }
  CHECK(compared(session, {{"concat", {3, 5, 2}, orders[0].values}}).equal());
  CHECK(compared(session, {{"concat", {5, 6}, orders[2].values}}).equal());
  const std::vector<double> attn =
      laid_out(heads, &Slow::attn, [](Index h, Index i, Index j) { return (h * 5 + i) * 7 + j; });
  CHECK(compared(session, {{"attn", {1, 3, 5, 7}, attn}}).equal());
  std::vector<double> mean(35);
  for (std::size_t n = 0; n < attn.size(); ++n) mean[n % 35] += attn[n] / 3;
  const Comparison of_mean = compared(session, {{"attn", {5, 7}, mean}});
  CHECK(of_mean.equal());
  CHECK(of_mean.theirs[0].mean_of_heads);
}

TEST_CASE("what ALiBi adds is compared where both have it, and a wrong slope is named") {
  Problem problem = random_problem(4, 2, 5, 7, 4, 2, 1);
  problem.options.alibi = true;
  problem.options.causal = true;
  const Session session = session_of(problem);
  const auto added = [](double factor) {
    std::vector<double> values;
    for (int h = 0; h < 4; ++h) {
      for (Index i = 0; i < 5; ++i) {
        for (Index j = 0; j < 7; ++j) {
          values.push_back(-factor * slow_slope(h, 4) * std::abs(static_cast<double>(i + 2 - j)));
        }
      }
    }
    return values;
  };
  CHECK(compared(session, {{"alibi", {4, 5, 7}, added(1)}}).equal());
  const Comparison wrong = compared(session, {{"alibi", {4, 5, 7}, added(4)}});
  CHECK_FALSE(wrong.equal());
  CHECK(wrong.differences[0].kind == MatrixKind::kAlibi);
  REQUIRE(!wrong.diagnosis.explanations.empty());
  CHECK(wrong.diagnosis.explanations[0].causes[0].id == "alibi-slopes-from-zero");
  CHECK_FALSE(wrong.diagnosis.inputs_differ);
  Session plain = session;
  plain.problem.options.alibi = false;
  CHECK(refusal(plain, {{"alibi", {4, 5, 7}, added(1)}}) == "\"alibi\": this session has no alibi to compare it with");
  const Result<Comparison> sessions = compare_sessions(session, session);
  REQUIRE(sessions.ok());
  const auto is_alibi = [](const Difference& each) { return each.kind == MatrixKind::kAlibi; };
  CHECK(std::ranges::count_if(sessions.value().differences, is_alibi) == 1);
  const Result<Comparison> one_sided = compare_sessions(session, plain);
  REQUIRE(one_sided.ok());
  CHECK(std::ranges::none_of(one_sided.value().differences, is_alibi));
}

TEST_CASE("where two orders fit, the one with fewer wrong cells is taken and said") {
  const Problem problem = random_problem(3, 3, 3, 3, 4, 2, 1);
  const std::vector<double> across =
      laid_out(slow_heads(problem), &Slow::out, [](Index h, Index i, Index j) { return (i * 3 + h) * 2 + j; });
  const Comparison comparison = compared(session_of(problem), {{"out", {3, 3, 2}, across}});
  CHECK(comparison.equal());
  CHECK(matrix_words(comparison.arrays[0], comparison.differences[0]) == "heads_out (theirs: out) read as [N, H, d]");
}

TEST_CASE("arrays are named, and a part of one is chosen") {
  const Problem problem = random_problem(2, 2, 4, 4, 4, 2, 1);
  const Session session = session_of(problem);
  const std::vector<double> one =
      laid_out(slow_heads(problem), &Slow::attn, [](Index h, Index i, Index j) { return (h * 4 + i) * 4 + j; });
  std::vector<double> layers(32, 0.5);
  layers.insert(layers.end(), one.begin(), one.end());
  const NamedArray attentions{"attentions", {2, 1, 2, 4, 4}, layers};
  CHECK(compared(session, {attentions}, {"attentions[1,0]=attn"}).equal());
  CHECK(compared(session, {attentions}, {"attentions[1]=attn"}).equal());
  CHECK(!compared(session, {attentions}, {"attentions[0]=attn"}).equal());
  CHECK(refusal(session, {attentions}, {"attentions=attn"}) ==
        "\"attentions\" has the shape (2, 1, 2, 4, 4), but attn here is (2, 4, 4) [H, N, N] or (4, 4) [N, N], the mean "
        "over the heads: choose a part of it, on the command line with --name attentions[0]=attn");
  CHECK(refusal(session, {attentions}, {"attentions[2]=attn"}).find("there is no index 2 on axis 0") !=
        std::string::npos);
  CHECK(refusal(session, {attentions}) ==
        "nothing in it can be compared by its name: say which array is which, on the command line with --name "
        "THEIRS=attn (or heads_out, out, …); it has "
        "attentions (2, 1, 2, 4, 4)");
  CHECK(refusal(session, {{"attn", {2, 4, 3}, std::vector<double>(24)}}) ==
        "\"attn\" has the shape (2, 4, 3), but attn here is (2, 4, 4) [H, N, N] or (4, 4) [N, N], the mean over the "
        "heads");
  CHECK(refusal(session, {{"wo", {4, 4}, std::vector<double>(16)}}) ==
        "\"wo\": this session has no wo to compare it with");
  const Comparison some = compared(session, {{"attn", {2, 4, 4}, one}, {"logits", {3}, std::vector<double>(3)}});
  CHECK(some.equal());
  REQUIRE(some.left_alone.size() == 1);
  CHECK(some.left_alone[0].name == "logits");
  for (const std::string text : {"attn", "=attn", "a=b", "a[x]=attn", "a[1,]=attn", "a[]=attn"}) {
    CHECK(parse_name_pair(text).error().code == ErrorCode::kUsage);
  }
  CHECK(parse_name_pair("a[b=attn").value().theirs == "a[b");
}

TEST_CASE("two sessions: what they are set to, what differs, and why") {
  Problem problem = random_problem(4, 2, 6, 6, 4, 3, 1);
  problem.options = {.causal = true, .window = 4};
  Session here = session_of(problem), there = here;
  there.problem.options = {.causal = true, .window = 3, .sink = {}};
  there.tokens[2] = "two";
  const Result<Comparison> comparison = compare_sessions(here, there);
  REQUIRE(comparison.ok());
  CHECK(comparison.value().settings ==
        std::vector<std::string>{"tokens: number 2 is \"2\" here, \"two\" there", "window: 4 here, 3 there"});
  CHECK(!comparison.value().equal());
  CHECK(comparison.value().diagnosis.explanations.at(0).causes.at(0).id == "window-one-less");
  CHECK(compare_sessions(here, here).value().equal());
  CHECK(compare_sessions(here, here).value().settings.empty());
  const Result<Comparison> others = compare_sessions(here, worked_example());
  REQUIRE(!others.ok());
  CHECK(others.error().message ==
        "the two sessions have no matrix of the same shape: 4 heads over 2, 6 × 6, d_k 4, d_v 3 here, 1 head, 3 × 3, "
        "d_k 3, d_v 3 there");
}

TEST_CASE("a session of weights alone is compared with, and cannot be what is computed") {
  Problem problem = random_problem(2, 2, 4, 4, 4, 3, 1);
  const Session here = session_of(problem);
  problem.options.causal = true;
  Session given = here;
  WeightsSource weights;
  for (const Slow& head : slow_heads(problem)) weights.attn.emplace_back(Matrix(head.attn.cast<float>()));
  given.problem = {.source = weights};
  const Result<Comparison> comparison = compare_sessions(here, given);
  REQUIRE(comparison.ok());
  REQUIRE(comparison.value().arrays.size() == 1);
  CHECK(comparison.value().diagnosis.explanations.at(0).causes.at(0).id == "causal-added");
  const Result<Comparison> turned = compare_sessions(given, here);
  REQUIRE(!turned.ok());
  CHECK(turned.error().message.starts_with("only attention weights are given here"));
  CHECK(refusal(given, {{"attn", {2, 4, 4}, std::vector<double>(32)}}) == turned.error().message);
}

TEST_CASE("the differences as arrays, cells with their tokens, and sentences") {
  Session session = worked_example();
  Session other = session;
  other.problem.options.scale = 1.0F;
  const Result<Comparison> comparison = compare_sessions(session, other);
  REQUIRE(comparison.ok());
  const std::vector<NamedArray> arrays = arrays_of(comparison.value());
  const auto attn = std::find_if(arrays.begin(), arrays.end(), [](const auto& a) { return a.name == "diff_attn"; });
  REQUIRE(attn != arrays.end());
  CHECK(attn->shape == Shape{1, 3, 3});
  // The row of 貓 without the scale: e^(1 − 3) / (e^(1 − 3) + 2), less the source text's .1361.
  CHECK(std::get<std::vector<float>>(attn->values)[0] ==
        doctest::Approx(std::exp(-2.0) / (std::exp(-2.0) + 2) - 0.1361).epsilon(1e-3));
  const auto keep = std::find_if(arrays.begin(), arrays.end(), [](const auto& a) { return a.name == "diff_keep"; });
  REQUIRE(keep != arrays.end());
  CHECK(keep->shape == Shape{3, 3});
  const auto of_attn = std::find_if(comparison.value().differences.begin(), comparison.value().differences.end(),
                                    [](const Difference& d) { return d.kind == MatrixKind::kAttn; });
  CHECK(cell_words(session, *of_attn, of_attn->first_wrong->cell) == "head 0, row 0 (貓), column 0 (貓)");
  CHECK(verdict_words(*of_attn).starts_with("6 of 9 cells wrong, off by more than "));
  const DiagnosisWords words = diagnosis_words(comparison.value());
  CHECK(words.headline == "Likely cause, in theirs: the scale is missing");
  CHECK(words.lines.at(0).second == "QKᵀ goes into the softmax as it is.");
  CHECK(words.lines.at(1).second == "Multiply QKᵀ by 0.5774 once, before the softmax.");
  CHECK(words.lines.at(2).second.ends_with("to almost nothing"));
}

TEST_CASE("numbers of errors are short") {
  CHECK(error_text(0) == "0.0000");
  CHECK(error_text(0.41234) == "0.4123");
  CHECK(error_text(3.14159) == "3.142");
  CHECK(error_text(12345.67) == "12345.7");
  CHECK(error_text(3.06e-5) == "3.1e-5");
  CHECK(error_text(-2e7) == "-2.0e7");
  CHECK(error_text(std::nan("")) == "nan");
}
