// A session compared with somebody else's arrays, or with another session: what differs, and why.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/attention/causes.h"
#include "core/session/session.h"
#include "core/session/tensor_layout.h"
#include "core/tensor_io/npz.h"
#include "core/tensor_io/tensor_file.h"

namespace qkv {

// "theirs=attn", or "attentions[1,0]=attn" for a part of an array: the first indices of that part.
struct NamePair {
  std::string theirs;
  std::vector<std::uint64_t> leading = {};
  MatrixKind ours = MatrixKind::kAttn;
  std::optional<TensorReading> reading = {};  // what its axes are, where that is said; heads are ours
  bool is_required = true;                    // else it is left alone where it does not fit

  bool is_said_more() const { return reading.has_value() || !leading.empty(); }
};
// kUsage saying what is wrong with the text.
Result<NamePair> parse_name_pair(std::string_view text);
// "attentions[1,0]", as it stands before "=".
std::string part_text(const NamePair& pair);

// An array of theirs that was compared.
struct ComparedArray {
  std::string name;                  // of a part with its first indices: "attentions[1,0]"
  std::vector<std::uint64_t> shape;  // of what was read
  std::string reading;               // how its axes were read: "[H, N, d]"; empty for another session
};

// An array that was not, and why.
struct LeftAlone {
  std::string name, reason;
};

struct Comparison {
  std::vector<ComparedArray> arrays;
  std::vector<OtherMatrix> theirs;      // of each array
  std::vector<Difference> differences;  // of each array
  std::vector<LeftAlone> left_alone;
  std::vector<std::string> settings;  // of another session: what differs in tokens, options and shapes, a line each
  double tolerance = kFloat32Tolerance;
  Diagnosis diagnosis;

  bool equal() const;
};

// Arrays are found by the names of matrix_id.h, or by `names`. An array is read as [H, N, d], [N, H, d], [N, H·d], a
// matrix as the mean over the heads where it is one of [N, N]; axes of length 1 in front are dropped. Where two
// readings fit, the one with fewer wrong cells is taken. "out" of a session without W^O is heads_out. kBadInput where
// nothing can be compared, or a named array cannot.
Result<Comparison> compare_arrays(const Session& session, const TensorFile& file, const std::vector<NamePair>& names,
                                  double tolerance = kFloat32Tolerance, const StopFlag* stop = nullptr);

// Both computed in float64: every matrix that has the same shape in both.
Result<Comparison> compare_sessions(const Session& session, const Session& other, double tolerance = kFloat32Tolerance,
                                    const StopFlag* stop = nullptr);

// An array as float32, by head; one for a mean over the heads. `session` is the one that was compared; `cache`, its
// problem's, spares projections where several arrays are asked for. Of no use when `stop` became true.
std::vector<Matrix> our_shown(const Session& session, const Comparison& comparison, std::size_t array);
std::vector<Matrix> our_shown(InputCache& cache, const Comparison& comparison, std::size_t array,
                              const StopFlag* stop = nullptr);
std::vector<Matrix> their_shown(const Comparison& comparison, std::size_t array);

// The array to look at first: what most ask for and differs, else the first that does, else the weights.
std::size_t most_telling(const Comparison& comparison);
// The head to look at first: of the first wrong cell, else the first.
int most_telling_head(const Difference& difference);

// "diff_attn", … : theirs − ours as float32, in the shape of ours; NaN where NaN or Inf stand against something else.
std::vector<NamedArray> arrays_of(const Comparison& comparison);

// "head 1, row 3 (sat), column 5 (mat)": counted from 0, with the tokens.
std::string cell_words(const Session& session, const Difference& difference, const MatrixCell& cell);

}  // namespace qkv
