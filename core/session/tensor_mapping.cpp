#include "core/session/tensor_mapping.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/session/json_reader.h"
#include "core/session/place_reader.h"

namespace qkv {

namespace {

// The kinds of source that the request allows: what the person names is part of it.
std::vector<InputKind> kinds_of(const Candidates& candidates) {
  const auto named = [&](std::initializer_list<Role> roles) {
    return std::ranges::any_of(roles, [&](Role role) { return candidates.is_named(role); });
  };
  const auto dropped = [&](Role role) {
    const auto found = candidates.request().tensors.find(role);
    return found != candidates.request().tensors.end() && found->second.empty();
  };
  if (candidates.request().kind) return {*candidates.request().kind};
  if (named({Role::kQ, Role::kK, Role::kV})) return {InputKind::kDirect};
  if (named({Role::kX, Role::kWq, Role::kWk, Role::kWv, Role::kBq, Role::kBk, Role::kBv})) {
    return {InputKind::kProjected};
  }
  if (named({Role::kAttn})) return {InputKind::kWeights};
  std::vector<InputKind> kinds = {InputKind::kProjected, InputKind::kDirect};
  // With one of q, k, v or x there, attn is a result beside inputs that are spelt differently.
  const auto is_there = [&](Role role) { return candidates.has(role) && !dropped(role); };
  if (std::ranges::none_of(std::vector{Role::kQ, Role::kK, Role::kV, Role::kX}, is_there)) {
    kinds.push_back(InputKind::kWeights);
  }
  return kinds;
}

std::vector<std::string> missing_roles(const Candidates& candidates, InputKind kind) {
  std::vector<std::string> missing;
  for (const Role role : needed_roles(kind)) {
    if (!candidates.has(role)) missing.emplace_back(role_key(role));
  }
  return missing;
}

// The kind of source that the person chose, or that the files come closer to.
InputKind meant_kind(const Candidates& candidates) {
  if (candidates.request().kind) return *candidates.request().kind;
  const bool has_direct = missing_roles(candidates, InputKind::kDirect).size() < 3;
  const bool has_projected = missing_roles(candidates, InputKind::kProjected).size() < 4;
  return !has_direct && has_projected ? InputKind::kProjected : InputKind::kDirect;
}

Error inputs_missing(const Candidates& candidates) {
  const std::string has = candidates.files().size() == 1 ? ": the file has " : ": the files have ";
  const InputKind kind = meant_kind(candidates);
  if (kind == InputKind::kWeights)
    return bad_input("no tensor is named attn or the like" + has + contents_of(candidates.files()));
  const std::vector<std::string> missing = missing_roles(candidates, kind);
  if (missing.empty()) {
    return bad_input("there are inputs of several layers or modules, but of none of them all" + has +
                     contents_of(candidates.files()));
  }
  const std::string needed = kind == InputKind::kProjected ? "x, wq, wk and wv"
                             : candidates.request().kind   ? "q, k and v"
                                                           : "q, k and v (or x, wq, wk and wv, or attn alone)";
  return bad_input("the inputs are arrays named " + needed + ", but " + joined(missing) +
                   (missing.size() == 1 ? " is" : " are") + " missing" + has + contents_of(candidates.files()));
}

// "encoder.layers.*.self_attn" is meant by "encoder"; all of them by nothing.
std::vector<AttentionPlace> in_module(std::vector<AttentionPlace> places, const std::optional<std::string>& module) {
  if (!module) return places;
  const auto exactly = [&](const AttentionPlace& place) { return place.module == *module; };
  const bool is_exact = std::ranges::any_of(places, exactly);
  std::erase_if(places, [&](const AttentionPlace& place) {
    return is_exact ? !exactly(place) : place.module.find(*module) == std::string::npos;
  });
  return places;
}

std::vector<std::string> modules_of(const std::vector<AttentionPlace>& places) {
  std::vector<std::string> modules;
  for (const AttentionPlace& place : places) {
    if (std::ranges::find(modules, place.module) == modules.end()) modules.push_back(place.module);
  }
  return modules;
}

std::string number_list(const std::vector<int>& numbers) {
  if (numbers.size() > 2 && numbers.back() - numbers.front() + 1 == std::ssize(numbers)) {
    return std::to_string(numbers.front()) + " … " + std::to_string(numbers.back());
  }
  std::vector<std::string> texts;
  for (const int number : numbers) texts.push_back(std::to_string(number));
  return joined(texts);
}

Interpretation interpret(const Candidates& candidates, const AttentionPlace& place, InputKind kind) {
  PlaceReader reader(candidates, place);
  switch (kind) {
    case InputKind::kProjected:
      read_projected(reader);
      break;
    case InputKind::kDirect:
      read_direct(reader);
      break;
    case InputKind::kWeights:
      read_given_weights(reader);
      break;
  }
  std::ranges::sort(reader.result().mapping.tensors, {}, &MappedTensor::role);
  return std::move(reader.result());
}

// The layers of the places, or an error where the one asked for is not among them.
std::optional<Error> keep_layer(std::vector<AttentionPlace>& places, const MappingRequest& request,
                                std::vector<int>& layers) {
  for (const AttentionPlace& place : places) {
    if (place.layer && std::ranges::find(layers, *place.layer) == layers.end()) layers.push_back(*place.layer);
  }
  if (!request.layer || layers.empty()) return std::nullopt;
  std::erase_if(places, [&](const AttentionPlace& place) { return place.layer && place.layer != request.layer; });
  if (!places.empty()) return std::nullopt;
  return bad_input("there is no layer " + std::to_string(*request.layer) +
                   (layers.size() == 1 ? ": the only one is " : ": the layers are ") + number_list(layers));
}

void count_layers_and_batches(const Interpretation& read, const AttentionPlace& place, const MappingRequest& request,
                              MappingProposal& proposal) {
  if (read.layers > 0) {
    proposal.layers.clear();
    for (int layer = 0; layer < static_cast<int>(std::min<std::uint64_t>(read.layers, 1 << 16)); ++layer) {
      proposal.layers.push_back(layer);
    }
    proposal.layer = request.layer.value_or(0);
  } else {
    proposal.layer = place.layer.value_or(0);
    if (proposal.layers.empty() && request.layer.value_or(0) > 0 && !proposal.error) {
      proposal.error = bad_input("there is no layer " + std::to_string(*request.layer) + ": no tensor has a layer");
    }
  }
  proposal.batches = static_cast<int>(std::clamp<std::uint64_t>(read.batches, 1, 1 << 30));
  proposal.batch = request.batch.value_or(0);
  if (proposal.batch >= proposal.batches && !proposal.error) {
    proposal.error =
        bad_input("there is no batch " + std::to_string(proposal.batch) + ": there " +
                  (proposal.batches == 1 ? "is only one" : "are 0 … " + std::to_string(proposal.batches - 1)));
  }
  std::string& part = proposal.mapping.part;
  if (proposal.layers.size() > 1) part = "layer " + std::to_string(proposal.layer);
  if (proposal.batches > 1) part += (part.empty() ? "batch " : ", batch ") + std::to_string(proposal.batch);
}

// The first layer that agrees with itself, else the first.
void fill(const Candidates& candidates, const std::vector<AttentionPlace>& places, InputKind kind,
          MappingProposal& proposal) {
  std::optional<Interpretation> best;
  AttentionPlace of_best;
  for (const AttentionPlace& place : places) {
    Interpretation read = interpret(candidates, place, kind);
    const bool is_good = !read.error;
    if (!best || is_good) {
      best = std::move(read);
      of_best = place;
    }
    if (is_good) break;
  }
  proposal.error = best->error;
  proposal.mapping = std::move(best->mapping);
  proposal.alternatives = std::move(best->alternatives);
  proposal.questions.insert(proposal.questions.end(), best->questions.begin(), best->questions.end());
  const MappingRequest& request = candidates.request();
  count_layers_and_batches(*best, of_best, request, proposal);
  if (request.layout && !best->used_layout && !proposal.error) {
    proposal.error = bad_input("the layout " + layout_text(*request.layout) +
                               " has an axis for none of the tensors: " + contents_of(candidates.files()));
  }
}

// "q=NAME,k=NAME": a comma ends a value only where the next key follows it, since names may hold commas.
struct KeyValue {
  Role role;
  std::string value;
  bool of_three = false;  // the key was one for three roles
};
Result<std::vector<KeyValue>> split_pairs(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, Role>, 3> kThrees = {
      {{"qkv", Role::kQ}, {"wqkv", Role::kWq}, {"bqkv", Role::kBq}}};
  const auto roles_of = [&](std::string_view key) -> std::vector<Role> {
    for (const auto& [name, first] : kThrees) {
      const auto at = static_cast<std::size_t>(first);
      if (name == key) return {kAllRoles[at], kAllRoles[at + 1], kAllRoles[at + 2]};
    }
    const std::optional<Role> role = role_from_key(key);
    return role ? std::vector{*role} : std::vector<Role>{};
  };
  std::vector<KeyValue> pairs;
  while (!text.empty()) {
    const std::size_t equals = text.find('=');
    const std::vector<Role> roles = roles_of(text.substr(0, equals));
    if (equals == std::string_view::npos || roles.empty()) {
      std::vector<std::string> keys;
      for (const Role role : kAllRoles) keys.emplace_back(role_key(role));
      return usage_error("\"" + std::string(text.substr(0, 60)) + "\" does not start with ROLE=, where ROLE is " +
                         joined(keys, " or ") + "; qkv, wqkv and bqkv are three at once");
    }
    text.remove_prefix(equals + 1);
    std::size_t end = text.find(',');
    while (end != std::string_view::npos) {
      const std::string_view rest = text.substr(end + 1);
      const std::size_t next = rest.find('=');
      if (next != std::string_view::npos && !roles_of(rest.substr(0, next)).empty()) break;
      end = text.find(',', end + 1);
    }
    for (const Role role : roles) pairs.push_back({role, std::string(text.substr(0, end)), roles.size() > 1});
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return pairs;
}

Result<int> whole_number(const std::string& text, int least, int most) {
  int number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem == std::errc() && end == text.data() + text.size() && number >= least && number <= most) return number;
  return usage_error("\"" + text + "\" is not a whole number from " + std::to_string(least) + " to " +
                     std::to_string(most));
}

}  // namespace

const MappedTensor* TensorMapping::find(Role role) const {
  const auto found = std::ranges::find(tensors, role, &MappedTensor::role);
  return found == tensors.end() ? nullptr : &*found;
}

InputKind kind_of(const TensorMapping& mapping) {
  if (mapping.find(Role::kX) != nullptr) return InputKind::kProjected;
  const bool is_weights = mapping.find(Role::kQ) == nullptr && mapping.find(Role::kAttn) != nullptr;
  return is_weights ? InputKind::kWeights : InputKind::kDirect;
}

MappingProposal propose_mapping(const TensorSet& files, const MappingRequest& request) {
  MappingProposal proposal;
  const Candidates candidates(files, request);
  if (candidates.error()) {
    proposal.error = candidates.error();
    return proposal;
  }
  std::vector<AttentionPlace> places;
  InputKind kind = InputKind::kDirect;
  for (const InputKind each : kinds_of(candidates)) {
    if (!places.empty()) break;
    places = candidates.places(each);
    kind = each;
  }
  proposal.kind = places.empty() ? meant_kind(candidates) : kind;
  if (places.empty()) {
    proposal.error = inputs_missing(candidates);
    return proposal;
  }
  proposal.modules = modules_of(places);
  places = in_module(std::move(places), request.module);
  const std::vector<std::string> modules = modules_of(places);
  if (places.empty()) {
    proposal.error =
        bad_input("there is no module \"" + *request.module + "\": the modules are " + joined(proposal.modules));
    return proposal;
  }
  if (modules.size() > 1) {
    MappingQuestion question{MappingQuestion::Kind::kModule, needed_roles(kind), "there are several attentions", {}};
    for (const std::string& module : modules) question.choices.push_back({module, ""});
    proposal.questions.push_back(std::move(question));
    std::erase_if(places, [&](const AttentionPlace& place) { return place.module != modules.front(); });
  }
  if (std::optional<Error> error = keep_layer(places, request, proposal.layers)) {
    proposal.error = std::move(error);
    return proposal;
  }
  fill(candidates, places, kind, proposal);
  return proposal;
}

Status read_map_text(std::string_view text, MappingRequest& request) {
  const Result<std::vector<KeyValue>> pairs = split_pairs(text);
  if (!pairs.ok()) return pairs.error();
  for (const auto& [role, value, of_three] : pairs.value()) {
    request.tensors[role] = value;
    std::erase(request.fused, role);
    if (of_three) request.fused.push_back(role);
  }
  return Done{};
}

Status read_layout_text(std::string_view text, MappingRequest& request) {
  const auto as_usage = [](const Error& error) { return usage_error(error.message); };
  if (text.find('=') == std::string_view::npos) {
    const Result<Layout> layout = parse_layout(text);
    if (!layout.ok()) return as_usage(layout.error());
    request.layout = layout.value();
    return Done{};
  }
  const Result<std::vector<KeyValue>> pairs = split_pairs(text);
  if (!pairs.ok()) return pairs.error();
  for (const auto& [role, value, of_three] : pairs.value()) {
    const Result<Layout> layout = parse_layout(value);
    if (!layout.ok()) return as_usage(layout.error());
    if (const Status fits = check_layout(role, layout.value()); !fits.ok()) return as_usage(fits.error());
    request.layouts[role] = layout.value();
  }
  return Done{};
}

Status answer(const MappingQuestion& question, const std::string& value, MappingRequest& request) {
  switch (question.kind) {
    case MappingQuestion::Kind::kTensor:
      return read_map_text(value, request);
    case MappingQuestion::Kind::kLayout:
      return read_layout_text(value, request);
    case MappingQuestion::Kind::kModule:
      request.module = value;
      return Done{};
    case MappingQuestion::Kind::kHeads:
    case MappingQuestion::Kind::kKvHeads: {
      const Result<int> heads = whole_number(value, 1, kMaxHeads);
      if (!heads.ok()) return heads.error();
      (question.kind == MappingQuestion::Kind::kHeads ? request.heads : request.kv_heads) = heads.value();
      return Done{};
    }
  }
  return Done{};
}

std::string question_text(const MappingQuestion& question) {
  constexpr std::size_t kShown = 8;
  std::vector<std::string> choices;
  for (const MappingQuestion::Choice& choice : question.choices) {
    if (choices.size() == kShown) {
      choices.push_back("others");
      break;
    }
    const std::string value = choice.value.empty() ? "\"\"" : choice.value;
    choices.push_back(value + (choice.meaning.empty() ? "" : " (" + choice.meaning + ")"));
  }
  return question.text + (choices.empty() ? "" : ": " + joined(choices, " or "));
}

}  // namespace qkv
