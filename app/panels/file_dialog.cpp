#include "app/panels/file_dialog.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <system_error>

#include "app/panels/modal.h"
#include "app/ui/keys.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxEntries = 5000;

bool is_input(const fs::path& path) {
  constexpr std::string_view kEndings[] = {".json", ".npz", ".npy", ".safetensors", ".csv", ".tsv"};
  return std::ranges::find(kEndings, path.extension().string()) != std::end(kEndings);
}

bool opens(FilePurpose purpose) { return purpose == FilePurpose::kOpen || purpose == FilePurpose::kOpenTensors; }
bool is_for_reading(FilePurpose purpose) {
  return opens(purpose) || purpose == FilePurpose::kAddTensors || purpose == FilePurpose::kCompare;
}

const char* button_of(FilePurpose purpose) {
  if (purpose == FilePurpose::kCompare) return "Compare";
  if (purpose == FilePurpose::kAddTensors) return "Add";
  return opens(purpose) ? "Open" : "Save";
}

void list_folder(FileDialogState& state) {
  state.entries.clear();
  state.clicked.clear();
  state.problem.clear();
  std::error_code failed;
  fs::directory_iterator at(state.folder, fs::directory_options::skip_permission_denied, failed);
  if (failed) {
    state.problem = "This folder can't be listed: " + failed.message();
    return;
  }
  for (const fs::directory_iterator end; at != end && state.entries.size() < kMaxEntries; at.increment(failed)) {
    if (failed) break;
    std::error_code ignored;
    const bool folder = at->is_directory(ignored);
    const std::string name = at->path().filename().string();
    if (name.empty() || name[0] == '.') continue;
    if (folder || !is_for_reading(state.purpose) || is_input(at->path())) state.entries.push_back({name, folder});
  }
  std::sort(state.entries.begin(), state.entries.end(),
            [](const auto& a, const auto& b) { return a.is_folder != b.is_folder ? a.is_folder : a.text < b.text; });
}

void enter_folder(FileDialogState& state, fs::path folder) {
  state.folder = std::move(folder);
  list_folder(state);
}

bool entry_row(Ui& ui, const std::string& name, const std::string& text, bool folder, bool lit) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  ImGui::InvisibleButton(name.c_str(), {width, 28});
  ui.widgets->add(name, at, {at.x + width, at.y + 28});
  ImDrawList* list = ImGui::GetWindowDrawList();
  if (lit || ImGui::IsItemHovered())
    list->AddRectFilled(at, {at.x + width, at.y + 28}, to_u32(ui.colors().accent_soft), 5);
  if (folder) {
    const ImVec2 icon{at.x + 10, at.y + 9};
    list->AddRectFilled(icon, {icon.x + 6, icon.y + 4}, to_u32(ui.colors().dim), 1);
    list->AddRectFilled({icon.x, icon.y + 2}, {icon.x + 14, icon.y + 11}, to_u32(ui.colors().dim), 2);
  } else {
    list->AddRect({at.x + 12, at.y + 7}, {at.x + 22, at.y + 21}, to_u32(ui.colors().faint), 2, 0, 1.2f);
  }
  draw_label_in(ui, list, {at.x + 34, at.y}, {at.x + width - 8, at.y + 28}, text, 13, ui.colors().text,
                TextAlign::kLeft);
  return ImGui::IsItemHovered() && ImGui::IsMouseClicked(0);
}

// A click on a folder opens it, on a file fills its name in; a double click takes it.
bool draw_entries(Ui& ui, FileDialogState& state, float height) {
  bool taken = false;
  ImGui::BeginChild("file-list", {0, height}, false);
  if (state.folder.has_parent_path() && state.folder != state.folder.root_path())
    if (entry_row(ui, "file/..", "..", true, false)) {
      enter_folder(state, state.folder.parent_path());
      ImGui::EndChild();
      return false;
    }
  for (const auto& entry : state.entries) {
    if (!entry_row(ui, "file/" + entry.text, entry.text, entry.is_folder,
                   !entry.is_folder && entry.text == state.name.edit.text))
      continue;
    if (entry.is_folder) {
      enter_folder(state, state.folder / entry.text);
      break;
    }
    state.name.edit.set(entry.text);
    taken = ImGui::IsMouseDoubleClicked(0) && state.clicked == entry.text;
    state.clicked = entry.text;
  }
  const ImVec2 at = ImGui::GetCursorScreenPos();
  if (!state.problem.empty() || state.entries.empty())
    draw_label_paragraph(ui, ImGui::GetWindowDrawList(), {at.x + 10, at.y + 8}, ImGui::GetContentRegionAvail().x - 20,
                         state.problem.empty() ? empty_folder_words(state.purpose) : state.problem, 13,
                         ui.colors().dim);
  ImGui::EndChild();
  return taken;
}

