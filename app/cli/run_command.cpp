// `qkvlab run`: computes a file and writes every tensor of the computation.
#include "app/cli/attention_flags.h"
#include "app/cli/commands.h"
#include "core/session/session_tensors.h"

namespace qkv::cli {
namespace {

struct RunArguments {
  std::optional<std::string> file, out;
  AttentionFlags attention;
  bool verbose = false;
};

Status run(const RunArguments& arguments) {
  Result<Input> input = open_input(*arguments.file);
  if (!input.ok()) return input.error();
  Session& session = input.value().session;
  if (const Status set = apply_attention_flags(arguments.attention, session); !set.ok()) return set;
  if (const Status free = check_output(*arguments.out, input.value().path); !free.ok()) return free;

  const Result<Trace> trace = compute(*arguments.file, session);
  if (!trace.ok()) return trace.error();
  const std::vector<NamedArray> arrays = arrays_of(trace.value());
  const Result<Bytes> content = npz_bytes(arrays);
  if (!content.ok()) return located(*arguments.out, content.error());
  if (const Status written = write_output(*arguments.out, content.value()); !written.ok()) return written;
  if (!arguments.verbose) return Done{};
  return print("wrote " + printable(*arguments.out) + " (" + std::to_string(arrays.size()) + " arrays)\n");
}

}  // namespace

int run_command(const Arguments& words) {
  RunArguments arguments;
  CLI::App app{
      "Computes FILE and writes every tensor: q k v scores scaled keep attn heads_out concat out,\n"
      "and alibi, bias, x with the weights where there are such. Arrays are float32 with the head first, keep is "
      "uint8.",
      "qkvlab run"};
  add_text(app, "FILE", arguments.file, "", "Session or tensors (.npz, .npy), or the name of an example")->required();
  add_text(app, "-o,--out", arguments.out, "OUT.npz", "File to write")->required();
  add_attention_flags(app, arguments.attention);
  app.add_flag("--verbose", arguments.verbose, "Say what was written");
  app.footer(
      "Examples:\n"
      "  qkvlab run worked_example -o out.npz\n"
      "  qkvlab run layer.npz --causal --key-valid 1,1,1,0 -o out.npz\n");
  if (const std::optional<int> code = parse_arguments(app, "FILE -o OUT.npz [options]", words)) return *code;
  return report(run(arguments));
}

}  // namespace qkv::cli
