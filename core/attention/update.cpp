#include "core/attention/update.h"

#include <algorithm>
#include <chrono>
#include <new>

#include "core/attention/edit_projection.h"
#include "core/attention/edit_rows.h"
#include "core/attention/position.h"

namespace qkv {
namespace {

// Query rows of one task.
constexpr Index kPatchRows = 256;
// Redoing a head costs about what patching this part of its rows or keys does.
constexpr Index kLeastWholePart = 8;

// What an edit changed, by row.
struct Changes {
  std::vector<std::vector<Index>> q, k, v;  // H, H_kv, H_kv
  bool wo = false;
};

// Q, K and V of the edited problem where they follow from X and the weights.
std::optional<DirectSource> edited_source(const Trace& trace, const Problem& edited, const PassOptions& options) {
  if (const auto* direct = std::get_if<DirectSource>(&edited.source)) return *direct;
  const auto& before = std::get<ProjectedSource>(trace.problem.source);
  const auto& after = std::get<ProjectedSource>(edited.source);
  auto q = edit_projection(trace.q, {before.x, before.wq, before.bq}, {after.x, after.wq, after.bq}, options);
  if (!q) return std::nullopt;
  auto k = edit_projection(trace.k, {before.x, before.wk, before.bk}, {after.x, after.wk, after.bk}, options);
  if (!k) return std::nullopt;
  auto v = edit_projection(trace.v, {before.x, before.wv, before.bv}, {after.x, after.wv, after.bv}, options);
  if (!v) return std::nullopt;
  return DirectSource{std::move(*q), std::move(*k), std::move(*v)};
}

std::vector<std::vector<Index>> changed_rows(const std::vector<SharedMatrix>& before,
                                             const std::vector<SharedMatrix>& after) {
  std::vector<std::vector<Index>> rows;
  for (std::size_t h = 0; h < before.size(); ++h) rows.push_back(qkv::changed_rows(before[h], after[h]));
  return rows;
}

bool can_patch(const Trace& trace, const Problem& edited, const Shapes& shapes, Arithmetic arithmetic) {
  return arithmetic == Arithmetic::kFloat32 && trace.arithmetic == arithmetic && trace.shapes == shapes &&
         !trace.kernels.empty() && trace.problem.source.index() == edited.source.index() &&
         trace.problem.options == edited.options;
}

class Patch {
 public:
  Patch(Trace& trace, const PassOptions& options, UpdateReport& report)
      : trace_(trace), options_(options), report_(report) {}

  // False when stopped.
  bool apply(const Problem& edited, DirectSource source) {
    const Shapes& shapes = trace_.shapes;
    const Changes changes = {changed_rows(trace_.q, source.q), changed_rows(trace_.k, source.k),
                             changed_rows(trace_.v, source.v), false};
    redo_.resize(static_cast<std::size_t>(shapes.heads));
    touched_.assign(redo_.size(), false);
    std::vector<std::vector<KeyEdit>> edits;
    for (int kv_head = 0; kv_head < shapes.kv_heads; ++kv_head) {
      edits.push_back(edit_keys(kv_head, changes, source));
    }
    trace_.q = std::move(source.q);
    trace_.k = std::move(source.k);
    trace_.v = std::move(source.v);
    for (int head = 0; head < shapes.heads; ++head) {
      if (!edit_head(head, changes.q[static_cast<std::size_t>(head)],
                     edits[static_cast<std::size_t>(kv_head_of(shapes, head))])) {
        return false;
      }
    }
    return redo_rows() && finish(edited);
  }

 private:
  FloatBlock out_of(int head) const {
    const Index width = trace_.shapes.d_v;
    return {trace_.concat.data() + head * width, trace_.shapes.nq, width, trace_.concat.cols()};
  }

  // Brings the packed keys and values up to date and says what changed.
  std::vector<KeyEdit> edit_keys(int kv_head, const Changes& changes, const DirectSource& source) {
    const auto h = static_cast<std::size_t>(kv_head);
    std::vector<Index> keys;
    std::set_union(changes.k[h].begin(), changes.k[h].end(), changes.v[h].begin(), changes.v[h].end(),
                   std::back_inserter(keys));
    std::vector<KeyEdit> edits;
    const auto group = static_cast<std::size_t>(trace_.shapes.heads / trace_.shapes.kv_heads);
    PackedKeyValues& packed = *trace_.kernels[h * group]->kv;
    for (const Index key : keys) {
      const bool key_changed = std::binary_search(changes.k[h].begin(), changes.k[h].end(), key);
      const Matrix& before = *trace_.v[h];
      edits.push_back({key, key_changed, {before.row(key).begin(), before.row(key).end()}});
      if (key_changed) {
        const Matrix row = source.k[h]->row(key);
        packed.set_key(key, Matrix(positioned(row, trace_.problem.options.rope, key).cast<float>()).data());
      }
      packed.set_value(key, source.v[h]->row(key).data());
    }
    return edits;
  }

