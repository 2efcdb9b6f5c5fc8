// What to export as a picture, how, and where to.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "app/panels/compare_tab.h"
#include "core/figure/picture_format.h"

namespace qkv {

// What pictures are made of.
struct PictureSource {
  const StageInput& stage;                    // with its lens
  const CompareResult* comparison = nullptr;  // whose tab is in front; null = another tab is
  ShownComparison shown = {};                 // of it
};

// One of them.
struct PictureSpec {
  FigureSpec figure;
  bool compared = false;  // the comparison, in place of the view of `figure`
};
// As the stage shows it. Errors: as layout_figure and layout_comparison.
Result<Figure> layout_picture(const PictureSource& of, const PictureSpec& spec, const TextShaper& shaper);

struct ExportState {
  struct Saved {
    PictureFormat format = PictureFormat::kPng;
    double scale = 1;
  };
  Saved last = {};  // how the last picture was saved: the next is offered so
  bool open = false, just_opened = false;
  FigureSpec spec;
  bool compared = false;                       // the comparison, in place of the view of `spec`
  PictureFormat format = PictureFormat::kPng;  // the end of the path's name follows it, and it follows the name
  double scale = 1;
  NumberEntry entry;
  TextFieldState path;
  bool browse = false;    // the person asked for the file dialog
  std::string problem;    // why the last try failed
  std::string size_text;  // "1240 × 830 pixels" or "328 × 220 mm", for what it was made for
  FigureSpec sized;
  bool sized_compared = false;
  PictureFormat sized_format = PictureFormat::kPng;
  double sized_scale = 0;
  std::uint64_t sized_version = 0;
};

void open_export_dialog(ExportState& state, const PictureSource& of, const StageState& stage, ThemeName theme,
                        const std::filesystem::path& folder);

struct ExportRequest {
  PictureSpec spec;
  PictureFormat format = PictureFormat::kPng;
  double scale = 1;
  std::filesystem::path path;
};
// What the person confirmed in this frame.
std::optional<ExportRequest> draw_export_dialog(Ui& ui, const PictureSource& of, ExportState& state);

// A title as the start of a file name: "The worked example" → "the-worked-example"; "attention" where nothing is left.
std::string file_stem(const std::string& title);
// "the worked example" → "the-worked-example-heads.png"
std::string export_file_name(const std::string& title, const FigureSpec& spec,
                             PictureFormat format = PictureFormat::kPng);

}  // namespace qkv
