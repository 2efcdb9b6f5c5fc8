// A session for whose results there is no memory.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "tests/app/harness.h"

using namespace qkv;

namespace {

// Sanitizers end the program where memory is short.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kEndsWithoutMemory = true;
#elif defined(__has_feature)
constexpr bool kEndsWithoutMemory = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kEndsWithoutMemory = false;
#endif

// While it lives the process may take no more than `bytes` of memory beside what it has.
class MemoryLimit {
 public:
  explicit MemoryLimit(rlim_t bytes) {
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    REQUIRE(pages > 0);
    REQUIRE(::getrlimit(RLIMIT_AS, &before_) == 0);
    const rlimit less = {pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + bytes, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_AS, &less) == 0);
  }
  ~MemoryLimit() { ::setrlimit(RLIMIT_AS, &before_); }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  rlimit before_{};
};

// Its output has half a gigabyte, its inputs next to nothing.
Session with_large_output() {
  constexpr Index kTokens = 2048;
  Session session;
  for (Index i = 0; i < kTokens; ++i) session.tokens.push_back("t" + std::to_string(i));
  const Matrix narrow = Matrix::Ones(kTokens, 1);
  session.problem.source = DirectSource{{narrow}, {narrow}, {narrow}};
  session.problem.wo = SharedMatrix(Matrix::Ones(1, kMaxModelSize));
  return session;
}

}  // namespace

TEST_CASE("failed: where a first result has no memory nothing says that it is computed, and the next edit does") {
  if (kEndsWithoutMemory) {
    MESSAGE("skipped: a sanitizer ends the program where memory is short");
    return;
  }
  Harness h;
  const Session session = with_large_output();
  {
    const MemoryLimit limit(256 << 20);
    h.app().open(session, {});
    h.app().wait_for_results();
    h.frames(3);
  }
  REQUIRE(h.has("toast/0"));
  CHECK(h.has("failed/matrix/attn/1"));
  CHECK_FALSE(h.has("pending/matrix/attn/1"));
  h.key(Key::kC, true, true);  // the numbers cannot be copied: that is said
  CHECK(h.has("toast/1"));
  // With less to compute there are results again.
  Session smaller = session;
  smaller.problem.wo.reset();
  h.app().open(smaller, {});
  h.app().wait_for_results();
  h.frames(2);
  CHECK(h.has("matrix/attn/1"));
  CHECK_FALSE(h.has("failed/matrix/attn/1"));
}
