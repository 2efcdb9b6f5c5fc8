#include "core/session/tensor_layout.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>
#include <optional>

#include "core/tensor_io/npy.h"

namespace qkv {

namespace {

constexpr std::string_view kLetters = "LB3HNMDIO1";
constexpr char kKeys = 'M';  // the second N

std::string in_quotes(std::string_view text) { return "\"" + std::string(text) + "\""; }

bool is_group_in_order(const std::string& axis) {
  constexpr std::array<std::string_view, 5> kGroups = {"HD", "DH", "3HD", "H3D", "3O"};
  return axis.size() == 1 || std::ranges::find(kGroups, axis) != kGroups.end();
}

// What a role's layout needs and may have besides.
struct Letters {
  std::string_view needed, allowed, example;
};

// Weights are [in, out] or, head by head, [in, H, d]; so the letters come in two sets.
std::vector<Letters> letters_of(Role role) {
  if (role == Role::kBo) return {{"O", "L1", "O, LO"}};
  switch (form_of(role)) {
    case RoleForm::kHeads:
      return {{"ND", "LB3H1", "ND, HND, NHD, N(HD), BHND, BNHD, N(3HD)"}};
    case RoleForm::kRows:
      return {{"ND", "LB1", "ND, BND, LBND"}};
    case RoleForm::kWeights:
      return {{"IO", "L31", "IO, OI, I(3O), (3O)I, (H3D)I, HID, IHD"}, {"IHD", "L31", "IO, OI"}};
    case RoleForm::kConcat:
      return {{"IO", "L1", "IO, OI, HDO"}, {"HDO", "L1", "IO, OI"}};
    case RoleForm::kRow:
      return {{"O", "L31", "O, (3O), (H3D), HD"}, {"HD", "L31", "O"}};
    case RoleForm::kCells:
      return {{"NM", "LBH1", "NN, HNN, BHNN, LBHNN"}};
    case RoleForm::kOneCells:
      return {{"NM", "LB1", "NN, BNN"}};
    case RoleForm::kWords:
      return {{"N", "LB1", "N, BN"}};
  }
  return {};
}

std::string letters_in(const Layout& layout) {
  std::string all;
  for (const std::string& axis : layout.axes) all += axis;
  return all;
}

bool fits(const Letters& letters, const std::string& all) {
  const auto has = [&](char letter) { return all.find(letter) != std::string::npos; };
  const auto allowed = [&](char letter) {
    return (std::string(letters.needed) + std::string(letters.allowed)).find(letter) != std::string::npos;
  };
  return std::ranges::all_of(letters.needed, has) && std::ranges::all_of(all, allowed);
}

// The tensor taken apart along its axes.
class Mapper {
 public:
  Mapper(Role role, std::string_view name, std::span<const std::uint64_t> shape, const TensorReading& reading)
      : role_(role), name_(name), shape_(shape), reading_(reading), part_(place_among_three(role)) {}

  Result<CellMap> map() {
    if (const Status good = check_layout(role_, reading_.layout); !good.ok()) return good.error();
    const std::vector<std::string>& axes = reading_.layout.axes;
    if (shape_.size() != axes.size()) return wrong("has " + std::to_string(axes.size()) + " axes");
    if (std::ranges::find(shape_, 0u) != shape_.end()) return bad_input(described() + ": it is empty");
    heads_ = is_key_side(role_) ? reading_.kv_heads : reading_.heads;
    std::size_t first = take_leading();
    for (std::size_t axis = first; axis < axes.size() && !error_; ++axis) {
      if (axes[axis] == "H") set_heads(shape_[axis], axis);
    }
    for (std::size_t axis = first; axis < axes.size() && !error_; ++axis) take(axis);
    if (error_) return *error_;
    return finished();
  }

 private:
  using Offsets = std::vector<std::uint64_t>;

  std::string described() const { return in_quotes(name_) + " has the shape " + shape_text(shape_); }
  Error wrong(const std::string& what) const {
    return bad_input(described() + ", but " + std::string(role_key(role_)) + " as " + layout_text(reading_.layout) +
                     " " + what);
  }
  void fail(const std::string& what) {
    if (!error_) error_ = wrong(what);
  }

  // Axes of which one index is taken, as long as they stand in front: those are not even read.
  std::size_t take_leading() {
    std::size_t axis = 0;
    for (; axis + 1 < shape_.size() && !error_; ++axis) {
      const std::optional<std::uint64_t> index = fixed_index(axis);
      if (!index) break;
      map_.leading.push_back(*index);
    }
    return axis;
  }

