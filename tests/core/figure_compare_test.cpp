// A comparison as a figure: what its three maps show, and what is written under them.
#include "core/figure/figure_compare.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "core/figure/cell_text.h"
#include "core/session/compare_words.h"
#include "tests/core/figure_support.h"

using namespace qkv;
using namespace qkv::test;

namespace {

// Everything that a figure of a comparison refers to.
struct Compared {
  Session session;
  Comparison comparison;
  std::vector<Matrix> ours, theirs;
  std::size_t array = 0;

  Compared(const Session& mine, const Session& other) : session(mine) {
    Result<Comparison> result = compare_sessions(mine, other);
    REQUIRE(result.ok());
    comparison = std::move(result).value();
    array = most_telling(comparison);
    show();
  }
  void show() {
    ours = our_shown(session, comparison, array);
    theirs = their_shown(comparison, array);
  }
  const Difference& difference() const { return comparison.differences[array]; }
  Figure figure(FigureSpec spec = {}, int head = 0) const {
    const auto at = static_cast<std::size_t>(head);
    const TextShaper shaper;
    Result<Figure> figure =
        layout_comparison({session, comparison, array, head, ours[at], theirs[at], "mine.npz"}, spec, shaper);
    if (!figure.ok()) FAIL(figure.error().message);
    return std::move(figure).value();
  }
};

bool says(const Figure& figure, const std::string& text) {
  std::string all;
  for (const FigureText& each : figure.texts) all += each.text + " ";
  return all.find(text) != std::string::npos;
}

double right_of(const Figure& figure, const FigureText& text) {
  const TextShaper shaper;
  CHECK(text.x >= 0);
  CHECK(text.y >= 0);
  CHECK(text.y < figure.height);
  return text.x + (text.angle == 0 ? shaper.measure(text.text, text.style).width : 0);
}

Session small_steps(float by) {
  Session session = worked_example();
  auto& source = std::get<DirectSource>(session.problem.source);
  Matrix q = source.q[0].get();
  q(1, 2) += by;
  source.q[0] = q;
  return session;
}

}  // namespace

TEST_CASE("ours, theirs and the difference, on one scale and around zero") {
  const Compared compared(worked_example(), causal());
  CHECK(compared.difference().kind == MatrixKind::kAttn);
  const Figure figure = compared.figure();
  REQUIRE(figure.matrices.size() == 3);
  const FigureMatrix &ours = figure.matrices[0], &theirs = figure.matrices[1], &difference = figure.matrices[2];
  CHECK(ours.shows == "ours");
  CHECK(theirs.shows == "theirs");
  CHECK(difference.shows == "difference");
  CHECK(ours.range == theirs.range);
  CHECK(ours.colormap == "viridis");
  CHECK(difference.colormap == "blue-orange");
  CHECK(difference.range.low == -difference.range.high);
  CHECK(difference.range.high == compared.difference().errors[0].cwiseAbs().maxCoeff());
  for (Index r = 0; r < 3; ++r) {
    for (Index c = 0; c < 3; ++c) {
      CHECK(difference.value(r, c) == doctest::Approx(theirs.value(r, c) - ours.value(r, c)).epsilon(1e-5));
    }
  }
  // Side by side, with tokens on all of them, inside the picture.
  CHECK(ours.y == theirs.y);
  CHECK(ours.y == difference.y);
  CHECK(ours.x + 3 * ours.cell_w < theirs.x);
  CHECK(theirs.x + 3 * theirs.cell_w < difference.x);
  CHECK(std::ranges::count(figure.texts, "老鼠", &FigureText::text) == 4);
  for (const FigureText& text : figure.texts) CHECK(right_of(figure, text) <= figure.width);
  CHECK(says(figure, "against mine.npz"));
  CHECK(says(figure, "6 of 9 cells wrong, off by more than "));
  CHECK(says(figure, "0.8639 in row 貓, column 貓: ours 0.1361258"));
  CHECK(says(figure, diagnosis_words(compared.comparison).headline));
  CHECK(says(figure, "there is a causal mask, none in ours"));
}

TEST_CASE("small differences are written in a unit that the title names, where they have room") {
  const Compared compared(worked_example(), small_steps(3e-3F));
  const Matrix& errors = compared.difference().errors[0];
  const int power = power_of(finite_extent(errors));
  CHECK(power == -4);
  const Figure figure = compared.figure();
  const FigureMatrix& difference = figure.matrices[2];
  CHECK(difference.numbers);
  CHECK(says(figure, "Theirs − ours · 10⁻⁴"));
  Index row = 0, col = 0;
  errors.cwiseAbs().maxCoeff(&row, &col);
  const std::string number = difference.number(row, col);
  CHECK(number.find('e') == std::string::npos);
  const double shown = std::stod(number.starts_with("−") ? number.substr(3) : number);
  CHECK(shown == doctest::Approx(std::abs(static_cast<double>(errors(row, col))) * 1e4).epsilon(0.06));
  // The title says it only where there are such numbers; the colour bar always.
  FigureSpec spec;
  spec.cell_px = 12;
  const Figure small = compared.figure(spec);
  CHECK_FALSE(small.matrices[2].numbers);
  CHECK_FALSE(says(small, "Theirs − ours · "));
  CHECK(says(small, "theirs − ours · 10⁻⁴"));
}

