// The forward pass of problems whose N² matrices are too large to be held.
#pragma once

#include "core/attention/forward.h"

namespace qkv {

// Errors of all: kCancelled when `stop` became true; kUnsupported when memory runs out.

// A trace with Q, K, V and heads of which nothing is computed: source() reads any cell of it already.
Result<Trace> begin_streamed(const Problem& problem, const Shapes& shapes, const PassOptions& options);
// Gives every head its coarse picture, a fraction of a second each; then computes them all, `first_head` first. May be
// read meanwhile. False when stopped. `pool` is taken up for all that time.
bool sample_streamed(const Trace& trace, ThreadPool& pool, const StopFlag* stop, int first_head = 0);
bool refine_streamed(const Trace& trace, ThreadPool& pool, const StopFlag* stop, int first_head = 0);
// 0 … 1: how far the heads are.
double streamed_progress(const Trace& trace);
// A streamed trace whose heads are not all computed.
inline bool is_refining(const Trace& trace) { return !trace.streams.empty() && streamed_progress(trace) < 1; }
// The refined trace with heads_out, concat, out and all of the rows' statistics.
Result<Trace> finish_streamed(Trace trace, const PassOptions& options);

// All of them in turn.
Result<Trace> streamed_pass(const Problem& problem, const Shapes& shapes, const PassOptions& options);

}  // namespace qkv
