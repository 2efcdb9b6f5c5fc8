#include "core/figure/figure.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/core/figure_support.h"

using namespace qkv;
using namespace qkv::test;

namespace {

double right(const FigureMatrix& m) { return m.x + m.cell_w * static_cast<double>(m.cols()); }
double bottom(const FigureMatrix& m) { return m.y + m.cell_h * static_cast<double>(m.rows()); }

bool overlap(const FigureMatrix& a, const FigureMatrix& b) {
  return a.x < right(b) && b.x < right(a) && a.y < bottom(b) && b.y < bottom(a);
}

struct Bounds {
  double left = 1e9, top = 1e9, right = -1e9, bottom = -1e9;
};

Bounds bounds(const FigureText& text, const TextShaper& shaper) {
  const TextSize size = shaper.measure(text.text, text.style);
  Bounds box;
  for (const double dx : {0.0, size.width}) {
    for (const double dy : {0.0, size.height}) {
      const double x = text.x + dx * std::cos(text.angle) - dy * std::sin(text.angle);
      const double y = text.y + dx * std::sin(text.angle) + dy * std::cos(text.angle);
      box = {std::min(box.left, x), std::min(box.top, y), std::max(box.right, x), std::max(box.bottom, y)};
    }
  }
  return box;
}

// What holds for every figure: nothing outside, nothing on top of a matrix, whole pixels.
void check_sound(const Figure& figure) {
  const TextShaper shaper;
  CHECK(figure.width == std::floor(figure.width));
  CHECK(figure.height == std::floor(figure.height));
  for (std::size_t i = 0; i < figure.matrices.size(); ++i) {
    const FigureMatrix& m = figure.matrices[i];
    REQUIRE(m.values != nullptr);
    for (const double length : {m.x, m.y, m.cell_w, m.cell_h}) CHECK(length == std::floor(length));
    CHECK((m.x >= 8 && m.y >= 8 && right(m) <= figure.width - 8 && bottom(m) <= figure.height - 8));
    for (std::size_t k = i + 1; k < figure.matrices.size(); ++k) CHECK_FALSE(overlap(m, figure.matrices[k]));
  }
  std::vector<Bounds> boxes;
  for (const FigureText& text : figure.texts) boxes.push_back(bounds(text, shaper));
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const Bounds& box = boxes[i];
    CAPTURE(figure.texts[i].text);
    CHECK((box.left >= 0 && box.top >= 0 && box.right <= figure.width && box.bottom <= figure.height));
    if (figure.texts[i].angle != 0) continue;
    // A line of text reaches a few pixels further than its letters.
    const bool clear = std::ranges::all_of(figure.matrices, [&](const FigureMatrix& m) {
      return box.right <= m.x || box.left >= right(m) || box.bottom - 4 <= m.y || box.top + 4 >= bottom(m);
    });
    CHECK(clear);
    for (std::size_t k = i + 1; k < boxes.size(); ++k) {
      const Bounds& other = boxes[k];
      if (figure.texts[k].angle != 0 || box.right <= other.left || other.right <= box.left) continue;
      CAPTURE(figure.texts[k].text);
      CHECK((box.bottom - 8 <= other.top || other.bottom - 8 <= box.top));
    }
  }
}

std::vector<Session> sessions() {
  Session scaled = worked_example();
  scaled.problem.options.scale = 0.5F;
  Session biased = projected(8);
  biased.problem.bo = random_matrix(6, 1, 32);
  Session bare = projected(3);
  bare.problem.wo.reset();
  return {worked_example(), causal(), scaled, cross(), biased, bare, projected(12)};
}

}  // namespace

TEST_CASE("figures of every view, session and cell size are sound") {
  for (const Session& session : sessions()) {
    const Trace trace = run(session);
    for (const FigureView view : {FigureView::kMatrix, FigureView::kHead, FigureView::kHeads, FigureView::kConcat}) {
      for (const int cell : {1, 5, 16, 24, 40, 96}) {
        CAPTURE(session.title);
        CAPTURE(static_cast<int>(view));
        CAPTURE(cell);
        check_sound(layout(session, trace, spec_of(view, cell)));
      }
    }
  }
}

