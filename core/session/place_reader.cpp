#include "core/session/place_reader.h"

#include <algorithm>
#include <utility>

#include "core/tensor_io/npy.h"

namespace qkv {

namespace {

bool is_float(const TensorInfo& info) { return info.dtype.find("float") != std::string::npos; }

// The last sizes of a shape, from the end: 1 is the last.
std::uint64_t from_end(const Player& player, std::size_t place) { return player.shape()[player.rank() - place]; }

Evidence evidence_of_cells(const Player& player) {
  Evidence found{label(player), from_end(player, 2), from_end(player, 1)};
  if (player.rank() >= 3 && from_end(player, 3) <= static_cast<std::uint64_t>(kMaxHeads)) {
    found.heads = static_cast<int>(from_end(player, 3));
  }
  return found;
}

// Whether there is a batch axis before the `inner` last ones, and how long it is.
Evidence evidence_of_batches(const Player& player, std::size_t inner) {
  Evidence found{label(player)};
  found.batches = player.rank() > inner ? from_end(player, inner + 1) : 1;
  return found;
}

// Orders of weights with the two axes of a matrix.
Layout oriented(WeightOrder order) { return layout_of(order == WeightOrder::kOutIn ? "OI" : "IO"); }

}  // namespace

Layout layout_of(std::string_view text) { return parse_layout(text).value(); }

std::string label(const Player& player) {
  const std::string key(role_key(player.role));
  const std::string name = player.who.info->name == key ? key : key + " (" + player.who.info->name + ")";
  return name + " " + shape_text(player.shape());
}

PlaceReader::PlaceReader(const Candidates& candidates, AttentionPlace place)
    : candidates_(candidates), place_(std::move(place)) {}

// The other tensors of the same form, by their names as little as by its own.
void PlaceReader::add_sisters(const Candidate& candidate, MappingQuestion& question) const {
  const TensorSet& files = candidates_.files();
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (const TensorInfo& info : files[i].file.tensors()) {
      const bool is_like = info.problem.empty() && !info.is_text && info.shape.size() == candidate.info->shape.size();
      if (!is_like || &info == candidate.info) continue;
      question.choices.push_back({std::string(role_key(question.roles.front())) + "=" + full_name(files, i, info.name),
                                  shape_text(info.shape)});
    }
  }
}

std::optional<Player> PlaceReader::choose(Role role, bool exact) {
  const std::vector<Candidate> fitting = candidates_.of(role, place_, exact);
  if (fitting.empty()) return std::nullopt;
  const auto name_of = [&](const Candidate& candidate) {
    return full_name(candidates_.files(), candidate.file, candidate.info->name);
  };
  MappingQuestion question{MappingQuestion::Kind::kTensor, {role}, "", {}};
  for (const Candidate& candidate : fitting) {
    if (&candidate != &fitting.front()) result_.alternatives[role].push_back(name_of(candidate));
    if (!Candidates::is_tie(fitting.front(), candidate, place_)) continue;
    question.choices.push_back(
        {std::string(role_key(role)) + "=" + name_of(candidate), shape_text(candidate.info->shape)});
  }
  if (question.choices.size() > 1) {
    question.text =
        "several tensors could be " + std::string(role_key(role)) + ", the " + std::string(role_words(role));
    ask(std::move(question));
  } else if (fitting.front().reading.is_weak) {
    question.text = "a tensor named " + fitting.front().info->name + " may be " + std::string(role_key(role)) +
                    ", the " + std::string(role_words(role)) + ", or anything else";
    add_sisters(fitting.front(), question);
    ask(std::move(question));
  }
  return Player{role, fitting.front()};
}

std::optional<Player> PlaceReader::peek(Role role) const {
  const std::vector<Candidate> fitting = candidates_.of(role, place_, /*exact=*/false);
  return fitting.empty() ? std::nullopt : std::optional(Player{role, fitting.front()});
}

std::optional<Layout> PlaceReader::given_layout(const Player& player) {
  const auto own = request().layouts.find(player.role);
  if (own != request().layouts.end()) return own->second;
  const std::optional<Layout>& all = request().layout;
  if (!all || all->axes.size() != player.rank() || !check_layout(player.role, *all).ok()) return std::nullopt;
  // The three of one tensor are marked by a 3; a layout without it is of tensors that hold one.
  if (has_axis(*all, '3') != player.who.reading.fused) return std::nullopt;
  result_.used_layout = true;
  return all;
}

