// Computes traces off the UI thread: small sessions at once, large ones on a worker, the newest request wins.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/session/session.h"

namespace qkv {

class Engine {
 public:
  // `wake` is called from the worker when a result is ready; may be empty.
  explicit Engine(std::function<void()> wake);
  ~Engine();  // cancels and joins
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Computes now where that costs under a couple of milliseconds, else hands it to the worker and cancels what
  // it was doing for an older problem.
  void request(const Problem& problem);

  // The newest finished trace if there is one that the last call did not return.
  std::shared_ptr<const Trace> take_result();
  // Why the newest request has no result; cleared by the next request.
  const std::optional<Error>& error() const;
  bool busy() const;  // the newest request has no result yet
  void wait();        // until it has

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qkv
