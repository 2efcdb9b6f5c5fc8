#include "app/panels/reading_bar.h"

#include <algorithm>

#include "app/reading_words.h"
#include "app/ui/controls.h"

namespace qkv {

void draw_reading_bar(Ui& ui, const std::string& name, const ReadProgress& progress) {
  constexpr float kBar = 6, kText = 20;
  const auto share = static_cast<float>(share_read(progress));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const ImVec2 end{at.x + width, at.y + kBar};
  ui.widgets->add(name, at, end);
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(at, end, to_u32(ui.colors().line), kBar / 2);
  // Not narrower than its round ends.
  const float filled = std::max(kBar, width * share);
  if (share > 0) list->AddRectFilled(at, {at.x + filled, end.y}, to_u32(ui.colors().accent), kBar / 2);
  const ImVec2 below{at.x, end.y + 4}, corner{end.x, end.y + 4 + kText};
  draw_text_in(ui, list, FontRole::kText13, below, corner, ui.colors().text, reading_words(progress), TextAlign::kLeft);
  draw_text_in(ui, list, FontRole::kText13, below, corner, ui.colors().dim, percent_words(progress), TextAlign::kRight);
  ImGui::SetCursorScreenPos({at.x, corner.y});
  ui.redraw_within(0.1);
}

}  // namespace qkv
