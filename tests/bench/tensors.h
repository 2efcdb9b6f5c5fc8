// The inputs and outputs of a case: plain arrays, the same numbers in every program and on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

#include "tests/bench/cases.h"

namespace qkv::bench {

// An array of floats on a cache line's boundary, zero at first and with its pages in place.
class Floats {
 public:
  Floats() = default;
  explicit Floats(std::size_t size) : size_(size) {
    const std::size_t bytes = (size * sizeof(float) + 63) / 64 * 64;
    data_.reset(static_cast<float*>(std::aligned_alloc(64, bytes == 0 ? 64 : bytes)));
    if (!data_) throw std::bad_alloc();
    for (std::size_t i = 0; i < size; ++i) data_.get()[i] = 0;
  }
  float* data() { return data_.get(); }
  const float* data() const { return data_.get(); }
  std::size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(float* data) const { std::free(data); }
  };
  std::unique_ptr<float, Free> data_;
  std::size_t size_ = 0;
};

struct Inputs {
  Floats q, k, v;     // [H, N, d]; empty in a layer
  Floats x;           // [N, d_model]; this and those below in a layer alone
  Floats wq, wk, wv;  // [d_model, H·d], head h = columns h·d …
  Floats wo;          // [H·d, d_model]
};

struct Outputs {
  Floats attn;  // [H, N, N] where the case keeps it
  Floats out;   // [H, N, d]; in a layer [N, d_model]
};

// Numbers of mean 0 and variance `variance`, evenly spread: 24 bits of splitmix64 (Steele et al. 2014) each.
inline Floats random_floats(std::size_t size, std::uint64_t seed, double variance) {
  Floats floats(size);
  std::uint64_t state = seed;
  const double half_width = 1.7320508075688772 * (variance == 1 ? 1.0 : __builtin_sqrt(variance));
  for (std::size_t i = 0; i < size; ++i) {
    state += 0x9e3779b97f4a7c15U;
    std::uint64_t bits = state;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9U;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebU;
    bits ^= bits >> 31;
    const double unit = static_cast<double>(bits >> 40) / (1 << 23) - 1;  // [−1, 1)
    floats.data()[i] = static_cast<float>(half_width * unit);
  }
  return floats;
}

inline Inputs make_inputs(const Case& of) {
  Inputs inputs;
  const std::size_t n = static_cast<std::size_t>(of.n), width = static_cast<std::size_t>(of.heads) * kHeadSize;
  if (of.work != Work::kLayer) {
    inputs.q = random_floats(n * width, 1, 1);
    inputs.k = random_floats(n * width, 2, 1);
    inputs.v = random_floats(n * width, 3, 1);
    return inputs;
  }
  inputs.x = random_floats(n * kModelSize, 4, 1);
  // Weights that keep the variance at 1.
  inputs.wq = random_floats(kModelSize * width, 5, 1.0 / kModelSize);
  inputs.wk = random_floats(kModelSize * width, 6, 1.0 / kModelSize);
  inputs.wv = random_floats(kModelSize * width, 7, 1.0 / kModelSize);
  inputs.wo = random_floats(width * kModelSize, 8, 1.0 / static_cast<double>(width));
  return inputs;
}

inline Outputs make_outputs(const Case& of) {
  Outputs outputs;
  const std::size_t n = static_cast<std::size_t>(of.n), heads = static_cast<std::size_t>(of.heads);
  if (of.work == Work::kKept) outputs.attn = Floats(heads * n * n);
  outputs.out = Floats(of.work == Work::kLayer ? n * kModelSize : heads * n * kHeadSize);
  return outputs;
}

}  // namespace qkv::bench