TEST_CASE("every matrix of a session has its own figure") {
  Session session = projected(2);
  session.problem.bo = random_matrix(6, 1, 8);
  session.problem.options.bias = random_matrix(9, 6, 6);
  const Trace trace = run(session);
  const TextShaper shaper;
  for (const MatrixKind kind : kAllMatrixKinds) {
    FigureSpec spec = spec_of(FigureView::kMatrix);
    spec.matrix = {kind, 0};
    const Result<Figure> figure = layout_figure(session, trace, spec, shaper);
    CHECK(figure.ok() == (trace.find(spec.matrix) != nullptr));
    if (figure.ok()) check_sound(figure.value());
  }
}

TEST_CASE("one head is drawn as products are drawn by hand") {
  for (const Session& session : {worked_example(), causal(), cross()}) {
    const Trace trace = run(session);
    FigureSpec spec = spec_of(FigureView::kHead);
    spec.matrix.head = trace.shapes.heads - 1;
    const Figure figure = layout(session, trace, spec);
    using enum MatrixKind;
    const FigureMatrix &q = find(figure, kQ), &k = find(figure, kK), &s = find(figure, kScores);
    const FigureMatrix &v = find(figure, kV), &a = find(figure, kAttn), &o = find(figure, kHeadsOut);
    for (const FigureMatrix* m : {&s, &find(figure, kScaled), &a, &o}) {
      CHECK(m->y == q.y);
      CHECK(m->cell_h == q.cell_h);
      CHECK(m->rows() == q.rows());
    }
    CHECK(k.transposed);
    CHECK(k.x == s.x);
    CHECK(right(k) == right(s));
    CHECK(k.cell_w == s.cell_w);
    CHECK(bottom(k) < s.y);
    CHECK(v.x == o.x);
    CHECK(right(v) == right(o));
    CHECK(bottom(v) == bottom(k));
    CHECK(right(q) < s.x);
    CHECK(right(s) < find(figure, kScaled).x);
    CHECK(right(a) < o.x);
    CHECK(s.range == find(figure, kScaled).range);
    CHECK(q.range == k.range);
    CHECK(v.range == o.range);

    const bool masked = (trace.keep->array() == 0).any();
    CHECK(figure.matrices.size() == (masked ? 8 : 7));
    if (masked) {
      CHECK(find(figure, kKeep).y == q.y);
      CHECK(right(find(figure, kScaled)) < find(figure, kKeep).x);
      CHECK(right(find(figure, kKeep)) < a.x);
    }
  }
}

TEST_CASE("the scale is named as it is") {
  const auto has_text = [](const Figure& figure, std::string_view text) {
    return std::ranges::any_of(figure.texts, [&](const FigureText& t) { return t.text == text; });
  };
  Session session = worked_example();
  const Trace by_default = run(session);
  Figure figure = layout(session, by_default, spec_of(FigureView::kHead));
  CHECK(has_text(figure, "÷"));
  CHECK(has_text(figure, "√3"));
  session.problem.options.scale = 0.5F;
  const Trace halved = run(session);
  figure = layout(session, halved, spec_of(FigureView::kHead));
  CHECK(has_text(figure, "×"));
  CHECK(has_text(figure, "0.5"));
  CHECK_FALSE(has_text(figure, "√3"));
}

TEST_CASE("what ALiBi and a bias add stands before the scaled scores, and the titles name it") {
  const auto texts = [](const Figure& figure) {
    std::vector<std::string> all;
    for (const FigureText& t : figure.texts) all.push_back(t.text);
    return all;
  };
  const auto has_text = [&](const Figure& figure, std::string_view text) {
    return std::ranges::count(texts(figure), text) > 0;
  };
  using enum MatrixKind;
  Session session = projected(2);
  session.problem.options.bias = random_matrix(9, 6, 6);
  Trace trace = run(session);
  Figure figure = layout(session, trace, spec_of(FigureView::kHead));
  check_sound(figure);
  const FigureMatrix &s = find(figure, kScores), &b = find(figure, kBias), &scaled = find(figure, kScaled);
  CHECK(b.y == s.y);
  CHECK(right(s) < b.x);
  CHECK(right(b) < scaled.x);
  CHECK(b.range == s.range);
  CHECK(has_text(figure, "B"));
  CHECK(has_text(figure, "÷ +"));
  CHECK(has_text(figure, "="));
  CHECK(has_text(figure, "S/√dₖ + B"));

  session.problem.options.alibi = true;
  session.problem.options.softcap = 5.0F;
  session.problem.options.rope = Rope{};
  trace = run(session);
  FigureSpec spec = spec_of(FigureView::kHead);
  spec.matrix.head = 1;
  figure = layout(session, trace, spec);
  check_sound(figure);
  CHECK(find(figure, kAlibi).id.head == 1);
  CHECK(right(find(figure, kAlibi)) < find(figure, kBias).x);
  CHECK(has_text(figure, "S = R(Q)·R(K)ᵀ"));
  CHECK(has_text(figure, "√4, cap 5"));
  CHECK(has_text(figure, "cap(S/√dₖ) + ALiBi + B"));
  CHECK(std::ranges::any_of(
      texts(figure), [](const std::string& t) { return t.ends_with("softmax(cap(R(Q)·R(K)ᵀ/√dₖ) + ALiBi + B)·V"); }));
}

