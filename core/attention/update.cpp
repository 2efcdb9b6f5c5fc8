#include "core/attention/update.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "core/attention/edit_extent.h"
#include "core/attention/edit_options.h"
#include "core/attention/edit_projection.h"
#include "core/attention/edit_rows.h"
#include "core/attention/given_weights.h"
#include "core/attention/position.h"
#include "core/base/seconds_since.h"

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

class Patch {
 public:
  Patch(Trace& trace, const PassOptions& options, UpdateReport& report)
      : trace_(trace), options_(options), report_(report), heads_(static_cast<std::size_t>(trace.shapes.heads)) {}

  // False when stopped.
  bool apply(const Problem& edited, DirectSource source) {
    const std::optional<Changes> found = find_changes(source);
    if (!found) return false;
    const Changes& changes = *found;
    const AttentionOptions before = std::exchange(trace_.problem.options, edited.options);
    const OptionsEdit options = compare_options(before, edited.options, trace_.shapes);
    std::vector<std::vector<KeyEdit>> edits;
    for (int kv_head = 0; kv_head < trace_.shapes.kv_heads; ++kv_head) {
      edits.push_back(edit_keys(kv_head, changes, options, before, source));
    }
    trace_.q = std::move(source.q);
    trace_.k = std::move(source.k);
    trace_.v = std::move(source.v);
    if (options.any) change_options();
    realigned_ = before.align != edited.options.align;
    if (options.positions && !(turn_queries() && turn_keys())) return false;
    for (int head = 0; head < trace_.shapes.heads; ++head) {
      begin_head(head, changes.q[static_cast<std::size_t>(head)],
                 edits[static_cast<std::size_t>(kv_head_of(trace_.shapes, head))], options, before);
    }
    return patch() && redo_rows() && finish(edited);
  }

 private:
  // What becomes of a query head.
  struct Head {
    HeadEdit edit;  // what its rows are patched with
    bool touched = false, makes_sums = false;
    std::vector<std::uint8_t> redo;  // [Nq], 1 = by attend_rows(); empty where the head is not touched
  };

  const Matrix& values_of(int head) const {
    return *trace_.v[static_cast<std::size_t>(kv_head_of(trace_.shapes, head))];
  }
  KernelHead& kernel_of(int head) const { return *trace_.kernels[static_cast<std::size_t>(head)]; }

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

  // Reads every matrix that lies elsewhere now, which takes as long as patching the output: one a task. nullopt when
  // stopped.
  std::optional<Changes> find_changes(const DirectSource& source) const {
    struct Pair {
      const SharedMatrix *before, *after;
      std::vector<Index>* rows;
    };
    Changes changes;
    std::vector<Pair> pairs;
    const auto add = [&](const std::vector<SharedMatrix>& before, const std::vector<SharedMatrix>& after,
                         std::vector<std::vector<Index>>& rows) {
      rows.resize(before.size());
      for (std::size_t h = 0; h < before.size(); ++h) {
        if (!before[h].same_storage(after[h])) pairs.push_back({&before[h], &after[h], &rows[h]});
      }
    };
    add(trace_.q, source.q, changes.q);
    add(trace_.k, source.k, changes.k);
    add(trace_.v, source.v, changes.v);
    const bool complete = share_out(std::ssize(pairs), [&](Index index) {
      const Pair& pair = pairs[static_cast<std::size_t>(index)];
      *pair.rows = changed_rows(*pair.before, *pair.after);
    });
    return complete ? std::optional(std::move(changes)) : std::nullopt;
  }

