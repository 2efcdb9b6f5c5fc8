// `qkvlab screenshot`: the window, drawn offscreen.
#include <algorithm>
#include <array>

#include "app/cli/attention_flags.h"
#include "app/cli/commands.h"
#include "app/cli/lens_flags.h"
#include "app/cli/map_flags.h"
#include "app/platform/offscreen_host.h"
#include "core/base/number_text.h"
#include "core/figure/paint.h"

namespace qkv::cli {
namespace {

inline constexpr int kLeastSide = 200;  // logical pixels
inline constexpr int kMostSide = 8192;
inline constexpr float kMostPixels = 16384;  // a side of the picture: what OpenGL drivers offer for a render target

struct ScreenshotArguments {
  std::optional<std::string> file, out, size, tab, lens, scale, theme, hover, layout, compare;
  AttentionFlags attention;
  MapFlags mapping;
  bool raw_tokens = false, verbose = false;
};

Status set_size(const std::string& text, OffscreenOptions& options) {
  const std::size_t cross = text.find_first_of("xX");
  if (cross == std::string::npos) return usage_error("--size: \"" + text + "\" is not WIDTHxHEIGHT, such as 1280x800");
  const Result<int> width = parse_int("--size", text.substr(0, cross), kLeastSide, kMostSide);
  if (!width.ok()) return width.error();
  const Result<int> height = parse_int("--size", text.substr(cross + 1), kLeastSide, kMostSide);
  if (!height.ok()) return height.error();
  options.width = width.value();
  options.height = height.value();
  return Done{};
}

Status set_scale(const std::string& text, OffscreenOptions& options) {
  const std::optional<float> scale = parse_float(text);
  if (!scale || !(*scale >= 0.5F && *scale <= 4)) {
    return usage_error("--scale: \"" + text + "\" is not a number from 0.5 to 4");
  }
  options.scale = *scale;
  return Done{};
}

Status set_tab(const std::string& text, ViewSettings& view) {
  constexpr std::array kTabs{Tab::kHead, Tab::kHeads, Tab::kConcat, Tab::kProjection};
  std::vector<std::string_view> names;
  for (const Tab tab : kTabs) {
    names.emplace_back(tab_name(tab));
    if (names.back() != text) continue;
    view.tab = tab;
    return Done{};
  }
  return unknown_name("--tab", text, names);
}

Status set_look(const ScreenshotArguments& arguments, OffscreenOptions& options) {
  if (arguments.size) {
    if (const Status set = set_size(*arguments.size, options); !set.ok()) return set;
  }
  if (arguments.scale) {
    if (const Status set = set_scale(*arguments.scale, options); !set.ok()) return set;
  }
  if (static_cast<float>(std::max(options.width, options.height)) * options.scale > kMostPixels) {
    return usage_error(
        "--size: the picture would be more than 16384 pixels on a side; give a smaller --size or "
        "--scale");
  }
  if (arguments.theme) {
    const Result<ThemeName> theme = parse_theme(*arguments.theme);
    if (!theme.ok()) return theme.error();
    options.theme = theme.value();
  }
  options.hover = arguments.hover.value_or("");
  if (arguments.raw_tokens) options.session.view.raw_tokens = true;
  if (arguments.lens) {
    const Result<Lens> lens = parse_lens(*arguments.lens);
    if (!lens.ok()) return lens.error();
    options.session.view.lens = lens.value();
    if (lens.value() != Lens::kValues && is_weights_only(options.session.problem.source)) {
      return lens_needs_inputs(*arguments.lens);
    }
  }
  if (arguments.tab == "concat" && is_weights_only(options.session.problem.source)) {
    return usage_error("--tab: concat needs the outputs of heads, but this file holds attention weights alone");
  }
  if (arguments.tab) return set_tab(*arguments.tab, options.session.view);
  return Done{};
}

Status write_picture(const ScreenshotArguments& arguments, const OffscreenPicture& picture) {
  const Result<Bytes> png = png_bytes(picture.image.width, picture.image.height, picture.image.rgba);
  if (!png.ok()) return located(*arguments.out, png.error());
  if (const Status written = write_output(*arguments.out, png.value()); !written.ok()) return written;
  if (arguments.layout) {
    if (const Status written = write_output(*arguments.layout, as_bytes(picture.layout_json)); !written.ok()) {
      return written;
    }
  }
  if (!arguments.verbose) return Done{};
  return print("wrote " + printable(*arguments.out) + " (" + std::to_string(picture.image.width) + " × " +
               std::to_string(picture.image.height) + " pixels)\n");
}

Status screenshot(const ScreenshotArguments& arguments) {
  Result<Input> input = open_input(*arguments.file, arguments.mapping);
  if (!input.ok()) return input.error();
  OffscreenOptions options;
  options.session = std::move(input.value().session);
  if (const Status set = apply_attention_flags(arguments.attention, options.session); !set.ok()) return set;
  if (const Status set = set_look(arguments, options); !set.ok()) return set;
  const std::array only_png{PictureFormat::kPng};
  if (const auto format = parse_picture_format(*arguments.out, only_png); !format.ok()) return format.error();
  if (arguments.compare) {
    const Result<std::filesystem::path> other = find_input_file(*arguments.compare);
    if (!other.ok()) return other.error();
    options.compare = other.value().string();
  }
  const Status free = check_picture_outputs(*arguments.out, arguments.layout, input.value().path);
  if (!free.ok()) return free;
  const Result<OffscreenPicture> picture = draw_offscreen(options);
  if (!picture.ok()) return located(*arguments.file, picture.error());
  return write_picture(arguments, picture.value());
}

}  // namespace

int screenshot_command(const Arguments& words) {
  ScreenshotArguments arguments;
  CLI::App app{"Draws the window as it is, without a display (OpenGL 3.3 through EGL), and writes it as PNG.",
               "qkvlab screenshot"};
  add_text(app, "FILE", arguments.file, "",
           "Session or tensors (.npz, .npy, .safetensors, .csv), or the name of an example")
      ->required();
  add_text(app, "-o,--out", arguments.out, "OUT.png", "File to write")->required();
  add_text(app, "--size", arguments.size, "WxH", "Size of the window in logical pixels (default: 1440x900)");
  add_text(app, "--tab", arguments.tab, "NAME",
           "head, heads, concat, or projection for X·W (default: what the session says)");
  add_text(app, "--lens", arguments.lens, "NAME",
           "What cells show: values, gradient (of the sum of squares), or the difference from float64 of float32, "
           "bfloat16, float16 (default: what the session says)");
  add_text(app, "--compare", arguments.compare, "OTHER",
           "Show the Compare tab: the session against the arrays of OTHER");
  app.add_flag("--raw-tokens", arguments.raw_tokens, "Show tokens as they are stored, with marks such as Ġ or ▁");
  add_text(app, "--theme", arguments.theme, "NAME", "light (default) or dark");
  add_text(app, "--hover", arguments.hover, "WIDGET", "Rest the pointer on a widget of --layout");
  add_text(app, "--layout", arguments.layout, "OUT.json", "Write the rectangle of every named widget");
  add_text(app, "--scale", arguments.scale, "S", "Device pixels per logical pixel, 0.5 to 4 (default: 1)");
  // The factor of QKᵀ has no flag of its own here: --scale is the picture's, and --options '{"scale": …}' sets it.
  add_attention_flags(app, arguments.attention, /*with_scale=*/false);
  add_map_flags(app, arguments.mapping, "--axes");
  app.add_flag("--verbose", arguments.verbose, "Say what was written");
  app.footer(
      "Examples:\n"
      "  qkvlab screenshot worked_example -o window.png --size 1280x800 --theme dark\n"
      "  qkvlab screenshot thinking_machines -o heads.png --tab heads --scale 2\n");
  if (const std::optional<int> code = parse_arguments(app, "FILE -o OUT.png [options]", words)) return *code;
  return report(screenshot(arguments));
}

}  // namespace qkv::cli
