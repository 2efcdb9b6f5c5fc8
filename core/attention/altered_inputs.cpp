#include "core/attention/altered_inputs.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/attention/position.h"

namespace qkv {
namespace {

using Heads = std::vector<MatrixD>;

struct Part {
  const SharedMatrix* weights;
  const std::optional<SharedMatrix>* bias;
  int heads;
};

std::array<Part, 3> parts_of(const ProjectedSource& source) {
  return {Part{&source.wq, &source.bq, source.heads}, Part{&source.wk, &source.bk, source.kv_heads},
          Part{&source.wv, &source.bv, source.kv_heads}};
}

// [N, H·d] as heads.
Heads cut(const MatrixD& all, int heads, HeadCut layout) {
  const Index rows = all.rows(), width = all.cols() / heads;
  Heads result;
  for (Index head = 0; head < heads; ++head) {
    MatrixD matrix(rows, width);
    switch (layout) {
      case HeadCut::kInBlocks:
        matrix = all.middleCols(head * width, width);
        break;
      case HeadCut::kInterleaved:
        for (Index j = 0; j < width; ++j) matrix.col(j) = all.col(head + heads * j);
        break;
      case HeadCut::kUncut:
        matrix = Eigen::Map<const MatrixD>(all.data() + head * rows * width, rows, width);
        break;
    }
    result.push_back(std::move(matrix));
  }
  return result;
}

MatrixD side_by_side(const std::vector<SharedMatrix>& heads) {
  const Index width = heads[0].cols();
  MatrixD all(heads[0].rows(), width * static_cast<Index>(heads.size()));
  for (std::size_t h = 0; h < heads.size(); ++h) {
    all.middleCols(static_cast<Index>(h) * width, width) = heads[h]->cast<double>();
  }
  return all;
}

Heads part_heads(const Problem& problem, const AlteredInputs& inputs, std::size_t part, NumberFormat format) {
  const HeadCut layout = inputs.layout[part];
  if (const auto* projected = std::get_if<ProjectedSource>(&problem.source)) {
    const auto [weights, bias, heads] = parts_of(*projected)[part];
    MatrixD w = (*weights)->cast<double>();
    if (inputs.transposed[part]) w.transposeInPlace();
    MatrixD x = (*projected->x).cast<double>();
    round_all(w, format);
    round_all(x, format);
    MatrixD all = x * w;
    if (*bias && !inputs.no_bias[part]) {
      MatrixD b = (**bias)->cast<double>();
      round_all(b, format);
      all.rowwise() += b.row(0);
    }
    round_all(all, format);
    return cut(all, heads, layout);
  }
  const auto& direct = std::get<DirectSource>(problem.source);
  const std::vector<SharedMatrix>& given = part == 0 ? direct.q : part == 1 ? direct.k : direct.v;
  MatrixD all = side_by_side(given);
  round_all(all, format);
  return cut(all, static_cast<int>(given.size()), layout);
}

void reverse_rows(Heads& heads) {
  for (MatrixD& head : heads) head = head.colwise().reverse().eval();
}

// Row r turns as position first + r.
Heads turned(Heads heads, const Rope& rope, Index first, bool backwards, NumberFormat format) {
  for (MatrixD& head : heads) {
    const RowRotation rotation(rope, head.cols());
    const auto size = static_cast<std::size_t>(head.cols());
    for (Index row = 0; row < head.rows(); ++row) {
      const Index position = first + row;
      rotation.turn({head.row(row).data(), size}, backwards ? -position : position);
    }
    round_all(head, format);
  }
  return heads;
}

}  // namespace

double rounded(double value, NumberFormat format) {
  if (format == NumberFormat::kFloat64) return value;
  return static_cast<double>(round_to(format, static_cast<float>(value)));
}

void round_all(MatrixD& matrix, NumberFormat format) {
  if (format == NumberFormat::kFloat64) return;
  for (Index i = 0; i < matrix.size(); ++i) matrix.data()[i] = rounded(matrix.data()[i], format);
}

bool can_be(const AlteredInputs& inputs, const Problem& problem, const Shapes& s) {
  if (const auto* projected = std::get_if<ProjectedSource>(&problem.source)) {
    for (std::size_t part = 0; part < 3; ++part) {
      const SharedMatrix& w = *parts_of(*projected)[part].weights;
      if (inputs.transposed[part] && w.rows() != w.cols()) return false;
    }
  }
  const std::array<std::array<Index, 3>, 3> sizes = {
      {{s.heads, s.nq, s.d_k}, {s.kv_heads, s.nk, s.d_k}, {s.kv_heads, s.nk, s.d_v}}};
  for (std::size_t part = 0; part < 3; ++part) {
    if (sizes[part] != sizes[static_cast<std::size_t>(inputs.taken_from[part])]) return false;
  }
  return !inputs.rope || s.d_k % 2 == 0;
}

AlteredHeads make_inputs(const Problem& problem, const AlteredInputs& inputs, NumberFormat format) {
  std::array<Heads, 3> ours;
  for (const int part : inputs.taken_from) {
    const auto at = static_cast<std::size_t>(part);
    if (ours[at].empty()) ours[at] = part_heads(problem, inputs, at, format);
  }
  const auto take = [&](std::size_t part) {
    Heads& heads = ours[static_cast<std::size_t>(inputs.taken_from[part])];
    const bool is_shared = std::ranges::count(inputs.taken_from, inputs.taken_from[part]) > 1;
    return is_shared ? heads : std::move(heads);
  };
  AlteredHeads made = {take(0), take(1), take(2), {}, {}, {}};
  if (inputs.reversed_queries) reverse_rows(made.q);
  if (inputs.reversed_keys) {
    reverse_rows(made.k);
    reverse_rows(made.v);
  }
  for (const MatrixD& v : made.v) made.v_finite.push_back(v.allFinite());
  if (inputs.rope) {
    const bool back = inputs.rope_backwards;
    made.rotated_q =
        inputs.rope_on_queries ? turned(made.q, *inputs.rope, inputs.first_query_position, back, format) : made.q;
    made.rotated_k = inputs.rope_on_keys ? turned(made.k, *inputs.rope, 0, back, format) : made.k;
  }
  return made;
}

std::shared_ptr<const AlteredHeads> InputCache::get(const AlteredInputs& inputs, NumberFormat format) {
  for (const Entry& entry : entries_) {
    if (entry.format == format && entry.inputs == inputs) return entry.made;
  }
  auto made = std::make_shared<const AlteredHeads>(make_inputs(problem_, inputs, format));
  if (entries_.size() == 2) entries_.pop_back();
  entries_.push_back({inputs, format, made});
  return made;
}

}  // namespace qkv
