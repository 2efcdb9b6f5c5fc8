// Tensors mapped onto the roles of a session: proposed from names and shapes, settled by a person, applied.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/session/session.h"
#include "core/session/tensor_layout.h"
#include "core/tensor_io/tensor_file.h"

namespace qkv {

// The files that a session is made of, most often one.
struct NamedTensors {
  std::string name;  // of the file, for messages; its stem may say the layer ("weights_layer1")
  TensorFile file;
  std::filesystem::path path = {};         // absolute; empty where there is no file to go back to
  std::vector<std::string> bfloat16 = {};  // of its tensors: 16-bit unsigned integers that are read as bfloat16
};
using TensorSet = std::vector<NamedTensors>;

// Which tensor plays a role, and how it is read.
struct MappedTensor {
  Role role = Role::kQ;
  std::size_t file = 0;  // index in the set
  std::string name;
  TensorReading reading;
  std::string why;  // one short sentence: how it was found
};

struct TensorMapping {
  std::vector<MappedTensor> tensors;  // at most one a role, in the order of kAllRoles
  int heads = 0, kv_heads = 0;        // of a projected source, which tensors alone do not say; else 0
  std::string part;                   // "layer 3, batch 0" where the files hold more than one; for the title

  const MappedTensor* find(Role role) const;
};

enum class InputKind { kProjected, kDirect, kWeights };

// The kind of source that it makes.
InputKind kind_of(const TensorMapping& mapping);

// What the person says of a mapping; everything else is proposed.
struct MappingRequest {
  std::optional<InputKind> kind;  // else of what is named, or of what is there
  // "NAME", or "FILE:NAME" where two files have one; empty: nothing plays the role.
  std::map<Role, std::string> tensors;
  std::vector<Role> fused;       // that take their third of a tensor of all three, where its name does not say so
  std::optional<Layout> layout;  // of every tensor that it can be of
  std::map<Role, Layout> layouts;
  std::optional<int> heads, kv_heads;
  std::optional<int> layer, batch;
  std::optional<std::string> module;  // part of the path before the names ("decoder", "self_attn")
};

// What is not clear from names and shapes, with the ways to settle it.
struct MappingQuestion {
  enum class Kind { kTensor, kLayout, kHeads, kKvHeads, kModule };
  struct Choice {
    std::string value;    // as read_map_text or read_layout_text take it, a number of heads, or a module
    std::string meaning;  // may be empty
  };
  Kind kind = Kind::kLayout;
  std::vector<Role> roles;  // that it is about
  std::string text;         // one sentence
  std::vector<Choice> choices;
};

struct MappingProposal {
  InputKind kind = InputKind::kDirect;     // of the mapping; what the files come closest to where there is an error
  TensorMapping mapping;                   // with the first choice of every question
  std::vector<MappingQuestion> questions;  // empty: the mapping may be applied at once
  std::optional<Error> error;              // why there is no session in these files, questions aside
  std::vector<int> layers;                 // that there are to choose from, and the one proposed
  int layer = 0;
  int batches = 1, batch = 0;
  std::vector<std::string> modules;
  // Other tensors that a role could be played by.
  std::map<Role, std::vector<std::string>> alternatives;
};

// Reads names and shapes only, and of tokens kept as bytes those.
MappingProposal propose_mapping(const TensorSet& files, const MappingRequest& request = {});

// "q=NAME,k=NAME" and "NHD" or "q=NHD,k=HND" into a request; qkv, wqkv and bqkv stand for three roles at once, and an
// empty name for no tensor. kUsage for unknown roles and letters.
Status read_map_text(std::string_view text, MappingRequest& request);
Status read_layout_text(std::string_view text, MappingRequest& request);

// Settles a question by one of its choices (or any value that the same field takes). kUsage for what is none.
Status answer(const MappingQuestion& question, const std::string& value, MappingRequest& request);

// "q may be read in several ways: HND (4 heads of 9 tokens) or NHD (9 heads of 4 tokens)".
std::string question_text(const MappingQuestion& question);

// The session of a mapping, which remembers it (tensor_origin.h). Errors name both sides and both numbers. `progress`
// expects all that is read at once.
Result<Session> apply_mapping(const TensorSet& files, const TensorMapping& mapping, std::string title,
                              ReadProgress* progress = nullptr);

// The cells of one tensor as a role reads them, and the bytes that it reads for them (0 where it will not).
Result<std::vector<SharedMatrix>> read_mapped(const TensorFile& file, Role role, const std::string& name,
                                              const TensorReading& reading, ReadProgress* progress = nullptr);
std::uint64_t bytes_of_mapped(const TensorFile& file, Role role, const std::string& name, const TensorReading& reading);
// The texts of one: strings, UTF-8 bytes with a newline between tokens, or numbers.
Result<std::vector<std::string>> read_words(const TensorFile& file, const std::string& name,
                                            const TensorReading& reading);

}  // namespace qkv
