#include "core/session/mapping_candidates.h"

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "core/session/json_reader.h"
#include "core/tensor_io/npy.h"

namespace qkv {

namespace {

bool is_text(const Candidate& candidate) {
  const TensorInfo& info = *candidate.info;
  return info.problem.empty() && (info.is_text || (info.dtype == "uint8" && info.shape.size() == 1));
}

bool is_loosely_of(const Candidate& candidate, const AttentionPlace& place) {
  return candidate.is_named || !candidate.reading.layer || !place.layer || candidate.reading.layer == place.layer;
}

bool is_exactly_of(const Candidate& candidate, const AttentionPlace& place) {
  if (candidate.is_named) return true;
  const bool is_of_layer = !candidate.reading.layer || candidate.reading.layer == place.layer;
  return candidate.reading.module == place.module && is_of_layer;
}

// Characters that two paths have in common from the start: "encoder.*.attention." of self and output.
std::size_t common_start(const std::string& a, const std::string& b) {
  const auto [end, other] = std::ranges::mismatch(a, b);
  return static_cast<std::size_t>(end - a.begin());
}

// Larger is better.
auto rank_of(const Candidate& candidate, const AttentionPlace& place) {
  return std::tuple(candidate.is_named, !candidate.reading.is_weak, candidate.reading.is_own_key,
                    candidate.reading.layer == place.layer, candidate.reading.module == place.module,
                    common_start(candidate.reading.module, place.module), !candidate.reading.fused);
}

std::vector<Role> roles_of(const NameReading& reading) {
  if (!reading.fused) return {reading.role};
  const auto first = static_cast<std::size_t>(reading.role);
  return {kAllRoles[first], kAllRoles[first + 1], kAllRoles[first + 2]};
}

// The roles whose tensors make a place.
std::vector<Role> core_roles(InputKind kind) {
  std::vector<Role> roles = needed_roles(kind);
  std::erase(roles, Role::kX);
  return roles;
}

}  // namespace

std::vector<Role> needed_roles(InputKind kind) {
  switch (kind) {
    case InputKind::kProjected:
      return {Role::kX, Role::kWq, Role::kWk, Role::kWv};
    case InputKind::kDirect:
      return {Role::kQ, Role::kK, Role::kV};
    case InputKind::kWeights:
      return {Role::kAttn};
  }
  return {};
}

std::string contents_of(const TensorSet& files) {
  constexpr std::size_t kNamed = 8;
  std::vector<std::string> parts;
  std::size_t count = 0;
  for (const NamedTensors& file : files) {
    for (const TensorInfo& info : file.file.tensors()) {
      if (++count > kNamed) continue;
      parts.push_back(info.name + (info.dtype.empty() ? "" : " " + shape_text(info.shape)));
    }
  }
  if (parts.empty()) return "nothing";
  if (count > kNamed) parts.push_back(std::to_string(count - kNamed) + " more");
  return joined(parts);
}

std::optional<FoundTensor> find_tensor(const TensorSet& files, const std::string& name) {
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (const TensorInfo* info = files[i].file.find(name)) return FoundTensor{i, info};
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::filesystem::path path(files[i].name);
    for (const std::string& file : {files[i].name, path.filename().string(), path.stem().string()}) {
      if (!name.starts_with(file + ":")) continue;
      if (const TensorInfo* info = files[i].file.find(name.substr(file.size() + 1))) return FoundTensor{i, info};
    }
  }
  return std::nullopt;
}

std::string full_name(const TensorSet& files, std::size_t file, const std::string& name) {
  const auto has_it = [&](const NamedTensors& each) { return each.file.find(name) != nullptr; };
  return (std::ranges::count_if(files, has_it) > 1 ? files[file].name + ":" : "") + name;
}

Candidates::Candidates(const TensorSet& files, const MappingRequest& request) : files_(files), request_(request) {
  add_named();
  if (!error_) add_recognised();
}

bool Candidates::is_named(Role role) const {
  const auto found = request_.tensors.find(role);
  return found != request_.tensors.end() && !found->second.empty();
}

void Candidates::add(Role role, const Candidate& candidate) { all_[role].push_back(candidate); }

void Candidates::add_named() {
  for (const auto& [role, name] : request_.tensors) {
    if (name.empty()) continue;
    const std::optional<FoundTensor> tensor = find_tensor(files_, name);
    if (!tensor) {
      error_ = bad_input("there is no tensor \"" + name + "\" for " + std::string(role_key(role)) +
                         (files_.size() == 1 ? ": the file has " : ": the files have ") + contents_of(files_));
      return;
    }
    Candidate found{tensor->file, tensor->info, {}, true};
    const auto layout = request_.layouts.find(role);
    bool fused = std::ranges::find(request_.fused, role) != request_.fused.end() ||
                 (layout != request_.layouts.end() && has_axis(layout->second, '3'));
    // How weights of the name lie is worth knowing, whatever else the name says.
    for (const NameReading& reading : read_name(found.info->name)) {
      found.reading.order = reading.order;
      fused = fused || reading.fused;
    }
    found.reading.role = role;
    found.reading.is_own_key = found.info->name == role_key(role);
    found.reading.fused = fused;
    add(role, found);
  }
}

