#include "app/cli/cli.h"

#include <array>
#include <utility>

#include "app/cli/commands.h"
#include "app/cli/map_flags.h"
#include "app/cli/window_file.h"
#include "app/platform/window_host.h"
#include "core/base/no_throw.h"

namespace qkv {
namespace {

using cli::Arguments;

Status open_window(const std::optional<std::string>& file, const cli::MapFlags& mapping,
                   const std::optional<std::string>& scale) {
  WindowOptions options;
  if (!file && has_any(mapping)) return usage_error("--map, --with and the like need a FILE of tensors");
  if (scale) {
    const Result<float> value = cli::parse_number("--scale", *scale);
    if (!value.ok()) return value.error();
    if (!(value.value() >= 0.5F && value.value() <= 4)) {
      return usage_error("--scale: \"" + *scale + "\" is not a number from 0.5 to 4");
    }
    options.scale = value.value();
  }
  if (file) {
    Result<std::unique_ptr<BegunFile>> begun = cli::begin_window_file(*file, mapping);
    if (!begun.ok()) return begun.error();
    options.file = std::move(begun).value();
  }
  return run_window(std::move(options));
}

int window_command(const Arguments& words) {
  std::optional<std::string> file, scale;
  cli::MapFlags mapping;
  bool version = false;
  CLI::App app{"A desktop laboratory for attention: see and edit every step of every head.", "qkvlab"};
  cli::add_text(app, "FILE", file, "",
                "Session (.qkv.json) or tensors (.npz, .npy, .safetensors, .csv), told apart by content, or the name "
                "of an example: "
                "cat_sleeps. Without FILE: the worked example");
  cli::add_text(app, "--scale", scale, "S", "Device pixels per logical pixel, 0.5 to 4 (default: the monitor's)");
  cli::add_map_flags(app, mapping);
  app.add_flag("--version", version, "Print the version");
  app.footer(
      "Without a window (each has its own --help):\n"
      "  qkvlab run FILE -o OUT.npz         compute; write every tensor (one as .npy, .csv)\n"
      "  qkvlab render FILE -o OUT.png      a figure (PNG, SVG or PDF) of a matrix, a head, all heads or Concat·W^O\n"
      "  qkvlab screenshot FILE -o OUT.png  the window, drawn without a display\n"
      "  qkvlab inspect FILE [--json]       what is in a session or tensor file\n"
      "  qkvlab code FILE --as numpy        a script in NumPy or PyTorch, or a LaTeX document\n"
      "  qkvlab diff FILE OTHER             my numbers against yours: what differs and why\n"
      "  qkvlab bench                       time attention on this machine\n"
      "\n"
      "Examples:\n"
      "  qkvlab                             the worked example\n"
      "  qkvlab long_distance               an example by its name\n"
      "  qkvlab run layer.npz --causal -o out.npz\n"
      "\n"
      "Exit codes: 0 done, 1 a difference found by diff, 2 wrong usage, 3 bad input file, 4 no display or no OpenGL "
      "3.3, 5 cannot write.\n");
  if (const std::optional<int> code = cli::parse_arguments(app, "[FILE] [options]", words)) return *code;
  if (version) return cli::report(cli::print("qkvlab " QKV_VERSION "\n"));
  return cli::report(open_window(file, mapping, scale));
}

int dispatch(int argc, char** argv) {
  using Command = int (*)(const Arguments&);
  constexpr std::array<std::pair<std::string_view, Command>, 7> kCommands{{{"run", cli::run_command},
                                                                           {"render", cli::render_command},
                                                                           {"screenshot", cli::screenshot_command},
                                                                           {"inspect", cli::inspect_command},
                                                                           {"diff", cli::diff_command},
                                                                           {"bench", cli::bench_command},
                                                                           {"code", cli::code_command}}};
  Arguments words(argv + (argc > 0 ? 1 : 0), argv + argc);
  for (const auto& [name, command] : kCommands) {
    if (words.empty() || words.front() != name) continue;
    words.erase(words.begin());
    return command(words);
  }
  return window_command(words);
}

}  // namespace

int run_command_line(int argc, char** argv) {
  int code = cli::kExitDone;
  const Status done = without_throwing(
      "not enough memory: every step of every head is kept, so use fewer tokens or heads", [&]() -> Status {
        code = dispatch(argc, argv);
        return Done{};
      });
  return done.ok() ? code : cli::report(done);
}

}  // namespace qkv
