// How a figure looks and how it is written: the flags that all commands with figures share.
#pragma once

#include "app/cli/common.h"
#include "core/figure/figure.h"

namespace qkv::cli {

// The words as given.
struct FigureFlags {
  std::optional<std::string> cell_px, scale, colormap, range, decimals, theme;
  bool raw_tokens = false, transparent = false;
};
// `cell_default` says what --cell-px is when it is not given.
void add_figure_flags(CLI::App& app, FigureFlags& flags, const std::string& cell_default);
// The first that was given, "--theme"; empty for none.
std::string_view first_given(const FigureFlags& flags);

// Whose view and matrix are set: colours go to the matrices that it draws. Errors: kUsage naming the flag.
Status set_look(const FigureFlags& flags, FigureSpec& spec);

// How and where a figure is written.
struct FigureOutput {
  PictureFormat format = PictureFormat::kPng;
  double scale = 1;
  std::string path;
  std::optional<std::string> layout = {};  // where each cell is, as JSON
};
// Errors: kUsage for a name of no picture, or a scale out of range.
Result<FigureOutput> figure_output(const FigureFlags& flags, const std::string& out,
                                   const std::optional<std::string>& layout = {});
Status write_figure(const Figure& figure, const TextShaper& shaper, const FigureOutput& output);
// "wrote head.png (1240 × 830 pixels)" and the end of the line.
std::string written_words(const Figure& figure, const FigureOutput& output);

}  // namespace qkv::cli
