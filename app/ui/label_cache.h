// User text as small textures made by Pango, kept while it is drawn.
#pragma once

#include <imgui.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "app/ui/image_store.h"
#include "core/figure/text.h"

namespace qkv {

// A drawn text. Sizes in logical pixels; the texture is padded to whole device pixels.
struct Label {
  ImTextureID texture = {};
  ImVec2 texture_size;
  TextSize size;
};

class LabelCache {
 public:
  explicit LabelCache(ImageStore& images) : images_(images) {}
  ~LabelCache();
  LabelCache(const LabelCache&) = delete;
  LabelCache& operator=(const LabelCache&) = delete;

  // Once a frame, before the first label; frees labels that were not drawn for a while.
  void begin_frame(float scale);
  const Label& get(std::string_view text, const TextStyle& style);
  // Size alone, remembered like a label but without a texture.
  TextSize measure(std::string_view text, const TextStyle& style);
  const TextShaper& shaper() const { return shaper_; }

 private:
  struct Entry {
    Label label;
    std::uint64_t last_frame = 0;
    bool has_texture = false;
  };
  Entry& entry(std::string_view text, const TextStyle& style);

  ImageStore& images_;
  TextShaper shaper_;
  std::unordered_map<std::string, Entry> entries_;
  std::uint64_t frame_ = 0;
  float scale_ = 1;
};

}  // namespace qkv
