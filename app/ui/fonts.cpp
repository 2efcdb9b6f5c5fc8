#include "app/ui/fonts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "app/platform/imgui_compat.h"
#include "app/ui/font_files.h"
#include "core/base/utf8.h"

namespace qkv {
namespace {

struct RoleInfo {
  float em, line;  // logical pixels
  bool bold;
  bool user_text;  // also has the characters that want() asked for
};

constexpr std::array<RoleInfo, static_cast<std::size_t>(FontRole::kCount)> kRoles{{
    {11, 13, true, false},   // kCaps11
    {11, 13, false, false},  // kSmall11
    {13, 16, false, true},   // kText13
    {13, 16, true, false},   // kBold13
    {14, 17, false, true},   // kText14
    {14, 17, true, false},   // kBold14
    {26, 31, true, false},   // kValue26
}};

const RoleInfo& info_of(FontRole role) { return kRoles[static_cast<std::size_t>(role)]; }

constexpr std::pair<char32_t, char32_t> kBaseBlocks[] = {
    {0x20, 0x7e},     {0xa0, 0xac},   {0xae, 0xff},                                    // Latin-1, without soft hyphen
    {0x386, 0x386},   {0x388, 0x38a}, {0x38c, 0x38c}, {0x38e, 0x3a1}, {0x3a3, 0x3ce},  // Greek
    {0x2080, 0x2089},                                                                  // subscript digits
};

// Latin Extended-A, for fonts that show user text: names of files are not announced before they are drawn.
constexpr std::pair<char32_t, char32_t> kUserTextBlock{0x100, 0x17f};

constexpr std::u32string_view kBaseSigns =
    U"–—‘’‚“”„•…‹›′″€"          // punctuation
    U"⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿᵀᴼᴷⱽ"        // superscripts
    U"ₐₑᵢⱼₖₘₙₒₚₓₕᵥₜ₊₋"          // subscripts
    U"←↑→↓↔↕⇧⇥"                 // arrows and keys
    U"√∞≈≠≤≥−∑∏∈∉∂∇·×÷±ℝ∘⊙⊕⟨⟩"  // mathematics
    U"⌘⌥✓✕▲▼◀▶●○■□"             // signs of the interface
    U"\uFFFD";                  // a character that no font has

// Sorted pairs of first and last character, ended by zero, as ImGui wants them.
std::vector<ImWchar> to_ranges(const std::vector<char32_t>& sorted) {
  std::vector<ImWchar> ranges;
  for (const char32_t c : sorted) {
    const auto wide = static_cast<ImWchar>(c);
    if (!ranges.empty() && ranges.back() + 1 == wide) {
      ranges.back() = wide;
    } else {
      ranges.push_back(wide);
      ranges.push_back(wide);
    }
  }
  ranges.push_back(0);
  return ranges;
}

bool fits_imgui(char32_t c) { return c <= static_cast<char32_t>(std::numeric_limits<ImWchar>::max()); }

}  // namespace

// The library goes last: faces are closed before it.
struct FontSet::Files {
  FontLibrary library;
  std::vector<std::unique_ptr<FontFile>> regular, bold;  // in order of preference
  std::u32string base;                                   // sorted

