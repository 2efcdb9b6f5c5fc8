#include "core/figure/figure.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/figure/paint.h"

using namespace qkv;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

Trace run(const Session& session) {
  Result<Trace> trace = forward(session.problem);
  REQUIRE(trace.ok());
  return std::move(trace).value();
}

Figure layout(const Session& session, const Trace& trace, const FigureSpec& spec) {
  const TextShaper shaper;
  Result<Figure> figure = layout_figure(session, trace, spec, shaper);
  if (!figure.ok()) FAIL(figure.error().message);
  return std::move(figure).value();
}

PixelImage paint(const Figure& figure) {
  const TextShaper shaper;
  const Result<Bytes> png = figure_png(figure, shaper);
  REQUIRE(png.ok());
  Result<PixelImage> image = decode_png(png.value());
  REQUIRE(image.ok());
  CHECK(image.value().width == figure.width);
  CHECK(image.value().height == figure.height);
  return std::move(image).value();
}

Color pixel(const PixelImage& image, double x, double y) {
  const std::size_t at = (static_cast<std::size_t>(y) * image.width + static_cast<std::size_t>(x)) * 4;
  return {image.rgba[at], image.rgba[at + 1], image.rgba[at + 2], image.rgba[at + 3]};
}

// Six tokens, `heads` heads of four, projected, with W^O.
Session projected(int heads,
                  std::vector<std::string> tokens = {"Thinking", "machines", "dream", "of", "tidy", "rows"}) {
  Session session;
  session.title = "Thinking machines";
  session.tokens = std::move(tokens);
  const auto n = static_cast<Index>(session.tokens.size());
  const Index d = 4 * heads;
  ProjectedSource source;
  source.x = random_matrix(1, n, d);
  source.wq = random_matrix(2, d, d);
  source.wk = random_matrix(3, d, d);
  source.wv = random_matrix(4, d, d);
  source.heads = source.kv_heads = heads;
  session.problem.source = source;
  session.problem.wo = random_matrix(5, d, d);
  return session;
}

Session causal() {
  Session session = worked_example();
  session.problem.options.causal = true;
  return session;
}

// Two heads that share one key/value head, more keys than queries, the last key hidden.
Session cross() {
  Session session;
  session.tokens = {"a", "b"};
  session.key_tokens = {"v", "w", "x", "y", "z"};
  DirectSource source;
  source.q = {random_matrix(1, 2, 3), random_matrix(2, 2, 3)};
  source.k = {random_matrix(3, 5, 3)};
  source.v = {random_matrix(4, 5, 2)};
  session.problem.source = source;
  session.problem.options.key_valid = {1, 1, 1, 1, 0};
  return session;
}

FigureSpec spec_of(FigureView view, int cell_px = 32) {
  FigureSpec spec;
  spec.view = view;
  spec.cell_px = cell_px;
  return spec;
}

const FigureMatrix& find(const Figure& figure, MatrixKind kind) {
  const auto found = std::ranges::find_if(figure.matrices, [&](const FigureMatrix& m) { return m.id.kind == kind; });
  REQUIRE(found != figure.matrices.end());
  return *found;
}

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

