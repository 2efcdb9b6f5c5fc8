// A matrix that copies share until one of them is edited.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "core/attention/matrix.h"
#include "core/base/sole_holder.h"

namespace qkv {

// Copies cost a pointer; `edit()` copies the numbers only if another holder sees them. So a session
// is a value that undo steps, the engine's threads and the window hold at the same time.
class SharedMatrix {
 public:
  SharedMatrix() : SharedMatrix(Matrix()) {}
  SharedMatrix(Matrix matrix) : data_(std::make_shared<Held>(Held{std::move(matrix)})) {}

  const Matrix& get() const { return data_->numbers; }
  const Matrix* operator->() const { return &get(); }
  const Matrix& operator*() const { return get(); }
  Index rows() const { return get().rows(); }
  Index cols() const { return get().cols(); }

  // The numbers for writing; unshares them first. Not while another thread copies this handle.
  Matrix& edit() {
    if (is_sole_holder(data_)) {
      data_->start = new_start();
      data_->edited.clear();
    } else {
      data_ = std::make_shared<Held>(Held{get()});
    }
    return data_->numbers;
  }
  // The same for rows [first, first + count) alone, so that others need not be compared with those before.
  Eigen::Block<Matrix> edit_rows(Index first, Index count) {
    if (!is_sole_holder(data_)) data_ = std::make_shared<Held>(*data_);
    for (Index row = first; row < first + count && data_->edited.size() <= kMostEdited; ++row) {
      data_->edited.insert(row);
    }
    if (data_->edited.size() > kMostEdited) {
      data_->start = new_start();
      data_->edited.clear();
    }
    return data_->numbers.block(first, 0, count, cols());
  }
  // Rows outside of which the two have the same bits; nullopt = it is not known. Copies that were made of one another
  // and then edited by rows know it.
  std::optional<std::set<Index>> rows_apart(const SharedMatrix& other) const {
    if (data_->start != other.data_->start) return std::nullopt;
    std::set<Index> rows = data_->edited;
    rows.insert(other.data_->edited.begin(), other.data_->edited.end());
    return rows;
  }

  // Same storage, hence the same numbers. Different storage may still hold equal numbers.
  bool same_storage(const SharedMatrix& other) const { return data_ == other.data_; }
  const void* storage() const { return data_.get(); }

  // Equal shapes and equal numbers, NaN equal to NaN.
  bool operator==(const SharedMatrix& other) const {
    if (same_storage(other)) return true;
    if (rows() != other.rows() || cols() != other.cols()) return false;
    const auto same = [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); };
    return std::equal(get().data(), get().data() + get().size(), other->data(), same);
  }

 private:
  static constexpr std::size_t kMostEdited = 64;

  // Names numbers that no other matrix begins with.
  static std::uint64_t new_start() {
    static std::atomic<std::uint64_t> last = 0;
    return ++last;
  }

  // Numbers that are those of `start` but for the rows that were edited since.
  struct Held {
    Matrix numbers;
    std::uint64_t start = new_start();
    std::set<Index> edited = {};
  };
  std::shared_ptr<Held> data_;
};

}  // namespace qkv
