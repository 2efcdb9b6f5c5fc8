#include "core/base/sole_holder.h"

#include <doctest/doctest.h>

#include <thread>

using namespace qkv;

TEST_CASE("sole holder: alone, and only until somebody else holds it") {
  CHECK_FALSE(is_sole_holder(std::shared_ptr<int>()));
  const auto held = std::make_shared<int>(1);
  CHECK(is_sole_holder(held));
  {
    const std::shared_ptr<const int> other = held;
    CHECK_FALSE(is_sole_holder(held));
    CHECK_FALSE(is_sole_holder(other));
  }
  CHECK(is_sole_holder(held));
  CHECK(held.use_count() == 1);
}

// ThreadSanitizer sees the write below if nothing orders it after the read.
TEST_CASE("sole holder: what another thread read may be written once it has let go") {
  const auto held = std::make_shared<int>(0);
  for (int round = 0; round < 200; ++round) {
    int seen = -1;
    std::thread reader([&seen, other = held]() mutable {
      seen = *other;
      other.reset();
    });
    while (!is_sole_holder(held)) std::this_thread::yield();
    *held = round + 1;
    reader.join();
    CHECK(seen == round);
  }
}
