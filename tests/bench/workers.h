// Threads that take pieces of work by number.
#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace qkv::bench {

// What threads do between two calls: keep the processor, or sleep.
enum class Idle { kSpin, kSleep };

class Workers {
 public:
  // The caller is one of the `threads`. `on_start` runs on each of the others, first.
  explicit Workers(int threads, Idle idle = Idle::kSpin, std::function<void()> on_start = {});
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  int threads() const { return static_cast<int>(others_.size()) + 1; }
  // work(index, worker) once for every index below `count`; returns when all are done.
  void for_each(int count, const std::function<void(int index, int worker)>& work);

 private:
  void serve(int worker);
  void take(int worker);

  Idle idle_;
  std::function<void()> on_start_;
  const std::function<void(int, int)>* work_ = nullptr;
  int count_ = 0;
  std::atomic<int> next_{0}, busy_{0};
  std::atomic<unsigned> round_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> others_;
};

}  // namespace qkv::bench