TensorReading PlaceReader::reading(Layout layout, int heads, int kv_heads) const {
  const auto index = [](const std::optional<int>& given, int otherwise) {
    return static_cast<std::uint64_t>(given.value_or(otherwise));
  };
  return {std::move(layout), heads, kv_heads, index(request().layer, 0), index(request().batch, 0)};
}

std::optional<CellMap> PlaceReader::map_or_fail(const Player& player, const TensorReading& reading) {
  Result<CellMap> map = map_cells(player.role, player.who.info->name, player.shape(), reading);
  if (map.ok()) return std::move(map).value();
  fail(map.error());
  return std::nullopt;
}

void PlaceReader::add(const Player& player, TensorReading reading, std::string why) {
  for (std::size_t axis = 0; axis < reading.layout.axes.size() && axis < player.rank(); ++axis) {
    if (reading.layout.axes[axis] == "L") result_.layers = std::max(result_.layers, player.shape()[axis]);
    if (reading.layout.axes[axis] == "B") result_.batches = std::max(result_.batches, player.shape()[axis]);
  }
  result_.mapping.tensors.push_back(
      {player.role, player.who.file, player.who.info->name, std::move(reading), std::move(why)});
}

void PlaceReader::fail(Error error) {
  if (!result_.error) result_.error = std::move(error);
}

void PlaceReader::ask(MappingQuestion question) { result_.questions.push_back(std::move(question)); }

void PlaceReader::ask_heads(const Player& player, std::uint64_t width) {
  MappingQuestion question{MappingQuestion::Kind::kHeads, {player.role}, "", {}};
  question.text = label(player) + " holds all heads side by side, but not how many there are";
  // Sizes of a head in use, largest first; any other number of heads may be given too.
  for (const std::uint64_t d : {256, 128, 96, 80, 64, 48, 32, 16, 8, 4, 2, 1}) {
    if (width % d != 0 || width / d > static_cast<std::uint64_t>(kMaxHeads) || question.choices.size() == 6) continue;
    question.choices.push_back({std::to_string(width / d), "d = " + std::to_string(d)});
  }
  ask(std::move(question));
}

std::vector<Evidence> PlaceReader::evidence() {
  std::vector<Evidence> all;
  for (const Role role : {Role::kAttn, Role::kScores}) {
    const std::optional<Player> cells = peek(role);
    if (!cells || cells->rank() < 2) continue;
    all.push_back(evidence_of_cells(*cells));
    if (cells->rank() <= 4) all.push_back(evidence_of_batches(*cells, 3));
  }
  if (const std::optional<Player> tokens = peek(Role::kTokens)) {
    const Result<std::vector<std::string>> words =
        read_words(candidates_.files()[tokens->who.file].file, tokens->who.info->name, reading({}, 0, 0));
    if (words.ok()) all.push_back({label(*tokens), words.value().size()});
  }
  if (const std::optional<Player> x = peek(Role::kX); x && x->rank() >= 2) {
    all.push_back({label(*x), from_end(*x, 2)});
    if (x->rank() <= 3) all.push_back(evidence_of_batches(*x, 2));
  }
  if (const std::optional<Player> wo = peek(Role::kWo); wo && wo->rank() == 2) {
    all.push_back({label(*wo), {}, {}, {}, {}, {wo->shape()[0], wo->shape()[1]}});
  }
  return all;
}

std::optional<int> PlaceReader::known_heads(const std::vector<Evidence>& evidence) const {
  if (request().heads) return request().heads;
  for (const Evidence& each : evidence) {
    if (each.heads) return each.heads;
  }
  return std::nullopt;
}

void PlaceReader::add_words(std::uint64_t nq, std::uint64_t nk) {
  for (const Role role : {Role::kTokens, Role::kKeyTokens}) {
    if (role == Role::kKeyTokens && nk == 0 && !candidates_.is_named(role)) continue;
    const std::optional<Player> words = choose(role, /*exact=*/false);
    if (!words) continue;
    const std::optional<Layout> given = given_layout(*words);
    Layout layout = layout_of(words->rank() == 2 ? "BN" : words->rank() == 3 ? "LBN" : "N");
    add(*words, reading(given.value_or(std::move(layout)), 0, 0),
        "a token for each of " + std::to_string(role == Role::kTokens ? nq : nk));
  }
}

