// The N² matrices of a head of the float32 path, read without making the lazy ones whole.
#pragma once

#include <memory>

#include "core/attention/kernel_pass.h"

namespace qkv {

// `kind`: scores, scaled or attn. The same bits as the matrices of the trace.
class KernelCells final : public MatrixSource {
 public:
  KernelCells(std::shared_ptr<const KernelHead> head, MatrixKind kind) : head_(std::move(head)), kind_(kind) {}
  Index rows() const override { return head_->scores.rows(); }
  Index cols() const override { return head_->scores.cols(); }
  void read(const Rect& rect, MatrixRef out) const override;
  void reduce(const Rect& rect, int level, Reduction how, MatrixRef out) const override;

 private:
  std::shared_ptr<const KernelHead> head_;
  MatrixKind kind_;
};

}  // namespace qkv
