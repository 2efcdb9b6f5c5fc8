// What to export as a picture, how, and where to.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "app/panels/stage.h"
#include "core/figure/picture_format.h"

namespace qkv {

struct ExportState {
  bool open = false, just_opened = false;
  FigureSpec spec;
  PictureFormat format = PictureFormat::kPng;  // the end of the path's name follows it, and it follows the name
  double scale = 1;
  NumberEntry entry;
  TextFieldState path;
  bool browse = false;    // the person asked for the file dialog
  std::string problem;    // why the last try failed
  std::string size_text;  // "1240 × 830 pixels" or "328 × 220 mm", for what it was made for
  FigureSpec sized;
  PictureFormat sized_format = PictureFormat::kPng;
  double sized_scale = 0;
  std::uint64_t sized_version = 0;
};

void open_export_dialog(ExportState& state, const StageInput& in, const StageState& stage, ThemeName theme,
                        const std::filesystem::path& folder);

struct ExportRequest {
  FigureSpec spec;
  PictureFormat format = PictureFormat::kPng;
  double scale = 1;
  std::filesystem::path path;
};
// What the person confirmed in this frame.
std::optional<ExportRequest> draw_export_dialog(Ui& ui, const StageInput& in, ExportState& state);

// A title as the start of a file name: "The worked example" → "the-worked-example"; "attention" where nothing is left.
std::string file_stem(const std::string& title);
// "the worked example" → "the-worked-example-heads.png"
std::string export_file_name(const std::string& title, const FigureSpec& spec,
                             PictureFormat format = PictureFormat::kPng);

}  // namespace qkv