const char* title_of(FilePurpose purpose) {
  switch (purpose) {
    case FilePurpose::kOpen:
      return "Open";
    case FilePurpose::kOpenTensors:
      return "Open tensors";
    case FilePurpose::kAddTensors:
      return "Add a file of tensors";
    case FilePurpose::kCompare:
      return "Compare with";
    case FilePurpose::kSaveAs:
      return "Save as";
    case FilePurpose::kExport:
      return "Export picture";
    case FilePurpose::kScreenshot:
      return "Save a picture of the window";
    case FilePurpose::kSaveMatrix:
      return "Save matrix as .csv, .npy or .npz";
    case FilePurpose::kSaveArrays:
      return "Save all matrices as .npz";
  }
  return "";
}

// At the left of the buttons.
void draw_labels_switch(Ui& ui, bool& labels) {
  const ImVec2 window = ImGui::GetWindowPos(), size = ImGui::GetWindowSize();
  const ImVec2 at{window.x + 20, window.y + size.y - 48};
  const Box box{at, {at.x + 34, at.y + 32}};
  if (switch_field(ui, "file-dialog/labels", box, labels)) labels = !labels;
  draw_text_in(ui, ImGui::GetWindowDrawList(), FontRole::kText13, {box.max.x + 10, at.y}, {at.x + 360, box.max.y},
               ui.colors().text, "Tokens as first row and column of a .csv", TextAlign::kLeft);
}

}  // namespace

const char* empty_folder_words(FilePurpose purpose) {
  return is_for_reading(purpose) ? "Nothing here that can be opened." : "Nothing here yet. Type a name below.";
}

void open_file_dialog(FileDialogState& state, FilePurpose purpose, const fs::path& at) {
  state.open = state.just_opened = true;
  state.purpose = purpose;
  std::error_code failed;
  fs::path folder = at.has_parent_path() ? at.parent_path() : fs::current_path(failed);
  if (!fs::is_directory(folder, failed)) folder = fs::current_path(failed);
  state.name.edit.set(at.filename().string());
  enter_folder(state, folder);
}

std::optional<fs::path> draw_file_dialog(Ui& ui, FileDialogState& state) {
  const bool fresh = state.just_opened;
  if (!begin_modal(ui, "file-dialog", title_of(state.purpose), {640, 480}, state.open, state.just_opened))
    return std::nullopt;
  if (fresh) {
    state.name.edit.select_all();
    focus_text_field(ui, "file-dialog/name", state.name);
  }
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  draw_label_in(ui, ImGui::GetWindowDrawList(), at, {at.x + width, at.y + 22}, state.folder.string(), 13,
                ui.colors().dim, TextAlign::kLeft);
  ImGui::Dummy({width, 30});
  bool done = draw_entries(ui, state, 292);
  const ImVec2 field = ImGui::GetCursorScreenPos();
  TextFieldLook look;
  look.hint = "file name or path";
  const TextFieldResult result =
      text_field(ui, "file-dialog/name", {field.x, field.y + 8}, {field.x + width, field.y + 44}, state.name, look);
  done = done || result.entered;
  std::optional<fs::path> chosen;
  if (state.purpose == FilePurpose::kSaveMatrix) draw_labels_switch(ui, state.labels);
  if (const int button = modal_buttons(ui, "file-dialog", button_of(state.purpose)); button == 1)
    done = true;
  else if (button == 2 || result.cancelled || (ui.keyboard_is_free() && take_escape(ui)))
    state.open = false;
  if (done && !state.name.edit.text.empty()) {
    const fs::path typed = state.folder / state.name.edit.text;  // an absolute path replaces the folder
    std::error_code failed;
    if (fs::is_directory(typed, failed)) {
      enter_folder(state, typed);
      state.name.edit.set("");
    } else {
      chosen = typed;
      state.open = false;
    }
  }
  end_modal(state.open);
  return chosen;
}

}  // namespace qkv