  // Brings the packed keys and values up to date and says what changed.
  std::vector<KeyEdit> edit_keys(int kv_head, const Changes& changes, const OptionsEdit& options,
                                 const AttentionOptions& options_before, const DirectSource& source) {
    const auto h = static_cast<std::size_t>(kv_head);
    std::vector<Index> rows, keys;
    std::set_union(changes.k[h].begin(), changes.k[h].end(), changes.v[h].begin(), changes.v[h].end(),
                   std::back_inserter(rows));
    std::set_union(rows.begin(), rows.end(), options.keys.begin(), options.keys.end(), std::back_inserter(keys));
    std::vector<KeyEdit> edits;
    const AttentionOptions& now = trace_.problem.options;
    const auto group = static_cast<std::size_t>(trace_.shapes.heads / trace_.shapes.kv_heads);
    PackedKeyValues& packed = *trace_.kernels[h * group]->kv;
    for (const Index key : keys) {
      const bool key_changed = std::binary_search(changes.k[h].begin(), changes.k[h].end(), key);
      const Matrix& before = *trace_.v[h];
      edits.push_back({key,
                       key_changed,
                       is_valid_key(options_before, key),
                       is_valid_key(now, key),
                       {before.row(key).begin(), before.row(key).end()}});
      if (key_changed) {
        const Matrix row = source.k[h]->row(key);
        packed.set_key(key, Matrix(positioned(row, now.rope, key).cast<float>()).data());
      }
      packed.set_value(key, source.v[h]->row(key).data());
    }
    return edits;
  }

  void change_options() {
    for (int head = 0; head < trace_.shapes.heads; ++head) kernel_of(head).options = trace_.problem.options;
    set_lazy_masks(trace_);
  }

  // False when stopped.
  bool turn_queries() {
    const auto turned = rotated_heads(trace_.q, trace_.problem.options.rope, options_);
    if (!turned) return false;
    for (std::size_t h = 0; h < turned->size(); ++h) kernel_of(static_cast<int>(h)).q = (*turned)[h];
    return true;
  }

  // Packs K anew in its place. False when stopped.
  bool turn_keys() {
    const auto turned = rotated_heads(trace_.k, trace_.problem.options.rope, options_);
    const int group = trace_.shapes.heads / trace_.shapes.kv_heads;
    return turned && share_out(trace_.shapes.kv_heads, [&](Index kv_head) {
             const auto h = static_cast<std::size_t>(kv_head);
             kernel_of(static_cast<int>(kv_head) * group).kv->assign(view_of(*(*turned)[h]), view_of(*trace_.v[h]));
           });
  }

  void begin_head(int head, const std::vector<Index>& q_rows, const std::vector<KeyEdit>& keys,
                  const OptionsEdit& options, const AttentionOptions& options_before) {
    Head& plan = heads_[static_cast<std::size_t>(head)];
    KernelHead& kernel = kernel_of(head);
    const Index nq = trace_.shapes.nq;
    if (q_rows.empty() && keys.empty() && !options.any) return;
    plan.touched = true;
    if (!q_rows.empty()) kernel.q = edited_queries(kernel, trace_.q[static_cast<std::size_t>(head)], q_rows);
    std::vector<Index> rows;
    std::set_union(q_rows.begin(), q_rows.end(), options.rows.begin(), options.rows.end(), std::back_inserter(rows));
    const bool is_whole = options.all_rows || std::ssize(rows) * kLeastWholePart >= nq ||
                          std::ssize(keys) * kLeastWholePart >= trace_.shapes.nk;
    plan.redo.assign(static_cast<std::size_t>(nq), is_whole ? 1 : 0);
    if (is_whole) {
      kernel.sums.reset();
      return;
    }
    for (const Index row : rows) plan.redo[static_cast<std::size_t>(row)] = 1;
    plan.edit.keys = &keys;
    if (options.sink) plan.edit.sink = sink_edit(head, options_before);
    if (plan.edit.any()) begin_sums(head, plan);
  }

  std::optional<SinkEdit> sink_edit(int head, const AttentionOptions& options_before) const {
    const auto sink = [head](const AttentionOptions& options) {
      return options.sink.empty() ? std::nullopt : std::optional(options.sink[static_cast<std::size_t>(head)]);
    };
    const SinkEdit edit = {sink(options_before), sink(trace_.problem.options)};
    return edit.before == edit.after ? std::nullopt : std::optional(edit);
  }

