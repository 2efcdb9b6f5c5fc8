#include "app/ui/label_cache.h"

#include <cstring>
#include <utility>

namespace qkv {
namespace {

// Labels unseen for this many frames are freed.
constexpr std::uint64_t kKeepFrames = 240;

std::string key_of(std::string_view text, const TextStyle& style) {
  std::string key(text);
  const double numbers[] = {style.size, style.max_width};
  const unsigned char bytes[] = {style.bold, style.color.r, style.color.g, style.color.b, style.color.a};
  key.push_back('\0');
  key.append(reinterpret_cast<const char*>(numbers), sizeof numbers);
  key.append(reinterpret_cast<const char*>(bytes), sizeof bytes);
  return key;
}

}  // namespace

LabelCache::~LabelCache() {
  for (auto& [key, entry] : entries_)
    if (entry.has_texture) images_.destroy(entry.label.texture);
}

void LabelCache::begin_frame(float scale) {
  ++frame_;
  const bool rescaled = scale != scale_;
  scale_ = scale;
  for (auto it = entries_.begin(); it != entries_.end();) {
    if (rescaled || it->second.last_frame + kKeepFrames < frame_) {
      if (it->second.has_texture) images_.destroy(it->second.label.texture);
      it = entries_.erase(it);
    } else {
      ++it;
    }
  }
}

LabelCache::Entry& LabelCache::entry(std::string_view text, const TextStyle& style) {
  auto [it, is_new] = entries_.try_emplace(key_of(text, style));
  if (is_new) it->second.label.size = shaper_.measure(text, style);
  it->second.last_frame = frame_;
  return it->second;
}

const Label& LabelCache::get(std::string_view text, const TextStyle& style) {
  Entry& found = entry(text, style);
  if (!found.has_texture) {
    const PixelImage image = shaper_.render(text, style, scale_);
    if (image.width > 0 && image.height > 0) found.label.texture = images_.create(image);
    found.label.texture_size = {static_cast<float>(image.width) / scale_, static_cast<float>(image.height) / scale_};
    found.has_texture = image.width > 0 && image.height > 0;
  }
  return found.label;
}

TextSize LabelCache::measure(std::string_view text, const TextStyle& style) { return entry(text, style).label.size; }

}  // namespace qkv
