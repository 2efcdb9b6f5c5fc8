// ImGui fonts: Inter with Noto behind it, glyphs loaded as text needs them.
#pragma once

#include <imgui.h>

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

// The type scale. Sizes in logical pixels.
enum class FontRole { kCaps11, kSmall11, kText13, kBold13, kText14, kBold14, kValue26, kCount };

// Owns which glyphs the atlas holds. User text that ImGui itself draws (file names, fields) is announced by
// want(); tokens are drawn through Pango instead (LabelCache).
class FontSet {
 public:
  // Finds the font files through fontconfig. Without Inter or Noto any sans-serif does.
  FontSet();

  // Asks for the characters of `text`; true if some were not loaded, so that build() is due.
  bool want(std::string_view text);
  bool needs_build(float scale) const;

  // Rebuilds the current ImGui context's atlas for `scale` device pixels per logical pixel, with tabular digits.
  void build(float scale);

  ImFont* get(FontRole role) const { return fonts_[static_cast<std::size_t>(role)]; }
  // Size to draw a role at, logical pixels.
  static float size(FontRole role);

 private:
  struct File {
    std::filesystem::path path;
    int index = 0;
  };
  std::vector<File> regular_, bold_;   // in order of preference
  std::set<ImWchar> glyphs_;           // beyond those that are always loaded
  bool dirty_ = true;
  float built_scale_ = 0;
  ImFont* fonts_[static_cast<std::size_t>(FontRole::kCount)] = {};
};

}  // namespace qkv
