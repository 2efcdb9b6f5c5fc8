// A computation off the UI thread: small requests at once, large ones on a worker, the newest request wins.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "core/attention/forward.h"
#include "core/base/no_throw.h"

namespace qkv {

template <class Request, class Product>
class NewestWorker {
 public:
  using Outcome = Result<Product>;
  // Hands over a product that is not final yet; the one returned replaces it.
  using Publish = std::function<void(Product)>;
  using Compute = std::function<Outcome(const Request&, const StopFlag*, const Publish&)>;

  // `wake` is called from the worker when a result is ready; may be empty.
  NewestWorker(Compute compute, std::function<void()> wake) : compute_(std::move(compute)), wake_(std::move(wake)) {}
  NewestWorker(const NewestWorker&) = delete;
  NewestWorker& operator=(const NewestWorker&) = delete;

  ~NewestWorker() {
    {
      const std::scoped_lock lock(mutex_);
      quit_ = true;
      stop_ = true;
    }
    changed_.notify_all();
    if (worker_.joinable()) worker_.join();
  }

  // Computes now where `small` says that this costs under a couple of milliseconds, else hands it to the worker. While
  // the worker is busy only the newest request waits; one that has run for long is cancelled for it.
  void request(Request request, bool small) {
    std::unique_lock lock(mutex_);
    stopped_ = false;
    if (small && !running_) {
      waiting_.reset();
      finished_ = compute(request, nullptr, [](Product) {});
      return;
    }
    waiting_ = std::move(request);
    if (running_ && (small || is_late())) stop_ = true;
    if (!worker_.joinable()) worker_ = std::thread([this] { work(); });
    lock.unlock();
    changed_.notify_all();
  }

  // Whether the newest request is being computed and has published something, with which it can be left.
  bool can_stop() const {
    const std::scoped_lock lock(mutex_);
    return has_published();
  }
  // Leaves it so, unless it is done before it sees that.
  void stop() {
    const std::scoped_lock lock(mutex_);
    if (!has_published()) return;
    stop_ = true;
    stopped_ = true;
  }
  // The newest request was left, and there is nothing more of it to take.
  bool is_stopped() const {
    const std::scoped_lock lock(mutex_);
    return stopped_ && !running_ && !waiting_ && !finished_;
  }

  // What was asked for counts no more: no result of it is handed out.
  void forget() {
    const std::scoped_lock lock(mutex_);
    waiting_.reset();
    finished_.reset();
    stopped_ = false;
    if (running_) stop_ = true;
    ++generation_;
  }

  // The newest finished result if there is one that the last call did not return.
  std::optional<Product> take_result() {
    const std::scoped_lock lock(mutex_);
    if (running_ && waiting_ && is_late()) stop_ = true;
    if (!finished_ || !finished_->ok()) return std::nullopt;
    std::optional<Product> result = std::move(*finished_).value();
    finished_.reset();
    return result;
  }

  // Why the newest finished request has no result.
  std::optional<Error> take_error() {
    const std::scoped_lock lock(mutex_);
    if (!finished_ || finished_->ok()) return std::nullopt;
    Error error = finished_->error();
    finished_.reset();
    return error;
  }

  bool busy() const {  // the newest request has no result yet
    const std::scoped_lock lock(mutex_);
    return running_ || waiting_;
  }
  void wait() {  // until it has
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !running_ && !waiting_; });
  }

 private:
  // A running computation older than this gives way to a newer request; a younger one is let finish, so that a drag
  // keeps showing results.
  static constexpr auto kPatience = std::chrono::milliseconds(400);
  // An exception must not leave the worker's thread.
  Outcome compute(const Request& request, const StopFlag* stop, const Publish& publish) const {
    return without_throwing("the result does not fit in memory: use fewer tokens or heads",
                            [&] { return compute_(request, stop, publish); });
  }

  bool has_published() const { return running_ && !waiting_ && published_ && !stop_; }
  bool is_late() const { return std::chrono::steady_clock::now() - started_ > kPatience; }

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return quit_ || waiting_; });
      if (quit_) return;
      const Request request = std::move(*waiting_);
      waiting_.reset();
      running_ = true;
      published_ = false;
      stop_ = false;
      const std::uint64_t generation = generation_;
      started_ = std::chrono::steady_clock::now();
      lock.unlock();
      Outcome outcome = compute(request, &stop_, [this, generation](Product product) {
        {
          const std::scoped_lock publishing(mutex_);
          if (!stop_ && generation == generation_) {
            finished_ = std::move(product);
            published_ = true;
          }
        }
        if (wake_) wake_();
      });
      lock.lock();
      running_ = false;
      const bool is_given_up = !outcome.ok() && outcome.error().code == ErrorCode::kCancelled;
      if (!is_given_up && generation == generation_) finished_ = std::move(outcome);
      changed_.notify_all();
      if (wake_) {
        lock.unlock();
        wake_();
        lock.lock();
      }
    }
  }

  Compute compute_;
  std::function<void()> wake_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Request> waiting_;
  std::optional<Outcome> finished_;
  bool running_ = false, quit_ = false;
  bool published_ = false;        // something of the running request
  bool stopped_ = false;          // the newest request, by stop()
  std::uint64_t generation_ = 0;  // counts forget()
  std::chrono::steady_clock::time_point started_;
  StopFlag stop_ = false;
  std::thread worker_;
};

}  // namespace qkv
