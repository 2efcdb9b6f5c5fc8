// A reading of files in a thread of its own: how far it is, whether it shall go on, and what came of it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/no_throw.h"
#include "core/base/read_progress.h"

namespace qkv {

// Bytes to read from which nobody waits for the end: fewer take less than a tenth of a second.
inline constexpr std::uint64_t kLargeReading = std::uint64_t{32} << 20;

inline constexpr std::string_view kDoesNotFit =
    "it does not fit in memory: free some, or save a part of it and open that";

template <class T>
class Reading {
 public:
  using Read = std::function<Result<T>(ReadProgress*)>;

  // `wake` is called from the thread that reads, at the end; may be empty.
  explicit Reading(Read read, std::function<void()> wake = {})
      : thread_([this, read = std::move(read), wake = std::move(wake)] {
          result_ = without_throwing(kDoesNotFit, [&] { return read(&progress_); });
          done_ = true;
          done_.notify_all();
          if (wake) wake();
        }) {}
  ~Reading() { cancel(); }  // and waits for the end, some milliseconds
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

  const ReadProgress& progress() const { return progress_; }
  void cancel() { progress_.cancel(); }
  bool is_done() const { return done_; }

  // Waits for the end where little is to be read, which is known soon; true where it came.
  bool ends_at_once() const {
    constexpr std::chrono::milliseconds kStep{1}, kPatience{1000};  // a folder may be of another machine
    const auto end = std::chrono::steady_clock::now() + kPatience;
    const auto is_large = [&] { return progress_.total() >= kLargeReading; };
    while (!is_done() && !is_large() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(kStep);
    return is_done() && !is_large();
  }

  void wait() const { done_.wait(false); }

  // Why there is no result; nullptr where there is one, or not yet.
  const Error* error() const { return is_done() && !result_->ok() ? &result_->error() : nullptr; }
  // What came of it: once, when it is done.
  Result<T> take() { return std::move(*result_); }

 private:
  ReadProgress progress_;
  std::optional<Result<T>> result_;  // written before `done_`
  std::atomic<bool> done_ = false;
  std::jthread thread_;  // last: it ends before the rest goes
};

// One reading at a time: a newer one gives up the one before, whose end nobody waits for.
template <class T>
class NewestReading {
 public:
  // Reading<T>* of the one that counts, nullptr where there is none.
  Reading<T>* current() const { return current_.get(); }

  void start(std::unique_ptr<Reading<T>> reading) {
    give_up();
    current_ = std::move(reading);
  }
  void give_up() {
    std::erase_if(given_up_, [](const auto& reading) { return reading->is_done(); });
    if (current_ == nullptr) return;
    current_->cancel();
    given_up_.push_back(std::move(current_));
  }
  // What came of the current one, which is over with that.
  std::optional<Result<T>> take() {
    if (current_ == nullptr || !current_->is_done()) return std::nullopt;
    return std::exchange(current_, nullptr)->take();
  }
  // Of readings, given up or not, that have not ended yet.
  std::size_t threads() const {
    std::size_t count = current_ != nullptr && !current_->is_done() ? 1 : 0;
    for (const auto& reading : given_up_) count += reading->is_done() ? 0 : 1;
    return count;
  }

 private:
  std::unique_ptr<Reading<T>> current_;
  std::vector<std::unique_ptr<Reading<T>>> given_up_;
};

}  // namespace qkv