  // Sums that are made now are those from before the edit.
  void begin_sums(int head, Head& plan) {
    KernelHead& kernel = kernel_of(head);
    plan.makes_sums = !kernel.sums;
    if (!plan.makes_sums) return;
    make_sums(kernel, values_of(head));
    for (const KeyEdit& edit : *plan.edit.keys) kernel.sums->values[edit.key] = finite_magnitude(edit.old_value);
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
      if (!heads_[static_cast<std::size_t>(head)].edit.any()) continue;
      for (Index first = 0; first < trace_.shapes.nq; first += kPatchRows) {
        parts.push_back({head, first, std::min(kPatchRows, trace_.shapes.nq - first)});
      }
    }
    return parts;
  }

  // Patches rows, and shows their statistics.
  void patch_part(const RowTask& part) {
    Head& plan = heads_[static_cast<std::size_t>(part.head)];
    KernelHead& kernel = kernel_of(part.head);
    HeadTrace& shown = trace_.heads[static_cast<std::size_t>(part.head)];
    if (plan.makes_sums) reset_sums(kernel, part.first, part.count);
    patch_rows(kernel, plan.edit, values_of(part.head), part.first, part.count, plan.redo);
    if (!plan.edit.reweighs()) return;
    const std::optional<float> sink = head_input(kernel).sink;
    for (Index row = part.first; row < part.first + part.count; ++row) {
      const auto i = static_cast<std::size_t>(row);
      if (!plan.redo[i]) shown.rows[i] = row_stats(kernel.rows[i], kernel.sums->unit[i], sink);
    }
  }

  bool patch() {
    const std::vector<RowTask> parts = patched_parts();
    const bool complete =
        share_out(std::ssize(parts), [&](Index index) { patch_part(parts[static_cast<std::size_t>(index)]); });
    for (int head = 0; head < trace_.shapes.heads; ++head) {
      const HeadEdit& edit = heads_[static_cast<std::size_t>(head)].edit;
      if (!edit.any()) continue;
      const Matrix& values = values_of(head);
      for (const KeyEdit& key : *edit.keys) {
        kernel_of(head).sums->values[key.key] =
            finite_magnitude({values.row(key.key).data(), static_cast<std::size_t>(values.cols())});
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
      if (kernel.sums) reset_sums(kernel, task.first, task.count);
    });
  }

  bool finish(const Problem& edited) {
    const bool complete = share_out(std::ssize(redone_), [&](Index index) {
      const RowTask& rows = redone_[static_cast<std::size_t>(index)];
      present_rows(trace_, rows.head, rows.first, rows.count);
    });
    if (!complete) return false;
    bool any = false;
    for (int head = 0; head < trace_.shapes.heads; ++head) {
      const Head& plan = heads_[static_cast<std::size_t>(head)];
      if (plan.touched) present_cells(trace_, head);
      report_.same.push_back(!plan.touched);
      report_.weights.push_back(changed_weights(plan));
      any = any || plan.touched;
    }
    if (any) set_lazy_concat(trace_);
    const auto same = [](const std::optional<SharedMatrix>& a, const std::optional<SharedMatrix>& b) {
      return a.has_value() == b.has_value() && (!a || a->same_storage(*b));
    };
    const bool same_output = same(trace_.problem.wo, edited.wo) && same(trace_.problem.bo, edited.bo);
    trace_.problem = edited;
    return (!any && same_output) || project_output(trace_, options_);
  }

  ChangedRows changed_weights(const Head& plan) const {
    ChangedRows rows;
    rows.all = plan.edit.reweighs() || realigned_;
    for (std::size_t row = 0; !rows.all && row < plan.redo.size(); ++row) {
      if (plan.redo[row]) rows.some.push_back(static_cast<Index>(row));
    }
    return rows;
  }

  Trace& trace_;
  const PassOptions& options_;
  UpdateReport& report_;
  std::vector<Head> heads_;      // H
  bool realigned_ = false;       // queries stand at other positions
  std::vector<RowTask> redone_;  // by attend_rows()
};

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
  trace.seconds = seconds_since(start);
  return trace;
}

}  // namespace qkv