  // The index of an axis that is not part of the matrices.
  std::optional<std::uint64_t> fixed_index(std::size_t axis) {
    const std::string& letters = reading_.layout.axes[axis];
    std::optional<std::uint64_t> index;
    if (letters == "L") index = reading_.layer;
    if (letters == "B") index = reading_.batch;
    if (letters == "1") index = 0;
    if (letters == "3") index = part_;
    if (letters == "3" && shape_[axis] != 3) fail("needs 3 on axis " + std::to_string(axis));
    if (letters == "1" && shape_[axis] != 1) fail("needs 1 on axis " + std::to_string(axis));
    if (index && *index >= shape_[axis]) {
      const std::string what = letters == "L" ? "layer " : "batch ";
      fail("has no " + what + std::to_string(*index) + ": there are 0 … " + std::to_string(shape_[axis] - 1));
    }
    return index;
  }

  void set_heads(std::uint64_t count, std::size_t axis) {
    constexpr std::uint64_t kMost = 1u << 16;
    if (count > kMost || (heads_ > 0 && count != static_cast<std::uint64_t>(heads_))) {
      fail("needs " + std::to_string(heads_ > 0 ? heads_ : static_cast<int>(kMost)) + " heads on axis " +
           std::to_string(axis));
    } else {
      heads_ = static_cast<int>(count);
    }
  }

  std::uint64_t stride_of(std::size_t axis) const {
    std::uint64_t stride = 1;
    for (std::size_t later = axis + 1; later < shape_.size(); ++later) stride *= shape_[later];
    return stride;
  }

  static Offsets steps(std::uint64_t count, std::uint64_t stride) {
    Offsets offsets(count);
    for (std::uint64_t i = 0; i < count; ++i) offsets[i] = i * stride;
    return offsets;
  }

  Offsets& offsets_of(char letter) { return offsets_[kLetters.find(letter)]; }

  void take(std::size_t axis) {
    const std::string& letters = reading_.layout.axes[axis];
    const std::uint64_t size = shape_[axis], stride = stride_of(axis);
    if (const std::optional<std::uint64_t> index = fixed_index(axis)) {
      base_ += *index * stride;
    } else if (letters.size() == 1) {
      offsets_of(letters[0]) = steps(size, stride);
    } else if (letters == "3O" && (reading_.heads == 0 || reading_.kv_heads == 0)) {
      take_thirds(size, stride);
    } else if (letters == "HD" || letters == "DH") {
      if (heads_ == 0) heads_ = reading_.heads;  // of keys and values as many as of queries
      if (!divides(heads_, size, axis)) return;
      const std::uint64_t d = size / static_cast<std::uint64_t>(heads_);
      const auto heads = static_cast<std::uint64_t>(heads_);
      offsets_of('H') = steps(heads, letters == "HD" ? d * stride : stride);
      offsets_of('D') = steps(d, letters == "HD" ? stride : heads * stride);
    } else {
      take_fused(letters, size, stride, axis);
    }
  }

  bool divides(int parts, std::uint64_t size, std::size_t axis) {
    if (parts <= 0) {
      fail("needs the number of heads");
    } else if (size % static_cast<std::uint64_t>(parts) != 0) {
      fail("needs a multiple of " + std::to_string(parts) + " on axis " + std::to_string(axis) + ": there are " +
           std::to_string(parts) + " heads in all");
    }
    return !error_;
  }

  // Q, K and V of equal width; how many heads they hold does not matter.
  void take_thirds(std::uint64_t size, std::uint64_t stride) {
    if (size % 3 != 0) return fail("needs three equal parts, of q, k and v");
    base_ += part_ * (size / 3) * stride;
    offsets_of('O') = steps(size / 3, stride);
  }

  // Q, K and V on one axis: side by side, or for each head of K and V its queries, its key, its value.
  void take_fused(const std::string& letters, std::uint64_t size, std::uint64_t stride, std::size_t axis) {
    const int kv = reading_.kv_heads > 0 ? reading_.kv_heads : reading_.heads;
    if (!divides(reading_.heads + 2 * kv, size, axis)) return;
    if (reading_.heads % kv != 0) return fail("needs the heads of q to be a multiple of those of k and v");
    const auto heads = static_cast<std::uint64_t>(reading_.heads), groups = static_cast<std::uint64_t>(kv);
    const std::uint64_t d = size / (heads + 2 * groups);
    const bool is_q = part_ == 0, is_v = part_ == 2;
    heads_ = is_q ? reading_.heads : kv;
    Offsets firsts;
    for (std::uint64_t h = 0; h < (is_q ? heads : groups); ++h) {
      const std::uint64_t queries = heads / groups;  // that share a key
      std::uint64_t slot = h;
      if (letters == "H3D") {
        slot = is_q ? h / queries * (queries + 2) + h % queries : h * (queries + 2) + queries + (is_v ? 1 : 0);
      } else if (!is_q) {
        slot = heads + (is_v ? groups : 0) + h;
      }
      firsts.push_back(slot * d * stride);
    }
    if (letters == "3O") {
      for (const std::uint64_t first : firsts) append_steps(offsets_of('O'), first, d, stride);
    } else {
      offsets_of('H') = firsts;
      offsets_of('D') = steps(d, stride);
    }
  }

  static void append_steps(Offsets& offsets, std::uint64_t first, std::uint64_t count, std::uint64_t stride) {
    for (std::uint64_t i = 0; i < count; ++i) offsets.push_back(first + i * stride);
  }

