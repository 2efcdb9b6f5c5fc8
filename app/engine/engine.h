// Computes traces off the UI thread: small sessions at once, large ones on a worker, the newest request wins.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "app/engine/digest.h"
#include "core/session/session.h"

namespace qkv {

// A session with everything computed from it. Immutable while anyone looks.
struct Computed {
  Session session;
  Trace trace;
  TraceDigest digest;
};

class Engine {
 public:
  // `wake` is called from the worker when a result is ready; may be empty. Sessions whose N² matrices would take more
  // than `most_held_bytes` are streamed: there is a result at once, that can be looked at, then one with a coarse
  // picture of every head, and one more when all is computed.
  explicit Engine(std::function<void()> wake, double most_held_bytes = kMostHeldBytes);
  ~Engine();  // cancels and joins
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Computes now where that costs a few milliseconds, else hands the session to the worker. While the worker is busy
  // only the newest request waits; one that has run for long is cancelled for it.
  void request(const Session& session);

  // A streamed pass can be stopped: its heads stay as far as they are. A request of the same problem goes on with them,
  // be it stopped or not.
  bool can_stop() const;
  void stop();
  bool is_stopped() const;  // and everything of the newest request was taken

  // Another session is opened: no result of those before is handed out any more.
  void forget();

  // Takes back a result that is no longer shown: the next request is an edit of it, in its memory, as soon as nobody
  // else holds it. Results that are too large to be held twice are let go.
  void recycle(std::shared_ptr<const Computed> shown);

  // The newest finished result if there is one that the last call did not return.
  std::shared_ptr<const Computed> take_result();
  // Why the newest finished request has no result.
  std::optional<Error> take_error();
  bool busy() const;  // the newest request has no final result yet
  void wait();        // until it has

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qkv
