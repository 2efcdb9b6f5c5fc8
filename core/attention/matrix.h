// The matrix types of the program: dense, row-major, rows = tokens unless said otherwise.
#pragma once

#include <Eigen/Core>
#include <cstdint>

#include "core/attention/rect.h"

namespace qkv {

// Row-major throughout: Eigen's default is column-major, and a Ref of the other order copies silently.
using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using MatrixD = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using KeepMatrix = Eigen::Matrix<std::uint8_t, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using RowVector = Eigen::Matrix<float, 1, Eigen::Dynamic, Eigen::RowMajor>;

using MatrixRef = Eigen::Ref<Matrix, 0, Eigen::OuterStride<>>;
using ConstMatrixRef = Eigen::Ref<const Matrix, 0, Eigen::OuterStride<>>;

}  // namespace qkv