TEST_CASE("the mask is said to be what it is") {
  Session session = worked_example();
  session.problem.options = {.causal = true, .key_valid = {1, 0, 1}, .window = 2};
  const Trace trace = run(session);
  const Figure figure = layout(session, trace, spec_of(FigureView::kHead));
  CHECK(std::ranges::any_of(figure.texts, [](const FigureText& t) { return t.text == "causal, window, padding"; }));
}

TEST_CASE("all heads share one range") {
  Session session = projected(8);
  session.view.weights_range = {RangeMode::kAuto, 0, 1};
  const Trace trace = run(session);
  FigureSpec spec = spec_of(FigureView::kHeads);
  spec.look = session.view;
  const Figure figure = layout(session, trace, spec);
  REQUIRE(figure.matrices.size() == 8);
  float high = 0;
  for (const HeadTrace& head : trace.heads) high = std::max(high, head.attn->maxCoeff());
  for (const FigureMatrix& m : figure.matrices) {
    CHECK(m.range == figure.matrices.front().range);
    CHECK(m.range.high == high);
  }
}

TEST_CASE("concat, W^O and the output line up") {
  const Session session = projected(8);
  const Trace trace = run(session);
  const Figure figure = layout(session, trace, spec_of(FigureView::kConcat, 12));
  const FigureMatrix &concat = find(figure, MatrixKind::kConcat), &wo = find(figure, MatrixKind::kWo);
  const FigureMatrix& out = find(figure, MatrixKind::kOut);
  CHECK(concat.y == out.y);
  CHECK(concat.cell_h == out.cell_h);
  CHECK(wo.x == out.x);
  CHECK(right(wo) == right(out));
  CHECK(bottom(wo) < out.y);
  // One band above the columns and one beside the rows of each head, in its colour.
  for (int head = 0; head < 8; ++head) {
    const auto bands =
        std::ranges::count_if(figure.rects, [&](const FigureRect& r) { return r.color == head_color(head); });
    CHECK(bands == 2);
  }
}

TEST_CASE("labels are limited, turned and thinned to fit") {
  std::vector<std::string> tokens;
  for (int i = 0; i < 40; ++i) tokens.push_back(std::string(60, static_cast<char>('a' + i % 26)));
  const Session session = projected(2, tokens);
  const Trace trace = run(session);
  const TextShaper shaper;
  const auto count = [&](int cell, bool turned) {
    const Figure figure = layout(session, trace, spec_of(FigureView::kMatrix, cell));
    check_sound(figure);
    return std::ranges::count_if(figure.texts, [&](const FigureText& t) {
      if (t.style.max_width == 0) return false;
      CHECK(shaper.measure(t.text, t.style).width <= 140);
      return turned == (t.angle != 0);
    });
  };
  CHECK(count(24, false) == 40);
  CHECK(count(24, true) == 40);
  CHECK(count(14, false) == 40);
  CHECK(count(14, true) == 40);
  CHECK(count(4, false) == 8);  // every fifth
  CHECK(count(4, true) == 8);
  CHECK(count(160, true) == 0);
}

