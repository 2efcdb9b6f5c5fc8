// X and the weights of Q, K and V: which axis of each is the input, how many heads there are, and the biases.
#include <algorithm>
#include <utility>

#include "core/session/place_reader.h"
#include "core/tensor_io/npy.h"

namespace qkv {

namespace {

struct Weights {
  Player player;
  std::vector<Layout> options;  // whose input is as wide as X
  Layout layout;
  CellMap map;
  std::string why;
};

bool is_fused(const Weights& weights) { return weights.player.who.reading.fused; }

// How weights of the tensor's axes may lie, whatever X is.
std::vector<Layout> layouts_by_rank(const Player& player, bool may_interleave) {
  std::vector<std::string_view> texts;
  if (player.who.reading.fused) {
    if (player.rank() == 2) texts = {"I(3O)", "(3O)I"};
    if (player.rank() == 2 && may_interleave) texts = {"I(3O)", "(3O)I", "I(H3D)", "(H3D)I"};
    if (player.rank() == 3 && player.shape()[0] == 3) texts = {"3IO", "3OI"};
  } else {
    if (player.rank() == 2) texts = {"IO", "OI"};
    if (player.rank() == 3) texts = {"HID", "IHD"};
  }
  std::vector<Layout> layouts;
  for (const std::string_view text : texts) layouts.push_back(layout_of(text));
  return layouts;
}

bool is_out_first(const Layout& layout) { return layout.axes.back() == "I"; }

bool is_interleaved(const Layout& layout) {
  return std::ranges::find(layout.axes, std::string("H3D")) != layout.axes.end();
}

// "x [N, d_model]": its layout and d_model.
std::optional<CellMap> add_x(PlaceReader& reader, const Player& x) {
  std::optional<Layout> layout = reader.given_layout(x);
  constexpr std::string_view kByRank[] = {"", "", "ND", "BND", "LBND"};
  if (!layout && x.rank() >= 2 && x.rank() <= 4) layout = layout_of(kByRank[x.rank()]);
  if (!layout) {
    reader.fail(bad_input(label(x) + " must be a matrix [tokens, d_model], with batch and layers before it"));
    return std::nullopt;
  }
  TensorReading read = reader.reading(std::move(*layout), 0, 0);
  std::optional<CellMap> map = reader.map_or_fail(x, read);
  if (!map) return std::nullopt;
  reader.add(x, std::move(read),
             std::to_string(map->rows.size()) + " tokens of " + std::to_string(map->cols.size()) + " numbers");
  return map;
}

// Heads of the evidence, and of q and k where the files hold what the projections gave.
struct HeadCounts {
  std::optional<int> heads, kv_heads;
  std::string what;
};
HeadCounts counts_beside(PlaceReader& reader, std::uint64_t tokens) {
  HeadCounts counts;
  for (const Role role : {Role::kQ, Role::kK}) {
    const std::optional<Player> player = reader.peek(role);
    if (!player || player->who.reading.fused || player->rank() < 3 || player->rank() > 4) continue;
    const std::uint64_t a = player->shape()[player->rank() - 3], b = player->shape()[player->rank() - 2];
    // Heads first, as in this program's files, where both could be the tokens.
    const std::uint64_t heads = b == tokens || a != tokens ? a : b;
    if (heads > static_cast<std::uint64_t>(kMaxHeads) || (a != tokens && b != tokens)) continue;
    (role == Role::kQ ? counts.heads : counts.kv_heads) = static_cast<int>(heads);
    if (role == Role::kQ) counts.what = label(*player);
  }
  if (counts.heads) return counts;
  for (const Evidence& evidence : reader.evidence()) {
    if (!evidence.heads || (evidence.nq && *evidence.nq != tokens)) continue;
    counts.heads = evidence.heads;
    counts.what = evidence.what;
    break;
  }
  return counts;
}

// The weights and the options for each, or an error.
class WeightsReader {
 public:
  WeightsReader(PlaceReader& reader, std::vector<Player> players, std::uint64_t tokens, std::uint64_t d_model)
      : reader_(reader), d_model_(d_model) {
    for (Player& player : players) all_.push_back({std::move(player), {}, {}, {}, {}});
    counts_ = counts_beside(reader_, tokens);
    if (reader_.request().heads) counts_.heads = reader_.request().heads, counts_.what = "the number asked for";
    if (reader_.request().kv_heads) counts_.kv_heads = reader_.request().kv_heads;
  }

  void read() {
    for (Weights& weights : all_) {
      if (!find_options(weights)) return;
    }
    for (std::size_t i = 0; i < all_.size(); ++i) orient(i);
    if (is_fused(all_[0])) count_fused_heads();
    for (Weights& weights : all_) {
      if (!map(weights)) return;
    }
    count_heads();
    for (Weights& weights : all_) {
      reader_.add(weights.player, reading(weights.layout), weights.why);
    }
    reader_.result().mapping.heads = heads_;
    reader_.result().mapping.kv_heads = kv_heads_;
    add_biases();
  }

