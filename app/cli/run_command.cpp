// `qkvlab run`: computes a file and writes every tensor of the computation.
#include <algorithm>

#include "app/cli/attention_flags.h"
#include "app/cli/commands.h"
#include "app/cli/lens_flags.h"
#include "app/cli/map_flags.h"
#include "core/attention/precision.h"
#include "core/base/number_text.h"
#include "core/session/array_files.h"
#include "core/session/lens_arrays.h"
#include "core/session/session_tensors.h"

namespace qkv::cli {
namespace {

struct RunArguments {
  std::optional<std::string> file, out, gradient, precision, only, head;
  AttentionFlags attention;
  MapFlags mapping;
  bool labels = false, verbose = false;
};

// What is written, and what is said about it with --verbose.
struct Output {
  std::vector<NamedArray> arrays;
  std::string words;
};

// "heads_out 2: off by at most 0.0012 at 2:1:0, 0.40 ulp at 2:0:0", with what left the format's range.
std::string summary_line(const PrecisionSummary& summary) {
  const auto place = [](const MatrixCell& cell) {
    const std::string head = is_per_head(cell.id.kind) ? std::to_string(cell.id.head) + ":" : "";
    return head + std::to_string(cell.row) + ":" + std::to_string(cell.col);
  };
  const std::string head = is_per_head(summary.id.kind) ? " " + std::to_string(summary.id.head) : "";
  std::string line = std::string(file_key(summary.id.kind)) + head + ": ";
  if (summary.largest == 0) {
    line += "exact";
  } else {
    line += "off by at most " + format_value(summary.largest, 6, false) + " at " + place(summary.largest_at) + ", " +
            format_value(summary.largest_ulps, 2, false) + " ulp at " + place(summary.largest_ulps_at);
  }
  if (summary.infinite > 0) line += "; " + std::to_string(summary.infinite) + " infinite";
  if (summary.nan > 0) line += "; " + std::to_string(summary.nan) + " NaN";
  return line + "\n";
}

Result<Output> compute_in_format(const std::string& file, NumberFormat format, const Problem& problem) {
  const Result<Shapes> shapes = check_shapes(problem);
  if (!shapes.ok()) return located(file, shapes.error());
  const KeepMatrix keep = keep_matrix(problem.options, shapes.value().nq, shapes.value().nk);
  if (format == NumberFormat::kFloat64) {
    const Result<MatrixTable<MatrixD>> steps = steps_in_float64(problem);
    if (!steps.ok()) return located(file, steps.error());
    return Output{arrays_of(steps.value(), keep), ""};
  }
  const Result<Precision> result = precision(format, problem);
  if (!result.ok()) return located(file, result.error());
  Output output{arrays_of(result.value().rounded, keep), ""};
  for (const PrecisionSummary& summary : result.value().summary) output.words += summary_line(summary);
  return output;
}

// The gradient's arrays go behind the others.
Status add_gradient(const std::string& file, const GradientTarget& target, const Problem& problem, bool wide,
                    Output& output) {
  const Result<Gradient> result = gradient(problem, target);
  if (!result.ok()) {
    const bool no_such_cell = result.error().code == ErrorCode::kBadInput;
    if (no_such_cell) return located("--gradient", {ErrorCode::kUsage, result.error().message});
    return located(file, result.error());
  }
  std::vector<NamedArray> arrays = arrays_of(result.value(), wide);
  output.arrays.insert(output.arrays.end(), std::make_move_iterator(arrays.begin()),
                       std::make_move_iterator(arrays.end()));
  output.words += "gradient of " + target_words(result.value().target, check_shapes(problem).value(), 0) + " = " +
                  format_shortest(result.value().value) + "\n";
  return Done{};
}

bool is_square(std::string_view name) {
  const std::optional<MatrixKind> kind = kind_from_key(name);
  return kind && *kind != MatrixKind::kBias && row_axis(*kind) == Axis::kQueries && col_axis(*kind) == Axis::kKeys;
}

// The names of --only. Empty: all.
Result<std::vector<std::string>> parse_only(const std::optional<std::string>& words) {
  std::vector<std::string> names;
  for (std::size_t first = 0; words && first <= words->size();) {
    const std::size_t comma = std::min(words->find(',', first), words->size());
    names.push_back(words->substr(first, comma - first));
    if (!kind_from_key(names.back())) {
      std::vector<std::string_view> known;
      for (const MatrixKind kind : kAllMatrixKinds) known.push_back(file_key(kind));
      return unknown_name("--only", names.back(), known);
    }
    first = comma + 1;
  }
  return names;
}

// The head of --head for a file of one array; nullopt: all of them, or the array has no heads. Refuses what one array
// or one matrix cannot hold before it is computed.
Result<std::optional<std::size_t>> chosen_head(const RunArguments& arguments, const std::vector<std::string>& only,
                                               const Shapes& shapes) {
  const ArrayFormat format = array_format(*arguments.out);
  const std::string out = *arguments.out;
  if (arguments.labels && format != ArrayFormat::kCsv) {
    return usage_error("--labels: goes with a .csv file; " + out + " has no room for them");
  }
  if (format == ArrayFormat::kNpz) {
    if (!arguments.head) return std::optional<std::size_t>();
    return usage_error("--head: goes with one array in a .npy or .csv file; " + out + " takes all heads");
  }
  const std::string holds =
      format == ArrayFormat::kNpy ? ": an .npy file holds one array" : ": a .csv file holds one matrix";
  if (arguments.gradient) return usage_error(out + holds + ", but --gradient writes several: give -o a name in .npz");
  if (only.size() != 1) return usage_error(out + holds + ": name it with --only NAME, such as --only attn");
  const MatrixKind kind = *kind_from_key(only[0]);
  if (!is_per_head(kind)) {
    if (arguments.head) return usage_error("--head: " + only[0] + " is one for all heads; leave --head out");
    return std::optional<std::size_t>();
  }
  const int heads = kind == MatrixKind::kK || kind == MatrixKind::kV ? shapes.kv_heads : shapes.heads;
  if (arguments.head) {
    const Result<int> head = parse_int("--head", *arguments.head, 0, heads - 1);
    if (!head.ok()) return head.error();
    return std::optional<std::size_t>(head.value());
  }
  if (format == ArrayFormat::kNpy) return std::optional<std::size_t>();
  if (heads == 1) return std::optional<std::size_t>(0);
  return usage_error(out + holds + ", but " + only[0] + " has one for each of " + std::to_string(heads) +
                     " heads: choose one with --head 0 … " + std::to_string(heads - 1));
}

// Refuses what would not fit before it is computed.
Status check_size(const RunArguments& arguments, const std::vector<std::string>& only, const Session& session) {
  const Result<Shapes> shapes = check_session(session);
  if (!shapes.ok()) return shapes.error();
  if (held_bytes(shapes.value()) <= kMostHeldBytes) return Done{};
  const Shapes& s = shapes.value();
  const std::string size = "scores, scaled and attn of " + std::to_string(s.heads) + "×" + std::to_string(s.nq) + "×" +
                           std::to_string(s.nk) + " cells take " +
                           format_fixed(held_bytes(s) / 1073741824.0, 1, false) + " GiB";
  if (arguments.precision || arguments.gradient) {
    return unsupported(size + ", and --precision and --gradient keep them all: use fewer tokens or heads");
  }
  if (!only.empty() && std::none_of(only.begin(), only.end(), is_square)) return Done{};
  return unsupported(size + ": write what is smaller with --only q,k,v,heads_out,concat");
}

Result<Output> compute_output(const RunArguments& arguments, const Session& session,
                              const std::optional<NumberFormat>& format, const std::optional<GradientTarget>& target,
                              const std::vector<std::string>& only) {
  Output output;
  if (format) {
    Result<Output> in_format = compute_in_format(*arguments.file, *format, session.problem);
    if (!in_format.ok()) return in_format;
    output = std::move(in_format).value();
  } else {
    const Result<Trace> trace = compute(*arguments.file, session);
    if (!trace.ok()) return trace.error();
    output.arrays = arrays_of(trace.value());
  }
  std::erase_if(output.arrays, [&](const NamedArray& array) {
    return !only.empty() && std::find(only.begin(), only.end(), array.name) == only.end();
  });
  if (target) {
    const bool wide = format == NumberFormat::kFloat64;
    if (const Status added = add_gradient(*arguments.file, *target, session.problem, wide, output); !added.ok()) {
      return added.error();
    }
  }
  return output;
}

Status run(const RunArguments& arguments) {
  std::optional<NumberFormat> format;
  if (arguments.precision) {
    const Result<NumberFormat> parsed = parse_format("--precision", *arguments.precision);
    if (!parsed.ok()) return parsed.error();
    format = parsed.value();
  }
  std::optional<GradientTarget> target;
  if (arguments.gradient) {
    const Result<GradientTarget> parsed = parse_target("--gradient", *arguments.gradient);
    if (!parsed.ok()) return parsed.error();
    target = parsed.value();
  }
  const Result<std::vector<std::string>> only = parse_only(arguments.only);
  if (!only.ok()) return only.error();
  Result<Input> input = open_input(*arguments.file, arguments.mapping);
  if (!input.ok()) return input.error();
  Session& session = input.value().session;
  if (const Status set = apply_attention_flags(arguments.attention, session); !set.ok()) return set;
  if (const Status fits = check_size(arguments, only.value(), session); !fits.ok()) {
    return located(*arguments.file, fits.error());
  }
  const Result<std::optional<std::size_t>> head = chosen_head(arguments, only.value(), check_session(session).value());
  if (!head.ok()) return head.error();
  if (const Status free = check_output(*arguments.out, input.value().path); !free.ok()) return free;

  Result<Output> output = compute_output(arguments, session, format, target, only.value());
  if (!output.ok()) return output.error();
  std::vector<NamedArray>& arrays = output.value().arrays;
  const ArrayFormat file = array_format(*arguments.out);
  if (file != ArrayFormat::kNpz && arrays.empty()) {
    return usage_error("--only: " + *arguments.file + " has no " + only.value()[0] +
                       (arguments.precision && only.value()[0] == "alibi" ? " with --precision" : ""));
  }
  if (head.value()) arrays[0] = head_of(arrays[0], *head.value());
  std::optional<TableNames> labels;
  if (arguments.labels) {
    const std::vector<std::uint64_t>& shape = arrays[0].shape;
    labels = names_of(session, *kind_from_key(arrays[0].name), static_cast<Index>(shape[0]),
                      static_cast<Index>(shape.back()));
  }
  const Result<Bytes> content = array_file(file, arrays, labels ? &*labels : nullptr);
  if (!content.ok()) return located(*arguments.out, content.error());
  if (const Status written = write_output(*arguments.out, content.value()); !written.ok()) return written;
  if (!arguments.verbose) return Done{};
  return print(output.value().words + "wrote " + printable(*arguments.out) + " (" + std::to_string(arrays.size()) +
               (arrays.size() == 1 ? " array)\n" : " arrays)\n"));
}

}  // namespace

int run_command(const Arguments& words) {
  RunArguments arguments;
  CLI::App app{
      "Computes FILE and writes every tensor: q k v scores scaled keep attn heads_out concat out,\n"
      "and alibi, bias, x with the weights where there are such. Arrays are float32 with the head first, keep is "
      "uint8.",
      "qkvlab run"};
  add_text(app, "FILE", arguments.file, "",
           "Session or tensors (.npz, .npy, .safetensors, .csv), or the name of an example")
      ->required();
  add_text(app, "-o,--out", arguments.out, "OUT.npz",
           "File to write; one array as .npy, one matrix as .csv (plain numbers)")
      ->required();
  add_text(app, "--gradient", arguments.gradient, "TARGET",
           "Add the gradient of TARGET by every array, d_q d_k d_scores …: sum-of-squares of out (heads_out without a "
           "W^O), or one cell, counted from 0: out:ROW:COL, concat:ROW:COL, heads_out:HEAD:ROW:COL, likewise attn, "
           "scaled, scores");
  add_text(app, "--precision", arguments.precision, "FORMAT",
           "Keep every step in float64 (arrays <f8), float32, bfloat16 or float16 (in float32 arrays); without it "
           "float64 is rounded once to float32");
  add_text(app, "--only", arguments.only, "NAMES",
           "Write these arrays alone, such as q,k,v,heads_out; for sessions whose scores are too large to write");
  add_text(app, "--head", arguments.head, "H", "For a .npy or .csv file: the matrix of this head, counted from 0");
  app.add_flag("--labels", arguments.labels,
               "For a .csv file: tokens as first row and first column, which qkvlab reads as tokens again; without it "
               "plain numbers, as np.loadtxt takes them");
  add_attention_flags(app, arguments.attention);
  add_map_flags(app, arguments.mapping);
  app.add_flag("--verbose", arguments.verbose,
               "Say what was written, the gradient's value, and how far the format is from float64");
  app.footer(
      "Examples:\n"
      "  qkvlab run worked_example -o out.npz\n"
      "  qkvlab run layer.npz --causal --key-valid 1,1,1,0 -o out.npz\n"
      "  qkvlab run layer.npz --only attn --head 2 --labels -o attn.csv\n"
      "  qkvlab run layer.npz --gradient out:0:3 -o gradients.npz\n"
      "  qkvlab run layer.npz --precision bfloat16 --verbose -o bf16.npz\n");
  if (const std::optional<int> code = parse_arguments(app, "FILE -o OUT.npz [options]", words)) return *code;
  return report(run(arguments));
}

}  // namespace qkv::cli
