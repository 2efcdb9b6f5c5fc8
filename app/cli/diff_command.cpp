// `qkvlab diff`: somebody else's numbers against ours, and why they differ.
#include "app/cli/attention_flags.h"
#include "app/cli/commands.h"
#include "app/cli/diff_mapping.h"
#include "app/cli/diff_report.h"
#include "core/base/number_text.h"

namespace qkv::cli {
namespace {

struct DiffArguments {
  std::optional<std::string> file, other, tolerance, out;
  std::vector<std::string> names;
  AttentionFlags attention;
  MapFlags mapping;
  bool json = false;
};

Result<double> parse_tolerance(const std::optional<std::string>& text) {
  if (!text) return kFloat32Tolerance;
  const Result<float> number = parse_number("--tolerance", *text);
  if (!number.ok()) return number.error();
  if (!(number.value() >= 0 && number.value() < 1)) {
    return usage_error("--tolerance: \"" + *text + "\" is not a number from 0 up to 1, such as 1e-3");
  }
  return static_cast<double>(number.value());
}

// Whether the file, or the example of that name, is a session.
bool is_session(const std::string& name) {
  const Result<std::filesystem::path> path = find_input_file(name);
  if (!path.ok()) return name == "worked_example";  // which is part of the program
  return is_session_file(path.value());
}

Result<Comparison> compare_with_session(const std::string& other, const Session& session, double tolerance) {
  const Result<Input> input = open_input(other);
  if (!input.ok()) return input.error();
  Result<Comparison> comparison = compare_sessions(session, input.value().session, tolerance);
  if (!comparison.ok()) return located(other, comparison.error());
  return comparison;
}

Result<Comparison> compare_with_arrays(const std::string& other, const OtherArrays& arrays, const Session& session,
                                       double tolerance) {
  Result<Comparison> comparison = compare_arrays(session, arrays.file, arrays.requested.pairs, tolerance);
  if (!comparison.ok()) return located(other, comparison.error());
  return comparison;
}

// OTHER where it is a file of tensors; nothing for a session.
Result<std::optional<OtherArrays>> other_arrays(const DiffArguments& arguments, const DiffMapping& mapping,
                                                const std::vector<NamePair>& names) {
  const std::string& other = *arguments.other;
  if (mapping.other_is_session) {
    if (!names.empty()) return usage_error("--name: " + other + " is a session, whose matrices have our names");
    return std::optional<OtherArrays>();
  }
  Result<OtherArrays> arrays = open_other(other, mapping, names);
  if (!arrays.ok()) return arrays.error();
  for (const NamePair& pair : names) {
    if (arrays.value().file.find(pair.theirs) == nullptr) {
      return usage_error("--name: " + other + " has no array \"" + pair.theirs + "\"; see qkvlab inspect " + other);
    }
  }
  return std::optional(std::move(arrays).value());
}

// Whether all is equal.
Result<bool> diff(const DiffArguments& arguments) {
  const Result<double> tolerance = parse_tolerance(arguments.tolerance);
  if (!tolerance.ok()) return tolerance.error();
  std::vector<NamePair> names;
  for (const std::string& text : arguments.names) {
    const Result<NamePair> pair = parse_name_pair(text);
    if (!pair.ok()) return located("--name", pair.error());
    names.push_back(pair.value());
  }
  const Result<DiffMapping> mapping =
      diff_mapping(arguments.mapping, is_session(*arguments.file), is_session(*arguments.other));
  if (!mapping.ok()) return mapping.error();
  const Result<std::optional<OtherArrays>> other = other_arrays(arguments, mapping.value(), names);
  if (!other.ok()) return other.error();
  const OtherArrays* arrays = other.value() ? &*other.value() : nullptr;
  Result<Input> input = open_diff_input(*arguments.file, mapping.value(), arrays);
  if (!input.ok()) return input.error();
  Session& session = input.value().session;
  if (const Status set = apply_attention_flags(arguments.attention, session); !set.ok()) return set.error();
  if (const Result<Shapes> shapes = check_session(session); !shapes.ok()) {
    return located(*arguments.file, shapes.error());
  }
  if (arguments.out) {
    for (const std::filesystem::path& read : {input.value().path, std::filesystem::path(*arguments.other)}) {
      if (const Status free = check_output(*arguments.out, read); !free.ok()) return free.error();
    }
  }
  const Result<Comparison> comparison = arrays != nullptr
                                            ? compare_with_arrays(*arguments.other, *arrays, session, tolerance.value())
                                            : compare_with_session(*arguments.other, session, tolerance.value());
  if (!comparison.ok()) return comparison.error();
  if (arguments.out) {
    const Result<Bytes> content = npz_bytes(arrays_of(comparison.value()));
    if (!content.ok()) return located(*arguments.out, content.error());
    if (const Status written = write_output(*arguments.out, content.value()); !written.ok()) return written.error();
  }
  const Status printed =
      print(arguments.json ? diff_json(*arguments.file, *arguments.other, session, comparison.value())
                           : diff_text(session, comparison.value()));
  if (!printed.ok()) return printed.error();
  return comparison.value().equal();
}

}  // namespace

int diff_command(const Arguments& words) {
  DiffArguments arguments;
  CLI::App app{
      "Computes FILE in float64, compares it with the arrays of OTHER and says what differs, where it begins, and\n"
      "why: the usual mistakes are tried until one gives the same numbers.",
      "qkvlab diff"};
  add_text(app, "FILE", arguments.file, "", "Session or tensors with the inputs (q k v, or x wq wk wv), or an example")
      ->required();
  add_text(app, "OTHER", arguments.other, "",
           "Tensors (.npz, .npy) that somebody else computed: attn, heads_out, out, scores, scaled, concat, keep; q k "
           "v and weights are compared too. Or another session")
      ->required();
  app.add_option("--name", arguments.names,
                 "An array of OTHER by its own name, such as weights=attn, or attentions[1,0]=attn for its part at "
                 "layer 1, batch 0; may be given more than once")
      ->type_name("THEIRS=ours")
      ->expected(1)
      ->take_all();
  add_text(app, "--tolerance", arguments.tolerance, "T",
           "A cell is wrong from T times the largest number of its matrix on (default: 1e-05, for float32; float16 "
           "needs about 2e-3, bfloat16 2e-2)");
  add_text(app, "-o,--out", arguments.out, "OUT.npz", "Write theirs − ours of each matrix: diff_attn and so on");
  app.add_flag("--json", arguments.json, "As JSON, for scripts");
  add_attention_flags(app, arguments.attention);
  add_map_flags(app, arguments.mapping);
  app.footer(
      "Of the flags that say what tensors are, those about results (attn, scores, out) are of OTHER, those about "
      "inputs "
      "of FILE where it is no session, else of OTHER; --layer and --batch choose in each file that has several.\n"
      "\n"
      "Examples:\n"
      "  qkvlab diff layer.npz mine.npz\n"
      "  qkvlab diff layer.npz --causal mine.npz --name weights=attn\n"
      "  qkvlab diff model.safetensors mine.npz --layer 3 --map attn=attentions\n"
      "  qkvlab diff before.qkv.json after.qkv.json --tolerance 1e-3\n"
      "\n"
      "Exit codes: 0 equal, 1 a cell is wrong, 2 wrong usage, 3 bad input file, 5 cannot write.\n");
  if (const std::optional<int> code = parse_arguments(app, "FILE OTHER [options]", words)) return *code;
  const Result<bool> equal = diff(arguments);
  if (!equal.ok()) return report(equal.error());
  return equal.value() ? kExitDone : kExitDifferent;
}

}  // namespace qkv::cli