  // H·d_v, of as many heads as there are of Q.
  std::uint64_t concat_width() const {
    const std::uint64_t width = all_[2].map.cols.size();
    if (kv_heads_ == 0) return width;
    return width / static_cast<std::uint64_t>(kv_heads_) * static_cast<std::uint64_t>(heads_);
  }

 private:
  // Fused weights are cut by the number of heads only where Q, K and V differ in it.
  TensorReading reading(const Layout& layout) const {
    const bool needs_heads = is_interleaved(layout) || (has_axis(layout, '3') && kv_heads_ != heads_);
    const bool joined_heads = has_axis(layout, 'H') && !has_axis(layout, '3');
    const bool counted = needs_heads || joined_heads;
    return reader_.reading(layout, counted ? heads_ : 0, counted ? kv_heads_ : 0);
  }

  bool takes_x(const Player& player, const Layout& layout) const {
    for (std::size_t axis = 0; axis < layout.axes.size(); ++axis) {
      if (layout.axes[axis] == "I") return player.shape()[axis] == d_model_;
    }
    return false;
  }

  bool find_options(Weights& weights) {
    const Player& player = weights.player;
    if (std::optional<Layout> given = reader_.given_layout(player)) {
      weights.options = {*given};
      weights.why = "as asked";
      return true;
    }
    const bool is_three = std::ranges::find(player.shape(), 3 * d_model_) != player.shape().end();
    const bool is_torch = player.who.reading.order == WeightOrder::kOutIn;
    const std::vector<Layout> layouts =
        layouts_by_rank(player, player.who.reading.may_interleave || (!is_three && is_torch));
    if (layouts.empty()) {
      reader_.fail(bad_input(label(player) + " must be a matrix [d_model, heads·d], or weights of each head"));
      return false;
    }
    std::ranges::copy_if(layouts, std::back_inserter(weights.options),
                         [&](const Layout& layout) { return takes_x(player, layout); });
    if (!weights.options.empty()) return true;
    reader_.fail(
        bad_input(label(player) + " has no axis of the " + std::to_string(d_model_) + " columns (d_model) that x has"));
    return false;
  }

  // Decides which axis is the input: by X's width, by the name, by the other weights, in this order.
  void orient(std::size_t index) {
    Weights& weights = all_[index];
    weights.layout = weights.options.front();
    if (weights.options.size() == 1) {
      if (weights.why.empty()) weights.why = "it takes the " + std::to_string(d_model_) + " columns of x";
      return;
    }
    const auto keep = [&](bool out_first) {
      std::erase_if(weights.options, [&](const Layout& layout) { return is_out_first(layout) != out_first; });
      weights.layout = weights.options.front();
    };
    const WeightOrder order = weights.player.who.reading.order;
    const auto sister = std::ranges::find_if(all_, [&](const Weights& other) { return other.options.size() == 1; });
    const bool is_of_heads = has_axis(weights.layout, 'H') && !is_fused(weights);
    if (is_of_heads) {
      weights.why = "weights of each head, heads first";
      if (order == WeightOrder::kUnknown) return ask_layout(index);
      // Flax writes kernels [in, heads, d].
      const bool is_kernel = weights.player.who.info->name.ends_with("kernel");
      weights.layout = weights.options[is_kernel ? 1 : 0];
    } else if (order != WeightOrder::kUnknown) {
      keep(order == WeightOrder::kOutIn);
      weights.why = "square, so read as its name says";
    } else if (sister != all_.end()) {
      keep(is_out_first(sister->options.front()));
      weights.why = "square, so read as " + sister->player.who.info->name;
    }
    if (weights.options.size() > 1 && !is_of_heads) ask_layout(index);
  }

  // Once for all three.
  void ask_layout(std::size_t index) {
    Weights& weights = all_[index];
    if (index > 0 && all_[index - 1].options.size() > 1) return;
    MappingQuestion question{MappingQuestion::Kind::kLayout, {Role::kWq, Role::kWk, Role::kWv}, "", {}};
    question.text = label(weights.player) + " may be read in several ways";
    for (const Layout& layout : weights.options) {
      question.choices.push_back({"wqkv=" + layout_text(layout), is_interleaved(layout)
                                                                     ? "q, k and v of each head together"
                                                                 : has_axis(layout, '3') ? "all of q, then k, then v"
                                                                 : has_axis(layout, 'H') ? "weights of each head"
                                                                 : is_out_first(layout) ? "y = x·Wᵀ, as torch.nn.Linear"
                                                                                        : "y = x·W"});
    }
    reader_.ask(std::move(question));
  }

  // The width that Q, K and V of one tensor have together.
  std::uint64_t fused_width() const {
    const Weights& weights = all_[0];
    for (std::size_t axis = 0; axis < weights.layout.axes.size(); ++axis) {
      if (weights.layout.axes[axis].size() > 1) return weights.player.shape()[axis];
    }
    return 3 * d_model_;
  }

