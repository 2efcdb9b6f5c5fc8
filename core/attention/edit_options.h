// What a change of the attention options touches. Part of update().
#pragma once

#include <vector>

#include "core/attention/source.h"

namespace qkv {

struct OptionsEdit {
  bool any = false;         // the options differ
  bool positions = false;   // the rope: Q and K are turned anew
  bool all_rows = false;    // scale, softcap or ALiBi, or all positions: the softmax of every row is another
  std::vector<Index> rows;  // queries that see other keys by causal or window, or whose row of the bias differs
  std::vector<Index> keys;  // that key_valid now hides, or now shows
  bool sink = false;        // logits in the denominator
};

// Equal shapes. A bias that comes or goes counts where it is not 0.
OptionsEdit compare_options(const AttentionOptions& before, const AttentionOptions& after, const Shapes& shapes);

// Whether `key` is none of the hidden ones.
inline bool is_valid_key(const AttentionOptions& options, Index key) {
  return options.key_valid.empty() || options.key_valid[static_cast<std::size_t>(key)] != 0;
}

}  // namespace qkv
