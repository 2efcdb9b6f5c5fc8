// What a tensor's name says: its role, its layer, and how weights of that name lie.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/session/tensor_role.h"

namespace qkv {

// How the two axes of weights lie, where the name says so.
enum class WeightOrder {
  kUnknown,
  kInOut,  // y = x·W: GPT-2's Conv1D, Flax kernels, this program's own files
  kOutIn,  // y = x·Wᵀ: torch.nn.Linear
};

// One way to read a name.
struct NameReading {
  Role role = Role::kQ;          // of a fused tensor the role of its first part
  bool fused = false;            // Q, K and V in one: plays the role and its two sisters
  bool is_own_key = false;       // "q", or "l0.q" of a layer: as this program names it
  bool is_unsure = false;        // "q_proj": what a projection gives, or its weights
  bool is_weak = false;          // "a", "weights": names that any other tensor may have too
  bool may_interleave = false;   // models of this name differ in whether each head's q, k and v lie together
  bool is_tokens_first = false;  // TransformerLens's hooks: [tokens, heads, d]
  WeightOrder order = WeightOrder::kUnknown;
  std::optional<int> layer = {};
  // The part before the name with "*" for the layer's number: "model.layers.*.self_attn".
  std::string module = {};
};

// Every reading of a name; none for names that say nothing. Letters count in any case.
std::vector<NameReading> read_name(std::string_view name);

// "layer 3" of a file's name: "weights_layer3".
std::optional<int> layer_of_file(std::string_view stem);

}  // namespace qkv
