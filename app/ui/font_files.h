// Font files: found through fontconfig, mapped into memory, asked which glyphs they have.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

struct FT_LibraryRec_;
struct FT_FaceRec_;

namespace qkv {

// One face of a font file, open for reading.
class FontFile {
 public:
  ~FontFile();
  FontFile(const FontFile&) = delete;
  FontFile& operator=(const FontFile&) = delete;

  bool has(char32_t character) const;
  // Width of a character, unhinted, in ems; 0 when absent.
  double advance(char32_t character) const;
  // Height above the baseline and depth below it (positive), in ems.
  double ascent() const;
  double descent() const;

  const void* data() const { return data_; }
  std::size_t size() const { return size_; }
  int face_index() const { return index_; }

 private:
  friend class FontLibrary;
  FontFile() = default;

  void* data_ = nullptr;  // mapped, read-only
  std::size_t size_ = 0;
  int index_ = 0;
  FT_FaceRec_* face_ = nullptr;
};

// Opens fonts; must outlive its files.
class FontLibrary {
 public:
  FontLibrary();
  ~FontLibrary();
  FontLibrary(const FontLibrary&) = delete;
  FontLibrary& operator=(const FontLibrary&) = delete;

  // The face of exactly this family that is nearest to the weight; nullptr where there is none.
  std::unique_ptr<FontFile> find(const std::string& family, bool semibold) const;
  // Whatever fontconfig offers as sans-serif.
  std::unique_ptr<FontFile> find_any(bool semibold) const;

 private:
  std::unique_ptr<FontFile> match(const std::string& family, bool semibold, bool exact) const;
  std::unique_ptr<FontFile> open(const std::string& path, int index) const;

  FT_LibraryRec_* library_ = nullptr;
};

}  // namespace qkv