  void count_fused_heads() {
    const std::uint64_t width = fused_width();
    if (!counts_.heads) {
      reader_.ask_heads(all_[0].player, width % 3 == 0 ? width / 3 : d_model_);
      heads_ = kv_heads_ = 1;
      return;
    }
    heads_ = *counts_.heads;
    kv_heads_ = counts_.kv_heads.value_or(heads_);
    if (counts_.kv_heads || width == 3 * d_model_) return;
    // Fewer heads of K and V, with heads as wide as X has room for; or a width of its own.
    MappingQuestion question{MappingQuestion::Kind::kKvHeads, {Role::kWk, Role::kWv}, "", {}};
    question.text = label(all_[0].player) + " is not three times as wide as x, so that K and V may have fewer heads";
    for (int kv = 1; kv <= heads_; ++kv) {
      const auto parts = static_cast<std::uint64_t>(heads_ + 2 * kv);
      if (heads_ % kv != 0 || width % parts != 0) continue;
      question.choices.push_back({std::to_string(kv), "d = " + std::to_string(width / parts)});
    }
    if (question.choices.empty()) return;
    kv_heads_ = std::stoi(question.choices.front().value);
    if (question.choices.size() > 1) reader_.ask(std::move(question));
  }

  bool map(Weights& weights) {
    std::optional<CellMap> map = reader_.map_or_fail(weights.player, reading(weights.layout));
    if (map) weights.map = std::move(*map);
    return map.has_value();
  }

  // Of weights that do not lie head by head.
  void count_heads() {
    if (heads_ > 0) return;
    const CellMap &q = all_[0].map, &k = all_[1].map;
    const bool own_names =
        std::ranges::all_of(all_, [](const Weights& weights) { return weights.player.who.reading.is_own_key; });
    if (q.heads > 0) {
      heads_ = q.heads;
      all_[0].why += ", " + std::to_string(heads_) + " heads";
    } else if (counts_.heads) {
      heads_ = *counts_.heads;
    } else if (own_names && q.cols.size() == k.cols.size()) {
      heads_ = 1;  // as this program's files: without q beside the weights there is one head
    } else {
      reader_.ask_heads(all_[0].player, q.cols.size());
      heads_ = reader_.result().questions.back().choices.empty()
                   ? 1
                   : std::stoi(reader_.result().questions.back().choices.front().value);
    }
    kv_heads_ = counts_.kv_heads.value_or(k.heads > 0 ? k.heads : heads_);
    // K narrower than Q has as many heads fewer.
    const std::uint64_t all = k.cols.size() * static_cast<std::uint64_t>(heads_);
    if (!counts_.kv_heads && k.heads == 0 && all % q.cols.size() == 0 && all >= q.cols.size()) {
      kv_heads_ = static_cast<int>(all / q.cols.size());
    }
  }

  void add_biases() {
    constexpr Role kBiases[] = {Role::kBq, Role::kBk, Role::kBv};
    for (std::size_t i = 0; i < 3; ++i) {
      const std::optional<Player> bias = reader_.choose(kBiases[i], /*exact=*/true);
      if (!bias) continue;
      Layout layout = bias_layout(*bias, all_[i]);
      const std::optional<Layout> given = reader_.given_layout(*bias);
      TensorReading read = reading(given.value_or(std::move(layout)));
      if (has_axis(read.layout, 'H') && !has_axis(read.layout, '3')) read.heads = read.kv_heads = 0;
      if (!reader_.map_or_fail(*bias, read)) return;
      reader_.add(*bias, std::move(read), "beside " + all_[i].player.who.info->name);
    }
  }

  // A bias lies as the outputs of its weights do.
  static Layout bias_layout(const Player& bias, const Weights& weights) {
    if (bias.who.reading.fused) {
      if (bias.rank() == 2) return layout_of("3O");
      return layout_of(is_interleaved(weights.layout) ? "(H3D)" : "(3O)");
    }
    if (bias.rank() != 2) return layout_of("O");
    return layout_of(has_axis(weights.layout, 'H') ? "HD" : "1O");
  }

  PlaceReader& reader_;
  std::uint64_t d_model_;
  std::vector<Weights> all_;
  HeadCounts counts_;
  int heads_ = 0, kv_heads_ = 0;
};

}  // namespace

void read_projected(PlaceReader& reader) {
  const std::optional<Player> x = reader.choose(Role::kX, /*exact=*/false);
  if (!x) return;
  std::vector<Player> weights;
  for (const Role role : {Role::kWq, Role::kWk, Role::kWv}) {
    const std::optional<Player> player = reader.choose(role, /*exact=*/true);
    if (!player) return;
    weights.push_back(*player);
  }
  const std::optional<CellMap> of_x = add_x(reader, *x);
  if (!of_x) return;
  WeightsReader weights_reader(reader, std::move(weights), of_x->rows.size(), of_x->cols.size());
  weights_reader.read();
  if (!reader.ok()) return;
  reader.add_output(weights_reader.concat_width());
  reader.add_score_bias(of_x->rows.size(), of_x->rows.size());
  reader.add_words(of_x->rows.size(), 0);
}

}  // namespace qkv
