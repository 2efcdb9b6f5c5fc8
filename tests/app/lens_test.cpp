// The lens of the stage: gradients and what a format changes, in place of the values.
#include <doctest/doctest.h>

#include <cmath>

#include "app/engine/lens.h"
#include "core/base/file.h"
#include "tests/app/harness.h"

using namespace qkv;

namespace {

Session layer_session() {
  Session session = worked_example();
  session.problem.source = ProjectedSource{.x = random_matrix(1, 3, 4),
                                           .wq = random_matrix(2, 4, 4),
                                           .wk = random_matrix(3, 4, 4),
                                           .wv = random_matrix(4, 4, 6),
                                           .bq = random_matrix(5, 1, 4),
                                           .heads = 2,
                                           .kv_heads = 2};
  session.problem.wo = random_matrix(6, 6, 5);
  session.problem.options.causal = true;
  return session;
}

LensRequest request_of(const Session& session, Lens lens, GradientTarget target = {}) {
  Result<Trace> trace = forward(session.problem);
  REQUIRE(trace.ok());
  auto computed = std::make_shared<Computed>(Computed{session, std::move(trace).value(), {}});
  return {std::move(computed), lens, std::move(target)};
}

std::shared_ptr<const LensResult> seen(const LensRequest& request) {
  Result<std::shared_ptr<const LensResult>> result = look_through(request, nullptr);
  REQUIRE(result.ok());
  return std::move(result).value();
}

}  // namespace

TEST_CASE("a lens has a matrix for each of the trace but the mask, and scales that hold them") {
  for (const Lens lens : {Lens::kGradient, Lens::kFloat32, Lens::kBfloat16, Lens::kFloat16}) {
    const auto result = seen(request_of(layer_session(), lens));
    const Trace& trace = result->request.of->trace;
    for (const MatrixKind kind :
         {MatrixKind::kX, MatrixKind::kWq, MatrixKind::kBq, MatrixKind::kQ, MatrixKind::kScores, MatrixKind::kScaled,
          MatrixKind::kAttn, MatrixKind::kHeadsOut, MatrixKind::kConcat, MatrixKind::kWo, MatrixKind::kOut}) {
      const Matrix* shown = result->find({kind, 0});
      REQUIRE(shown != nullptr);
      CHECK(shown->rows() == trace.find({kind, 0})->rows());
      CHECK(shown->cols() == trace.find({kind, 0})->cols());
      const FiniteExtent& extent = result->extents[static_cast<std::size_t>(scale_group(kind))];
      CHECK(shown->maxCoeff() <= extent.high);
      CHECK(shown->minCoeff() >= extent.low);
    }
    CHECK(result->find({MatrixKind::kKeep, 0}) == nullptr);
  }
}

TEST_CASE("numbers of a lens are written in units of a power of ten") {
  const auto power = [](float largest) { return power_of({-largest, largest / 2, 4, 0, 0}); };
  CHECK(power(0) == 0);
  CHECK(power(0.5f) == 0);
  CHECK(power(9999) == 0);
  CHECK(power(0.02f) == -2);
  CHECK(power(3e-8f) == -8);
  CHECK(power(2e5f) == 5);
  CHECK(power_of({}) == 0);
}

TEST_CASE("Gradient shows the gradient of the sum of squares, and is no edit") {
  Harness h;
  CHECK(h.app().lens() == nullptr);
  h.click("lens/1");
  CHECK(h.app().session().view.lens == Lens::kGradient);
  const auto lens = h.app().lens();
  REQUIRE(lens != nullptr);
  REQUIRE(lens->gradient.has_value());
  CHECK_FALSE(lens->request.target.cell.has_value());
  CHECK(lens->gradient->value == doctest::Approx(h.trace(MatrixKind::kHeadsOut).squaredNorm()).epsilon(1e-6));
  CHECK(*lens->find({MatrixKind::kHeadsOut, 0}) == Matrix(2 * h.trace(MatrixKind::kHeadsOut)));
  CHECK(h.app().window_title().find("•") == std::string::npos);
  h.frames(3);
  CHECK(h.app().lens() == lens);  // once per trace, not every frame
  h.click("lens/0");
  CHECK(h.app().lens() == nullptr);
}

