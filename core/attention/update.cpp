#include "core/attention/update.h"

#include <algorithm>
#include <chrono>
#include <new>

#include "core/attention/edit_projection.h"
#include "core/attention/edit_rows.h"
#include "core/attention/given_weights.h"
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

bool can_patch(const Trace& trace, const Problem& edited, const Shapes& shapes, Arithmetic arithmetic) {
  return arithmetic == Arithmetic::kFloat32 && trace.arithmetic == arithmetic && trace.shapes == shapes &&
         !trace.kernels.empty() && trace.problem.source.index() == edited.source.index() &&
         trace.problem.options == edited.options;
}

class Patch {
 public:
  Patch(Trace& trace, const PassOptions& options, UpdateReport& report)
      : trace_(trace), options_(options), report_(report), heads_(static_cast<std::size_t>(trace.shapes.heads)) {}

  // False when stopped.
  bool apply(const Problem& edited, DirectSource source) {
    const Changes changes = find_changes(source);
    std::vector<std::vector<KeyEdit>> edits;
    for (int kv_head = 0; kv_head < trace_.shapes.kv_heads; ++kv_head) {
      edits.push_back(edit_keys(kv_head, changes, source));
    }
    trace_.q = std::move(source.q);
    trace_.k = std::move(source.k);
    trace_.v = std::move(source.v);
    for (int head = 0; head < trace_.shapes.heads; ++head) {
      begin_head(head, changes.q[static_cast<std::size_t>(head)],
                 edits[static_cast<std::size_t>(kv_head_of(trace_.shapes, head))]);
    }
    return patch() && redo_rows() && finish(edited);
  }

 private:
  // What becomes of a query head.
  struct Head {
    const std::vector<KeyEdit>* edits = nullptr;  // to patch its rows with; nullptr = none
    bool touched = false, makes_sums = false;
    std::vector<std::uint8_t> redo;  // [Nq], 1 = by attend_rows(); empty where the head is not touched
  };

  FloatBlock out_of(int head) const {
    const Index width = trace_.shapes.d_v;
    return {trace_.concat.data() + head * width, trace_.shapes.nq, width, trace_.concat.cols()};
  }
  const Matrix& values_of(int head) const {
    return *trace_.v[static_cast<std::size_t>(kv_head_of(trace_.shapes, head))];
  }

  // Calls work(task) on the pool where the tasks are worth it. False when stopped.
  template <class Work>
  bool share_out(Index tasks, Work work) const {
    const Index cells = trace_.shapes.nq * (trace_.shapes.d_v + trace_.shapes.d_k);
    if (options_.pool && cells >= 1 << 16) {
      return options_.pool->run(
          tasks, [&](Index task, int) { work(task); }, options_.stop);
    }
    for (Index task = 0; task < tasks; ++task) work(task);
    return !is_stopped(options_.stop);
  }

