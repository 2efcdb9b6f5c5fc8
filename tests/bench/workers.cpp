#include "tests/bench/workers.h"

#include <utility>

namespace qkv::bench {
namespace {

// Looks at a flag before a spinning thread gives up: some milliseconds.
constexpr int kSpins = 100000;

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

Workers::Workers(int threads, Idle idle, std::function<void()> on_start) : idle_(idle), on_start_(std::move(on_start)) {
  for (int worker = 1; worker < threads; ++worker) others_.emplace_back([this, worker] { serve(worker); });
}

Workers::~Workers() {
  stop_ = true;
  ++round_;
  round_.notify_all();
  for (std::thread& thread : others_) thread.join();
}

void Workers::serve(int worker) {
  if (on_start_) on_start_();
  for (unsigned seen = 0;; ++seen) {
    for (int i = 0; idle_ == Idle::kSpin && i < kSpins && round_.load(std::memory_order_acquire) == seen; ++i) pause();
    round_.wait(seen, std::memory_order_acquire);
    if (stop_) return;
    take(worker);
    busy_.fetch_sub(1, std::memory_order_release);
  }
}

void Workers::take(int worker) {
  for (int index = next_.fetch_add(1); index < count_; index = next_.fetch_add(1)) (*work_)(index, worker);
}

void Workers::for_each(int count, const std::function<void(int, int)>& work) {
  work_ = &work;
  count_ = count;
  next_ = 0;
  busy_ = static_cast<int>(others_.size());
  round_.fetch_add(1, std::memory_order_release);
  if (!others_.empty()) round_.notify_all();
  take(0);
  while (busy_.load(std::memory_order_acquire) != 0) pause();
}

}  // namespace qkv::bench
