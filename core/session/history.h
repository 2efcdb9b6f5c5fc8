// Undo and redo of a session, bounded in bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>

#include "core/session/action.h"

namespace qkv {

// Holds the current session and the steps around it. Steps are whole sessions that share the
// matrices they have in common, so undo is exact by construction.
class History {
 public:
  explicit History(Session session, std::size_t max_bytes = std::size_t{64} << 20);

  const Session& current() const { return current_; }

  // Applies and records. Actions with the same non-zero `gesture` as the step before become one step
  // (a drag, a run of typing); a run of SetTokens is worked out from the session before it. On error nothing changes.
  Status perform(const Action& action, std::uint64_t gesture = 0);

  bool can_undo() const { return !undo_.empty(); }
  bool can_redo() const { return !redo_.empty(); }
  void undo();  // view settings stay as they are
  void redo();
  const std::string& undo_label() const;  // of the step that undo() takes back; needs can_undo()
  const std::string& redo_label() const;

  // Whether the session differs from the one last marked as saved.
  bool is_modified() const;
  void mark_saved();

  // Starts over with another session: no steps, saved.
  void reset(Session session);

  // Bytes of the matrices that only undo or redo steps hold.
  std::size_t bytes() const;
  std::size_t steps() const { return undo_.size(); }

 private:
  struct Step {
    Session session;  // before the action for undo_, after it for redo_
    std::string label;
    std::uint64_t gesture = 0;
    std::uint64_t state = 0;  // identity of `session` for is_modified()
  };
  Session before_typing() const;
  void trim();
  void step(std::deque<Step>& from, std::deque<Step>& to);
  void push_back(std::deque<Step>& steps, Step step);
  Step pop_back(std::deque<Step>& steps);
  void pop_front(std::deque<Step>& steps);
  void release(const Session& session);

  Session current_;
  std::uint64_t state_ = 1, saved_state_ = 1, next_state_ = 2;
  std::deque<Step> undo_, redo_;
  std::size_t max_bytes_;

  // Kept as steps come and go, so that bytes() does not walk over all of them.
  std::unordered_map<const void*, std::size_t> held_;  // storage → how often the steps hold it
  std::size_t held_bytes_ = 0;                         // of those matrices, each once
  std::size_t text_bytes_ = 0;                         // tokens and bookkeeping of the steps
};

}  // namespace qkv
