// What the parts of the list of causes share.
#pragma once

#include <string>
#include <utility>

#include "core/attention/causes.h"

namespace qkv {

using Change = std::function<void(Altered&)>;

// What the causes of one problem are gathered from.
struct Listing {
  const Problem& problem;
  const Shapes& shapes;
  std::vector<Cause> causes = {};

  const AttentionOptions& options() const { return problem.options; }
  const ProjectedSource* projected() const { return std::get_if<ProjectedSource>(&problem.source); }
  void add(std::string id, std::string group, std::string name, std::string meaning, std::string fix, Change change) {
    causes.push_back(
        {std::move(id), std::move(group), std::move(name), std::move(meaning), std::move(fix), std::move(change)});
  }
};

// Mistakes in how Q, K, V and the output are made: positions, heads, who is who, weights and biases.
void add_rope(Listing& list);
void add_heads(Listing& list);
void add_roles(Listing& list);
void add_weights(Listing& list);

}  // namespace qkv
