// Brings a computation up to date after an edit, redoing only what depends on it.
#pragma once

#include <vector>

#include "core/attention/forward.h"

namespace qkv {

// Query rows of a head.
struct ChangedRows {
  bool all = false;
  std::vector<Index> some;  // ascending, where not all
};

// What update() did.
struct UpdateReport {
  bool full = false;                 // the whole pass was done again
  std::vector<bool> same;            // H: nothing of this head changed; empty after a full pass
  std::vector<ChangedRows> weights;  // H: whose scores, scaled scores or weights did; empty after a full pass
  Index redone_rows = 0;             // rows of heads whose softmax was computed anew
};

// The trace of `edited`, made from that of another problem. Of the float32 path, an edit of
//   rows of Q      redoes these rows;
//   rows of K      redoes a column of the scores and rescales the rows; a row whose maximum moves is redone;
//   rows of V      adds the difference, weighed, to every row of O;
//   rows of X      does all three in every head; a weight matrix redoes the heads whose columns changed;
//   rows of B      redoes these rows in every head, and a mask those that see other keys;
//   key_valid      takes columns of the weights out or puts them in, and rescales the rows;
//   the sink       rescales the rows; where it is or was a row's maximum, the row is redone;
//   other options  redo every row, from the Q, K and V that are there;
//   W^O            redoes the output alone.
// Everything else, and all of the float64 path, is a full pass in the memory that the old trace had. Finds out itself
// what changed; matrices that share storage did not. Results are within the bound of a full pass, however many edits
// went before: outputs are kept to some 48 bits, and a row that loses more than half of what its rounding came from is
// redone. A row that is redone has the bits of a full pass. Errors as forward(); the old trace is gone then.
Result<Trace> update(Trace trace, const Problem& edited, const PassOptions& options = {},
                     UpdateReport* report = nullptr);

// What the edit of a trace takes; that of a full pass where it needs one. An estimate: W^O is left out, X touches every
// head.
struct UpdateCost {
  int heads = 0;     // that it touches
  double flops = 0;  // floating-point operations
};
UpdateCost estimated_cost(const Trace& trace, const Problem& edited);

}  // namespace qkv
