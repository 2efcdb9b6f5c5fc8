// Which labels of a crowded axis are drawn.
#include "core/figure/label_step.h"

#include <doctest/doctest.h>

using namespace qkv;

namespace {

std::string from_1(Index i) { return std::to_string(i + 1); }
std::string from_0(Index i) { return std::to_string(i); }

}  // namespace

TEST_CASE("labels stand 1, 2, 5, 10, 20, 50 … apart") {
  const std::pair<double, Index> kSteps[] = {{0.1, 1}, {1, 1},   {1.01, 2}, {2, 2},    {2.1, 5},   {5, 5},
                                             {7, 10},  {13, 20}, {21, 50},  {99, 100}, {101, 200}, {4000, 5000}};
  for (const auto& [apart, step] : kSteps) CHECK(label_steps(100000, apart, from_1).step == step);
}

TEST_CASE("numbers from 1 are labelled at round ones, everything else from its first entry on") {
  CHECK(label_steps(100, 7, from_1).first == 9);  // "10"
  CHECK(label_steps(100, 1, from_1).first == 0);
  CHECK(label_steps(100, 7, from_0).first == 0);
  CHECK(label_steps(100, 7, [](Index) { return std::string("word"); }).first == 0);
}

TEST_CASE("where not even two labels have room there is one") {
  for (const Index count : {Index{1}, Index{3}, Index{7}, Index{40}}) {
    const LabelSteps steps = label_steps(count, 1e9, from_1);
    CHECK(steps.first < count);
    CHECK(steps.first + steps.step >= count);
  }
  CHECK(label_steps(0, 3, from_1).step == 1);
}
