// `qkvlab diff`: somebody else's numbers against ours, and why they differ.
#include "app/cli/attention_flags.h"
#include "app/cli/commands.h"
#include "app/cli/diff_mapping.h"
#include "app/cli/diff_report.h"
#include "app/cli/figure_flags.h"
#include "core/figure/figure_compare.h"

namespace qkv::cli {
namespace {

struct DiffArguments {
  std::optional<std::string> file, other, tolerance, out, matrix, head;
  FigureFlags figure;
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

// Whether -o is a figure: by its name, the differences as arrays otherwise.
bool wants_figure(const DiffArguments& arguments) {
  const std::filesystem::path path = arguments.out.value_or("");
  return path.has_extension() && picture_format(path).has_value();
}

Status check_figure_flags(const DiffArguments& arguments) {
  if (wants_figure(arguments)) return Done{};
  const std::string_view given = arguments.matrix ? "--matrix"
                                 : arguments.head ? "--head"
                                                  : first_given(arguments.figure);
  if (given.empty()) return Done{};
  return usage_error(std::string(given) + ": is about a figure; let the name after -o end in .png, .svg or .pdf");
}

// Which array is drawn: that of --matrix, else the most telling one.
Result<std::size_t> drawn_array(const DiffArguments& arguments, const Comparison& comparison) {
  if (!arguments.matrix) return most_telling(comparison);
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < comparison.differences.size(); ++i) {
    names.push_back(file_key(comparison.differences[i].kind));
    if (names.back() == *arguments.matrix) return i;
  }
  return usage_error("--matrix: \"" + *arguments.matrix + "\" was not compared; there are " + name_list(names));
}

Result<int> drawn_head(const DiffArguments& arguments, const Difference& difference) {
  if (!arguments.head) return most_telling_head(difference);
  if (difference.errors.size() == 1) {
    return usage_error("--head: " + std::string(file_key(difference.kind)) + " is one matrix here; leave --head out");
  }
  return parse_int("--head", *arguments.head, 0, static_cast<int>(difference.errors.size()) - 1);
}

Status draw(const DiffArguments& arguments, const Session& session, const Comparison& comparison) {
  const Result<std::size_t> array = drawn_array(arguments, comparison);
  if (!array.ok()) return array.error();
  const Difference& difference = comparison.differences[array.value()];
  const Result<int> head = drawn_head(arguments, difference);
  if (!head.ok()) return head.error();
  FigureSpec spec;
  spec.look = session.view;
  spec.matrix = {difference.kind, head.value()};
  spec.cell_px = compared_cell_px(difference.errors[0].rows(), difference.errors[0].cols());
  if (const Status set = set_look(arguments.figure, spec); !set.ok()) return set;
  const Result<FigureOutput> output = figure_output(arguments.figure, *arguments.out);
  if (!output.ok()) return output.error();
  spec.pixels_per_unit = pixels_per_unit(output.value().format, output.value().scale);
  const auto at = static_cast<std::size_t>(head.value());
  const Matrix ours = our_shown(session, comparison, array.value())[at];
  const Matrix theirs = their_shown(comparison, array.value())[at];
  const std::string other = std::filesystem::path(*arguments.other).filename().string();
  const TextShaper shaper;
  const Result<Figure> figure =
      layout_comparison({session, comparison, array.value(), head.value(), ours, theirs, other}, spec, shaper);
  if (!figure.ok()) return located(*arguments.out, usage_error(figure.error().message));
  return write_figure(figure.value(), shaper, output.value());
}

Status write_differences(const DiffArguments& arguments, const Session& session, const Comparison& comparison) {
  if (wants_figure(arguments)) return draw(arguments, session, comparison);
  const Result<Bytes> content = npz_bytes(arrays_of(comparison));
  if (!content.ok()) return located(*arguments.out, content.error());
  return write_output(*arguments.out, content.value());
}

// Whether all is equal.
Result<bool> diff(const DiffArguments& arguments) {
  if (const Status fit = check_figure_flags(arguments); !fit.ok()) return fit.error();
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
  say_note(input);
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
    const Status written = write_differences(arguments, session, comparison.value());
    if (!written.ok()) return written.error();
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
           "Tensors (.npz, .npy) that somebody else computed: attn, heads_out, out, scores, alibi, scaled, concat, "
           "keep; q k v and weights are compared too. Or another session")
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
  add_text(
      app, "-o,--out", arguments.out, "OUT",
      "Write theirs − ours of each matrix as .npz: diff_attn and so on; or, as .png, .svg or .pdf, a figure of one "
      "matrix: ours, theirs, the difference, and why");
  add_text(app, "--matrix", arguments.matrix, "NAME",
           "The matrix of the figure (default: the weights or the output, whichever differs)");
  add_text(app, "--head", arguments.head, "H", "Its head, counted from 0 (default: that of the first wrong cell)");
  add_figure_flags(app, arguments.figure, "so that three fit on a page, up to 40");
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
      "  qkvlab diff layer.npz mine.npz -o difference.svg --theme dark\n"
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