TEST_CASE("the layout is written as JSON") {
  const Session session = worked_example();
  const Trace trace = run(session);
  const Figure figure = layout(session, trace, spec_of(FigureView::kHead, 20));
  const nlohmann::json json = nlohmann::json::parse(layout_json(figure));
  CHECK(json.at("width") == figure.width);
  CHECK(json.at("height") == figure.height);
  REQUIRE(json.at("matrices").size() == figure.matrices.size());
  for (std::size_t i = 0; i < figure.matrices.size(); ++i) {
    const nlohmann::json& entry = json["matrices"][i];
    const FigureMatrix& m = figure.matrices[i];
    CHECK(entry.at("matrix") == file_key(m.id.kind));
    CHECK(entry.at("head") == 0);
    CHECK(entry.at("rows") == 3);
    CHECK(entry.at("cols") == 3);
    CHECK(entry.at("x") == m.x);
    CHECK(entry.at("y") == m.y);
    CHECK(entry.at("cell_w") == 20);
    CHECK(entry.at("cell_h") == 20);
    CHECK(entry.at("range").at(0).get<float>() == m.range.low);
    CHECK(entry.at("range").at(1).get<float>() == m.range.high);
    CHECK(entry.at("colormap") == m.colormap);
    CHECK(entry.value("transposed", false) == m.transposed);
  }
}

TEST_CASE("what cannot be drawn is refused with a reason") {
  const Session session = worked_example();
  const Trace trace = run(session);
  const TextShaper shaper;
  const auto message = [&](const FigureSpec& spec) {
    const Result<Figure> figure = layout_figure(session, trace, spec, shaper);
    REQUIRE_FALSE(figure.ok());
    CHECK(figure.error().code == ErrorCode::kBadInput);
    return figure.error().message;
  };
  FigureSpec spec = spec_of(FigureView::kMatrix);
  spec.matrix.head = 4;
  CHECK(message(spec).find("head 5") != std::string::npos);
  spec.matrix.head = -1;
  message(spec);
  spec.view = FigureView::kHead;
  message(spec);
  spec = spec_of(FigureView::kMatrix);
  spec.matrix.kind = MatrixKind::kOut;
  CHECK(message(spec).find("out") != std::string::npos);
  message(spec_of(FigureView::kMatrix, 0));
  message(spec_of(FigureView::kMatrix, 257));
  spec = spec_of(FigureView::kMatrix);
  spec.look.weights_map = "jet";
  CHECK(message(spec).find("jet") != std::string::npos);
}

TEST_CASE("a picture that would be too large names the cell size that fits") {
  Session session;
  session.tokens.resize(400, "x");
  DirectSource source;
  source.q = {random_matrix(1, 400, 1)};
  source.k = {random_matrix(2, 400, 1)};
  source.v = {random_matrix(3, 400, 1)};
  session.problem.source = source;
  const Trace trace = run(session);
  const TextShaper shaper;
  for (const int cell : {200, 60}) {  // beyond the side, beyond the area
    const Result<Figure> figure = layout_figure(session, trace, spec_of(FigureView::kMatrix, cell), shaper);
    REQUIRE_FALSE(figure.ok());
    const std::string& message = figure.error().message;
    const int fitting = std::stoi(message.substr(message.rfind(' ') + 1));
    CHECK(fitting > 30);
    CHECK(layout_figure(session, trace, spec_of(FigureView::kMatrix, fitting), shaper).ok());
    CHECK_FALSE(layout_figure(session, trace, spec_of(FigureView::kMatrix, fitting + 1), shaper).ok());
  }
}

TEST_CASE("a logarithmic scale says so between its ends, and only it does") {
  const Session session = projected(2);
  const Trace trace = run(session);
  FigureSpec spec = spec_of(FigureView::kHead);
  const auto words = [&] {
    const Figure figure = layout(session, trace, spec);
    return std::ranges::count(figure.texts, std::string("log"), &FigureText::text);
  };
  CHECK(words() == 0);
  spec.look.weights_range.mode = RangeMode::kLog;
  CHECK(words() == 1);
  check_sound(layout(session, trace, spec));
}

TEST_CASE("labels of a long axis step by round numbers") {
  Session session;
  constexpr Index kTokens = 60;
  for (Index i = 1; i <= kTokens; ++i) session.tokens.push_back(std::to_string(i));
  const SharedMatrix some(random_matrix(1, kTokens, 2));
  session.problem.source = DirectSource{{some}, {some}, {some}};
  const Trace trace = run(session);
  const Figure figure = layout(session, trace, spec_of(FigureView::kMatrix, 4));
  const auto count = [&](const char* text) {
    return std::ranges::count(figure.texts, std::string(text), &FigureText::text);
  };
  for (const char* fifth : {"5", "10", "60"}) CHECK(count(fifth) == 2);  // a row and a column
  for (const char* other : {"4", "6", "9"}) CHECK(count(other) == 0);
  CHECK(count("1") == 1);  // the end of the colour bar
}
