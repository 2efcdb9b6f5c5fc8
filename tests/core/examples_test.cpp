// The example sessions open and show what their notes say.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "core/attention/gradient.h"
#include "core/attention/head_stats.h"
#include "core/session/session_file.h"
#include "session_equal.h"

using namespace qkv;

namespace {

const std::filesystem::path kFolder = std::filesystem::path(QKV_SOURCE_DIR) / "assets" / "sessions";

Session open_example(const std::string& name) {
  Result<Session> session = read_session(kFolder / (name + ".qkv.json"));
  REQUIRE_MESSAGE(session.ok(), name, ": ", (session.ok() ? "" : session.error().message));
  return std::move(session).value();
}

Trace trace_of(const Session& session) {
  Result<Trace> trace = forward(session.problem);
  REQUIRE(trace.ok());
  return std::move(trace).value();
}

Index find_token(const Session& session, std::string_view token) {
  const auto found = std::find(session.tokens.begin(), session.tokens.end(), token);
  REQUIRE(found != session.tokens.end());
  return found - session.tokens.begin();
}

const Matrix& input(const Session& session, MatrixKind kind) { return find_input(session, {kind, 0})->get(); }

}  // namespace

TEST_CASE("every example opens, explains itself and computes cleanly") {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    INFO(entry.path().string());
    const Result<Session> session = read_session(entry.path());
    REQUIRE(session.ok());
    CHECK(check_session(session.value()).ok());
    CHECK_FALSE(session.value().title.empty());
    CHECK_FALSE(session.value().note.empty());
    const TraceWarnings warnings = find_warnings(trace_of(session.value()));
    CHECK(warnings.dead_rows + warnings.nan_inputs + warnings.nan_outputs == 0);
    names.push_back(entry.path().filename().string());
  }
  CHECK(names.size() == 7);
}

TEST_CASE("the worked example's file is the built-in one") {
  const Session session = open_example("worked_example");
  CHECK(test::same_session(session, worked_example()));
  CHECK(session.view == worked_example().view);
  const Matrix attn = trace_of(session).heads[0].attn;
  CHECK(attn(1, 0) == doctest::Approx(0.6134).epsilon(1e-4));
}

TEST_CASE("the same cat, another focus") {
  const Session chases = open_example("worked_example"), sleeps = open_example("cat_sleeps");
  const Index cat = find_token(sleeps, "貓");
  for (const MatrixKind kind : {MatrixKind::kQ, MatrixKind::kK, MatrixKind::kV}) {
    CHECK(input(sleeps, kind).row(cat) == input(chases, kind).row(find_token(chases, "貓")));
  }
  const Trace trace = trace_of(sleeps);
  CHECK(trace.heads[0].attn(cat, find_token(sleeps, "睡著了")) > 0.9f);
}

TEST_CASE("the heads of Thinking Machines have the habits that the note gives them") {
  const Session session = open_example("thinking_machines");
  CHECK(check_session(session).value() == Shapes{6, 6, 8, 8, 8, 8, 64, 64});
  CHECK(session.view.tab == Tab::kHeads);
  const Trace trace = trace_of(session);
  std::vector<HeadStats> stats;
  for (int head = 0; head < 8; ++head) stats.push_back(head_stats(trace, head));

  CHECK(stats[0].previous_token > 0.8);
  CHECK(stats[1].first_token > 0.65);
  CHECK(stats[2].diagonal > 0.8);
  CHECK(stats[3].entropy > 0.99 * stats[3].max_entropy);
  CHECK(trace.heads[4].attn->diagonal(1).minCoeff() > 0.8f);  // the word after
  for (std::size_t h = 0; h < stats.size(); ++h) {
    if (h != 0) CHECK(stats[h].previous_token < 0.4);
    if (h != 1) CHECK(stats[h].first_token < 0.4);
    if (h != 2) CHECK(stats[h].diagonal < 0.5);
    if (h != 3) CHECK(stats[h].entropy < 0.96 * stats[h].max_entropy);
  }
  const auto weight = [&](int head, const char* query, const char* key) {
    return trace.heads[static_cast<std::size_t>(head)].attn(find_token(session, query), find_token(session, key));
  };
  CHECK(weight(5, "tidy", "rows") + weight(5, "tidy", "machines") > 0.7f);  // describing words look at nouns
  CHECK(weight(6, "rows", "dream") > 0.7f);                                 // nouns at the verb
  CHECK(weight(7, "Thinking", "tidy") > 0.3f);                              // like at like
  CHECK(weight(7, "machines", "rows") > 0.3f);

  for (const MatrixKind kind : {MatrixKind::kX, MatrixKind::kWq, MatrixKind::kWk, MatrixKind::kWv, MatrixKind::kWo}) {
    CHECK(input(session, kind).cwiseAbs().maxCoeff() <= 1.6f);
  }
}

