// Q, K and V as given: every way to read their shapes that agrees with itself, and which of them the file means.
#include <algorithm>
#include <set>
#include <utility>

#include "core/session/json_reader.h"
#include "core/session/place_reader.h"
#include "core/tensor_io/npy.h"

namespace qkv {

namespace {

// One way to read q, k and v.
struct Trial {
  std::vector<Layout> layouts;
  std::vector<TensorReading> readings;
  std::vector<CellMap> maps;
  std::optional<Error> error;
};

std::string counted(std::uint64_t count, const std::string& one, const std::string& more) {
  return std::to_string(count) + " " + (count == 1 ? one : more);
}

// "4 heads of 9 tokens".
std::string meaning(const CellMap& map) {
  return counted(map.matrices.size(), "head", "heads") + " of " + counted(map.rows.size(), "token", "tokens") +
         ", d = " + std::to_string(map.cols.size());
}

// Layouts of a tensor of q, k and v in one, whose axis of 3 tells itself.
std::vector<Layout> fused_layouts(const Player& player) {
  struct Option {
    std::size_t axis;
    std::string_view text;
  };
  constexpr Option kOptions[] = {{0, "3ND"},   {1, "N3D"},   {0, "3HND"},  {0, "3NHD"},  {1, "N3HD"},  {2, "NH3D"},
                                 {0, "3BHND"}, {0, "3BNHD"}, {1, "B3HND"}, {1, "B3NHD"}, {2, "BN3HD"}, {3, "BNH3D"}};
  std::vector<Layout> layouts;
  for (const Option& option : kOptions) {
    if (option.text.size() == player.rank() && player.shape()[option.axis] == 3) {
      layouts.push_back(layout_of(option.text));
    }
  }
  if (player.rank() > 4 || player.rank() < 2 || player.shape().back() % 3 != 0) return layouts;
  const std::string front = std::string("LBN").substr(4 - player.rank());
  layouts.push_back(layout_of(front + "(3HD)"));
  if (player.who.reading.may_interleave) layouts.push_back(layout_of(front + "(H3D)"));
  return layouts;
}

// The layouts that a tensor of this many axes may have, the one of this program first.
std::vector<Layout> head_layouts(PlaceReader& reader, const Player& player, const std::optional<int>& heads) {
  if (std::optional<Layout> given = reader.given_layout(player)) return {*given};
  if (player.who.reading.fused) return fused_layouts(player);
  const bool side_by_side = heads.value_or(1) > 1 || player.who.reading.is_unsure;
  switch (player.rank()) {
    case 2:
      if (!heads && side_by_side) return {layout_of("N(HD)")};
      if (side_by_side) return {layout_of("ND"), layout_of("N(HD)")};
      return {layout_of("ND")};
    case 3:
      if (side_by_side) return {layout_of("HND"), layout_of("NHD"), layout_of("BN(HD)")};
      if (heads) return {layout_of("HND"), layout_of("NHD"), layout_of("BND")};
      return {layout_of("HND"), layout_of("NHD")};
    case 4:
      if (side_by_side) return {layout_of("BHND"), layout_of("BNHD"), layout_of("LBN(HD)")};
      return {layout_of("BHND"), layout_of("BNHD")};
    case 5:
      return {layout_of("LBHND"), layout_of("LBNHD")};
    default:
      return {};
  }
}

// What contradicts itself among the three, if anything does.
std::optional<Error> contradiction(const std::vector<Player>& players, const Trial& trial,
                                   const MappingRequest& request) {
  const CellMap &q = trial.maps[0], &k = trial.maps[1], &v = trial.maps[2];
  const auto against = [&](std::size_t a, std::uint64_t of_a, std::size_t b, std::uint64_t of_b,
                           const std::string& what) {
    return bad_input(label(players[a]) + " as " + layout_text(trial.layouts[a]) + " has " + std::to_string(of_a) + " " +
                     what + ", but " + label(players[b]) + " as " + layout_text(trial.layouts[b]) + " has " +
                     std::to_string(of_b));
  };
  const auto not_as_given = [&](std::size_t a, const std::optional<int>& given) {
    return given && trial.maps[a].matrices.size() != static_cast<std::size_t>(*given);
  };
  for (const std::size_t a : {0, 1}) {
    if (!not_as_given(a, a == 0 ? request.heads : request.kv_heads)) continue;
    return bad_input(label(players[a]) + " as " + layout_text(trial.layouts[a]) + " has " +
                     counted(trial.maps[a].matrices.size(), "head", "heads") + ", not the " +
                     std::to_string(a == 0 ? *request.heads : *request.kv_heads) + " asked for");
  }
  if (k.cols.size() != q.cols.size()) {
    Error error = against(1, k.cols.size(), 0, q.cols.size(), "columns (d_k)");
    // Fewer heads of keys beside more of queries make a narrower k.
    const bool may_be_heads = !request.heads && q.matrices.size() == 1 && q.cols.size() % k.cols.size() == 0;
    if (may_be_heads) error.message += ": where several heads lie side by side, say how many q has (heads)";
    return error;
  }
  if (v.rows.size() != k.rows.size()) return against(2, v.rows.size(), 1, k.rows.size(), "rows, one for each key");
  if (v.matrices.size() != k.matrices.size()) return against(2, v.matrices.size(), 1, k.matrices.size(), "heads");
  if (q.matrices.size() % k.matrices.size() != 0) return against(0, q.matrices.size(), 1, k.matrices.size(), "heads");
  if (q.matrices.size() > static_cast<std::size_t>(kMaxHeads)) {
    return bad_input(label(players[0]) + " as " + layout_text(trial.layouts[0]) + " has " +
                     std::to_string(q.matrices.size()) + " heads: at most " + std::to_string(kMaxHeads) + " are read");
  }
  return std::nullopt;
}

// Heads of keys and values that lie side by side: their width over that of one head of q, where it divides.
int kv_heads_of(const PlaceReader& reader, const Player& player, const Layout& layout, const CellMap& q, int heads) {
  if (reader.request().kv_heads) return *reader.request().kv_heads;
  if (!has_axis(layout, 'H') || layout.axes.back().size() != 2 || player.rank() != layout.axes.size()) return 0;
  const std::uint64_t width = player.shape().back(), d = q.cols.size();
  const bool divides = player.role == Role::kK && width % d == 0;
  return divides ? static_cast<int>(width / d) : heads;
}

Trial try_layouts(const PlaceReader& reader, const std::vector<Player>& players, std::vector<Layout> layouts,
                  int heads) {
  Trial trial;
  trial.layouts = std::move(layouts);
  int kv_heads = reader.request().kv_heads.value_or(0);
  for (std::size_t i = 0; i < players.size(); ++i) {
    const Player& player = players[i];
    const Layout& layout = trial.layouts[i];
    if (i == 1 && kv_heads == 0 && !player.who.reading.fused) {
      kv_heads = kv_heads_of(reader, player, layout, trial.maps[0], heads);
    }
    const bool needs_heads = std::ranges::any_of(layout.axes, [](const std::string& axis) { return axis.size() > 1; });
    const int given = needs_heads ? heads : reader.request().heads.value_or(0);
    trial.readings.push_back(reader.reading(layout, given, needs_heads ? kv_heads : 0));
    Result<CellMap> map = map_cells(player.role, player.who.info->name, player.shape(), trial.readings.back());
    if (!map.ok()) {
      trial.error = map.error();
      return trial;
    }
    trial.maps.push_back(std::move(map).value());
  }
  trial.error = contradiction(players, trial, reader.request());
  return trial;
}

// Every choice of layouts; tensors alike in their axes are read alike unless the person says otherwise.
std::vector<Trial> all_trials(PlaceReader& reader, const std::vector<Player>& players,
                              const std::optional<int>& heads) {
  std::vector<std::vector<Layout>> options;
  for (const Player& player : players) options.push_back(head_layouts(reader, player, heads));
  const auto alike = [&](std::size_t a, std::size_t b) {
    const auto& given = reader.request().layouts;
    return players[a].rank() == players[b].rank() && !given.contains(players[a].role) &&
           !given.contains(players[b].role);
  };
  std::vector<Trial> trials;
  for (const Layout& q : options[0]) {
    for (const Layout& k : options[1]) {
      if (alike(0, 1) && k != q) continue;
      for (const Layout& v : options[2]) {
        if ((alike(0, 2) && v != q) || (alike(1, 2) && v != k)) continue;
        trials.push_back(try_layouts(reader, players, {q, k, v}, heads.value_or(1)));
      }
    }
  }
  return trials;
}

std::uint64_t batches_of(const Player& player, const Layout& layout) {
  const auto axis = std::ranges::find(layout.axes, std::string("B"));
  return axis == layout.axes.end() ? 1 : player.shape()[static_cast<std::size_t>(axis - layout.axes.begin())];
}

bool agrees(const std::vector<Player>& players, const Trial& trial, const Evidence& evidence) {
  const CellMap &q = trial.maps[0], &k = trial.maps[1], &v = trial.maps[2];
  if (evidence.nq && *evidence.nq != q.rows.size()) return false;
  if (evidence.nk && *evidence.nk != k.rows.size()) return false;
  if (evidence.heads && static_cast<std::size_t>(*evidence.heads) != q.matrices.size()) return false;
  if (evidence.batches && *evidence.batches != batches_of(players[0], trial.layouts[0])) return false;
  const std::vector<std::uint64_t>& widths = evidence.concat_widths;
  return widths.empty() || std::ranges::find(widths, q.matrices.size() * v.cols.size()) != widths.end();
}

// Drops the trials that other tensors contradict, and says which tensor decided. A tensor that contradicts all of
// them decides nothing.
std::string keep_those_that_agree(const std::vector<Player>& players, std::vector<Trial>& trials,
                                  const std::vector<Evidence>& evidence) {
  std::string decided;
  for (const Evidence& each : evidence) {
    const auto kept = std::ranges::count_if(trials, [&](const Trial& trial) { return agrees(players, trial, each); });
    if (kept == 0 || kept == std::ssize(trials)) continue;
    std::erase_if(trials, [&](const Trial& trial) { return !agrees(players, trial, each); });
    decided = each.what;
  }
  return decided;
}

// q, k and v as this program writes them, [H, N, d], unless that would be more heads than tokens.
bool is_own_convention(const std::vector<Player>& players, const Trial& trial) {
  const auto is_own = [](const Player& player) { return player.who.reading.is_own_key && player.rank() <= 3; };
  const CellMap& q = trial.maps[0];
  return std::ranges::all_of(players, is_own) && q.matrices.size() <= q.rows.size();
}

// What answers a question of layouts: "NHD" where all three have it, else "q=NHD,k=ND,v=ND".
std::string layouts_value(const Trial& trial) {
  if (trial.layouts[0] == trial.layouts[1] && trial.layouts[1] == trial.layouts[2])
    return layout_text(trial.layouts[0]);
  return "q=" + layout_text(trial.layouts[0]) + ",k=" + layout_text(trial.layouts[1]) +
         ",v=" + layout_text(trial.layouts[2]);
}

void ask_layout(PlaceReader& reader, const std::vector<Player>& players, const std::vector<Trial>& trials) {
  MappingQuestion question{MappingQuestion::Kind::kLayout, {Role::kQ, Role::kK, Role::kV}, "", {}};
  const bool is_one = players[0].who.info == players[1].who.info;
  question.text =
      is_one ? label(players[0]) + " may be read in several ways"
             : joined({label(players[0]), label(players[1]), label(players[2])}) + " may be read in several ways";
  for (const Trial& trial : trials) question.choices.push_back({layouts_value(trial), meaning(trial.maps[0])});
  reader.ask(std::move(question));
}

void ask_heads_if_unknown(PlaceReader& reader, const std::vector<Player>& players, const Trial& trial,
                          const std::optional<int>& heads) {
  const std::string& last = trial.layouts[0].axes.back();
  if (heads || last.size() == 1) return;
  const std::uint64_t parts = last.find('3') == std::string::npos ? 1 : 3;
  reader.ask_heads(players[0], players[0].shape().back() / parts);
}

// Adds the trial that is meant, or the first of those to be asked about, and gives it.
const Trial& settle(PlaceReader& reader, const std::vector<Player>& players, const std::vector<Trial>& trials,
                    const std::string& decided) {
  std::size_t chosen = 0;
  std::string why = decided.empty() ? "" : ", as " + decided + " says";
  if (trials.size() > 1) {
    const bool is_hook = players[0].who.reading.is_tokens_first;
    const auto hook =
        std::ranges::find_if(trials, [](const Trial& trial) { return layout_text(trial.layouts[0]).ends_with("NHD"); });
    if (is_hook && hook != trials.end()) {
      chosen = static_cast<std::size_t>(hook - trials.begin());
      why = ", as hooks are written";
    } else if (is_own_convention(players, trials[0])) {
      why = ", as this program writes it";
    } else {
      ask_layout(reader, players, trials);
    }
  }
  const Trial& trial = trials[chosen];
  for (std::size_t i = 0; i < players.size(); ++i) {
    reader.add(players[i], trial.readings[i], meaning(trial.maps[i]) + why);
  }
  return trial;
}

Error no_layout(const Player& player) {
  return bad_input("\"" + player.who.info->name + "\" has the shape " + shape_text(player.shape()) +
                   ": it must be [heads, tokens, d] or [tokens, d], or another layout of these with batch and layers "
                   "before them");
}

// Q wider than K without a number of heads: several heads share one of K.
bool asks_for_heads(PlaceReader& reader, const std::vector<Player>& players, const std::optional<int>& heads) {
  const auto width = [&](std::size_t i) { return players[i].shape().back(); };
  const auto is_plain = [](const Player& player) { return player.rank() == 2 && !player.who.reading.fused; };
  if (heads || !std::ranges::all_of(players, is_plain) || !reader.request().layouts.empty()) return false;
  if (width(0) <= width(1) || width(0) % width(1) != 0 || width(2) != width(1)) return false;
  reader.ask_heads(players[0], width(0));
  std::erase_if(reader.result().questions.back().choices, [&](const MappingQuestion::Choice& choice) {
    const std::uint64_t d = width(0) / std::stoull(choice.value);
    return width(1) % d != 0;
  });
  return true;
}

}  // namespace

void read_direct(PlaceReader& reader) {
  std::vector<Player> players;
  for (const Role role : needed_roles(InputKind::kDirect)) {
    const std::optional<Player> player = reader.choose(role, /*exact=*/true);
    if (!player) return;
    players.push_back(*player);
  }
  const std::vector<Evidence> evidence = reader.evidence();
  std::optional<int> heads = reader.known_heads(evidence);
  const bool asked = asks_for_heads(reader, players, heads);
  if (asked && !reader.result().questions.back().choices.empty()) {
    heads = static_cast<int>(std::stoull(reader.result().questions.back().choices.front().value));
  }
  std::vector<Trial> trials = all_trials(reader, players, heads);
  for (const Player& player : players) {
    if (trials.empty() && head_layouts(reader, player, heads).empty()) return reader.fail(no_layout(player));
  }
  if (trials.empty()) return reader.fail(no_layout(players[0]));
  const Error first = trials.front().error.value_or(Error{});
  std::erase_if(trials, [](const Trial& trial) { return trial.error.has_value(); });
  if (trials.empty()) return reader.fail(first);
  const std::string decided = keep_those_that_agree(players, trials, evidence);
  if (!asked) ask_heads_if_unknown(reader, players, trials.front(), heads);

  const Trial& trial = settle(reader, players, trials, decided);
  const CellMap &q = trial.maps[0], &k = trial.maps[1], &v = trial.maps[2];
  reader.add_output(q.matrices.size() * v.cols.size());
  reader.add_score_bias(q.rows.size(), k.rows.size());
  reader.add_words(q.rows.size(), k.rows.size());
}

}  // namespace qkv
