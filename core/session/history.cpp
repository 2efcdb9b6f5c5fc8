#include "core/session/history.h"

#include <algorithm>
#include <set>

#include "core/attention/problem_inputs.h"

namespace qkv {
namespace {

// Tokens and the bookkeeping of a step have a bound of their own, so that a million steps that change
// no matrix, or steps of very long texts, do not grow without end.
constexpr std::size_t kMaxTextBytes = std::size_t{64} << 20;

template <class Visit>
void each_matrix(const Session& session, const Visit& visit) {
  for (const ProblemInput& input : inputs_of(session.problem)) {
    for (const SharedMatrix& matrix : input.matrices) visit(matrix);
  }
}

std::size_t matrix_bytes(const SharedMatrix& matrix) {
  return static_cast<std::size_t>(matrix->size()) * sizeof(float);
}

std::size_t text_bytes(const std::vector<std::string>& tokens) {
  std::size_t bytes = tokens.size() * sizeof(std::string);
  for (const std::string& token : tokens) bytes += token.size();
  return bytes;
}

// All that a step holds apart from the numbers of its matrices.
std::size_t overhead_bytes(const Session& session) {
  std::size_t bytes = sizeof(Session) + session.title.size() + session.note.size() + text_bytes(session.tokens) +
                      session.problem.options.key_valid.size() + session.problem.options.sink.size() * sizeof(float);
  if (session.key_tokens) bytes += text_bytes(*session.key_tokens);
  each_matrix(session, [&](const SharedMatrix&) { bytes += sizeof(SharedMatrix); });
  return bytes;
}

// `session` looked at as `view` says, as far as it can be.
Session seen_as(Session session, ViewSettings view) {
  session.view = std::move(view);
  session.view = fitting_view(session);
  return session;
}

}  // namespace

History::History(Session session, std::size_t max_bytes) : current_(std::move(session)), max_bytes_(max_bytes) {}

Status History::perform(const Action& action, std::uint64_t gesture) {
  const bool merges = gesture != 0 && redo_.empty() && !undo_.empty() && undo_.back().gesture == gesture;
  // Typing a sentence anew passes through half-typed ones: tokens that are there again at the end have kept their
  // numbers only if each state is made from the one before the typing began.
  const bool retypes = merges && std::holds_alternative<SetTokens>(action);
  Result<Session> result = qkv::apply(retypes ? before_typing() : current_, action);
  if (!result) return result.error();
  if (!makes_undo_step(action)) {
    current_ = std::move(result).value();
    return Done{};
  }
  while (!redo_.empty()) pop_back(redo_);
  if (!merges) push_back(undo_, {std::move(current_), describe(action), gesture, state_});
  current_ = std::move(result).value();
  state_ = next_state_++;
  trim();
  return Done{};
}

// The session before the newest step, split and looked at as now.
Session History::before_typing() const {
  Session session = undo_.back().session;
  session.split = current_.split;
  return seen_as(std::move(session), current_.view);
}

void History::undo() {
  if (can_undo()) step(undo_, redo_);
}

void History::redo() {
  if (can_redo()) step(redo_, undo_);
}

// Exchanges the current session for the last of `from`. A step that was undone is complete: nothing merges into it.
void History::step(std::deque<Step>& from, std::deque<Step>& to) {
  Step taken = pop_back(from);
  const ViewSettings view = current_.view;
  push_back(to, {std::move(current_), std::move(taken.label), 0, state_});
  current_ = seen_as(std::move(taken.session), view);
  state_ = taken.state;
  trim();
}

const std::string& History::undo_label() const { return undo_.back().label; }
const std::string& History::redo_label() const { return redo_.back().label; }

bool History::is_modified() const { return state_ != saved_state_; }
void History::mark_saved() { saved_state_ = state_; }

void History::reset(Session session) {
  undo_.clear();
  redo_.clear();
  held_.clear();
  held_bytes_ = text_bytes_ = 0;
  current_ = std::move(session);
  state_ = saved_state_ = next_state_++;
}

std::size_t History::bytes() const {
  std::set<const void*> counted;
  std::size_t shared = 0;
  each_matrix(current_, [&](const SharedMatrix& matrix) {
    if (held_.contains(matrix.storage()) && counted.insert(matrix.storage()).second) shared += matrix_bytes(matrix);
  });
  return held_bytes_ - shared;
}

void History::push_back(std::deque<Step>& steps, Step step) {
  each_matrix(step.session, [&](const SharedMatrix& matrix) {
    if (++held_[matrix.storage()] == 1) held_bytes_ += matrix_bytes(matrix);
  });
  text_bytes_ += overhead_bytes(step.session);
  steps.push_back(std::move(step));
}

void History::release(const Session& session) {
  each_matrix(session, [&](const SharedMatrix& matrix) {
    const auto held = held_.find(matrix.storage());
    if (--held->second > 0) return;
    held_.erase(held);
    held_bytes_ -= matrix_bytes(matrix);
  });
  text_bytes_ -= overhead_bytes(session);
}

History::Step History::pop_back(std::deque<Step>& steps) {
  Step step = std::move(steps.back());
  steps.pop_back();
  release(step.session);
  return step;
}

void History::pop_front(std::deque<Step>& steps) {
  release(steps.front().session);
  steps.pop_front();
}

void History::trim() {
  const auto is_over = [&] { return bytes() > max_bytes_ || text_bytes_ > kMaxTextBytes; };
  while (undo_.size() > 1 && is_over()) pop_front(undo_);
  while (redo_.size() > 1 && is_over()) pop_front(redo_);
}

}  // namespace qkv
