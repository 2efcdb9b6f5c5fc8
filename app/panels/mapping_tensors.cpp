// The tensors of the mapping dialog's files.
#include <algorithm>
#include <utility>

#include "app/panels/mapping_parts.h"
#include "core/session/bfloat16_bits.h"
#include "core/session/tensor_names.h"
#include "core/tensor_io/npy.h"

namespace qkv::mapping_parts {
namespace {

constexpr float kButtons = 40, kSwitch = 32;  // heights below the list

void assign(MappingDialogState& state, Role role, const std::string& name, const std::string& tensor) {
  state.request.tensors[role] = name;
  state.request.layouts.erase(role);
  state.request.layout.reset();
  // One tensor of all three plays its two other roles as well.
  const bool three = std::ranges::any_of(read_name(tensor), [](const NameReading& reading) { return reading.fused; });
  const RoleForm form = form_of(role);
  if (three && (form == RoleForm::kHeads || form == RoleForm::kWeights)) {
    const std::size_t first = static_cast<std::size_t>(role) - place_among_three(role);
    for (std::size_t i = 0; i < 3; ++i) state.request.tensors[kAllRoles[first + i]] = name;
  }
  propose(state);
}

// Goes on to the next role that the session needs and no tensor plays.
void choose_next_role(MappingDialogState& state) {
  std::vector<Role> roles = needed_roles(shown_kind(state));
  const auto chosen = std::ranges::find(roles, state.chosen);
  if (chosen == roles.end()) return;
  std::rotate(roles.begin(), chosen, roles.end());
  const auto next = std::ranges::find_if(roles, [&](Role role) { return !tensor_of(state, role); });
  if (next != roles.end()) state.chosen = *next;
}

// A line of the list: a tensor, or the name of the file that the next ones are of.
struct Entry {
  std::size_t file = 0;
  const TensorInfo* info = nullptr;
};

std::size_t count_entries(const TensorSet& files) {
  std::size_t count = 0;
  for (const NamedTensors& file : files) count += file.file.tensors().size() + (files.size() > 1 ? 1 : 0);
  return count;
}

Entry entry_at(const TensorSet& files, std::size_t index) {
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::vector<TensorInfo>& tensors = files[i].file.tensors();
    const std::size_t title = files.size() > 1 ? 1 : 0;
    if (index < title) return {i, nullptr};
    if (index - title < tensors.size()) return {i, &tensors[index - title]};
    index -= title + tensors.size();
  }
  return {};
}

// With a cross where the file can be taken out; true when that was clicked.
bool draw_file_name(Ui& ui, const std::string& name, bool can_leave, const Box& box) {
  constexpr float kButton = 24, kArm = 3.5f;
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float right = box.max.x - 8 - (can_leave ? kButton : 0);
  const std::string shown = end_that_fits(ui, name, right - box.min.x - 8, false);
  draw_label_in(ui, list, {box.min.x + 8, box.min.y + 4}, {right, box.max.y}, shown, 12, ui.colors().dim,
                TextAlign::kLeft);
  if (!can_leave) return false;
  const ImVec2 center{box.max.x - 8 - kButton / 2, (box.min.y + 4 + box.max.y) / 2};
  const ImVec2 min{center.x - kButton / 2, center.y - kButton / 2}, max{min.x + kButton, min.y + kButton};
  const std::string id = "mapping/remove/" + name;
  ImGui::SetCursorScreenPos(min);
  const bool clicked = ImGui::InvisibleButton(id.c_str(), {kButton, kButton});
  ui.widgets->add(id, min, max);
  const ImU32 ink = to_u32(ImGui::IsItemHovered() ? ui.colors().text : ui.colors().dim);
  list->AddLine({center.x - kArm, center.y - kArm}, {center.x + kArm, center.y + kArm}, ink, 1.2f);
  list->AddLine({center.x - kArm, center.y + kArm}, {center.x + kArm, center.y - kArm}, ink, 1.2f);
  tooltip(ui, "Take this file out");
  return clicked;
}

void draw_list(Ui& ui, MappingDialogState& state) {
  const float width = ImGui::GetContentRegionAvail().x;
  std::optional<Entry> picked;
  std::optional<std::size_t> leaving;
  const std::optional<FoundTensor> current = tensor_of(state, state.chosen);
  const auto row = [&](const std::string& id, const Line& line) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const bool clicked = draw_line(ui, id, {at, {at.x + width, at.y + kRow}}, line);
    ImGui::SetCursorScreenPos({at.x, at.y + kRow});
    return clicked;
  };
  if (row("mapping/tensor/none", {"none of them", "", !current, ui.colors().dim})) picked = Entry{};
  // Of a file of thousands only the lines in sight are drawn.
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(count_entries(state.files)), kRow);
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const Entry entry = entry_at(state.files, static_cast<std::size_t>(i));
      const NamedTensors& file = state.files[entry.file];
      if (entry.info == nullptr) {
        const ImVec2 at = ImGui::GetCursorScreenPos();
        if (draw_file_name(ui, file.name, entry.file > 0, {at, {at.x + width, at.y + kRow}})) leaving = entry.file;
        ImGui::SetCursorScreenPos({at.x, at.y + kRow});
        continue;
      }
      const Color color = entry.info->problem.empty() ? ui.colors().text : ui.colors().faint;
      const std::string id = "mapping/tensor/" + (entry.file > 0 ? file.name + ":" : "") + entry.info->name;
      const bool lit = current && current->info == entry.info;
      const std::string& dtype = entry.info->dtype;
      const std::string words = (dtype == "float32" ? "" : dtype + "  ") + shape_text(entry.info->shape);
      if (row(id, {entry.info->name, words, lit, color})) picked = entry;
    }
  }
  if (leaving) return remove_tensors(state, *leaving);
  if (!picked) return;
  if (picked->info == nullptr) return assign(state, state.chosen, "", "");
  const std::string name = picked->info->name;
  assign(state, state.chosen, full_name(state.files, picked->file, name), name);
  choose_next_role(state);
}