  // The offsets of every (head, number) pair, heads outermost.
  static Offsets side_by_side(const Offsets& heads, const Offsets& numbers) {
    if (heads.empty()) return numbers;
    Offsets all;
    for (const std::uint64_t head : heads) {
      for (const std::uint64_t number : numbers) all.push_back(head + number);
    }
    return all;
  }

  CellMap finished() {
    const auto columns = [&] {
      return has_axis(reading_.layout, 'O') ? offsets_of('O') : side_by_side(offsets_of('H'), offsets_of('D'));
    };
    map_.matrices = map_.rows = map_.cols = {0};
    switch (form_of(role_)) {
      case RoleForm::kHeads:
      case RoleForm::kCells:
        if (!offsets_of('H').empty()) map_.matrices = offsets_of('H');
        map_.rows = offsets_of('N');
        map_.cols = offsets_of(form_of(role_) == RoleForm::kHeads ? 'D' : kKeys);
        heads_ = static_cast<int>(map_.matrices.size());
        break;
      case RoleForm::kRows:
        map_.rows = offsets_of('N');
        map_.cols = offsets_of('D');
        break;
      case RoleForm::kOneCells:
        map_.rows = offsets_of('N');
        map_.cols = offsets_of(kKeys);
        break;
      case RoleForm::kWeights:
        map_.rows = offsets_of('I');
        map_.cols = columns();
        break;
      case RoleForm::kConcat:
        map_.rows = has_axis(reading_.layout, 'I') ? offsets_of('I') : side_by_side(offsets_of('H'), offsets_of('D'));
        map_.cols = offsets_of('O');
        break;
      case RoleForm::kRow:
        map_.cols = columns();
        break;
      case RoleForm::kWords:
        map_.rows = offsets_of('N');
        break;
    }
    for (std::uint64_t& first : map_.matrices) first += base_;
    map_.heads = heads_;
    return std::move(map_);
  }

  const Role role_;
  const std::string_view name_;
  const std::span<const std::uint64_t> shape_;
  const TensorReading& reading_;
  const std::uint64_t part_;
  std::array<Offsets, kLetters.size()> offsets_;  // of each index of a letter, in the order of kLetters
  std::uint64_t base_ = 0;
  int heads_ = 0;
  CellMap map_;
  std::optional<Error> error_;
};

}  // namespace

bool has_axis(const Layout& layout, char letter) { return letters_in(layout).find(letter) != std::string::npos; }

Result<Layout> parse_layout(std::string_view text) {
  const auto wrong = [&](const std::string& what) {
    return bad_input("the layout " + in_quotes(text.substr(0, 40)) + " " + what +
                     ": it is a letter for each axis, such as HND, NHD or N(HD)");
  };
  Layout layout;
  bool in_group = false;
  for (const char given : text) {
    if (given == '(' || given == ')') {
      const bool opens = given == '(';
      if (opens == in_group) return wrong("has a parenthesis too many");
      if (opens) layout.axes.emplace_back();
      if (!opens && layout.axes.back().empty()) return wrong("has empty parentheses");
      in_group = opens;
      continue;
    }
    char letter = static_cast<char>(std::toupper(static_cast<unsigned char>(given)));
    if (letter == 'N' && has_axis(layout, 'N')) letter = kKeys;
    if (kLetters.find(letter) == std::string_view::npos) {
      return wrong("has the letter " + in_quotes(std::string(1, given)) + ", which names no axis");
    }
    if (letter != '1' && has_axis(layout, letter))
      return wrong("has " + in_quotes(std::string(1, given)) + " too often");
    if (in_group) {
      layout.axes.back() += letter;
    } else {
      layout.axes.emplace_back(1, letter);
    }
  }
  if (in_group) return wrong("lacks a closing parenthesis");
  if (layout.empty()) return wrong("is empty");
  for (const std::string& axis : layout.axes) {
    if (!is_group_in_order(axis)) return wrong("has (" + axis + "), which is none of (HD), (DH), (3HD), (H3D), (3O)");
  }
  return layout;
}

std::string layout_text(const Layout& layout) {
  std::string text;
  for (const std::string& axis : layout.axes) text += axis.size() == 1 ? axis : "(" + axis + ")";
  std::ranges::replace(text, kKeys, 'N');
  return text;
}

Status check_layout(Role role, const Layout& layout) {
  const std::vector<Letters> sets = letters_of(role);
  const std::string all = letters_in(layout);
  if (std::ranges::any_of(sets, [&](const Letters& letters) { return fits(letters, all); })) return Done{};
  return bad_input("the layout " + layout_text(layout) + " is none of " + std::string(role_key(role)) +
                   ", which can be " + std::string(sets.front().example));
}

Result<CellMap> map_cells(Role role, std::string_view name, std::span<const std::uint64_t> shape,
                          const TensorReading& reading) {
  return Mapper(role, name, shape, reading).map();
}

}  // namespace qkv
