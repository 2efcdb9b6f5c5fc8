// Choosing a file to open or a place to write to.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/ui/controls.h"

namespace qkv {

enum class FilePurpose {
  kOpen,
  kOpenTensors,
  kAddTensors,
  kCompare,
  kSaveAs,
  kExport,
  kScreenshot,
  kSaveMatrix,
  kSaveArrays
};

struct FileDialogState {
  bool open = false, just_opened = false;
  FilePurpose purpose = FilePurpose::kOpen;
  std::filesystem::path folder;
  TextFieldState name;  // file name, or a whole path typed in
  struct Entry {
    std::string text;
    bool is_folder = false;
  };
  std::vector<Entry> entries;
  std::string clicked;  // entry of the last click: both clicks of a double click must meet it
  std::string problem;  // why the folder cannot be listed
  bool labels = false;  // of FilePurpose::kSaveMatrix: tokens around the numbers of a .csv file
};

// Starts the dialog in `at`'s folder with its name filled in.
void open_file_dialog(FileDialogState& state, FilePurpose purpose, const std::filesystem::path& at);

// What stands where a folder has nothing to choose from.
const char* empty_folder_words(FilePurpose purpose);

// The path that was chosen. An existing file is asked about before it is handed out for writing.
std::optional<std::filesystem::path> draw_file_dialog(Ui& ui, FileDialogState& state);

}  // namespace qkv
