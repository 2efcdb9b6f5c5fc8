// Which rows of two matrices may differ, after edits of copies of one another.
#include "core/attention/shared_matrix.h"

#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "core/attention/edit_rows.h"

using namespace qkv;

namespace {

std::vector<Index> different_rows(const Matrix& a, const Matrix& b) {
  std::vector<Index> rows;
  for (Index row = 0; row < a.rows(); ++row) {
    if (a.row(row) != b.row(row)) rows.push_back(row);
  }
  return rows;
}

}  // namespace

TEST_SUITE("SharedMatrix") {
  TEST_CASE("a copy that is edited by rows knows what it has apart from the one before, and from its other copies") {
    const SharedMatrix first = Matrix(Matrix::Zero(5, 3));
    SharedMatrix second = first, third = first;
    second.edit_rows(1, 2).setOnes();
    third.edit_rows(4, 1).setOnes();
    CHECK(first->row(1).sum() == 0);
    CHECK(first.rows_apart(second) == std::set<Index>{1, 2});
    CHECK(second.rows_apart(first) == std::set<Index>{1, 2});
    CHECK(second.rows_apart(third) == std::set<Index>{1, 2, 4});
    third.edit().setZero();
    CHECK_FALSE(second.rows_apart(third).has_value());
    CHECK_FALSE(SharedMatrix(*first).rows_apart(first).has_value());
  }

  TEST_CASE("many edited rows are compared, not remembered") {
    const SharedMatrix before = Matrix(Matrix::Zero(300, 2));
    SharedMatrix after = before;
    after.edit_rows(0, 300).setOnes();
    CHECK_FALSE(before.rows_apart(after).has_value());
    CHECK(changed_rows(before, after).size() == 300);
    SharedMatrix later = after;
    later.edit_rows(7, 1).setZero();
    CHECK(later.rows_apart(after) == std::set<Index>{7});
  }

  TEST_CASE("changed_rows finds what differs after any edits of copies") {
    std::mt19937 random(7);
    const auto below = [&random](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
    std::vector<SharedMatrix> matrices(4, Matrix(Matrix::Zero(90, 2)));
    for (int step = 0; step < 4000; ++step) {
      SharedMatrix& one = matrices[static_cast<std::size_t>(below(4))];
      const int kind = below(10), first = below(90);
      if (kind == 0) {
        one.edit()(first, 1) = static_cast<float>(below(3));
      } else if (kind == 1) {
        one.edit_rows(first, 90 - first).setConstant(static_cast<float>(below(3)));
      } else if (kind < 7) {
        one.edit_rows(first, 1)(0, 0) = static_cast<float>(below(3));
      } else {
        one = matrices[static_cast<std::size_t>(below(4))];
      }
      const SharedMatrix &a = matrices[static_cast<std::size_t>(below(4))],
                         &b = matrices[static_cast<std::size_t>(below(4))];
      CAPTURE(step);
      REQUIRE(changed_rows(a, b) == different_rows(*a, *b));
    }
  }
}
