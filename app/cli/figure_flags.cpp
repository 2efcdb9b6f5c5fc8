#include "app/cli/figure_flags.h"

#include <cmath>
#include <utility>

#include "core/base/number_text.h"

namespace qkv::cli {
namespace {

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
Status set_colors(const FigureFlags& flags, FigureSpec& spec) {
  const bool is_matrix = spec.view == FigureView::kMatrix;
  const bool weights_only = is_matrix ? is_weights(spec.matrix.kind) : spec.view == FigureView::kHeads;
  const bool signed_only = is_matrix ? !weights_only : spec.view == FigureView::kConcat;
  if (flags.colormap) {
    const std::string& name = *flags.colormap;
    if (!is_colormap(name)) {
      std::vector<std::string_view> names;
      for (const ColormapInfo& map : colormaps()) names.push_back(map.name);
      return unknown_name("--colormap", name, names);
    }
    const bool to_signed = signed_only || (!weights_only && is_diverging(name));
    (to_signed ? spec.look.signed_map : spec.look.weights_map) = name;
  }
  if (flags.range) {
    const Result<RangeSpec> range = parse_range(*flags.range);
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

}  // namespace

void add_figure_flags(CLI::App& app, FigureFlags& flags, const std::string& cell_default) {
  add_text(app, "--cell-px", flags.cell_px, "N", "Side of a cell in pixels, 1 to 256 (default: " + cell_default + ")");
  add_text(app, "--picture-scale", flags.scale, "S",
           "Size of everything, 0.1 to 20 (default: 1): pixels of PNG, or 1/96 inch of SVG and PDF, that a pixel of "
           "--cell-px takes");
  add_text(app, "--colormap", flags.colormap, "NAME",
           "viridis, cividis, magma, grey; for signed values blue-orange, purple-green");
  add_text(app, "--range", flags.range, "RANGE",
           "Ends of the colours: auto, unit, symmetric, log (weights only), or LO,HI");
  add_text(app, "--decimals", flags.decimals, "N",
           "Digits after the point in cells, 0 to 6 (default: the session's, or 3)");
  app.add_flag("--raw-tokens", flags.raw_tokens, "Show tokens as they are stored, with marks such as Ġ or ▁");
  add_text(app, "--theme", flags.theme, "NAME", "light (default) or dark");
  app.add_flag("--transparent", flags.transparent, "No background");
}

std::string_view first_given(const FigureFlags& flags) {
  const std::pair<bool, std::string_view> all[] = {
      {flags.cell_px.has_value(), "--cell-px"},   {flags.scale.has_value(), "--picture-scale"},
      {flags.colormap.has_value(), "--colormap"}, {flags.range.has_value(), "--range"},
      {flags.decimals.has_value(), "--decimals"}, {flags.raw_tokens, "--raw-tokens"},
      {flags.theme.has_value(), "--theme"},       {flags.transparent, "--transparent"}};
  for (const auto& [given, name] : all) {
    if (given) return name;
  }
  return "";
}

Status set_look(const FigureFlags& flags, FigureSpec& spec) {
  spec.transparent = flags.transparent;
  if (flags.raw_tokens) spec.look.raw_tokens = true;
  if (flags.cell_px) {
    const Result<int> cell_px = parse_int("--cell-px", *flags.cell_px, 1, 256);
    if (!cell_px.ok()) return cell_px.error();
    spec.cell_px = cell_px.value();
  }
  if (flags.decimals) {
    const Result<int> decimals = parse_int("--decimals", *flags.decimals, 0, 6);
    if (!decimals.ok()) return decimals.error();
    spec.look.decimals = decimals.value();
  }
  if (flags.theme) {
    const Result<ThemeName> theme = parse_theme(*flags.theme);
    if (!theme.ok()) return theme.error();
    spec.theme = theme.value();
  }
  return set_colors(flags, spec);
}

Result<FigureOutput> figure_output(const FigureFlags& flags, const std::string& out,
                                   const std::optional<std::string>& layout) {
  const Result<PictureFormat> format = parse_picture_format(out, kAllPictureFormats);
  if (!format.ok()) return format.error();
  if (!flags.scale) return FigureOutput{format.value(), 1, out, layout};
  const Result<float> scale = parse_number("--picture-scale", *flags.scale);
  if (!scale.ok()) return scale.error();
  // As it is written: 0.1 is not below 0.1 for being a float32.
  const double exact = std::round(static_cast<double>(scale.value()) * 1e6) / 1e6;
  if (!(exact >= kLeastPictureScale && exact <= kMostPictureScale)) {
    return usage_error("--picture-scale: \"" + *flags.scale + "\" is not from " + format_shortest(kLeastPictureScale) +
                       " to " + format_shortest(kMostPictureScale));
  }
  return FigureOutput{format.value(), exact, out, layout};
}

Status write_figure(const Figure& figure, const TextShaper& shaper, const FigureOutput& output) {
  const Result<Bytes> picture = figure_bytes(figure, shaper, output.format, output.scale);
  if (!picture.ok()) {
    // A page that is too large is a matter of the arguments.
    const bool refused = picture.error().code == ErrorCode::kBadInput;
    return located(output.path, refused ? usage_error(picture.error().message) : picture.error());
  }
  if (const Status written = write_output(output.path, picture.value()); !written.ok()) return written;
  if (!output.layout) return Done{};
  return write_output(*output.layout, as_bytes(layout_json(figure, output.scale)));
}

std::string written_words(const Figure& figure, const FigureOutput& output) {
  return "wrote " + printable(output.path) + " (" + picture_size(figure, output.format, output.scale) + ")\n";
}

}  // namespace qkv::cli