TEST_CASE("the chosen cell of the output is the target until no cell is chosen") {
  Harness h;
  h.click("lens/1");
  h.click("matrix/heads_out/1/cell/1,2");
  REQUIRE(h.app().lens()->request.target.cell.has_value());
  CHECK(*h.app().lens()->request.target.cell == MatrixCell{{MatrixKind::kHeadsOut, 0}, 1, 2});
  CHECK(h.app().lens()->find({MatrixKind::kHeadsOut, 0})->sum() == 1);
  // ∂O[1, 2]/∂V is the row of weights, in that column.
  CHECK(h.app().lens()->find({MatrixKind::kV, 0})->col(2) == h.trace(MatrixKind::kAttn).row(1).transpose());
  h.click("matrix/q/1/cell/0,0");  // another cell to look at
  CHECK(h.app().lens()->request.target.cell.has_value());
  h.key(Key::kEscape);
  CHECK_FALSE(h.app().lens()->request.target.cell.has_value());
}

TEST_CASE("Precision shows what a format changes, and the format is chosen") {
  Harness h;
  h.click("lens/2");
  CHECK(h.app().session().view.lens == Lens::kBfloat16);
  REQUIRE(h.app().lens()->precision.has_value());
  // 1/√3 in bfloat16 is 148·2^-8.
  CHECK((*h.app().lens()->find({MatrixKind::kScaled, 0}))(0, 0) ==
        doctest::Approx(148.0 / 256 - 1 / std::sqrt(3.0)).epsilon(1e-6));
  h.click("field/lens-format");
  h.key(Key::kDown);
  h.key(Key::kEnter);
  CHECK(h.app().session().view.lens == Lens::kFloat16);
  CHECK(h.app().lens()->precision->format == NumberFormat::kFloat16);
  h.click("lens/1");
  CHECK_FALSE(h.has("field/lens-format"));
}

TEST_CASE("typing, deleting and pasting go back to the values that they change") {
  const auto starts = [](const char* what, auto edit) {
    CAPTURE(what);
    Harness h;
    h.click("lens/1");
    h.click("matrix/q/1/cell/0,1");
    edit(h);
    h.frames(2);
    CHECK(h.app().session().view.lens == Lens::kValues);
    CHECK(h.app().lens() == nullptr);
    CHECK(h.has("toast/0"));
  };
  starts("typing", [](Harness& h) {
    h.type("4");
    CHECK(h.trace(MatrixKind::kQ)(0, 1) == 4);
  });
  starts("F2", [](Harness& h) { h.key(Key::kF2); });
  starts("Delete", [](Harness& h) { h.key(Key::kDelete); });
  starts("paste", [](Harness& h) {
    h.set_clipboard("7");
    h.key(Key::kV, true);
    CHECK(h.trace(MatrixKind::kQ)(0, 1) == 7);
  });
}

TEST_CASE("dragging a cell changes its value while the lens follows") {
  Harness h;
  h.click("lens/1");
  const auto before = h.app().lens();
  h.drag("matrix/q/1/cell/0,1", {60, 0});
  h.frames(2);
  CHECK(h.trace(MatrixKind::kQ)(0, 1) != 0);
  CHECK(h.app().session().view.lens == Lens::kGradient);
  CHECK(h.app().lens() != before);
  CHECK(h.app().lens()->request.of->trace.q[0].get() == h.trace(MatrixKind::kQ));
}

TEST_CASE("copying takes the numbers that are seen") {
  Harness h;
  h.click("lens/1");
  h.click("matrix/heads_out/1/cell/1,2");
  h.key(Key::kC, true);
  CHECK(h.clipboard() == "1");
  h.click("lens/0");
  h.key(Key::kC, true);
  CHECK(h.clipboard() != "1");
}