TEST_CASE("a weight that is nearly 0 is written in one digit and takes no numbers away") {
  Session other = worked_example();
  auto& source = std::get<DirectSource>(other.problem.source);
  source.q[0] = Matrix(12 * source.q[0].get());
  FigureSpec spec;
  spec.cell_px = 40;
  const Figure figure = Compared(worked_example(), other).figure(spec);
  REQUIRE(figure.matrices.size() == 3);
  const FigureMatrix &ours = figure.matrices[0], &theirs = figure.matrices[1];
  CHECK(ours.numbers);
  CHECK_FALSE(ours.brief);
  CHECK(theirs.numbers);
  CHECK(theirs.brief);
  CHECK(theirs.number_size == ours.number_size);

  CHECK(brief_cell_text(1.73e-7F, 3) == "2e−7");
  CHECK(brief_cell_text(-0.0004F, 3) == "−4e−4");
  CHECK(brief_cell_text(1e-12F, 3) == "1e−12");
  CHECK(brief_cell_text(1e-10F, 3) == "1e−10");
  CHECK(brief_cell_text(0.0321F, 3) == "0.032");
  CHECK(brief_cell_text(0, 3) == "0.000");
  CHECK(brief_cell_text(2e7F, 3) == "2.000e+07");
}

TEST_CASE("nothing wrong is said, and NaN against numbers is drawn") {
  const Compared same(worked_example(), worked_example());
  CHECK(says(same.figure(), "All that was compared is equal."));
  CHECK(same.figure().matrices[2].range.flat);
  Compared broken(worked_example(), causal());
  broken.theirs[0](0, 1) = std::numeric_limits<float>::quiet_NaN();
  broken.comparison.differences[broken.array].errors[0](0, 1) = std::numeric_limits<float>::quiet_NaN();
  const Figure figure = broken.figure();
  CHECK(figure.matrices[2].number(0, 1) == "NaN");
  CHECK(figure.matrices[2].range.high > 0);
  CHECK(paint(figure).width == figure.width);
}

TEST_CASE("the head of the first wrong cell is named, and the mask and vectors can be compared") {
  Session mine = projected(3), other = mine;
  other.problem.options.causal = true;
  Compared compared(mine, other);
  const Figure figure = compared.figure({}, 1);
  CHECK(figure.matrices[0].id.head == 1);
  CHECK(says(figure, "head 2 of 3 · against mine.npz"));
  CHECK(most_telling_head(compared.difference()) == 0);
  for (std::size_t i = 0; i < compared.comparison.differences.size(); ++i) {
    compared.array = i;
    compared.show();
    CHECK(compared.figure().matrices.size() == 3);
  }
}

TEST_CASE("cells are chosen so that three maps lie on a page, and too large a picture is refused with the size") {
  CHECK(compared_cell_px(3, 3) == 40);
  CHECK(compared_cell_px(200, 200) == 2);
  CHECK(compared_cell_px(20, 5000) == 1);
  const Compared compared(worked_example(), causal());
  FigureSpec spec;
  spec.cell_px = 256;
  spec.pixels_per_unit = 20;
  const TextShaper shaper;
  const Result<Figure> refused = layout_comparison(
      {compared.session, compared.comparison, compared.array, 0, compared.ours[0], compared.theirs[0], "x"}, spec,
      shaper);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message.find("the largest cell size that fits is ") != std::string::npos);
}

TEST_CASE("its picture is the same each time, as pixels, SVG and PDF") {
  const Compared compared(worked_example(), causal());
  const Figure figure = compared.figure();
  const TextShaper shaper;
  const Result<Bytes> svg = figure_svg(figure, shaper), again = figure_svg(compared.figure(), shaper);
  REQUIRE(svg.ok());
  CHECK(svg.value() == again.value());
  CHECK(as_text(svg.value()).find(">老鼠<") != std::string_view::npos);
  CHECK(figure_pdf(figure, shaper).ok());
  const PixelImage image = paint(figure);
  for (const FigureMatrix& m : figure.matrices) {
    const ColorTable table = color_table(m.colormap, ThemeName::kLight);
    for (Index r = 0; r < 3; ++r) {
      for (Index c = 0; c < 3; ++c) {
        const auto at = static_cast<std::size_t>(table_index(m.range.position(m.value(r, c))));
        CHECK(pixel(image, m.x + (static_cast<double>(c) + 0.15) * m.cell_w,
                    m.y + (static_cast<double>(r) + 0.15) * m.cell_h) == table[at]);
      }
    }
  }
  const std::string layout = layout_json(figure);
  CHECK(layout.find("\"shows\": \"theirs\"") != std::string::npos);
}
