// `qkvlab render`: a figure without OpenGL or a display.
#include <cmath>

#include "app/cli/attention_flags.h"
#include "app/cli/commands.h"
#include "app/cli/map_flags.h"
#include "core/base/number_text.h"
#include "core/figure/figure.h"
#include "core/figure/picture_format.h"

namespace qkv::cli {
namespace {

struct RenderArguments {
  std::optional<std::string> file, out, view, matrix, head, cell_px, scale, colormap, range, theme, decimals, layout;
  AttentionFlags attention;
  MapFlags mapping;
  bool raw_tokens = false, transparent = false, verbose = false;
};

// Which view, and for one matrix which kind. --matrix alone means that matrix; neither means one head.
Status set_view(const RenderArguments& arguments, FigureSpec& spec) {
  spec.view = arguments.matrix ? FigureView::kMatrix : FigureView::kHead;
  if (arguments.view) {
    if (*arguments.view == "matrix")
      spec.view = FigureView::kMatrix;
    else if (*arguments.view == "head")
      spec.view = FigureView::kHead;
    else if (*arguments.view == "heads")
      spec.view = FigureView::kHeads;
    else if (*arguments.view == "concat")
      spec.view = FigureView::kConcat;
    else
      return unknown_name("--view", *arguments.view, {"matrix", "head", "heads", "concat"});
  }
  if (!arguments.matrix) return Done{};
  if (spec.view != FigureView::kMatrix) {
    return usage_error("--matrix: goes with --view matrix, not with --view " + *arguments.view);
  }
  const std::optional<MatrixKind> kind = kind_from_key(*arguments.matrix);
  if (!kind) {
    std::vector<std::string_view> names;
    for (const MatrixKind each : kAllMatrixKinds) names.push_back(file_key(each));
    return unknown_name("--matrix", *arguments.matrix, names);
  }
  spec.matrix.kind = *kind;
  return Done{};
}

// The head, counted from 0 as in the arrays of `run`, of those that the chosen view or matrix has.
Status set_head(const RenderArguments& arguments, const Trace& trace, FigureSpec& spec) {
  const bool is_matrix = spec.view == FigureView::kMatrix;
  if (is_matrix && trace.find({spec.matrix.kind, 0}) == nullptr) {
    std::vector<std::string_view> names;
    for (const MatrixKind kind : kAllMatrixKinds) {
      if (trace.find({kind, 0}) != nullptr) names.push_back(file_key(kind));
    }
    return usage_error("--matrix: this file has no " + std::string(file_key(spec.matrix.kind)) + "; it has " +
                       name_list(names));
  }
  if (!arguments.head) return Done{};
  const bool has_heads = is_matrix ? is_per_head(spec.matrix.kind) : spec.view == FigureView::kHead;
  if (!has_heads) return usage_error("--head: this picture is not of one head; leave --head out");
  int heads = trace.shapes.heads;
  if (is_matrix && (spec.matrix.kind == MatrixKind::kK || spec.matrix.kind == MatrixKind::kV)) {
    heads = trace.shapes.kv_heads;
  }
  const Result<int> head = parse_int("--head", *arguments.head, 0, heads - 1);
  if (!head.ok()) return head.error();
  spec.matrix.head = head.value();
  return Done{};
}

Result<RangeSpec> parse_range(const std::string& text) {
  if (text == "auto") return RangeSpec{RangeMode::kAuto, 0, 1};
  if (text == "unit") return RangeSpec{RangeMode::kUnit, 0, 1};
  if (text == "log") return RangeSpec{RangeMode::kLog, 0, 1};
  if (text == "symmetric") return RangeSpec{RangeMode::kSymmetric, -1, 1};
  const std::size_t comma = text.find(',');
  if (comma == std::string::npos) return unknown_name("--range", text, {"auto", "unit", "symmetric", "log", "LO,HI"});
  const Result<float> low = parse_number("--range", text.substr(0, comma));
  if (!low.ok()) return low.error();
  const Result<float> high = parse_number("--range", text.substr(comma + 1));
  if (!high.ok()) return high.error();
  if (!(low.value() < high.value()) || !std::isfinite(high.value() - low.value())) {
    return usage_error("--range: LO must be less than HI, and both finite, but it is \"" + text + "\"");
  }
  return RangeSpec{RangeMode::kCustom, low.value(), high.value()};
}

bool is_diverging(std::string_view name) {
  for (const ColormapInfo& map : colormaps()) {
    if (map.name == name) return map.diverging;
  }
  return false;
}

// One matrix takes the map and range whatever its kind. In pictures of several, a diverging map goes to the signed
// matrices and a sequential one to the weights; "unit" and "log" are of weights, "symmetric" of signed ones, others of
// both.
Status set_colors(const RenderArguments& arguments, FigureSpec& spec) {
  const bool is_matrix = spec.view == FigureView::kMatrix;
  const bool weights_only = is_matrix ? is_weights(spec.matrix.kind) : spec.view == FigureView::kHeads;
  const bool signed_only = is_matrix ? !weights_only : spec.view == FigureView::kConcat;
  if (arguments.colormap) {
    const std::string& name = *arguments.colormap;
    if (!is_colormap(name)) {
      std::vector<std::string_view> names;
      for (const ColormapInfo& map : colormaps()) names.push_back(map.name);
      return unknown_name("--colormap", name, names);
    }
    const bool to_signed = signed_only || (!weights_only && is_diverging(name));
    (to_signed ? spec.look.signed_map : spec.look.weights_map) = name;
  }
  if (arguments.range) {
    const Result<RangeSpec> range = parse_range(*arguments.range);
    if (!range.ok()) return range.error();
    const RangeMode mode = range.value().mode;
    if (mode == RangeMode::kLog && signed_only) {
      return usage_error("--range: log is for weights, which have no sign; there are none in this picture");
    }
    const bool of_weights = mode == RangeMode::kUnit || mode == RangeMode::kLog;
    if (!signed_only && (weights_only || mode != RangeMode::kSymmetric)) spec.look.weights_range = range.value();
    if (!weights_only && (signed_only || !of_weights)) spec.look.signed_range = range.value();
  }
  return Done{};
}

Status set_look(const RenderArguments& arguments, FigureSpec& spec) {
  spec.transparent = arguments.transparent;
  if (arguments.raw_tokens) spec.look.raw_tokens = true;
  if (arguments.cell_px) {
    const Result<int> cell_px = parse_int("--cell-px", *arguments.cell_px, 1, 256);
    if (!cell_px.ok()) return cell_px.error();
    spec.cell_px = cell_px.value();
  }
  if (arguments.decimals) {
    const Result<int> decimals = parse_int("--decimals", *arguments.decimals, 0, 6);
    if (!decimals.ok()) return decimals.error();
    spec.look.decimals = decimals.value();
  }
  if (arguments.theme) {
    const Result<ThemeName> theme = parse_theme(*arguments.theme);
    if (!theme.ok()) return theme.error();
    spec.theme = theme.value();
  }
  return set_colors(arguments, spec);
}

// How the picture is written.
struct Output {
  PictureFormat format = PictureFormat::kPng;
  double scale = 1;
};

Result<Output> parse_output(const RenderArguments& arguments) {
  const Result<PictureFormat> format = parse_picture_format(*arguments.out, kAllPictureFormats);
  if (!format.ok()) return format.error();
  if (!arguments.scale) return Output{format.value(), 1};
  const Result<float> scale = parse_number("--picture-scale", *arguments.scale);
  if (!scale.ok()) return scale.error();
  // As it is written: 0.1 is not below 0.1 for being a float32.
  const double exact = std::round(static_cast<double>(scale.value()) * 1e6) / 1e6;
  if (!(exact >= kLeastPictureScale && exact <= kMostPictureScale)) {
    return usage_error("--picture-scale: \"" + *arguments.scale + "\" is not from " +
                       format_shortest(kLeastPictureScale) + " to " + format_shortest(kMostPictureScale));
  }
  return Output{format.value(), exact};
}

Status write_figure(const RenderArguments& arguments, const Figure& figure, const TextShaper& shaper,
                    const Output& output) {
  const Result<Bytes> picture = figure_bytes(figure, shaper, output.format, output.scale);
  if (!picture.ok()) {
    // A page that is too large is a matter of the arguments.
    const bool refused = picture.error().code == ErrorCode::kBadInput;
    return located(*arguments.out, refused ? usage_error(picture.error().message) : picture.error());
  }
  if (const Status written = write_output(*arguments.out, picture.value()); !written.ok()) return written;
  if (arguments.layout) {
    const std::string layout = layout_json(figure, output.scale);
    if (const Status written = write_output(*arguments.layout, as_bytes(layout)); !written.ok()) return written;
  }
  if (!arguments.verbose) return Done{};
  return print("wrote " + printable(*arguments.out) + " (" + picture_size(figure, output.format, output.scale) + ")\n");
}

Status render(const RenderArguments& arguments) {
  Result<Input> input = open_input(*arguments.file, arguments.mapping);
  if (!input.ok()) return input.error();
  Session& session = input.value().session;
  if (const Status set = apply_attention_flags(arguments.attention, session); !set.ok()) return set;
  FigureSpec spec;
  spec.look = session.view;
  spec.matrix.head = 0;
  if (const Status set = set_view(arguments, spec); !set.ok()) return set;
  if (const Status set = set_look(arguments, spec); !set.ok()) return set;
  const Result<Output> output = parse_output(arguments);
  if (!output.ok()) return output.error();
  spec.pixels_per_unit = pixels_per_unit(output.value().format, output.value().scale);
  const Status free = check_picture_outputs(*arguments.out, arguments.layout, input.value().path);
  if (!free.ok()) return free;

  const Result<Shapes> shapes = check_session(session);
  if (!shapes.ok()) return located(*arguments.file, shapes.error());
  if (const Status fits = check_figure_size(shapes.value()); !fits.ok()) return located(*arguments.file, fits.error());
  const Result<Trace> trace = compute(*arguments.file, session);
  if (!trace.ok()) return trace.error();
  if (const Status set = set_head(arguments, trace.value(), spec); !set.ok()) return set;
  const TextShaper shaper;
  const Result<Figure> figure = layout_figure(session, trace.value(), spec, shaper);
  // The file itself is in order here, so what the layout refuses (a picture too large) is about the arguments.
  if (!figure.ok()) return located(*arguments.file, usage_error(figure.error().message));
  return write_figure(arguments, figure.value(), shaper, output.value());
}

}  // namespace

int render_command(const Arguments& words) {
  RenderArguments arguments;
  CLI::App app{"Paints a figure of FILE and writes it as PNG, SVG or PDF. Needs neither OpenGL nor a display.",
               "qkvlab render"};
  add_text(app, "FILE", arguments.file, "",
           "Session or tensors (.npz, .npy, .safetensors, .csv), or the name of an example")
      ->required();
  add_text(app, "-o,--out", arguments.out, "OUT", "File to write: .png, .svg or .pdf")->required();
  add_text(app, "--view", arguments.view, "NAME",
           "matrix: the one of --matrix; head: its whole pipeline (default without --matrix); heads: the weights of "
           "all; concat: Concat·W^O");
  add_text(
      app, "--matrix", arguments.matrix, "NAME",
      "q k v scores scaled keep attn heads_out concat wo out, and alibi bias x wq wk wv bq bk bv bo where there are "
      "such");
  add_text(app, "--head", arguments.head, "H", "Which head, counted from 0 as in the arrays of run (default: 0)");
  add_text(app, "--cell-px", arguments.cell_px, "N", "Side of a cell in pixels, 1 to 256 (default: 32)");
  add_text(app, "--picture-scale", arguments.scale, "S",
           "Size of everything, 0.1 to 20 (default: 1): pixels of PNG, or 1/96 inch of SVG and PDF, that a pixel of "
           "--cell-px takes");
  add_text(app, "--colormap", arguments.colormap, "NAME",
           "viridis, cividis, magma, grey; for signed values blue-orange, purple-green");
  add_text(app, "--range", arguments.range, "RANGE",
           "Ends of the colours: auto, unit, symmetric, log (weights only), or LO,HI");
  add_text(app, "--decimals", arguments.decimals, "N",
           "Digits after the point in cells, 0 to 6 (default: the session's, or 3)");
  app.add_flag("--raw-tokens", arguments.raw_tokens, "Show tokens as they are stored, with marks such as Ġ or ▁");
  add_text(app, "--theme", arguments.theme, "NAME", "light (default) or dark");
  app.add_flag("--transparent", arguments.transparent, "No background");
  add_text(app, "--layout", arguments.layout, "OUT.json",
           "Write where each cell is, in pixels of PNG or 1/96 inch of SVG and PDF");
  add_attention_flags(app, arguments.attention);
  add_map_flags(app, arguments.mapping, "--axes");
  app.add_flag("--verbose", arguments.verbose, "Say what was written");
  app.footer(
      "Examples:\n"
      "  qkvlab render worked_example -o head.png\n"
      "  qkvlab render thinking_machines -o a3.png --matrix attn --head 2 --cell-px 48 --colormap magma\n"
      "  qkvlab render worked_example -o head.pdf --transparent\n"
      "  qkvlab render layer.npz -o heads.png --view heads --theme dark\n");
  if (const std::optional<int> code = parse_arguments(app, "FILE -o OUT.png|svg|pdf [options]", words)) return *code;
  return report(render(arguments));
}

}  // namespace qkv::cli