TEST_CASE("關了 finds 餐廳 across the distance, causal or not") {
  const Session free = open_example("long_distance"), causal = open_example("long_distance_causal");
  CHECK_FALSE(free.problem.options.causal);
  CHECK(causal.problem.options.causal);
  CHECK(test::same_matrices(free, causal));
  for (const Session& session : {free, causal}) {
    const Matrix attn = trace_of(session).heads[0].attn;
    const Index closed = find_token(session, "關了");
    Index best = -1;
    CHECK(attn.row(closed).maxCoeff(&best) > 0.8f);
    CHECK(best == find_token(session, "餐廳"));
  }
  const Index visited = find_token(free, "去過"), place = find_token(free, "餐廳");
  CHECK(trace_of(free).heads[0].attn(visited, place) > 0.5f);
  CHECK(trace_of(causal).heads[0].attn(visited, place) == 0);
}

TEST_CASE("without the scale rows saturate") {
  const Session hard = open_example("saturation_unscaled"), soft = open_example("saturation_scaled");
  CHECK(test::same_matrices(hard, soft));
  CHECK(hard.problem.options.scale == 1.0f);
  CHECK_FALSE(soft.problem.options.scale.has_value());
  CHECK(check_session(soft).value().d_k == 64);
  const Matrix hard_attn = trace_of(hard).heads[0].attn, soft_attn = trace_of(soft).heads[0].attn;
  for (Index i = 0; i < hard_attn.rows(); ++i) {
    Index hard_best = -1, soft_best = -1;
    CHECK(hard_attn.row(i).maxCoeff(&hard_best) > 0.99f);
    CHECK(soft_attn.row(i).maxCoeff(&soft_best) < 0.65f);
    CHECK(hard_best == soft_best);
  }
}

TEST_CASE("without the scale the softmax lets no gradient through to the queries") {
  const Session hard = open_example("saturation_unscaled"), soft = open_example("saturation_scaled");
  const Result<Gradient> stuck = gradient(hard.problem), moving = gradient(soft.problem);
  REQUIRE(stuck.ok());
  REQUIRE(moving.ok());
  const MatrixD& stuck_scaled = stuck.value().by.at({MatrixKind::kScaled});
  const MatrixD& moving_scaled = moving.value().by.at({MatrixKind::kScaled});
  const Matrix attn = trace_of(hard).heads[0].attn;
  for (Index i = 0; i < attn.rows(); ++i) {
    // A·(∂A − Σ A·∂A): with p on one key its magnitudes add up to at most 2·p·(1 − p) times the spread of ∂A, 2 % of it
    // from p = 0.99 on.
    const auto p = static_cast<double>(attn.row(i).maxCoeff());
    const auto d_attn = stuck.value().by.at({MatrixKind::kAttn}).row(i);
    const double spread = d_attn.maxCoeff() - d_attn.minCoeff();
    CHECK(stuck_scaled.row(i).cwiseAbs().sum() <= 1.001 * 2 * p * (1 - p) * spread);
    CHECK(stuck_scaled.row(i).norm() < moving_scaled.row(i).norm() / 20);
  }
  // The scale of 1 multiplies what arrives by 1, that of 1/√64 by an eighth, and the former still leaves less for Q:
  // 280 times less comes through the softmax (0.0036), 8 times more of that is passed on (0.029).
  CHECK(stuck_scaled.norm() < moving_scaled.norm() / 200);
  CHECK(stuck.value().by.at({MatrixKind::kQ}).norm() < moving.value().by.at({MatrixKind::kQ}).norm() / 25);
}
