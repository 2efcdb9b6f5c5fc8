// Which tensor of a file is what: proposed, corrected by the person, and seen before it is opened.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/ui/controls.h"
#include "core/session/tensor_mapping.h"

namespace qkv {

struct MappingDialogState {
  bool open = false, just_opened = false;
  std::filesystem::path path;  // of the first file
  TensorSet files;
  MappingRequest request;
  MappingProposal proposal;
  Role chosen = Role::kQ;          // the role that a click on a tensor fills
  std::optional<Session> session;  // what Open opens; none while something is not clear
  std::string result;              // what it will be, or why there is nothing to open
  NumberEntry entry;
};

// Starts the dialog with what the tensors propose.
void open_mapping_dialog(MappingDialogState& state, const std::filesystem::path& path, TensorFile file,
                         ReadProgress* progress = nullptr);

// The session that was confirmed in this frame.
std::optional<Session> draw_mapping_dialog(Ui& ui, MappingDialogState& state);

}  // namespace qkv
