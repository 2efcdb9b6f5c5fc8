// A matrix that copies share until one of them is edited.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "core/attention/matrix.h"
#include "core/base/sole_holder.h"

namespace qkv {

// Copies cost a pointer; `edit()` copies the numbers only if another holder sees them. So a session
// is a value that undo steps, the engine's threads and the window hold at the same time.
class SharedMatrix {
 public:
  SharedMatrix() : data_(std::make_shared<Matrix>()) {}
  SharedMatrix(Matrix matrix) : data_(std::make_shared<Matrix>(std::move(matrix))) {}

  const Matrix& get() const { return *data_; }
  const Matrix* operator->() const { return data_.get(); }
  const Matrix& operator*() const { return *data_; }
  Index rows() const { return data_->rows(); }
  Index cols() const { return data_->cols(); }

  // The numbers for writing; unshares them first. Not while another thread copies this handle.
  Matrix& edit() {
    if (!is_sole_holder(data_)) data_ = std::make_shared<Matrix>(*data_);
    return *data_;
  }

  // Same storage, hence the same numbers. Different storage may still hold equal numbers.
  bool same_storage(const SharedMatrix& other) const { return data_ == other.data_; }
  const void* storage() const { return data_.get(); }

  // Equal shapes and equal numbers, NaN equal to NaN.
  bool operator==(const SharedMatrix& other) const {
    if (same_storage(other)) return true;
    if (rows() != other.rows() || cols() != other.cols()) return false;
    const auto same = [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); };
    return std::equal(data_->data(), data_->data() + data_->size(), other.data_->data(), same);
  }

 private:
  std::shared_ptr<Matrix> data_;
};

}  // namespace qkv
