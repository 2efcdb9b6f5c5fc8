// Figures through a lens: gradients and what number formats change, as the window shows them.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/core/figure_support.h"

using namespace qkv;
using namespace qkv::test;

namespace {

struct Seen {
  Session session;
  Trace trace;
  LensCells cells;

  Seen(const Session& of, Lens lens, const GradientTarget& target = {}) : session(of), trace(run(of)) {
    Result<LensCells> result = lens_cells(trace, lens, target);
    REQUIRE(result.ok());
    cells = std::move(result).value();
  }
  Figure figure(const FigureSpec& spec) const {
    const TextShaper shaper;
    Result<Figure> figure = layout_figure(session, trace, spec, shaper, &cells);
    if (!figure.ok()) FAIL(figure.error().message);
    return std::move(figure).value();
  }
};

bool has_text(const Figure& figure, const std::string& text) {
  return std::ranges::any_of(figure.texts, [&](const FigureText& each) { return each.text == text; });
}

bool has_part(const Figure& figure, const std::string& text) {
  return std::ranges::any_of(figure.texts,
                             [&](const FigureText& each) { return each.text.find(text) != std::string::npos; });
}

}  // namespace

TEST_CASE("every view shows what the lens has, and values where it has nothing") {
  Session session = projected(2);
  session.problem.options.causal = true;
  for (const Lens lens : {Lens::kGradient, Lens::kBfloat16}) {
    const Seen seen(session, lens);
    for (const FigureView view : {FigureView::kMatrix, FigureView::kHead, FigureView::kHeads, FigureView::kConcat}) {
      const Figure figure = seen.figure(spec_of(view));
      for (const FigureMatrix& m : figure.matrices) {
        CAPTURE(file_key(m.id.kind));
        const bool is_mask = m.id.kind == MatrixKind::kKeep;
        CHECK(m.values == (is_mask ? seen.trace.find(m.id) : seen.cells.find(m.id)));
        CHECK(m.shows == (is_mask ? "" : lens == Lens::kGradient ? "gradient" : "bfloat16"));
        if (is_mask) continue;
        CHECK(m.colormap == "blue-orange");
        CHECK(m.range.low == -m.range.high);
        CHECK(m.range.high >= m.values->cwiseAbs().maxCoeff());
      }
      CHECK(has_part(figure, lens == Lens::kGradient ? "∂ Σ Out² / ∂ ·" : "bfloat16 − float64"));
    }
  }
}

TEST_CASE("titles, notes and bars are those of the window") {
  const Seen gradient(worked_example(), Lens::kGradient, {MatrixCell{{MatrixKind::kAttn, 0}, 0, 1}});
  const Figure head = gradient.figure(spec_of(FigureView::kHead));
  for (const char* title : {"∂L/∂Q", "∂L/∂Kᵀ", "∂L/∂V", "∂L/∂S", "∂L/∂scaled", "∂L/∂A", "∂L/∂O"}) {
    CHECK_MESSAGE(has_text(head, title), title);
  }
  CHECK(has_text(head, "∂L by A"));
  CHECK(has_part(head, "∂ A[1, 2] / ∂ ·"));
  const Seen rounded(worked_example(), Lens::kBfloat16);
  FigureSpec spec = spec_of(FigureView::kMatrix, 48);
  spec.matrix = {MatrixKind::kAttn, 0};
  const Figure figure = rounded.figure(spec);
  const int power = power_of(rounded.cells.each.at(spec.matrix));
  CHECK(power < 0);
  CHECK(has_text(figure, "ΔA bf16" + unit_words(power)));
  CHECK(has_part(figure, " ulp · head 1 · 3 × 3"));
  CHECK(has_text(figure, "Δ of A" + unit_words(power)));
}

TEST_CASE("numbers are written in the unit of their title") {
  const Seen seen(worked_example(), Lens::kFloat16);
  FigureSpec spec = spec_of(FigureView::kMatrix, 48);
  spec.matrix = {MatrixKind::kAttn, 0};
  const Figure figure = seen.figure(spec);
  const FigureMatrix& m = figure.matrices.front();
  REQUIRE(m.numbers);
  const Matrix& shown = *m.values;
  Index row = 0, col = 0;
  const float largest = shown.cwiseAbs().maxCoeff(&row, &col);
  const double unit = std::pow(10.0, power_of(seen.cells.each.at(spec.matrix)));
  const std::string number = m.number(row, col);
  CHECK(std::stod(number.starts_with("−") ? number.substr(3) : number) ==
        doctest::Approx(static_cast<double>(largest) / unit).epsilon(0.06));
  CHECK(number.find('e') == std::string::npos);
}

TEST_CASE("without a lens nothing is named otherwise, and layouts tell what is shown") {
  const Session session = worked_example();
  const Trace trace = run(session);
  CHECK(layout_json(layout(session, trace, spec_of(FigureView::kHead))).find("shows") == std::string::npos);
  const Seen seen(session, Lens::kGradient);
  CHECK(layout_json(seen.figure(spec_of(FigureView::kHead))).find("\"shows\": \"gradient\"") != std::string::npos);
}