  const std::vector<std::unique_ptr<FontFile>>& of(bool is_bold) const { return is_bold ? bold : regular; }
  // The first file that has the character; nullptr when none does.
  const FontFile* with(char32_t c, bool is_bold) const {
    for (const auto& file : of(is_bold))
      if (file->has(c)) return file.get();
    return nullptr;
  }
};

FontSet::FontSet() : files_(std::make_unique<Files>()) {
  for (const bool bold : {false, true}) {
    auto& files = bold ? files_->bold : files_->regular;
    for (const char* family : {"Inter", "Noto Sans", "Noto Sans Math", "Noto Sans Symbols", "Noto Sans Symbols2",
                               "Noto Sans CJK TC", "DejaVu Sans"})
      if (auto file = files_->library.find(family, bold)) files.push_back(std::move(file));
    if (auto file = files_->library.find_any(bold)) files.push_back(std::move(file));
  }
  files_->base = base_characters();
}

FontSet::~FontSet() = default;

std::u32string FontSet::base_characters() {
  std::u32string characters(kBaseSigns);
  for (const auto& [first, last] : kBaseBlocks)
    for (char32_t c = first; c <= last; ++c) characters.push_back(c);
  std::sort(characters.begin(), characters.end());
  characters.erase(std::unique(characters.begin(), characters.end()), characters.end());
  return characters;
}

float FontSet::size(FontRole role) { return info_of(role).line; }

bool FontSet::want(std::string_view text) {
  if (compat::kFontsLoadGlyphsThemselves) return false;
  bool is_new = false;
  for (std::size_t pos = 0; pos < text.size();) {
    const char32_t c = next_code_point(text, pos);
    if (c < 0x7f || !fits_imgui(c) || glyphs_.contains(c)) continue;
    if (c >= kUserTextBlock.first && c <= kUserTextBlock.second) continue;
    if (std::binary_search(files_->base.begin(), files_->base.end(), c)) continue;
    if (files_->with(c, false) == nullptr) continue;
    glyphs_.insert(c);
    is_new = true;
  }
  dirty_ = dirty_ || is_new;
  return is_new;
}

bool FontSet::needs_build(float scale) const { return dirty_ || scale != built_scale_; }

void FontSet::build(float scale) {
  ImGuiIO& io = ImGui::GetIO();
  io.Fonts->Clear();
  ranges_.clear();
  compat::use_freetype(*io.Fonts);
  for (std::size_t i = 0; i < kRoles.size(); ++i) add_font(static_cast<FontRole>(i), scale);
  compat::build_atlas(*io.Fonts);
  for (std::size_t i = 0; i < kRoles.size(); ++i) set_advances(static_cast<FontRole>(i), scale);
  io.FontDefault = get(FontRole::kText13);
  compat::set_font_scale(io, scale);
  dirty_ = false;
  built_scale_ = scale;
}

void FontSet::add_font(FontRole role, float scale) {
  const RoleInfo& info = info_of(role);
  const auto& files = files_->of(info.bold);
  std::vector<char32_t> characters(files_->base.begin(), files_->base.end());
  if (info.user_text) {
    for (char32_t c = kUserTextBlock.first; c <= kUserTextBlock.second; ++c) characters.push_back(c);
    characters.insert(characters.end(), glyphs_.begin(), glyphs_.end());
  }
  std::sort(characters.begin(), characters.end());

  ImFont*& font = fonts_[static_cast<std::size_t>(role)];
  font = nullptr;
  compat::FontSource source;
  source.em = std::round(info.em * scale);
  source.line = info.line * scale;
  for (const auto& file : files) {
    std::vector<char32_t> found;
    for (const char32_t c : characters)
      if (file->has(c)) found.push_back(c);
    if (found.empty()) continue;
    std::erase_if(characters, [&](char32_t c) { return file->has(c); });
    if (font == nullptr) {
      // The text's height stands in the middle of the line, whatever the metrics of the first file.
      const double height = (file->ascent() + file->descent()) * static_cast<double>(source.em);
      source.offset_y = static_cast<float>(std::round((static_cast<double>(source.line) - height) / 2));
    }
    source.data = file->data();
    source.size = file->size();
    source.face_index = file->face_index();
    source.ranges = ranges_.emplace_back(to_ranges(found)).data();
    font = compat::add_font(*ImGui::GetIO().Fonts, source, font);
  }
  if (font == nullptr) font = ImGui::GetIO().Fonts->AddFontDefault();
}

// ImGui's builder rounds every advance up, which spreads text: the fonts' own widths take their place. Digits get
// one width, so that numbers stand in columns.
void FontSet::set_advances(FontRole role, float scale) {
  const RoleInfo& info = info_of(role);
  const double em = std::round(static_cast<double>(info.em * scale));
  const auto advance = [&](char32_t c) {
    const FontFile* file = files_->with(c, info.bold);
    return file == nullptr ? 0.0f : static_cast<float>(file->advance(c) * em);
  };
  float digit = 0;
  for (char32_t c = U'0'; c <= U'9'; ++c) digit = std::max(digit, advance(c));
  digit = std::round(digit);
  compat::set_metrics(*get(role), info.line * scale, [&](char32_t c, float built) {
    const float own = advance(c);
    if (own <= 0) return compat::Advance{built, 0};
    if (c < U'0' || c > U'9') return compat::Advance{own, 0};
    return compat::Advance{digit, std::round((digit - own) / 2)};
  });
}

}  // namespace qkv
