#include "app/cli/map_flags.h"

#include <algorithm>

#include "app/cli/reading_line.h"
#include "core/base/utf8.h"
#include "core/session/bfloat16_bits.h"
#include "core/session/json_reader.h"
#include "core/session/session_file.h"
#include "core/session/tensor_origin.h"

namespace qkv::cli {

namespace fs = std::filesystem;

namespace {

constexpr int kMostLayers = 1 << 16;
constexpr int kMostBatches = 1 << 24;

Status set_number(std::string_view flag, const std::optional<std::string>& text, int least, int most,
                  std::optional<int>& value) {
  if (!text) return Done{};
  const Result<int> number = parse_int(flag, *text, least, most);
  if (!number.ok()) return number.error();
  value = number.value();
  return Done{};
}

Status set_numbers(const MapFlags& flags, MappingRequest& request) {
  if (Status set = set_number("--heads", flags.heads, 1, kMaxHeads, request.heads); !set.ok()) return set;
  if (Status set = set_number("--kv-heads", flags.kv_heads, 1, kMaxHeads, request.kv_heads); !set.ok()) return set;
  if (Status set = set_number("--layer", flags.layer, 0, kMostLayers, request.layer); !set.ok()) return set;
  return set_number("--batch", flags.batch, 0, kMostBatches, request.batch);
}

Error questions_error(const std::string& name, const MappingProposal& proposal, const MapFlags& flags) {
  std::string text;
  for (const MappingQuestion& question : proposal.questions) {
    text +=
        (text.empty() ? "" : "; and ") + question_text(question) + "; choose with " + settling_flag(question, flags);
  }
  return located(name, bad_input(text));
}

// That tensors of 16-bit unsigned integers are read as such, where nobody said so.
std::string integers_note(const std::string& name, const TensorSet& files, const TensorMapping& mapping) {
  std::vector<std::string> keys;
  for (const Role role : roles_of_integers(files, mapping)) keys.emplace_back(role_key(role));
  if (keys.empty()) return "";
  return name + ": " + joined(keys) + (keys.size() == 1 ? " is" : " are") +
         " read as whole numbers (uint16); where they hold the bits of bfloat16, say --uint16-is-bfloat16";
}

// The place of a file that can be gone back to.
fs::path place_of(const std::string& name) {
  std::error_code problem;
  if (!fs::is_regular_file(name, problem)) return {};
  return remembered_place(name);
}

}  // namespace

void add_map_flags(CLI::App& app, MapFlags& flags, std::string_view layout_flag) {
  flags.layout_flag = layout_flag;
  app.add_option("--with", flags.with, "Another file of tensors beside FILE: the weights of its model; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);
  add_text(app, "--map", flags.map, "ROLE=NAME,…",
           "Which tensor is what: q k v, or x wq wk wv, or attn; bq bk bv wo bo bias tokens key_tokens; qkv, wqkv and "
           "bqkv for the three in one; FILE:NAME of --with; no NAME to leave a role out (default: by name)");
  const std::string names = layout_flag == "--layout" ? "--layout,--axes" : std::string(layout_flag);
  add_text(app, names, flags.layout, "[ROLE=]AXES,…",
           "What axes are: NHD is [tokens, heads, d], BN(HD) [batch, tokens, heads·d]; L layer, 3 q-k-v; of weights I "
           "and O: OI is torch's Linear; alone or for a role: q=NHD,wq=OI (default: by shape)");
  add_text(app, "--heads", flags.heads, "N", "How many heads there are, where they lie side by side");
  add_text(app, "--kv-heads", flags.kv_heads, "N", "How many heads K and V have (default: by their width)");
  add_text(app, "--layer", flags.layer, "N", "Which layer, counted as in the file (default: the first)");
  add_text(app, "--batch", flags.batch, "N", "Which entry of a batch, counted from 0 (default: 0)");
  app.add_flag("--uint16-is-bfloat16", flags.uint16_is_bfloat16,
               "Arrays of 16-bit unsigned integers (<u2) hold the bits of bfloat16 numbers");
  add_text(app, "--module", flags.module, "PATH", "Which attention, where a model has several: decoder, cross_attn");
}

bool has_any(const MapFlags& flags) {
  return !flags.with.empty() || flags.map || flags.layout || flags.heads || flags.kv_heads || flags.layer ||
         flags.batch || flags.module || flags.uint16_is_bfloat16;
}

Result<MappingRequest> mapping_request(const MapFlags& flags) {
  MappingRequest request;
  if (flags.map) {
    if (const Status read = read_map_text(*flags.map, request); !read.ok()) return located("--map", read.error());
  }
  if (flags.layout) {
    const Status read = read_layout_text(*flags.layout, request);
    if (!read.ok()) return located(flags.layout_flag, read.error());
  }
  if (const Status set = set_numbers(flags, request); !set.ok()) return set.error();
  request.module = flags.module;
  return request;
}

Result<TensorSet> tensor_set(const std::string& name, TensorFile file, const MapFlags& flags, ReadProgress* progress) {
  TensorSet files = {{name, std::move(file), place_of(name)}};
  for (const std::string& other : flags.with) {
    Result<TensorFile> opened = TensorFile::open(other, {}, progress);
    if (!opened.ok()) return located(other, with_deed("cannot be read", opened.error()));
    files.push_back({other, std::move(opened).value(), place_of(other)});
  }
  if (!flags.uint16_is_bfloat16) return files;
  for (NamedTensors& each : files) each = with_bfloat16(std::move(each));
  const auto has_some = [](const NamedTensors& each) { return !each.bfloat16.empty(); };
  if (std::ranges::none_of(files, has_some)) return located(name, no_uint16());
  return files;
}

Error no_uint16() {
  return usage_error("--uint16-is-bfloat16: there is no array of 16-bit unsigned integers (uint16)");
}

Result<Input> mapped_input(const std::string& name, const TensorSet& files, const MappingRequest& request,
                           const MapFlags& flags, ReadProgress* progress) {
  const MappingProposal proposal = propose_mapping(files, request);
  if (proposal.error) {
    Error error = located(name, *proposal.error);
    const bool nothing_found = proposal.modules.empty() && !flags.map;
    if (nothing_found) error.message += "; say which tensor is what with --map ROLE=NAME, and join files by --with";
    return error;
  }
  if (!proposal.questions.empty()) return questions_error(name, proposal, flags);
  const std::string title = sanitize_utf8(fs::path(name).stem().string());
  Result<Session> session = apply_mapping(files, proposal.mapping, title, progress);
  if (!session.ok()) return located(name, session.error());
  return Input{std::move(session).value(), name, false, integers_note(name, files, proposal.mapping)};
}

std::string settling_flag(const MappingQuestion& question, const MapFlags& flags) {
  const std::string value = question.choices.empty() ? "" : question.choices.front().value;
  // A shell would read the parentheses of "N(HD)".
  const bool needs_quotes = value.empty() || value.find_first_of("(* ") != std::string::npos;
  const std::string word = needs_quotes ? "'" + value + "'" : value;
  switch (question.kind) {
    case MappingQuestion::Kind::kTensor:
      return "--map " + word;
    case MappingQuestion::Kind::kLayout:
      return std::string(flags.layout_flag) + " " + word;
    case MappingQuestion::Kind::kHeads:
      return "--heads N";
    case MappingQuestion::Kind::kKvHeads:
      return "--kv-heads N";
    case MappingQuestion::Kind::kModule:
      return "--module " + word;
  }
  return "";
}

Result<Input> open_input(const std::string& name, const MapFlags& flags) {
  Result<Input> input = [&] {
    ReadingLine line(name);
    return open_input(name, flags, line.progress());
  }();
  say_note(input);
  return input;
}

Result<Input> open_input(const std::string& name, const MapFlags& flags, ReadProgress* progress) {
  const Result<fs::path> path = find_input_file(name);
  if (!path.ok()) {
    // The first example is part of the program, so that it opens even where no assets are installed.
    if (name == "worked_example") return Input{worked_example(), {}, true};
    return path.error();
  }
  Result<std::variant<Session, TensorFile>> opened = open_session_or_tensors(path.value(), progress);
  if (!opened.ok()) return located(name, with_deed("cannot be read", opened.error()));
  if (TensorFile* file = std::get_if<TensorFile>(&opened.value())) {
    const Result<MappingRequest> request = mapping_request(flags);
    if (!request.ok()) return request.error();
    const Result<TensorSet> files = tensor_set(name, std::move(*file), flags, progress);
    if (!files.ok()) return files.error();
    return mapped_input(name, files.value(), request.value(), flags, progress);
  }
  if (has_any(flags)) {
    return located(name, usage_error("is a session, which says itself what is what: --map, --with and the like are for "
                                     "files of tensors"));
  }
  return Input{std::move(std::get<Session>(opened.value())), path.value(), true};
}

Result<Input> open_input(const std::string& name) { return open_input(name, MapFlags{}); }

}  // namespace qkv::cli