TEST_CASE("every tab shows every lens, and every cell can be pointed at") {
  Harness h(1000, 700);
  h.app().open(layer_session(), {});
  h.frames(3);
  for (const char* lens : {"lens/1", "lens/2", "lens/0"}) {
    for (const char* tab : {"tab/projection", "tab/head", "tab/heads", "tab/concat"}) {
      h.click(tab);
      h.click(lens);
      for (const char* cell : {"matrix/x/1/cell/0,0", "matrix/wq/1/cell/1,1", "matrix/q/1/cell/2,0",
                               "matrix/keep/1/cell/0,2", "matrix/attn/1/cell/0,2", "matrix/heads_out/1/cell/1,1",
                               "matrix/concat/1/cell/2,5", "matrix/wo/1/cell/3,2", "matrix/out/1/cell/1,4"})
        if (h.has(cell)) h.point(cell);
    }
  }
  CHECK(h.app().lens() == nullptr);
}

TEST_CASE("a bias has a gradient and a difference, ALiBi, which nobody sets, stays as it is") {
  Session session = worked_example();
  session.problem.options.alibi = true;
  session.problem.options.bias = SharedMatrix(random_matrix(7, 3, 3));
  Harness h;
  h.app().open(session, {});
  h.frames(2);
  h.click("lens/1");
  REQUIRE(h.app().lens() != nullptr);
  // With one head it is that of the scaled scores.
  CHECK(*h.app().lens()->find({MatrixKind::kBias, 0}) == *h.app().lens()->find({MatrixKind::kScaled, 0}));
  CHECK(h.app().lens()->find({MatrixKind::kAlibi, 0}) == nullptr);
  h.point("matrix/bias/1/cell/1,1");
  h.point("matrix/alibi/1/cell/1,1");
  h.click("lens/2");
  CHECK(h.app().lens()->find({MatrixKind::kBias, 0})->cwiseAbs().maxCoeff() > 0);
}

TEST_CASE("a target that an edit takes away, and another session, leave a lens that fits") {
  Harness h;
  h.app().open(layer_session(), {});
  h.frames(2);
  h.click("tab/concat");
  h.click("lens/1");
  h.click("matrix/out/1/cell/2,4");
  REQUIRE(h.app().lens()->request.target.cell.has_value());
  Session other = worked_example();
  other.view.lens = Lens::kGradient;
  h.app().open(other, {});
  h.frames(3);
  REQUIRE(h.app().lens() != nullptr);
  CHECK_FALSE(h.app().lens()->request.target.cell.has_value());
  CHECK(h.app().lens()->find({MatrixKind::kOut, 0}) == nullptr);
}

TEST_CASE("what is too large for a lens goes back to values and says why") {
  Session session = worked_example();
  DirectSource source;
  const int tokens = 512;
  for (int head = 0; head < 33; ++head) {
    source.q.emplace_back(random_matrix(1, tokens, 1));
    source.k.emplace_back(random_matrix(2, tokens, 1));
    source.v.emplace_back(random_matrix(3, tokens, 1));
  }
  session.problem.source = source;
  session.tokens.assign(tokens, "a");
  Result<Trace> trace = forward(session.problem);
  REQUIRE(trace.ok());
  const auto computed = std::make_shared<const Computed>(Computed{session, std::move(trace).value(), {}});
  const auto result = look_through({computed, Lens::kGradient, {}}, nullptr);
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().code == ErrorCode::kUnsupported);
  CHECK(result.error().message.find("33 heads of 512×512") != std::string::npos);

  Harness h(900, 600);
  session.view.lens = Lens::kFloat16;
  h.app().open(session, {});
  h.app().wait_for_results();
  h.frames(3);
  h.app().wait_for_results();
  h.frames(3);
  CHECK(h.app().lens() == nullptr);
  CHECK(h.app().session().view.lens == Lens::kValues);
  CHECK(h.has("toast/0"));
}

TEST_CASE("an exported picture shows what the stage shows through its lens") {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("lens-export-" + std::to_string(::getpid()) + ".svg");
  Harness h;
  h.click("lens/1");
  h.frames(2);
  h.key(Key::kE, true);
  h.click("export/path");
  h.key(Key::kA, true);
  h.type(path.string());
  h.click("export/ok");
  h.frames(2);
  const Result<Bytes> bytes = read_file(path);
  REQUIRE(bytes.ok());
  CHECK(as_text(bytes.value()).find("∂L/∂Q") != std::string_view::npos);
  CHECK(as_text(bytes.value()).find("∂ Σ O² / ∂ ·") != std::string_view::npos);
  std::filesystem::remove(path);
}
