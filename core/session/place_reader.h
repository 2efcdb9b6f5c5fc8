// How the tensors of one place are to be read, found out role by role.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "core/session/mapping_candidates.h"

namespace qkv {

// A tensor and the role that it plays.
struct Player {
  Role role = Role::kQ;
  Candidate who;
  std::span<const std::uint64_t> shape() const { return who.info->shape; }
  std::size_t rank() const { return who.info->shape.size(); }
};
// "wq (512, 256)", with the tensor's name where that is another.
std::string label(const Player& player);

// What a tensor beside the inputs says of them.
struct Evidence {
  std::string what;  // "attn (4, 9, 9)"
  std::optional<std::uint64_t> nq = {}, nk = {};
  std::optional<int> heads = {}, kv_heads = {};
  std::vector<std::uint64_t> concat_widths = {};  // one of which is H·d_v
  std::optional<std::uint64_t> batches = {};
};

// What came of a place. With an error or a question the mapping goes as far as it is clear.
struct Interpretation {
  TensorMapping mapping;
  std::vector<MappingQuestion> questions;
  std::optional<Error> error;
  std::map<Role, std::vector<std::string>> alternatives;
  std::uint64_t layers = 0, batches = 0;  // sizes of axes L and B; 0 = there is none
  bool used_layout = false;               // the request's layout of all tensors was one of a tensor
};

class PlaceReader {
 public:
  PlaceReader(const Candidates& candidates, AttentionPlace place);

  const MappingRequest& request() const { return candidates_.request(); }
  Interpretation& result() { return result_; }
  bool ok() const { return !result_.error; }

  // The best candidate for a role; asks where two are as good. `exact` as in Candidates::of.
  std::optional<Player> choose(Role role, bool exact);
  // The same without asking and remembering, for tensors that are only looked at.
  std::optional<Player> peek(Role role) const;
  // What the request says of the tensor's layout.
  std::optional<Layout> given_layout(const Player& player);
  TensorReading reading(Layout layout, int heads, int kv_heads) const;
  // Where the tensor's cells are, keeping the error.
  std::optional<CellMap> map_or_fail(const Player& player, const TensorReading& reading);

  void add(const Player& player, TensorReading reading, std::string why);
  void fail(Error error);
  void ask(MappingQuestion question);
  // Asks for the number of heads that `width` numbers of a token make.
  void ask_heads(const Player& player, std::uint64_t width);

  // Sizes that weights, scores and tokens beside the inputs tell.
  std::vector<Evidence> evidence();
  // Of the request, else of the evidence.
  std::optional<int> known_heads(const std::vector<Evidence>& evidence) const;

  // Tokens and a bias of the scores, where there are such for nq queries and nk keys. Keys that are the queries' own
  // tokens (nk = 0) have no names of their own.
  void add_words(std::uint64_t nq, std::uint64_t nk);
  void add_score_bias(std::uint64_t nq, std::uint64_t nk);
  void add_output(std::uint64_t concat_width);

 private:
  void add_sisters(const Candidate& candidate, MappingQuestion& question) const;

  const Candidates& candidates_;
  AttentionPlace place_;
  Interpretation result_;
};

// "HND" as a layout; of letters that are known to be one.
Layout layout_of(std::string_view text);

// The three kinds of source. Each fills the reader's result.
void read_direct(PlaceReader& reader);
void read_projected(PlaceReader& reader);
void read_given_weights(PlaceReader& reader);

}  // namespace qkv
