// What tests of figures share: sessions, their figures, and pixels of those.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/figure/figure.h"
#include "core/figure/paint.h"

namespace qkv::test {

inline Trace run(const Session& session) {
  Result<Trace> trace = forward(session.problem);
  REQUIRE(trace.ok());
  return std::move(trace).value();
}

inline Figure layout(const Session& session, const Trace& trace, const FigureSpec& spec) {
  const TextShaper shaper;
  Result<Figure> figure = layout_figure(session, trace, spec, shaper);
  if (!figure.ok()) FAIL(figure.error().message);
  return std::move(figure).value();
}

inline PixelImage paint(const Figure& figure) {
  const TextShaper shaper;
  const Result<Bytes> png = figure_png(figure, shaper);
  REQUIRE(png.ok());
  Result<PixelImage> image = decode_png(png.value());
  REQUIRE(image.ok());
  CHECK(image.value().width == figure.width);
  CHECK(image.value().height == figure.height);
  return std::move(image).value();
}

inline Color pixel(const PixelImage& image, double x, double y) {
  const std::size_t at = (static_cast<std::size_t>(y) * image.width + static_cast<std::size_t>(x)) * 4;
  return {image.rgba[at], image.rgba[at + 1], image.rgba[at + 2], image.rgba[at + 3]};
}

// Six tokens, `heads` heads of four, projected, with W^O.
inline Session projected(int heads,
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

inline Session causal() {
  Session session = worked_example();
  session.problem.options.causal = true;
  return session;
}

// Two heads that share one key/value head, more keys than queries, the last key hidden.
inline Session cross() {
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

inline FigureSpec spec_of(FigureView view, int cell_px = 32) {
  FigureSpec spec;
  spec.view = view;
  spec.cell_px = cell_px;
  return spec;
}

inline const FigureMatrix& find(const Figure& figure, MatrixKind kind) {
  const auto found = std::ranges::find_if(figure.matrices, [&](const FigureMatrix& m) { return m.id.kind == kind; });
  REQUIRE(found != figure.matrices.end());
  return *found;
}

}  // namespace qkv::test
