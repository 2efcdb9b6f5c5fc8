// The peer on Eigen, compiled for this processor.
#include <Eigen/Core>

#include "tests/bench/blocked_attention.h"

namespace {

using namespace qkv::bench;

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Stride = Eigen::OuterStride<>;

void multiply(const Product& p) {
  const Eigen::Map<const Matrix, 0, Stride> a(p.a, p.m, p.k, Stride(p.lda));
  Eigen::Map<Matrix, 0, Stride> c(p.c, p.m, p.n, Stride(p.ldc));
  if (!p.add) c.setZero();
  if (p.b_transposed) {
    c.noalias() += a * Eigen::Map<const Matrix, 0, Stride>(p.b, p.n, p.k, Stride(p.ldb)).transpose();
  } else {
    c.noalias() += a * Eigen::Map<const Matrix, 0, Stride>(p.b, p.k, p.n, Stride(p.ldb));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Library library{.name = "Eigen " + std::to_string(EIGEN_WORLD_VERSION) + "." +
                                std::to_string(EIGEN_MAJOR_VERSION) + "." + std::to_string(EIGEN_MINOR_VERSION),
                        .multiply = multiply};
  return bench_main(argc, argv, {library.name, [&](const Job& job) { return blocked_setups(library, job); }});
}
