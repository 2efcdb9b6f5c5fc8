// ImGui fonts: Inter with Noto behind it, glyphs loaded as text needs them.
#pragma once

#include <imgui.h>

#include <array>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

// The type scale. Sizes of an em in logical pixels.
enum class FontRole { kCaps11, kSmall11, kText13, kBold13, kText14, kBold14, kValue26, kCount };

// Owns which glyphs the atlas holds. User text that ImGui itself draws (file names, fields) is announced by
// want(); tokens are drawn through Pango instead (LabelCache).
class FontSet {
 public:
  // Finds the font files through fontconfig. Without Inter or Noto any sans-serif does.
  FontSet();
  ~FontSet();
  FontSet(const FontSet&) = delete;
  FontSet& operator=(const FontSet&) = delete;

  // Characters that every font has from the start: Latin, Greek, signs of the interface and of formulas.
  static std::u32string base_characters();

  // Asks for the characters of `text`; true if some were not loaded, so that build() is due.
  bool want(std::string_view text);
  bool needs_build(float scale) const;

  // Rebuilds the current ImGui context's atlas for `scale` device pixels per logical pixel, with tabular digits.
  void build(float scale);

  ImFont* get(FontRole role) const { return fonts_[static_cast<std::size_t>(role)]; }
  // Size to draw a role at, logical pixels: the height of its line. An em is what the role's name says.
  static float size(FontRole role);

 private:
  struct Files;
  void add_font(FontRole role, float scale);
  void set_advances(FontRole role, float scale);

  std::unique_ptr<Files> files_;              // open while the atlas may need them
  std::set<char32_t> glyphs_;                 // beyond those that are always loaded
  std::vector<std::vector<ImWchar>> ranges_;  // glyphs a font takes from a file; the atlas points into them
  bool dirty_ = true;
  float built_scale_ = 0;
  std::array<ImFont*, static_cast<std::size_t>(FontRole::kCount)> fonts_{};
};

}  // namespace qkv
