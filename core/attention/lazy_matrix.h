// A matrix that is worked out when somebody first looks at it, and then kept.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "core/attention/matrix.h"

namespace qkv {

// Copies share the matrix. Looking is safe from many threads; assigning is not while another looks.
class LazyMatrix {
 public:
  using Maker = std::function<std::shared_ptr<const Matrix>()>;

  LazyMatrix() = default;  // none
  LazyMatrix(Matrix matrix) : state_(std::make_shared<State>()) {
    state_->matrix = std::make_shared<const Matrix>(std::move(matrix));
  }
  // `make` is called once at most, and never returns nullptr.
  explicit LazyMatrix(Maker make) : state_(std::make_shared<State>()) { state_->make = std::move(make); }

  explicit operator bool() const { return state_ != nullptr; }

  // Only where there is one.
  const Matrix& get() const {
    std::call_once(state_->once, [state = state_.get()] {
      if (state->make) state->matrix = state->make();
    });
    return *state_->matrix;
  }
  const Matrix* find() const { return state_ ? &get() : nullptr; }
  const Matrix& operator*() const { return get(); }
  const Matrix* operator->() const { return &get(); }
  operator const Matrix&() const { return get(); }
  float operator()(Index row, Index col) const { return get()(row, col); }
  // Equal shapes and equal numbers.
  friend bool operator==(const LazyMatrix& a, const Matrix& b) { return a.get() == b; }

 private:
  struct State {
    std::once_flag once;
    Maker make;
    std::shared_ptr<const Matrix> matrix;
  };
  std::shared_ptr<State> state_;
};

}  // namespace qkv
