// Which tensor of a file is what: proposed, corrected by the person, and seen before it is opened.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/engine/reading.h"
#include "app/ui/controls.h"
#include "core/session/tensor_origin.h"

namespace qkv {

struct MappingDialogState {
  bool open = false, just_opened = false;
  bool wants_file = false;     // another file is to be chosen, then add_tensors() or nothing, then resume
  bool is_waiting = false;     // closed until that is done
  std::string name;            // of what is opened: "model.npz", "the clipboard"
  std::filesystem::path path;  // of the first file; empty for the clipboard
  TensorSet files;
  bool has_uint16 = false, uint16_is_bfloat16 = false;
  MappingRequest request;
  MappingProposal proposal;
  Role chosen = Role::kQ;          // the role that a click on a tensor fills
  std::optional<Session> session;  // what Open opens; none while something is not clear
  std::string result;              // what it will be, or why there is nothing to open
  NewestReading<Session> reading;  // of what the answers make: there is no session before it is read
  bool opens_when_read = false;    // Open was pressed meanwhile
  bool is_remembered = false;      // begins with the mapping of the session that is open
  std::string note;                // what is not as it was then
  NumberEntry entry;
};

// Starts the dialog with what the tensors propose; with the mapping of `origin` where the file is one of its files.
void open_mapping_dialog(MappingDialogState& state, const std::filesystem::path& path, TensorFile file,
                         ReadProgress* progress = nullptr, const TensorOrigin* origin = nullptr);
// The same for tensors that are no file; `name` is where they are ("the clipboard").
void open_text_dialog(MappingDialogState& state, const std::string& name, TensorFile file);
// Another file beside the first. The error of one that is there already.
Status add_tensors(MappingDialogState& state, const std::filesystem::path& path, TensorFile file);
// Takes one of those out again, by its index in `files`; the first stays.
void remove_tensors(MappingDialogState& state, std::size_t file);
// Shows a dialog that waits again.
void resume(MappingDialogState& state);

// The session that was confirmed in this frame.
std::optional<Session> draw_mapping_dialog(Ui& ui, MappingDialogState& state);

}  // namespace qkv