void Candidates::add_recognised() {
  std::vector<Candidate> unsure;
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const std::optional<int> file_layer = layer_of_file(std::filesystem::path(files_[i].name).stem().string());
    for (const TensorInfo& info : files_[i].file.tensors()) {
      for (NameReading& reading : read_name(info.name)) {
        if (!reading.layer) reading.layer = file_layer;
        const Candidate candidate{i, &info, reading, false};
        if (reading.is_unsure) {
          unsure.push_back(candidate);
          continue;
        }
        for (const Role role : roles_of(reading)) {
          const bool is_settled = request_.tensors.contains(role);
          if (!is_settled && is_plausible(candidate)) add(role, candidate);
        }
      }
    }
  }
  for (const Candidate& candidate : unsure) {
    if (!is_plausible(candidate)) continue;
    for (const Role role : roles_of(candidate.reading)) {
      if (!request_.tensors.contains(role)) add(role, candidate);
    }
  }
}

// Tokens are texts; numbers are no tokens unless a person says so. What may be projections or what they gave is taken
// for weights where X has the width for it, and for neither where it could be both.
bool Candidates::is_plausible(const Candidate& candidate) const {
  const Role role = candidate.reading.role;
  if (form_of(role) == RoleForm::kWords) return is_text(candidate);
  if (candidate.info->is_text) return false;
  // Whole numbers by the name of inputs are most often the numbers of tokens.
  const bool is_float = candidate.info->dtype.find("float") != std::string::npos;
  if (role == Role::kX && !is_float && !candidate.reading.is_own_key) return false;
  if (!candidate.reading.is_unsure) return true;
  const bool as_weights = form_of(role) == RoleForm::kWeights;
  const std::vector<std::uint64_t>& shape = candidate.info->shape;
  const auto xs = all_.find(Role::kX);
  if (xs == all_.end() || shape.size() != 2) return !as_weights;
  const auto is_of_x = [&](const Candidate& x) {
    return !x.info->shape.empty() && std::ranges::find(shape, x.info->shape.back()) != shape.end();
  };
  const auto is_of_tokens = [&](const Candidate& x) {
    return x.info->shape.size() >= 2 && x.info->shape[x.info->shape.size() - 2] == shape[0];
  };
  const bool may_be_weights = std::ranges::any_of(xs->second, is_of_x);
  const bool may_be_values = std::ranges::any_of(xs->second, is_of_tokens);
  return as_weights ? may_be_weights : may_be_values || !may_be_weights;
}

std::vector<Candidate> Candidates::of(Role role, const AttentionPlace& place, bool exact) const {
  std::vector<Candidate> fitting;
  const auto found = all_.find(role);
  if (found == all_.end()) return fitting;
  for (const Candidate& candidate : found->second) {
    if (exact ? is_exactly_of(candidate, place) : is_loosely_of(candidate, place)) fitting.push_back(candidate);
  }
  std::ranges::stable_sort(
      fitting, [&](const Candidate& a, const Candidate& b) { return rank_of(a, place) > rank_of(b, place); });
  return fitting;
}

bool Candidates::is_tie(const Candidate& a, const Candidate& b, const AttentionPlace& place) {
  return rank_of(a, place) == rank_of(b, place);
}

std::vector<AttentionPlace> Candidates::places(InputKind kind) const {
  std::vector<AttentionPlace> found;
  const auto add_place = [&](AttentionPlace place) {
    if (std::ranges::find(found, place) == found.end()) found.push_back(std::move(place));
  };
  const bool needs_x = kind == InputKind::kProjected;
  const auto expand = [&](const AttentionPlace& place) {
    // Weights without a layer go with the X of any layer.
    if (place.layer || !needs_x || !all_.contains(Role::kX)) return add_place(place);
    for (const Candidate& x : all_.at(Role::kX)) add_place({place.module, x.reading.layer});
  };
  for (const Role role : core_roles(kind)) {
    const auto candidates = all_.find(role);
    if (candidates == all_.end()) return {};
    for (const Candidate& candidate : candidates->second) {
      if (!candidate.is_named) add_place({candidate.reading.module, candidate.reading.layer});
    }
  }
  if (found.empty()) add_place({});  // every one was named
  const std::vector<AttentionPlace> of_cores = std::exchange(found, {});
  for (const AttentionPlace& place : of_cores) {
    const auto is_there = [&](Role role) { return !of(role, place, /*exact=*/true).empty(); };
    if (std::ranges::all_of(core_roles(kind), is_there)) expand(place);
  }
  if (needs_x) {
    std::erase_if(found, [&](const AttentionPlace& place) { return of(Role::kX, place, false).empty(); });
  }
  std::ranges::stable_sort(found, [](const AttentionPlace& a, const AttentionPlace& b) {
    return std::tie(a.layer, a.module) < std::tie(b.layer, b.module);
  });
  return found;
}

}  // namespace qkv