TEST_CASE("pixels are the colours of the table") {
  const Session session = worked_example();
  const Trace trace = run(session);
  for (const ThemeName theme : {ThemeName::kLight, ThemeName::kDark}) {
    for (const FigureView view : {FigureView::kMatrix, FigureView::kHead, FigureView::kHeads, FigureView::kConcat}) {
      for (const int cell : {1, 3, 11, 40}) {
        FigureSpec spec = spec_of(view, cell);
        spec.theme = theme;
        const Figure figure = layout(session, trace, spec);
        const PixelImage image = paint(figure);
        for (const FigureMatrix& m : figure.matrices) {
          const ColorTable table = color_table(m.colormap, theme);
          for (Index r = 0; r < m.rows(); ++r) {
            for (Index c = 0; c < m.cols(); ++c) {
              const Color expected = table[static_cast<std::size_t>(table_index(m.range.position(m.value(r, c))))];
              // In cells with numbers the point lies left of them.
              const double dx = m.numbers ? 0.5 : m.cell_w / 2, dy = m.cell_h / 2;
              const double x = m.x + static_cast<double>(c) * cell, y = m.y + static_cast<double>(r) * cell;
              CHECK(pixel(image, x + dx, y + dy) == expected);
              CHECK(pixel(image, x + cell - 1, y + dy) == expected);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("hidden cells are hatched and have no value's colour") {
  const Session session = causal();
  FigureSpec spec = spec_of(FigureView::kMatrix, 24);
  const Trace trace = run(session);
  const Figure figure = layout(session, trace, spec);
  const PixelImage image = paint(figure);
  const FigureMatrix& m = figure.matrices.front();
  const Palette& colors = palette(ThemeName::kLight);
  int fill = 0, line = 0;
  for (int dy = 0; dy < 24; ++dy) {
    for (int dx = 0; dx < 24; ++dx) {
      const Color c = pixel(image, m.x + 24 + dx, m.y + dy);  // row 0, column 1
      fill += c == colors.masked;
      line += c == colors.masked_line;
    }
  }
  CHECK(fill + line == 24 * 24);
  CHECK(line == 24 * 24 / 6);
}

TEST_CASE("NaN, infinities and clipped values can be told apart") {
  Session session = worked_example();
  Matrix& q = std::get<DirectSource>(session.problem.source).q[0].edit();
  q << kNan, kInf, -kInf, 9, -9, 0.5F, 1, 0, -1;
  FigureSpec spec = spec_of(FigureView::kMatrix, 40);
  spec.matrix.kind = MatrixKind::kQ;
  spec.look.signed_range = {RangeMode::kCustom, -1, 1};
  const Trace trace = run(session);
  const Figure figure = layout(session, trace, spec);
  const PixelImage image = paint(figure);
  const FigureMatrix& m = figure.matrices.front();
  const Palette& colors = palette(ThemeName::kLight);
  const auto cell = [&](int r, int c, int dx, int dy) { return pixel(image, m.x + 40 * c + dx, m.y + 40 * r + dy); };
  CHECK(cell(0, 0, 4, 20) == colors.nan_cell);
  for (const auto& [r, c, fill] : {std::tuple{0, 1, colors.signed_high},
                                   {0, 2, colors.signed_low},
                                   {1, 0, colors.signed_high},
                                   {1, 1, colors.signed_low}}) {
    CHECK(cell(r, c, 4, 20) == fill);
    const bool above = fill == colors.signed_high;
    CHECK(cell(r, c, 37, above ? 2 : 37) != fill);
    CHECK(cell(r, c, 37, above ? 37 : 2) == fill);
  }
  // Values at the very ends are not clipped.
  CHECK(cell(2, 0, 37, 2) == colors.signed_high);
  CHECK(cell(2, 2, 37, 37) == colors.signed_low);
}

TEST_CASE("a flat matrix is drawn in mid-scale and says its value") {
  Session session = worked_example();
  FigureSpec spec = spec_of(FigureView::kMatrix, 9);
  spec.look.signed_range = {RangeMode::kAuto, 0, 0};
  spec.matrix.kind = MatrixKind::kQ;
  std::get<DirectSource>(session.problem.source).q[0].edit().setConstant(7);
  const Trace trace = run(session);
  const Figure figure = layout(session, trace, spec);
  CHECK(figure.matrices.front().range.flat);
  const PixelImage image = paint(figure);
  CHECK(pixel(image, figure.matrices.front().x + 4, figure.matrices.front().y + 4) ==
        palette(ThemeName::kLight).signed_zero);
  CHECK(std::ranges::any_of(figure.texts, [](const FigureText& t) { return t.text == "all 7"; }));
}

TEST_CASE("numbers appear when they fit") {
  const Session session = worked_example();
  const Trace trace = run(session);
  CHECK(layout(session, trace, spec_of(FigureView::kMatrix, 40)).matrices.front().numbers);
  CHECK(layout(session, trace, spec_of(FigureView::kMatrix, 32)).matrices.front().numbers);
  CHECK_FALSE(layout(session, trace, spec_of(FigureView::kMatrix, 16)).matrices.front().numbers);
  FigureSpec spec = spec_of(FigureView::kMatrix, 40);
  spec.look.decimals = 6;
  CHECK_FALSE(layout(session, trace, spec).matrices.front().numbers);
  const Figure head = layout(session, trace, spec_of(FigureView::kHead, 40));
  CHECK(find(head, MatrixKind::kScores).integers);
  CHECK_FALSE(find(head, MatrixKind::kAttn).integers);
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
  CHECK(count(4, false) == 10);
  CHECK(count(4, true) == 10);
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

TEST_CASE("a transparent figure has no background") {
  const Session session = worked_example();
  const Trace trace = run(session);
  FigureSpec spec = spec_of(FigureView::kMatrix);
  CHECK(pixel(paint(layout(session, trace, spec)), 1, 1) == palette(ThemeName::kLight).stage);
  spec.transparent = true;
  CHECK(pixel(paint(layout(session, trace, spec)), 1, 1).a == 0);
}

TEST_CASE("PNG keeps straight pixels") {
  std::vector<std::uint8_t> rgba;
  for (int i = 0; i < 6; ++i) rgba.insert(rgba.end(), {static_cast<std::uint8_t>(40 * i), 7, 255, 255});
  const Result<Bytes> png = png_bytes(3, 2, rgba);
  REQUIRE(png.ok());
  Result<PixelImage> image = decode_png(png.value());
  REQUIRE(image.ok());
  CHECK(image.value().width == 3);
  CHECK(image.value().height == 2);
  CHECK(image.value().rgba == rgba);

  const std::vector<std::uint8_t> clear = {200, 100, 0, 128, 1, 2, 3, 0};
  const Result<Bytes> second = png_bytes(2, 1, clear);
  REQUIRE(second.ok());
  image = decode_png(second.value());
  REQUIRE(image.ok());
  for (std::size_t i = 0; i < 4; ++i) CHECK(std::abs(image.value().rgba[i] - clear[i]) <= 1);
  CHECK(image.value().rgba[7] == 0);

  CHECK_FALSE(png_bytes(0, 5, rgba).ok());
  CHECK_FALSE(png_bytes(100, 100, rgba).ok());
  CHECK_FALSE(decode_png({}).ok());
  CHECK_FALSE(decode_png(std::span(png.value()).first(png.value().size() / 2)).ok());
}
