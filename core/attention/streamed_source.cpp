// The matrices of a streamed head as MatrixSource.
#include <algorithm>
#include <limits>
#include <utility>

#include "core/attention/kernel_input.h"
#include "core/attention/streamed_head_impl.h"

namespace qkv {
namespace {

using Head = std::shared_ptr<const StreamedHead>;

Index side_of(int level) { return Index{1} << std::clamp(level, 0, 40); }  // 2^40 is more than any matrix has rows

// Scores, scaled or attn.
class CellSource final : public MatrixSource {
 public:
  CellSource(Head head, CellKind kind) : head_(std::move(head)), kind_(kind) {}
  Index rows() const override { return head_->shapes().nq; }
  Index cols() const override { return head_->shapes().nk; }
  int overview_level() const override { return head_->overview_level(); }
  std::uint64_t generation() const override { return head_->generation(); }

  void read(const Rect& rect, MatrixRef out) const override { head_->impl().cells.read(kind_, rect, block_of(out)); }

  void reduce(const Rect& rect, int level, Reduction how, MatrixRef out) const override {
    const StreamedHead::Impl& head = head_->impl();
    if (head.read_overview(kind_, rect, level, how, out)) return;
    head.cells.reduce(kind_, rect, side_of(level), how, out);
  }

 private:
  Head head_;
  CellKind kind_;
};

// 1 where a query sees a key, 0 where not.
class KeepSource final : public MatrixSource {
 public:
  explicit KeepSource(Head head) : head_(std::move(head)) {}
  Index rows() const override { return head_->shapes().nq; }
  Index cols() const override { return head_->shapes().nk; }
  // Counted, not read off, but in next to no time: O(blocks) and a little along the mask's edges.
  int overview_level() const override { return head_->overview_level(); }

  void read(const Rect& rect, MatrixRef out) const override { reduce(rect, 0, Reduction::kMax, out); }

  void reduce(const Rect& rect, int level, Reduction how, MatrixRef out) const override {
    const Index side = side_of(level);
    std::vector<Index> counts(static_cast<std::size_t>(out.cols()));
    for (Index r = 0; r < out.rows(); ++r) {
      const Index rows = std::min(side, rect.rows - r * side);
      head_->impl().cells.visible().count_blocks({rect.row + r * side, rect.col, rows, rect.cols}, side, counts);
      for (Index c = 0; c < out.cols(); ++c) {
        const auto visible = static_cast<double>(counts[static_cast<std::size_t>(c)]);
        const auto all = static_cast<double>(rows * std::min(side, rect.cols - c * side));
        out(r, c) = how == Reduction::kMax ? (visible > 0 ? 1.0f : 0.0f) : static_cast<float>(visible / all);
      }
    }
  }

 private:
  Head head_;
};

// O: held, but filled row block by row block.
class OutSource final : public MatrixSource {
 public:
  explicit OutSource(Head head) : head_(std::move(head)) {}
  Index rows() const override { return head_->shapes().nq; }
  Index cols() const override { return head_->shapes().d_v; }
  std::uint64_t generation() const override { return head_->generation(); }

  void read(const Rect& rect, MatrixRef out) const override {
    const StreamedHead::Impl& head = head_->impl();
    for (Index r = 0; r < rect.rows; ++r) {
      if (head.task_done(rect.row + r)) {
        out.row(r) = head.out.row(rect.row + r).segment(rect.col, rect.cols);
      } else {
        out.row(r).setConstant(std::numeric_limits<float>::quiet_NaN());
      }
    }
  }

  void reduce(const Rect& rect, int level, Reduction how, MatrixRef out) const override {
    const Index side = side_of(level);
    Matrix cells(std::min(side, rect.rows), rect.cols);
    for (Index r = 0; r < out.rows(); ++r) {
      const Rect strip = {rect.row + r * side, rect.col, std::min(side, rect.rows - r * side), rect.cols};
      read(strip, cells.topRows(strip.rows));
      reduce_cells(cells.topRows(strip.rows), side, how, out.row(r));
    }
  }

 private:
  Head head_;
};

}  // namespace

std::shared_ptr<const MatrixSource> streamed_source(std::shared_ptr<const StreamedHead> head, MatrixKind kind) {
  switch (kind) {
    case MatrixKind::kScores:
      return std::make_shared<CellSource>(std::move(head), CellKind::kScores);
    case MatrixKind::kScaled:
      return std::make_shared<CellSource>(std::move(head), CellKind::kScaled);
    case MatrixKind::kAttn:
      return std::make_shared<CellSource>(std::move(head), CellKind::kWeights);
    case MatrixKind::kKeep:
      return std::make_shared<KeepSource>(std::move(head));
    case MatrixKind::kHeadsOut:
      return head->out() != nullptr ? std::make_shared<OutSource>(std::move(head)) : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace qkv
