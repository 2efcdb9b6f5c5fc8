// Uninitialized floats at the alignment that the widest vectors want.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace qkv {

class AlignedBuffer {
 public:
  static constexpr std::size_t kAlignment = 64;

  AlignedBuffer() = default;
  explicit AlignedBuffer(std::ptrdiff_t floats) : floats_(floats), data_(allocate(floats)) {}

  float* data() { return data_.get(); }
  const float* data() const { return data_.get(); }
  std::ptrdiff_t size() const { return floats_; }
  // Room for at least `floats`; what was there is lost.
  void reserve(std::ptrdiff_t floats) {
    if (floats > floats_) *this = AlignedBuffer(floats);
  }

 private:
  struct Delete {
    void operator()(float* data) const { ::operator delete[](data, std::align_val_t(kAlignment)); }
  };
  static float* allocate(std::ptrdiff_t floats) {
    return static_cast<float*>(
        ::operator new[](static_cast<std::size_t>(floats) * sizeof(float), std::align_val_t(kAlignment)));
  }

  std::ptrdiff_t floats_ = 0;
  std::unique_ptr<float, Delete> data_;
};

}  // namespace qkv
