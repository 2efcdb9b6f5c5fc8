// `qkvlab code`: a session as a script or a document that computes or typesets it elsewhere.
#include "app/cli/attention_flags.h"
#include "app/cli/commands.h"
#include "app/cli/map_flags.h"
#include "core/session/code.h"

namespace qkv::cli {
namespace {

namespace fs = std::filesystem;

struct CodeArguments {
  std::optional<std::string> file, out, as;
  AttentionFlags attention;
  MapFlags mapping;
};

Result<CodeKind> parse_kind(const std::string& text) {
  if (const std::optional<CodeKind> kind = code_kind_from_key(text)) return *kind;
  std::vector<std::string_view> keys;
  for (const CodeKind kind : kAllCodeKinds) keys.push_back(code_key(kind));
  return unknown_name("--as", text, keys);
}

std::string script(CodeKind kind, const Session& session, const std::string& data_file) {
  return kind == CodeKind::kNumpy ? numpy_script(session, data_file) : pytorch_script(session, data_file);
}

// Prints the text where there is no -o.
Status write_text(const CodeArguments& arguments, const std::string& text) {
  return arguments.out ? write_output(*arguments.out, as_bytes(text)) : print(text);
}

// The script and its numbers in a file beside it, "attention.npz" for "attention.py".
Status write_with_data(const CodeArguments& arguments, CodeKind kind, const Session& session, const fs::path& input) {
  if (!arguments.out) {
    return usage_error(*arguments.file + ": has " + std::to_string(numbers_in_script(session.problem)) +
                       " numbers, and a script with more than " + std::to_string(kMostWrittenNumbers) +
                       " loads them from a file: give -o OUT.py, and OUT.npz is written beside it");
  }
  const fs::path data = fs::path(*arguments.out).replace_extension(".npz");
  if (data == fs::path(*arguments.out)) {
    return usage_error(*arguments.out + ": is the name of the numbers' file too; give -o a name that ends in .py");
  }
  if (const Status free = check_output(data.string(), input); !free.ok()) return free;
  const Result<Bytes> content = npz_bytes(script_arrays(session.problem));
  if (!content.ok()) return located(data.string(), content.error());
  if (const Status written = write_output(data.string(), content.value()); !written.ok()) return written;
  return write_text(arguments, script(kind, session, data.filename().string()));
}

Status code(const CodeArguments& arguments) {
  const Result<CodeKind> kind = parse_kind(*arguments.as);
  if (!kind.ok()) return kind.error();
  Result<Input> input = open_input(*arguments.file, arguments.mapping);
  if (!input.ok()) return input.error();
  Session& session = input.value().session;
  if (const Status set = apply_attention_flags(arguments.attention, session); !set.ok()) return set;
  const Result<Shapes> shapes = check_session(session);
  if (!shapes.ok()) return located(*arguments.file, shapes.error());
  if (const Status fits = check_script(shapes.value()); !fits.ok()) return located(*arguments.file, fits.error());
  if (arguments.out) {
    if (const Status free = check_output(*arguments.out, input.value().path); !free.ok()) return free;
  }
  if (kind.value() == CodeKind::kLatex) {
    const Result<Trace> trace = compute(*arguments.file, session);
    return trace.ok() ? write_text(arguments, latex_document(session, trace.value())) : Status(trace.error());
  }
  if (numbers_in_script(session.problem) > kMostWrittenNumbers) {
    return write_with_data(arguments, kind.value(), session, input.value().path);
  }
  return write_text(arguments, script(kind.value(), session, ""));
}

}  // namespace

int code_command(const Arguments& words) {
  CodeArguments arguments;
  CLI::App app{
      "Writes FILE as code that stands alone: a NumPy or PyTorch script that computes it in float64 with every\n"
      "option, step by step, or a LaTeX document with the formula and each step's numbers.",
      "qkvlab code"};
  add_text(app, "FILE", arguments.file, "",
           "Session or tensors (.npz, .npy, .safetensors, .csv), or the name of an example")
      ->required();
  add_text(app, "--as", arguments.as, "KIND", "numpy, pytorch or latex")->required();
  add_text(app, "-o,--out", arguments.out, "OUT",
           "File to write; without it the code is printed. A script with more than " +
               std::to_string(kMostWrittenNumbers) + " numbers loads them from OUT.npz, which is written beside it");
  add_attention_flags(app, arguments.attention);
  add_map_flags(app, arguments.mapping);
  app.footer(
      "A script prints the weights and the result; python3 OUT.py STEPS.npz saves every step there.\n"
      "\n"
      "Examples:\n"
      "  qkvlab code worked_example --as numpy\n"
      "  qkvlab code layer.npz --causal --as pytorch -o layer.py\n"
      "  qkvlab code thinking_machines --as latex -o attention.tex\n");
  if (const std::optional<int> ended = parse_arguments(app, "FILE --as KIND [-o OUT] [options]", words)) return *ended;
  return report(code(arguments));
}

}  // namespace qkv::cli