void PlaceReader::add_score_bias(std::uint64_t nq, std::uint64_t nk) {
  const std::optional<Player> bias = choose(Role::kBias, /*exact=*/false);
  if (!bias) return;
  const std::optional<Layout> given = given_layout(*bias);
  std::string ones(bias->rank() >= 2 ? bias->rank() - 2 : 0, '1');
  const TensorReading read = reading(given.value_or(layout_of(ones + "NN")), 0, 0);
  const Result<CellMap> map = map_cells(Role::kBias, bias->who.info->name, bias->shape(), read);
  if (!bias->who.is_named) {
    // A tensor of that name may be anything; as a bias of the scores it has their shape.
    const bool fits = map.ok() && map.value().rows.size() == nq && map.value().cols.size() == nk;
    if (!fits || !is_float(*bias->who.info)) return;
  } else if (!map.ok()) {
    return fail(map.error());
  }
  add(*bias, read, "a bias for each query and key");
}

void PlaceReader::add_output(std::uint64_t concat_width) {
  const std::optional<Player> wo = choose(Role::kWo, /*exact=*/false);
  if (!wo) return;
  std::optional<Layout> layout = given_layout(*wo);
  std::string why = "as asked";
  if (!layout && wo->rank() == 3) {
    layout = layout_of("HDO");
    why = "weights of each head";
  } else if (!layout) {
    const WeightOrder order = wo->who.reading.order;
    const bool fits_rows = wo->rank() == 2 && wo->shape()[0] == concat_width;
    const bool fits_cols = wo->rank() == 2 && wo->shape()[1] == concat_width;
    why = "it takes the " + std::to_string(concat_width) + " numbers of all heads";
    if (fits_rows && fits_cols && order == WeightOrder::kUnknown) {
      ask({MappingQuestion::Kind::kLayout,
           {Role::kWo},
           label(*wo) + " is square, so that its shape does not say which axis is the input",
           {{"wo=IO", "y = x·W"}, {"wo=OI", "y = x·Wᵀ, as torch.nn.Linear"}}});
    }
    if (fits_rows && fits_cols) why = "square, so read as its name says";
    layout = fits_rows == fits_cols ? oriented(order) : layout_of(fits_rows ? "IO" : "OI");
  }
  TensorReading read = reading(std::move(*layout), 0, 0);
  if (!map_or_fail(*wo, read)) return;
  add(*wo, std::move(read), why);

  const std::optional<Player> bo = choose(Role::kBo, /*exact=*/false);
  if (!bo) return;
  const std::optional<Layout> given = given_layout(*bo);
  read = reading(given.value_or(layout_of(bo->rank() == 2 ? "1O" : "O")), 0, 0);
  if (map_or_fail(*bo, read)) add(*bo, std::move(read), "beside " + wo->who.info->name);
}

void read_given_weights(PlaceReader& reader) {
  const std::optional<Player> attn = reader.choose(Role::kAttn, /*exact=*/true);
  if (!attn) return;
  constexpr std::string_view kByRank[] = {"", "", "NN", "HNN", "BHNN", "LBHNN"};
  std::optional<Layout> layout = reader.given_layout(*attn);
  if (!layout && attn->rank() == 4 && reader.request().layer && !reader.request().batch) layout = layout_of("LHNN");
  if (!layout && attn->rank() >= 2 && attn->rank() <= 5) layout = layout_of(kByRank[attn->rank()]);
  if (!layout) {
    return reader.fail(bad_input(label(*attn) + " must be [queries, keys], with heads, batch and layers before them"));
  }
  TensorReading read = reader.reading(std::move(*layout), 0, 0);
  const std::optional<CellMap> map = reader.map_or_fail(*attn, read);
  if (!map) return;
  const std::size_t heads = map->matrices.size();
  reader.add(*attn, std::move(read), "weights of " + std::to_string(heads) + (heads == 1 ? " head" : " heads"));
  reader.add_words(map->rows.size(), map->cols.size());
}

}  // namespace qkv
