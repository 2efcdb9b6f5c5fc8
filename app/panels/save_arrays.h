// Numbers and code out of the window: to the clipboard and to files.
#pragma once

#include <filesystem>
#include <string>

#include "app/panels/stage.h"
#include "core/session/code.h"

namespace qkv {

// Why numbers are not there that will be, or that could not be computed.
inline constexpr const char* kNotComputed =
    "These numbers could not be computed: the line at the bottom of the window says why";
inline constexpr const char* kStillComputed = "These numbers are still being computed: try again in a moment";
inline constexpr const char* kStoppedBefore =
    "These numbers are not there: their computation was stopped. Let it go on, in the line at the bottom of the window";
inline const char* why_missing(const StageInput& in) {
  return in.missing == Missing::kFailed    ? kNotComputed
         : in.missing == Missing::kStopped ? kStoppedBefore
                                           : kStillComputed;
}

// The matrix that a command means: of the cell in focus, else the weights of the head that is shown.
MatrixId meant_matrix(const StageInput& in, const StageState& state);

// All of that matrix as it is shown, as tab-separated text.
void copy_matrix(const StageInput& in, const StageState& state, ActionQueue& queue);
// The session as a script or a document; says why not where its numbers are too many for a text.
void copy_code(const StageInput& in, CodeKind kind, ActionQueue& queue);

// "the-worked-example-attn-1.csv", the head counted from 1 where there are several.
std::string matrix_file_name(const StageInput& in, MatrixId id);
// "the-worked-example.npz"
std::string arrays_file_name(const StageInput& in);

// What a file would hold: the words for a message after it was written, "3 × 3 numbers".
struct ArrayContent {
  Bytes bytes;
  std::string words;
};
// The matrix as its cells show it, by the name's end as .csv, .npy or .npz. `labels`: a .csv file has the tokens around
// the numbers.
Result<ArrayContent> matrix_content(const StageInput& in, MatrixId id, const std::filesystem::path& path, bool labels);
// Every matrix of the computation as .npz; of a streamed one those that are held.
Result<ArrayContent> all_content(const StageInput& in);

}  // namespace qkv
