#include "core/base/thread_pool.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace qkv {
namespace {

// Looks at a flag before a thread goes to sleep: some 300 µs. A block of rows takes less, so that whoever is done first
// is not asleep when the others are.
constexpr int kSpins = 10000;

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

template <class Done>
void spin(const Done& done) {
  for (int i = 0; i < kSpins && !done(); ++i) pause();
}

struct Job {
  const std::function<void(std::ptrdiff_t, int)>* work = nullptr;
  const StopFlag* stop = nullptr;
  std::ptrdiff_t tasks = 0;
  std::atomic<std::ptrdiff_t> next = 0;

  // Takes tasks until there are none. False when stopped with tasks left.
  bool take_part(int worker) {
    while (true) {
      if (is_stopped(stop)) return next.load() >= tasks;
      const std::ptrdiff_t task = next.fetch_add(1);
      if (task >= tasks) return true;
      (*work)(task, worker);
    }
  }
};

}  // namespace

struct ThreadPool::Impl {
  std::vector<std::thread> helpers;
  std::mutex one_run;
  std::mutex mutex;
  std::condition_variable started, finished;
  Job* job = nullptr;
  std::atomic<unsigned> generation = 0;  // of `job`: a helper takes part in each once
  std::atomic<int> working = 0;          // both change under the mutex only
  bool quit = false;

  void help(int worker) {
    std::unique_lock lock(mutex);
    unsigned seen = 0;
    while (true) {
      lock.unlock();
      spin([&] { return generation.load(std::memory_order_relaxed) != seen; });
      lock.lock();
      started.wait(lock, [&] { return quit || (job != nullptr && generation != seen); });
      if (quit) return;
      seen = generation;
      Job* const mine = job;
      ++working;
      lock.unlock();
      mine->take_part(worker);
      lock.lock();
      if (--working == 0) finished.notify_all();
    }
  }
};

ThreadPool::ThreadPool(int threads) : impl_(std::make_unique<Impl>()) {
  const int wanted = threads > 0 ? threads : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  for (int worker = 1; worker < wanted; ++worker) {
    impl_->helpers.emplace_back([impl = impl_.get(), worker] { impl->help(worker); });
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::scoped_lock lock(impl_->one_run, impl_->mutex);
    impl_->quit = true;
  }
  impl_->started.notify_all();
  for (std::thread& helper : impl_->helpers) helper.join();
}

int ThreadPool::threads() const { return static_cast<int>(impl_->helpers.size()) + 1; }

bool ThreadPool::run(std::ptrdiff_t tasks, const std::function<void(std::ptrdiff_t, int)>& work, const StopFlag* stop) {
  const std::scoped_lock one(impl_->one_run);
  Job job;
  job.work = &work;
  job.stop = stop;
  job.tasks = tasks;
  const bool shared = !impl_->helpers.empty() && tasks > 1;
  if (shared) {
    {
      const std::scoped_lock lock(impl_->mutex);
      impl_->job = &job;
      ++impl_->generation;
    }
    impl_->started.notify_all();
  }
  const bool complete = job.take_part(0);
  if (shared) {
    spin([&] { return impl_->working.load(std::memory_order_relaxed) == 0; });
    std::unique_lock lock(impl_->mutex);
    impl_->job = nullptr;  // a helper that wakes from here on finds nothing
    impl_->finished.wait(lock, [&] { return impl_->working == 0; });
  }
  return complete;
}

}  // namespace qkv