  bool edit_head(int head, const std::vector<Index>& q_rows, const std::vector<KeyEdit>& edits) {
    const auto h = static_cast<std::size_t>(head);
    KernelHead& kernel = *trace_.kernels[h];
    const Index nq = trace_.shapes.nq;
    if (q_rows.empty() && edits.empty()) return true;
    touched_[h] = true;
    if (!q_rows.empty()) kernel.q = edited_queries(kernel, trace_.q[h], q_rows);
    std::vector<std::uint8_t>& redo = redo_[h];
    const bool is_whole = static_cast<Index>(q_rows.size()) * kLeastWholePart >= nq ||
                          static_cast<Index>(edits.size()) * kLeastWholePart >= trace_.shapes.nk;
    redo.assign(static_cast<std::size_t>(nq), is_whole ? 1 : 0);
    if (is_whole) {
      kernel.sums.reset();
      return true;
    }
    for (const Index row : q_rows) redo[static_cast<std::size_t>(row)] = 1;
    return edits.empty() || patch_head(head, edits);
  }

  SharedMatrix edited_queries(const KernelHead& kernel, const SharedMatrix& q, const std::vector<Index>& rows) const {
    const std::optional<Rope>& rope = trace_.problem.options.rope;
    if (!rope) return q;
    SharedMatrix turned = kernel.q;
    Matrix& cells = turned.edit();
    for (const Index row : rows) {
      cells.row(row) = positioned(q->row(row), rope, row).cast<float>();
    }
    return turned;
  }

  bool patch_head(int head, const std::vector<KeyEdit>& edits) {
    const auto h = static_cast<std::size_t>(head);
    KernelHead& kernel = *trace_.kernels[h];
    const Matrix& values = *trace_.v[static_cast<std::size_t>(kv_head_of(trace_.shapes, head))];
    const bool is_new = !kernel.sums;
    if (is_new) make_sums(kernel);
    Eigen::VectorXf magnitudes = is_new ? key_magnitudes(values) : Eigen::VectorXf();
    for (const KeyEdit& edit : edits) {  // the sums are those from before the edit
      if (is_new) magnitudes[edit.key] = finite_magnitude(edit.old_value);
    }
    return in_parts([&](Index first, Index count) {
      if (is_new) reset_sums(kernel, magnitudes, first, count, out_of(head));
      patch_rows(kernel, edits, values, first, count, out_of(head), redo_[h]);
    });
  }

  // Calls work(first, count) for parts of the query rows, on the pool. False when stopped.
  template <class Work>
  bool in_parts(Work work) const {
    const Index nq = trace_.shapes.nq, parts = (nq + kPatchRows - 1) / kPatchRows;
    const auto task = [&](Index part, int) { work(part * kPatchRows, std::min(kPatchRows, nq - part * kPatchRows)); };
    if (options_.pool && nq * trace_.shapes.d_v >= 1 << 16) return options_.pool->run(parts, task, options_.stop);
    for (Index part = 0; part < parts; ++part) task(part, 0);
    return !is_stopped(options_.stop);
  }

  bool redo_rows() {
    std::vector<RowTask> tasks;
    for (int head = 0; head < trace_.shapes.heads; ++head) {
      const std::vector<std::uint8_t>& redo = redo_[static_cast<std::size_t>(head)];
      for (std::size_t first = 0; first < redo.size();) {
        const auto begin = std::find(redo.begin() + static_cast<std::ptrdiff_t>(first), redo.end(), 1);
        const auto end = std::find(begin, redo.end(), 0);
        if (begin != end) tasks.push_back({head, begin - redo.begin(), end - begin});
        first = static_cast<std::size_t>(end - redo.begin());
        report_.redone_rows += end - begin;
      }
    }
    if (!run_rows(trace_, tasks, options_)) return false;
    Eigen::VectorXf magnitudes;
    int of_head = -1;
    for (const RowTask& task : tasks) {
      KernelHead& kernel = *trace_.kernels[static_cast<std::size_t>(task.head)];
      if (!kernel.sums) continue;
      if (task.head != of_head) {
        magnitudes = key_magnitudes(*trace_.v[static_cast<std::size_t>(kv_head_of(trace_.shapes, task.head))]);
        of_head = task.head;
      }
      reset_sums(kernel, magnitudes, task.first, task.count, out_of(task.head));
    }
    return true;
  }

  bool finish(const Problem& edited) {
    for (int head = 0; head < trace_.shapes.heads; ++head) {
      if (touched_[static_cast<std::size_t>(head)]) present_head(trace_, head);
    }
    const bool any = std::find(touched_.begin(), touched_.end(), true) != touched_.end();
    const auto same = [](const std::optional<SharedMatrix>& a, const std::optional<SharedMatrix>& b) {
      return a.has_value() == b.has_value() && (!a || a->same_storage(*b));
    };
    const bool same_output = same(trace_.problem.wo, edited.wo) && same(trace_.problem.bo, edited.bo);
    trace_.problem = edited;
    for (const bool touched : touched_) report_.same.push_back(!touched);
    return (!any && same_output) || project_output(trace_, options_);
  }

