// Where one cell comes from: its sum written out with the numbers that went into it.
#pragma once

#include <optional>
#include <vector>

#include "core/attention/forward.h"

namespace qkv {

// One product of a sum: left · right.
struct Term {
  Index index = 0;  // position along the summed axis: k of d_k, key j, column of concat, row of W
  double left = 0;
  double right = 0;
  double product() const { return left * right; }
};

// One key's part of a softmax row.
struct SoftmaxTerm {
  Index key = 0;
  double scaled = 0;
  double exponential = 0;  // exp(scaled − maximum), 0 where hidden
  double weight = 0;
  MaskReason mask = MaskReason::kVisible;
};

// What one head adds to a cell of the output.
struct HeadPart {
  int head = 0;
  double value = 0;  // Σ over the head's d_v columns of concat · W^O
};

// Everything is recomputed in float64 from Q, K, V (or X, W), so it is also the full-precision value.
// Which members are filled depends on the kind:
//   q k v (projected)  terms, bias         scores     terms, of the rotated q and k where there is a rope
//   scaled             scores, scale and the steps of ScaledSteps
//   alibi              alibi               bias       bias_value
//   attn               softmax, maximum, denominator, mask and, where there is one, the sink; given: nothing but the
//                      value
//   heads_out          terms (visible)     concat     head, column, terms of the heads_out cell
//   out                parts, bias         inputs     nothing but the value
struct Explanation {
  MatrixId id;
  Index row = 0, col = 0;
  double value = 0;  // float64
  float stored = 0;  // the float32 that the trace holds
  std::vector<Term> terms;
  std::vector<SoftmaxTerm> softmax;  // Nk entries
  std::vector<HeadPart> parts;       // H entries
  std::optional<double> bias;
  double scores = 0, scale = 0;
  double after_scale = 0;       // scores · scale
  double after_softcap = 0;     // after_scale where there is no softcap
  double alibi = 0;             // added next: −slope·|i − j|, 0 without ALiBi
  double bias_value = 0;        // added last: the cell of the options' bias, 0 without one
  double maximum = 0;           // of the visible scaled scores and the sink
  double denominator = 0;       // Σ of the exponentials, the sink's among them
  std::optional<double> sink;   // the head's sink logit
  double sink_exponential = 0;  // exp(sink − maximum)
  double sink_weight = 0;       // sink_exponential / denominator: what the row of weights lacks to 1
  MaskReason mask = MaskReason::kVisible;
  bool dead_row = false;
  int head = 0;      // of a concat cell
  Index column = 0;  // within that head
};

// nullopt where the trace has no such cell.
std::optional<Explanation> explain(const Trace& trace, MatrixId id, Index row, Index col);

// The float64 row of weights of a query, with what it is made of; empty where the weights are given.
std::vector<SoftmaxTerm> explain_softmax_row(const Trace& trace, int head, Index row, double* maximum = nullptr,
                                             double* denominator = nullptr);

}  // namespace qkv
