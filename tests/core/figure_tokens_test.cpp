// Tokens as a model writes them, on the axes of figures.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/figure/figure.h"

using namespace qkv;

namespace {

Session gpt2_session() {
  Session session = worked_example();
  session.tokens = {"<|endoftext|>", "Ġè²", "ĵ"};
  return session;
}

std::vector<FigureText> texts_of(const FigureSpec& spec) {
  const Session session = gpt2_session();
  const Result<Trace> trace = forward(session.problem);
  REQUIRE(trace.ok());
  const TextShaper shaper;
  const Result<Figure> figure = layout_figure(session, trace.value(), spec, shaper);
  REQUIRE(figure.ok());
  return figure.value().texts;
}

auto count(const std::vector<FigureText>& texts, const std::string& text) {
  return std::ranges::count_if(texts, [&](const FigureText& each) { return each.text == text; });
}

}  // namespace

TEST_CASE("figures label their axes with tokens as they are shown") {
  for (const FigureView view : {FigureView::kMatrix, FigureView::kHead}) {
    FigureSpec spec;
    spec.view = view;
    const std::vector<FigureText> readable = texts_of(spec);
    CHECK(count(readable, "…貓") >= 2);
    CHECK(count(readable, "·‹E8 B2…›") == count(readable, "…貓"));
    CHECK(count(readable, "Ġè²") == 0);
    spec.look.raw_tokens = true;
    const std::vector<FigureText> raw = texts_of(spec);
    CHECK(count(raw, "Ġè²") == count(readable, "…貓"));
    CHECK(count(raw, "·‹E8 B2…›") == 0);
  }
}

TEST_CASE("special tokens are drawn quieter than the text around them") {
  FigureSpec spec;
  const Palette& colors = palette(spec.theme);
  std::size_t special = 0;
  for (const FigureText& text : texts_of(spec)) {
    if (text.text == "…貓") CHECK(text.style.color == colors.dim);
    if (text.text != "<|endoftext|>") continue;
    CHECK(text.style.color == colors.faint);
    ++special;
  }
  CHECK(special == 2);
}
