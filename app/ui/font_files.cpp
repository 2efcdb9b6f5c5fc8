#include "app/ui/font_files.h"

#include <fcntl.h>
#include <fontconfig/fontconfig.h>
#include <ft2build.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include FT_FREETYPE_H
#include FT_ADVANCES_H

namespace qkv {
namespace {

using Pattern = std::unique_ptr<FcPattern, decltype(&FcPatternDestroy)>;

const FcChar8* fc_text(const std::string& text) { return reinterpret_cast<const FcChar8*>(text.c_str()); }

bool has_family(const FcPattern* pattern, const std::string& family) {
  FcChar8* name = nullptr;
  for (int i = 0; FcPatternGetString(pattern, FC_FAMILY, i, &name) == FcResultMatch; ++i)
    if (FcStrCmpIgnoreCase(name, fc_text(family)) == 0) return true;
  return false;
}

}  // namespace

FontFile::~FontFile() {
  if (face_ != nullptr) FT_Done_Face(face_);
  if (data_ != nullptr) munmap(data_, size_);
}

bool FontFile::has(char32_t character) const { return FT_Get_Char_Index(face_, character) != 0; }

double FontFile::advance(char32_t character) const {
  const FT_UInt glyph = FT_Get_Char_Index(face_, character);
  FT_Fixed units = 0;
  if (glyph == 0 || FT_Get_Advance(face_, glyph, FT_LOAD_NO_SCALE, &units) != 0) return 0;
  return static_cast<double>(units) / face_->units_per_EM;
}

double FontFile::ascent() const { return static_cast<double>(face_->ascender) / face_->units_per_EM; }
double FontFile::descent() const { return -static_cast<double>(face_->descender) / face_->units_per_EM; }

FontLibrary::FontLibrary() {
  if (FT_Init_FreeType(&library_) != 0) library_ = nullptr;
}

FontLibrary::~FontLibrary() {
  if (library_ != nullptr) FT_Done_FreeType(library_);
}

std::unique_ptr<FontFile> FontLibrary::find(const std::string& family, bool semibold) const {
  return match(family, semibold, true);
}

std::unique_ptr<FontFile> FontLibrary::find_any(bool semibold) const { return match("sans-serif", semibold, false); }

std::unique_ptr<FontFile> FontLibrary::match(const std::string& family, bool semibold, bool exact) const {
  const Pattern wanted(FcPatternCreate(), FcPatternDestroy);
  FcPatternAddString(wanted.get(), FC_FAMILY, fc_text(family));
  FcPatternAddInteger(wanted.get(), FC_WEIGHT, semibold ? FC_WEIGHT_DEMIBOLD : FC_WEIGHT_REGULAR);
  FcPatternAddInteger(wanted.get(), FC_SLANT, FC_SLANT_ROMAN);
  FcPatternAddBool(wanted.get(), FC_SCALABLE, FcTrue);
  FcConfigSubstitute(nullptr, wanted.get(), FcMatchPattern);
  FcDefaultSubstitute(wanted.get());
  FcResult result = FcResultNoMatch;
  const Pattern found(FcFontMatch(nullptr, wanted.get(), &result), FcPatternDestroy);
  if (found == nullptr || result != FcResultMatch) return nullptr;
  if (exact && !has_family(found.get(), family)) return nullptr;

  FcChar8* path = nullptr;
  int index = 0;
  if (FcPatternGetString(found.get(), FC_FILE, 0, &path) != FcResultMatch) return nullptr;
  if (FcPatternGetInteger(found.get(), FC_INDEX, 0, &index) != FcResultMatch) index = 0;
  return open(reinterpret_cast<const char*>(path), index);
}

std::unique_ptr<FontFile> FontLibrary::open(const std::string& path, int index) const {
  if (library_ == nullptr) return nullptr;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return nullptr;
  struct stat info {};
  void* data = MAP_FAILED;
  if (fstat(file, &info) == 0 && info.st_size > 0)
    data = mmap(nullptr, static_cast<std::size_t>(info.st_size), PROT_READ, MAP_PRIVATE, file, 0);
  ::close(file);
  if (data == MAP_FAILED) return nullptr;

  std::unique_ptr<FontFile> font(new FontFile);
  font->data_ = data;
  font->size_ = static_cast<std::size_t>(info.st_size);
  font->index_ = index;
  const auto* bytes = static_cast<const FT_Byte*>(data);
  if (FT_New_Memory_Face(library_, bytes, static_cast<FT_Long>(font->size_), index, &font->face_) != 0) return nullptr;
  const bool usable = FT_IS_SCALABLE(font->face_) && font->face_->units_per_EM > 0;
  return usable ? std::move(font) : nullptr;
}

}  // namespace qkv