  Changes find_changes(const DirectSource& source) const {
    Changes changes;
    const std::vector<SharedMatrix>* before[] = {&trace_.q, &trace_.k, &trace_.v};
    const std::vector<SharedMatrix>* after[] = {&source.q, &source.k, &source.v};
    std::vector<std::vector<Index>>* rows[] = {&changes.q, &changes.k, &changes.v};
    for (std::size_t n = 0; n < 3; ++n) rows[n]->resize(before[n]->size());
    for (std::size_t n = 0; n < 3; ++n) {
      for (std::size_t h = 0; h < before[n]->size(); ++h) {
        if (!(*before[n])[h].same_storage((*after[n])[h]))
          (*rows[n])[h] = changed_rows((*before[n])[h], (*after[n])[h]);
      }
    }
    return changes;
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

  void begin_head(int head, const std::vector<Index>& q_rows, const std::vector<KeyEdit>& edits) {
    Head& plan = heads_[static_cast<std::size_t>(head)];
    KernelHead& kernel = *trace_.kernels[static_cast<std::size_t>(head)];
    const Index nq = trace_.shapes.nq;
    if (q_rows.empty() && edits.empty()) return;
    plan.touched = true;
    if (!q_rows.empty()) kernel.q = edited_queries(kernel, trace_.q[static_cast<std::size_t>(head)], q_rows);
    const bool is_whole = static_cast<Index>(q_rows.size()) * kLeastWholePart >= nq ||
                          static_cast<Index>(edits.size()) * kLeastWholePart >= trace_.shapes.nk;
    plan.redo.assign(static_cast<std::size_t>(nq), is_whole ? 1 : 0);
    if (is_whole) {
      kernel.sums.reset();
      return;
    }
    for (const Index row : q_rows) plan.redo[static_cast<std::size_t>(row)] = 1;
    if (edits.empty()) return;
    plan.edits = &edits;
    plan.makes_sums = !kernel.sums;
    if (plan.makes_sums) make_sums(kernel, values_of(head));
    // Sums that are made now are those from before the edit.
    for (const KeyEdit& edit : edits) {
      if (plan.makes_sums) kernel.sums->values[edit.key] = finite_magnitude(edit.old_value);
    }
  }

  SharedMatrix edited_queries(const KernelHead& kernel, const SharedMatrix& q, const std::vector<Index>& rows) const {
    const std::optional<Rope>& rope = trace_.problem.options.rope;
    if (!rope) return q;
    SharedMatrix turned = kernel.q;
    Matrix& cells = turned.edit();
    for (const Index row : rows) cells.row(row) = positioned(q->row(row), rope, row).cast<float>();
    return turned;
  }

  // Query rows of the heads that are patched, in parts.
  std::vector<RowTask> patched_parts() const {
    std::vector<RowTask> parts;
    for (int head = 0; head < trace_.shapes.heads; ++head) {
      if (!heads_[static_cast<std::size_t>(head)].edits) continue;
      for (Index first = 0; first < trace_.shapes.nq; first += kPatchRows) {
        parts.push_back({head, first, std::min(kPatchRows, trace_.shapes.nq - first)});
      }
    }
    return parts;
  }

  bool patch() {
    const std::vector<RowTask> parts = patched_parts();
    const bool complete = share_out(static_cast<Index>(parts.size()), [&](Index index) {
      const RowTask& part = parts[static_cast<std::size_t>(index)];
      Head& plan = heads_[static_cast<std::size_t>(part.head)];
      KernelHead& kernel = *trace_.kernels[static_cast<std::size_t>(part.head)];
      if (plan.makes_sums) reset_sums(kernel, part.first, part.count, out_of(part.head));
      patch_rows(kernel, *plan.edits, values_of(part.head), part.first, part.count, out_of(part.head), plan.redo);
    });
    for (int head = 0; head < trace_.shapes.heads; ++head) {
      const Head& plan = heads_[static_cast<std::size_t>(head)];
      if (!plan.edits) continue;
      for (const KeyEdit& edit : *plan.edits) {
        const Matrix& values = values_of(head);
        trace_.kernels[static_cast<std::size_t>(head)]->sums->values[edit.key] =
            finite_magnitude({values.row(edit.key).data(), static_cast<std::size_t>(values.cols())});
      }
    }
    return complete;
  }

  bool redo_rows() {
    for (int head = 0; head < trace_.shapes.heads; ++head) {
      const std::vector<std::uint8_t>& redo = heads_[static_cast<std::size_t>(head)].redo;
      for (auto begin = std::find(redo.begin(), redo.end(), 1); begin != redo.end();) {
        const auto end = std::find(begin, redo.end(), 0);
        redone_.push_back({head, begin - redo.begin(), end - begin});
        report_.redone_rows += end - begin;
        begin = std::find(end, redo.end(), 1);
      }
    }
    if (!run_rows(trace_, redone_, options_)) return false;
    return share_out(static_cast<Index>(redone_.size()), [&](Index index) {
      const RowTask& task = redone_[static_cast<std::size_t>(index)];
      KernelHead& kernel = *trace_.kernels[static_cast<std::size_t>(task.head)];
      if (kernel.sums) reset_sums(kernel, task.first, task.count, out_of(task.head));
    });
  }

  bool finish(const Problem& edited) {
    std::vector<RowTask> shown = patched_parts();
    for (const RowTask& task : redone_) {
      if (!heads_[static_cast<std::size_t>(task.head)].edits) shown.push_back(task);
    }
    const bool complete = share_out(static_cast<Index>(shown.size()), [&](Index index) {
      const RowTask& rows = shown[static_cast<std::size_t>(index)];
      present_rows(trace_, rows.head, rows.first, rows.count);
    });
    if (!complete) return false;
    bool any = false;
    for (int head = 0; head < trace_.shapes.heads; ++head) {
      const bool touched = heads_[static_cast<std::size_t>(head)].touched;
      if (touched) present_cells(trace_, head);
      report_.same.push_back(!touched);
      any = any || touched;
    }
    const auto same = [](const std::optional<SharedMatrix>& a, const std::optional<SharedMatrix>& b) {
      return a.has_value() == b.has_value() && (!a || a->same_storage(*b));
    };
    const bool same_output = same(trace_.problem.wo, edited.wo) && same(trace_.problem.bo, edited.bo);
    trace_.problem = edited;
    return (!any && same_output) || project_output(trace_, options_);
  }

  Trace& trace_;
  const PassOptions& options_;
  UpdateReport& report_;
  std::vector<Head> heads_;      // H
  std::vector<RowTask> redone_;  // by attend_rows()
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
  if (is_weights_only(edited.source)) return update_given(std::move(trace), edited, shapes.value(), did);
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