  Trace& trace_;
  const PassOptions& options_;
  UpdateReport& report_;
  std::vector<std::vector<std::uint8_t>> redo_;  // H × [Nq], or empty where nothing of the head changed
  std::vector<bool> touched_;                    // H
};

// How much an edit touches, over all query heads.
struct Extent {
  int heads = 0;
  Index query_rows = 0, key_rows = 0;  // over all query heads
};

Extent extent_of(const Trace& trace, const Problem& edited) {
  const Shapes& shapes = trace.shapes;
  if (const auto* after = std::get_if<DirectSource>(&edited.source)) {
    Extent extent;
    const int group = shapes.heads / shapes.kv_heads;
    for (int head = 0; head < shapes.heads; ++head) {
      const auto h = static_cast<std::size_t>(head), kv = static_cast<std::size_t>(head / group);
      const auto queries = static_cast<Index>(qkv::changed_rows(trace.q[h], after->q[h]).size());
      const auto keys = static_cast<Index>(qkv::changed_rows(trace.k[kv], after->k[kv]).size() +
                                           qkv::changed_rows(trace.v[kv], after->v[kv]).size());
      extent.query_rows += queries;
      extent.key_rows += keys;
      extent.heads += queries + keys > 0;
    }
    return extent;
  }
  const auto& before = std::get<ProjectedSource>(trace.problem.source);
  const auto& after = std::get<ProjectedSource>(edited.source);
  const bool same_weights = before.wq.same_storage(after.wq) && before.wk.same_storage(after.wk) &&
                            before.wv.same_storage(after.wv) && before.bq == after.bq && before.bk == after.bk &&
                            before.bv == after.bv;
  if (!same_weights) return {shapes.heads, shapes.nq * shapes.heads, 0};
  const auto rows = static_cast<Index>(qkv::changed_rows(before.x, after.x).size());
  return {rows > 0 ? shapes.heads : 0, rows * shapes.heads, rows * shapes.heads};
}

bool can_patch(const Trace& trace, const Problem& edited) {
  const Result<Shapes> shapes = check_shapes(edited);
  return shapes.ok() && can_patch(trace, edited, shapes.value(), trace.arithmetic);
}

Result<Trace> full_pass(Trace trace, const Problem& edited, const Shapes& shapes, const PassOptions& options) {
  std::vector<std::shared_ptr<KernelHead>> buffers = std::move(trace.kernels);
  trace = {};  // its lazy matrices hold on to the buffers
  return fill_trace(edited, shapes, options, std::move(buffers));
}

}  // namespace

Result<Trace> update(Trace trace, const Problem& edited, const PassOptions& options, UpdateReport* report) {
  const Result<Shapes> shapes = check_shapes(edited);
  if (!shapes.ok()) return shapes.error();
  UpdateReport unused;
  UpdateReport& did = report ? *report : unused;
  did = {};
  const Arithmetic arithmetic =
      options.arithmetic == Arithmetic::kAuto ? choose_arithmetic(shapes.value()) : options.arithmetic;
  if (!can_patch(trace, edited, shapes.value(), arithmetic)) {
    did.full = true;
    return full_pass(std::move(trace), edited, shapes.value(), options);
  }
  const auto start = std::chrono::steady_clock::now();
  const Error cancelled = {ErrorCode::kCancelled, "the computation was stopped"};
  try {
    std::optional<DirectSource> source = edited_source(trace, edited, options);
    if (!source || !Patch(trace, options, did).apply(edited, std::move(*source))) return cancelled;
  } catch (const std::bad_alloc&) {
    return unsupported("not enough memory for the edit: use fewer tokens or heads");
  }
  trace.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return trace;
}

int count_touched_heads(const Trace& trace, const Problem& edited) {
  return can_patch(trace, edited) ? extent_of(trace, edited).heads : trace.shapes.heads;
}

double estimated_update_flops(const Trace& trace, const Problem& edited) {
  const Result<Shapes> shapes = check_shapes(edited);
  if (!shapes.ok()) return 0;
  if (!can_patch(trace, edited, shapes.value(), trace.arithmetic)) return estimated_flops(shapes.value());
  const Shapes& s = trace.shapes;
  const Extent extent = extent_of(trace, edited);
  const auto nq = static_cast<double>(s.nq), nk = static_cast<double>(s.nk);
  const double size = 2 * static_cast<double>(s.d_k) + 20 + 2 * static_cast<double>(s.d_v);
  // A key row costs about eight cells of a pass in each query row, since it reads columns.
  const double patched =
      static_cast<double>(extent.query_rows) * nk * size + static_cast<double>(extent.key_rows) * nq * 8 * size;
  return std::min(patched, estimated_flops(s));
}

}  // namespace qkv
