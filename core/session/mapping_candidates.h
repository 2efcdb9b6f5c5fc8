// The tensors that could play each role, and the places of a model where they are all there.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/session/tensor_mapping.h"
#include "core/session/tensor_names.h"

namespace qkv {

// A tensor that could play a role.
struct Candidate {
  std::size_t file = 0;
  const TensorInfo* info = nullptr;
  NameReading reading;
  bool is_named = false;  // by the person
};

// The tensors of one attention: a module of a model, and a layer of it where layers are counted in names.
struct AttentionPlace {
  std::string module;
  std::optional<int> layer;
  bool operator==(const AttentionPlace&) const = default;
};

// The roles without which there is no source of the kind.
std::vector<Role> needed_roles(InputKind kind);

// Refers to the set and the request, which must outlive it.
class Candidates {
 public:
  Candidates(const TensorSet& files, const MappingRequest& request);

  // That a tensor which the person named is not there.
  const std::optional<Error>& error() const { return error_; }
  const TensorSet& files() const { return files_; }
  const MappingRequest& request() const { return request_; }

  bool is_named(Role role) const;
  // Whether any tensor could play the role, wherever it is.
  bool has(Role role) const { return all_.contains(role) && !all_.at(role).empty(); }
  // Who could play the role in the place, best first. Q, K, V, weights and their biases must be of the place itself
  // (`exact`); others of its layer, or of none.
  std::vector<Candidate> of(Role role, const AttentionPlace& place, bool exact) const;
  // Whether the second of two candidates is as good as the first, so that a person has to choose.
  static bool is_tie(const Candidate& a, const Candidate& b, const AttentionPlace& place);
  // Every place that has all the roles which the kind of source needs, by layer and module.
  std::vector<AttentionPlace> places(InputKind kind) const;

 private:
  void add_named();
  void add_recognised();
  void add(Role role, const Candidate& candidate);
  bool is_plausible(const Candidate& candidate) const;

  const TensorSet& files_;
  const MappingRequest& request_;
  std::map<Role, std::vector<Candidate>> all_;
  std::optional<Error> error_;
};

// The tensor of "NAME", or of "FILE:NAME" with the file as it was given, without its folder, or without its ending.
struct FoundTensor {
  std::size_t file = 0;
  const TensorInfo* info = nullptr;
};
std::optional<FoundTensor> find_tensor(const TensorSet& files, const std::string& name);
// How find_tensor() is asked for a tensor: "NAME", with its file before it where others have the name too.
std::string full_name(const TensorSet& files, std::size_t file, const std::string& name);

// What the files hold, for a message: "q (4, 9, 8), k (4, 9, 8) and 3 more".
std::string contents_of(const TensorSet& files);

}  // namespace qkv