// Whether 16-bit unsigned integers are bfloat16 numbers, which no file says.
void draw_bfloat16(Ui& ui, MappingDialogState& state, const Box& box) {
  draw_text_in(ui, ImGui::GetWindowDrawList(), FontRole::kText13, box.min, box.max, ui.colors().dim,
               "uint16 holds bfloat16 numbers", TextAlign::kLeft);
  const Box field{{box.max.x - 44, box.min.y}, box.max};
  if (!switch_field(ui, "mapping/bfloat16", field, state.uint16_is_bfloat16)) return;
  state.uint16_is_bfloat16 = !state.uint16_is_bfloat16;
  for (NamedTensors& file : state.files) {
    file = state.uint16_is_bfloat16 ? with_bfloat16(std::move(file)) : without_bfloat16(std::move(file));
  }
  propose(state);
}

}  // namespace

void draw_tensors(Ui& ui, MappingDialogState& state, float width, float height) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  heading(ui, state.files.size() > 1 ? "TENSORS IN THE FILES"
              : state.path.empty()   ? "TENSORS IN THE CLIPBOARD"
                                     : "TENSORS IN THE FILE");
  const float below = kButtons + (state.has_uint16 ? kSwitch : 0);
  const float top = ImGui::GetCursorScreenPos().y;
  ImGui::BeginChild("mapping-tensors", {width, at.y + height - below - top}, false, ImGuiWindowFlags_NoNav);
  draw_list(ui, state);
  ImGui::EndChild();
  float y = at.y + height - below + 8;
  if (state.has_uint16) {
    draw_bfloat16(ui, state, {{at.x + 8, y}, {at.x + width, y + kRow}});
    y += kSwitch;
  }
  if (text_button(ui, "mapping/add-file", {{at.x, y}, {at.x + 112, y + 32}}, "Add a file…")) state.wants_file = true;
}

}  // namespace qkv::mapping_parts
