// Threads that share out the parts of one computation, and can be told to stop.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>

namespace qkv {

// Set from another thread to make a running computation return early.
using StopFlag = std::atomic<bool>;

inline bool is_stopped(const StopFlag* stop) { return stop != nullptr && stop->load(std::memory_order_relaxed); }

// A fixed number of threads, asleep between computations.
class ThreadPool {
 public:
  // `threads` counts the thread that calls run(), so 1 starts none. 0 = as many as the processor has.
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();  // waits for what is running
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  // Calls work(task, worker) once for each task in [0, tasks), in any order, `worker` in [0, threads()) telling the
  // threads apart. Returns when all are done; false when `stop` became true before every task had started: tasks that
  // run are let finish, later ones are left out. One run() at a time: others wait. `work` must not throw, and must
  // not call run() of the same pool.
  bool run(std::ptrdiff_t tasks, const std::function<void(std::ptrdiff_t task, int worker)>& work,
           const StopFlag* stop = nullptr);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qkv
