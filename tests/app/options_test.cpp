// Every attention option in the window: B as a matrix, the temperature, and the pictures of what options do.
#include <doctest/doctest.h>

#include <cmath>

#include "app/panels/option_pictures.h"
#include "core/attention/explain.h"
#include "core/attention/temperature.h"
#include "tests/app/harness.h"

using namespace qkv;

namespace {

constexpr int kTall = 1900;  // everything of the panel is on screen

const AttentionOptions& options_of(Harness& h) { return h.app().session().problem.options; }

// A session of `n` tokens in one head of size `d`, with random numbers.
Session random_session(Index n, Index d) {
  Session session = worked_example();
  session.tokens.clear();
  for (Index i = 0; i < n; ++i) session.tokens.push_back("t" + std::to_string(i));
  session.problem.source = DirectSource{{SharedMatrix(random_matrix(1, n, d))},
                                        {SharedMatrix(random_matrix(2, n, d))},
                                        {SharedMatrix(random_matrix(3, n, d))}};
  return session;
}

const std::vector<std::string> kPictures = {"scale", "mask", "rope", "added", "softcap", "sink"};

}  // namespace

TEST_CASE("the switch makes a zero B that stands before the scaled scores, and takes it away again") {
  Harness h(1440, kTall);
  CHECK_FALSE(h.has("matrix/bias/1"));
  h.click("switch/bias");
  REQUIRE(options_of(h).bias.has_value());
  CHECK(options_of(h).bias->get() == Matrix::Zero(3, 3));
  const auto rect = [&](const std::string& name) { return *h.app().widgets().find(name); };
  const auto b = rect("matrix/bias/1"), s = rect("matrix/scores/1"), scaled = rect("matrix/scaled/1");
  CHECK(s.max.x < b.min.x);
  CHECK(b.max.x < scaled.min.x);
  for (const auto& other : {s, scaled}) {
    CHECK(b.min.y == other.min.y);
    CHECK(b.max.y == other.max.y);
    CHECK(b.max.x - b.min.x == other.max.x - other.min.x);
  }
  h.click("switch/bias");
  CHECK_FALSE(options_of(h).bias.has_value());
  CHECK_FALSE(h.has("matrix/bias/1"));
}

TEST_CASE("B is typed over, scrubbed, filled, pasted and undone like Q") {
  Harness h(1440, kTall);
  h.click("switch/bias");
  h.click("matrix/bias/1/cell/0,1");
  h.type("-2.5");
  h.key(Key::kEnter);
  CHECK(options_of(h).bias->get()(0, 1) == -2.5f);
  CHECK(h.trace(MatrixKind::kBias)(0, 1) == -2.5f);
  // 3/√3 − 2.5: what softmax sees.
  CHECK(std::abs(h.trace(MatrixKind::kScaled)(0, 1) - (std::sqrt(3.0f) - 2.5f)) <= 0x1p-22f);

  h.drag("matrix/bias/1/cell/2,2", {60, 0});
  const float scrubbed = options_of(h).bias->get()(2, 2);
  CHECK(scrubbed > 0.5f);
  h.key(Key::kZ, true);
  CHECK(options_of(h).bias->get()(2, 2) == 0);
  CHECK(options_of(h).bias->get()(0, 1) == -2.5f);

  h.set_clipboard("1\t2\n3\t-inf");
  h.click("matrix/bias/1/cell/1,0");
  h.key(Key::kV, true);
  CHECK(options_of(h).bias->get()(1, 1) == 2);
  CHECK(options_of(h).bias->get()(2, 1) == -INFINITY);
  CHECK(h.trace(MatrixKind::kAttn)(2, 1) == 0);
  h.click("matrix/bias/1/cell/1,0");
  h.key(Key::kDelete);
  CHECK(options_of(h).bias->get()(1, 0) == 0);
  h.key(Key::kC, true);
  CHECK(h.clipboard() == "0");
}

TEST_CASE("B follows its tokens and is explained with ALiBi") {
  Harness h(1440, kTall);
  h.click("switch/bias");
  h.click("switch/alibi");
  h.click("matrix/bias/1/cell/2,0");
  h.type("7");
  h.key(Key::kEnter);
  // What is added stands in the order in which it acts.
  const auto x = [&](const std::string& name) { return h.app().widgets().find(name)->min.x; };
  CHECK(x("matrix/scores/1") < x("matrix/alibi/1"));
  CHECK(x("matrix/alibi/1") < x("matrix/bias/1"));
  CHECK(x("matrix/bias/1") < x("matrix/scaled/1"));
  const auto e = explain(*h.app().trace(), {MatrixKind::kBias, 0}, 2, 0);
  REQUIRE(e.has_value());
  CHECK(e->bias_value == 7);
  CHECK(explain(*h.app().trace(), {MatrixKind::kAlibi, 0}, 2, 0)->alibi == -2 * 0x1p-8);
  h.point("matrix/bias/1/cell/2,0");
  h.point("matrix/alibi/1/cell/2,0");
  h.click("matrix/alibi/1/cell/2,0");
  h.type("5");  // computed: not to be typed over
  CHECK(h.trace(MatrixKind::kAlibi)(2, 0) == -2 * 0x1p-8f);
}

