// Rows of `qkvlab bench`: from an edit to the pixels of the window that shows its results.
#include <functional>
#include <utility>

#include "app/cli/bench_rows.h"
#include "app/cli/bench_support.h"
#include "app/platform/offscreen_window.h"
#include "core/session/tokenizer.h"

namespace qkv::cli {
namespace {

// What a person does, there and back again: the action that changes `session`, or that takes the change back.
struct Edit {
  const char* name;
  std::function<Action(const Session& session, bool back)> action;
};

// A cell far from the edges becomes its negative.
Edit edit_cell(const char* name, MatrixKind kind) {
  return {name, [kind](const Session& session, bool) {
            const MatrixId id{kind, 0};
            const Matrix& matrix = find_input(session, id)->get();
            const Index row = matrix.rows() / 3, col = matrix.cols() / 2;
            return SetCell{id, row, col, -matrix(row, col)};
          }};
}

Edit switch_option(const char* name, std::function<void(AttentionOptions&)> change) {
  return {name, [change = std::move(change)](const Session& session, bool back) {
            AttentionOptions options = session.problem.options;
            if (back) {
              const std::optional<SharedMatrix> bias = options.bias;
              options = {};
              options.bias = bias;
            } else {
              change(options);
            }
            return SetAttention{std::move(options)};
          }};
}

std::vector<Edit> edits_of_direct(Index n) {
  return {
      edit_cell("cell of Q", MatrixKind::kQ),
      edit_cell("cell of K", MatrixKind::kK),
      edit_cell("cell of V", MatrixKind::kV),
      {"token in and out",
       [n](const Session&, bool back) {
         return back ? Action(RemoveToken{Side::kQueries, n / 3}) : Action(InsertToken{Side::kQueries, n / 3, "new"});
       }},
      switch_option("causal", [](AttentionOptions& o) { o.causal = true; }),
      switch_option("window 128", [](AttentionOptions& o) { o.window = 128; }),
      switch_option("one padding key",
                    [n](AttentionOptions& o) {
                      o.key_valid.assign(static_cast<std::size_t>(n), 1);
                      o.key_valid[static_cast<std::size_t>(n / 3)] = 0;
                    }),
      switch_option("scale", [](AttentionOptions& o) { o.scale = 0.1F; }),
      switch_option("softcap 20", [](AttentionOptions& o) { o.softcap = 20.0F; }),
      switch_option("alibi", [](AttentionOptions& o) { o.alibi = true; }),
      switch_option("sink", [](AttentionOptions& o) { o.sink.assign(kBenchHeads, 0.5F); }),
      switch_option("rope", [](AttentionOptions& o) { o.rope = Rope{}; }),
  };
}

Session session_of(Problem problem, Index n, Tab tab) {
  Session session;
  session.title = "bench";
  for (Index i = 0; i < n; ++i) session.tokens.push_back("t" + std::to_string(i));
  session.problem = std::move(problem);
  session.view.tab = tab;
  session.view.weights_range.mode = RangeMode::kLog;  // as many keys begin with
  return session;
}

// Draws the newest frame, until every pixel is there.
double draw_seconds(OffscreenWindow& window) {
  return seconds_of([&] {
    window.render();
    window.finish();
  });
}

// One edit in an open window: until its pixels are there.
Result<PictureSeconds> time_edit(OffscreenWindow& window, Action action) {
  PictureSeconds seconds;
  App& app = window.app();
  const std::shared_ptr<const Trace> before = app.trace();
  seconds.compute = seconds_of([&] {
    app.push(std::move(action));
    window.build_frame();
    app.wait_for_results();
  });
  if (app.trace() == before) return unsupported("the window does not show an edit");
  seconds.layout = seconds_of([&] { window.build_frame(); });
  seconds.opengl = draw_seconds(window);
  return seconds;
}

// Computes the session again without a change. The engine edits the result before the last one: were it not brought up
// to the newest numbers, an edit back would find its work done.
void catch_up(OffscreenWindow& window) {
  window.app().push(SetTitle{window.app().session().title == "bench" ? "again" : "bench"});
  window.build_frame();
  window.app().wait_for_results();
  window.build_frame();
}

Status time_edits(const BenchSettings& settings, Problem problem, Index n, Tab tab, const std::vector<Edit>& edits,
                  std::vector<BenchRow>& rows) {
  OffscreenOptions options;
  options.session = session_of(std::move(problem), n, tab);
  const Result<std::unique_ptr<OffscreenWindow>> window = OffscreenWindow::open(options);
  if (!window.ok()) return window.error();
  window.value()->settle(4);
  window.value()->render();
  catch_up(*window.value());  // two results, so that edits have one to change
  catch_up(*window.value());
  for (const Edit& edit : edits) {
    bool back = false;
    std::vector<PictureSeconds> all;
    constexpr int kWarm = 1;  // an even number of runs in all: the session ends as it began
    for (int run = 0; run < kWarm + (settings.quick ? 3 : 7); ++run) {
      const Result<PictureSeconds> timed =
          time_edit(*window.value(), edit.action(window.value()->app().session(), back));
      if (!timed.ok()) return timed.error();
      if (run >= kWarm) all.push_back(timed.value());
      catch_up(*window.value());
      back = !back;
    }
    BenchRow row = row_of(settings, "edit to picture", {"plain"}, kBenchHeads, n);
    row.variant = std::string(edit.name) + (tab == Tab::kHead ? ", one head" : ", all heads");
    row.flops = row.exps = 0;
    row.picture = median_of(all);
    draw_seconds(*window.value());
    row.picture->fill = draw_seconds(*window.value());  // again: what is left is filling pixels
    row.seconds = row.picture->total();
    rows.push_back(std::move(row));
  }
  return Done{};
}

}  // namespace

Result<std::vector<BenchRow>> bench_pictures(const BenchSettings& settings) {
  const Index n = settings.quick ? 256 : 1024;
  std::vector<BenchRow> rows;
  // Without a graphics card it takes long to fill the pixels.
  const std::vector<Tab> tabs = settings.quick ? std::vector{Tab::kHead} : std::vector{Tab::kHead, Tab::kHeads};
  for (const Tab tab : tabs) {
    Problem direct = direct_problem({"plain"}, kBenchHeads, n), biased = direct;
    biased.options.bias = Matrix(random_matrix(400, n, n, 6));
    const std::pair<Problem, std::vector<Edit>> problems[] = {
        {std::move(direct), edits_of_direct(n)},
        {std::move(biased), {edit_cell("cell of B", MatrixKind::kBias)}},
        {layer_problem(n),
         {edit_cell("cell of X", MatrixKind::kX), edit_cell("cell of W^Q", MatrixKind::kWq),
          edit_cell("cell of W^O", MatrixKind::kWo)}}};
    for (const auto& [problem, edits] : problems) {
      if (const Status timed = time_edits(settings, problem, n, tab, edits, rows); !timed.ok()) return timed.error();
    }
  }
  return rows;
}

}  // namespace qkv::cli
