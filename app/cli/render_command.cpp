// `qkvlab render`: a figure without OpenGL or a display.
#include "app/cli/attention_flags.h"
#include "app/cli/commands.h"
#include "app/cli/figure_flags.h"
#include "app/cli/lens_flags.h"
#include "app/cli/map_flags.h"

namespace qkv::cli {
namespace {

struct RenderArguments {
  std::optional<std::string> file, out, view, matrix, head, lens, target, layout;
  FigureFlags figure;
  AttentionFlags attention;
  MapFlags mapping;
  bool verbose = false;
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

// What the cells show: what --lens says, else the session. Given weights have no lens.
Status set_lens(const RenderArguments& arguments, const Session& session, ViewSettings& look) {
  const bool given = is_weights_only(session.problem.source);
  if (arguments.lens) {
    const Result<Lens> lens = parse_lens(*arguments.lens);
    if (!lens.ok()) return lens.error();
    look.lens = lens.value();
    if (look.lens != Lens::kValues && given) return lens_needs_inputs(*arguments.lens);
  }
  if (given) look.lens = Lens::kValues;
  if (arguments.target && look.lens != Lens::kGradient) {
    return usage_error("--target: says what the gradient is of; give it with --lens gradient");
  }
  return Done{};
}

// What the lens shows; nullopt for values.
Result<std::optional<LensCells>> compute_lens(const RenderArguments& arguments, const Trace& trace, Lens lens) {
  if (lens == Lens::kValues) return std::optional<LensCells>();
  GradientTarget target;
  if (arguments.target) {
    const Result<GradientTarget> parsed = parse_target("--target", *arguments.target);
    if (!parsed.ok()) return parsed.error();
    target = parsed.value();
  }
  Result<LensCells> cells = lens_cells(trace, lens, target);
  if (cells.ok()) return std::optional(std::move(cells).value());
  const bool no_such_cell = target.cell && cells.error().code == ErrorCode::kBadInput;
  if (no_such_cell) return located("--target", usage_error(cells.error().message));
  return located(*arguments.file, cells.error());
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
  if (const Status set = set_lens(arguments, session, spec.look); !set.ok()) return set;
  if (const Status set = set_look(arguments.figure, spec); !set.ok()) return set;
  const Result<FigureOutput> output = figure_output(arguments.figure, *arguments.out, arguments.layout);
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
  const Result<std::optional<LensCells>> lens = compute_lens(arguments, trace.value(), spec.look.lens);
  if (!lens.ok()) return lens.error();
  const LensCells* shown = lens.value() ? &*lens.value() : nullptr;
  const TextShaper shaper;
  const Result<Figure> figure = layout_figure(session, trace.value(), spec, shaper, shown);
  // The file itself is in order here, so what the layout refuses (a picture too large) is about the arguments.
  if (!figure.ok()) return located(*arguments.file, usage_error(figure.error().message));
  if (const Status written = write_figure(figure.value(), shaper, output.value()); !written.ok()) return written;
  return arguments.verbose ? print(written_words(figure.value(), output.value())) : Status(Done{});
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
  add_text(app, "--lens", arguments.lens, "NAME",
           "What cells show: values, gradient, or the difference from float64 of float32, bfloat16, float16 (default: "
           "what the session says)");
  add_text(app, "--target", arguments.target, "TARGET",
           "What --lens gradient is of, as run --gradient has it: sum-of-squares (default), out:ROW:COL, "
           "attn:HEAD:ROW:COL and so on");
  add_figure_flags(app, arguments.figure, "32");
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
      "  qkvlab render worked_example -o gradient.svg --lens gradient --target attn:0:1:2\n"
      "  qkvlab render layer.npz -o heads.png --view heads --theme dark\n");
  if (const std::optional<int> code = parse_arguments(app, "FILE -o OUT.png|svg|pdf [options]", words)) return *code;
  return report(render(arguments));
}

}  // namespace qkv::cli