TEST_CASE("the slider is the scale from the other side, one step for undo, and snaps to the usual one") {
  Harness h(1440, kTall);
  const auto slider = *h.app().widgets().find("slider/temperature");
  const float width = slider.max.x - slider.min.x;
  h.drag("slider/temperature", {width / 4, 0});
  REQUIRE(options_of(h).scale.has_value());
  const double t = temperature(options_of(h), 3);
  CHECK(t > 5);
  CHECK(t < 20);
  CHECK(static_cast<double>(*options_of(h).scale) == doctest::Approx(1 / (t * std::sqrt(3.0))).epsilon(1e-6));
  CHECK(h.has("picture/scale"));
  const float hot = h.trace(MatrixKind::kAttn)(1, 0);
  CHECK(hot < 0.5f);
  h.key(Key::kZ, true);
  CHECK_FALSE(options_of(h).scale.has_value());
  CHECK_FALSE(h.has("picture/scale"));
  h.drag("slider/temperature", {-width / 4, 0});
  CHECK(h.trace(MatrixKind::kAttn)(1, 0) > 0.99f);
  // Back to within a few pixels of the tick: the default itself, not a number near it.
  const float middle = (slider.min.x + slider.max.x) / 2;
  h.point_at({middle + 3, (slider.min.y + slider.max.y) / 2});
  h.drag("slider/temperature", {3, 0});
  CHECK_FALSE(options_of(h).scale.has_value());
}

TEST_CASE("a temperature is typed, and one out of range is brought into it") {
  Harness h(1440, kTall);
  const auto type = [&](const std::string& text) {
    h.click("field/temperature");
    h.key(Key::kA, true);
    h.type(text);
    h.key(Key::kEnter);
    return temperature(options_of(h), 3);
  };
  CHECK(type("2") == doctest::Approx(2).epsilon(1e-6));
  CHECK(type("0") == doctest::Approx(kLeastTemperature).epsilon(1e-6));
  CHECK(type("1000") == doctest::Approx(kMostTemperature).epsilon(1e-6));
  CHECK(type("1") == 1);
  CHECK_FALSE(options_of(h).scale.has_value());
}

TEST_CASE("what is off has no picture; what is on has one, for one token and for many") {
  for (const Index n : {1, 3, 100, 512}) {
    CAPTURE(n);
    Session session = random_session(n, 4);
    Harness h(1440, kTall);
    h.app().open(session, {});
    h.frames(3);
    for (const std::string& name : kPictures) CHECK_FALSE(h.has("picture/" + name));
    session.problem.options = {.scale = 0.2f,
                               .causal = true,
                               .rope = Rope{100, RopeStyle::kHalf},
                               .softcap = 2.0f,
                               .alibi = true,
                               .window = 2,
                               .sink = {0.5f}};
    if (n < 100) session.problem.options.bias = SharedMatrix(random_matrix(9, n, n));
    h.app().open(session, {});
    h.frames(40);
    for (const std::string& name : kPictures) CHECK_MESSAGE(h.has("picture/" + name), name);
    h.point("matrix/attn/1");
    h.frames(2);
    h.app().open(random_session(2, 2), {});
    h.frames(3);
    CHECK_FALSE(h.has("picture/mask"));
  }
}

TEST_CASE("pictures hold small maps that are made once per change") {
  Session session = random_session(300, 4);
  session.problem.options = {.causal = true, .rope = Rope{}, .alibi = true};
  Result<Trace> trace = forward(session.problem);
  REQUIRE(trace.ok());
  Computed computed;
  computed.session = session;
  computed.trace = std::move(trace).value();
  computed.digest = digest(computed.trace);
  OptionPictures pictures;
  const auto refresh = [&](std::uint64_t version) {
    refresh_pictures(pictures, StageInput{session, computed, version}, computed.trace.shapes, std::nullopt);
    return std::array{pictures.mask.version, pictures.added.version, pictures.rope.version};
  };
  const auto first = refresh(1);
  CHECK(first == std::array<std::uint64_t, 3>{1, 1, 1});
  for (const auto* map : {&pictures.mask, &pictures.added}) {
    CHECK(map->values.rows() == 64);
    CHECK(map->values.cols() == 64);
  }
  CHECK(pictures.rope.values.cols() == 2);
  CHECK(refresh(1) == first);
  CHECK(refresh(2) == first);  // other numbers, same options
  session.problem.options.window = 5;
  CHECK(refresh(3) == std::array<std::uint64_t, 3>{2, 1, 1});
  session.problem.options.alibi = false;
  session.problem.options.bias = SharedMatrix(Matrix::Constant(300, 300, 2));
  CHECK(refresh(4) == std::array<std::uint64_t, 3>{2, 2, 1});
  CHECK((pictures.added.values.array() == 2.0f).all());
}

TEST_CASE("the row of the scale's picture is that of the cell in focus") {
  Session session = worked_example();
  session.problem.options.scale = 0.25f;
  Result<Trace> trace = forward(session.problem);
  REQUIRE(trace.ok());
  Computed computed;
  computed.session = session;
  computed.trace = std::move(trace).value();
  computed.digest = digest(computed.trace);
  OptionPictures pictures;
  const StageInput in{session, computed, 1};
  refresh_pictures(pictures, in, computed.trace.shapes, std::nullopt);
  CHECK(pictures.row == 0);
  refresh_pictures(pictures, in, computed.trace.shapes, CellRef{{MatrixKind::kAttn, 0}, 1, 2});
  CHECK(pictures.row == 1);
  REQUIRE(pictures.now.size() == 3);
  for (std::size_t j = 0; j < 3; ++j) {
    // Both from the same exact scores: half an ulp of the float32 that the trace stores.
    CHECK(std::abs(pictures.now[j] - double(computed.trace.heads[0].attn(1, Index(j)))) <= 0x1p-25);
  }
  CHECK(pictures.before[0] == doctest::Approx(0.6134).epsilon(1e-4));
  refresh_pictures(pictures, in, computed.trace.shapes, CellRef{{MatrixKind::kV, 0}, 2, 0});
  CHECK(pictures.row == 0);  // a row of V is a key
}
