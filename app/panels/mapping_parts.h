// The parts of the mapping dialog. Private to app/panels.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/panels/mapping_dialog.h"
#include "core/session/mapping_candidates.h"

namespace qkv::mapping_parts {

inline constexpr float kRow = 28;

// Proposes anew, after every answer; reads what that makes, off the UI thread where it is much. What was being read for
// the answer before is given up.
void propose(MappingDialogState& state);
// The kind of source that the roles are shown of, and those roles.
InputKind shown_kind(const MappingDialogState& state);
std::vector<Role> roles_of(InputKind kind);
// The tensor that plays the role, or was named for it while others are missing.
std::optional<FoundTensor> tensor_of(const MappingDialogState& state, Role role);
bool is_asked(const MappingDialogState& state, MappingQuestion::Kind kind, Role role);

// The end of a long name, which tells tensors of a model apart: "…self_attn.q_proj.weight".
std::string end_that_fits(Ui& ui, const std::string& name, float width, bool bold);
// A line that can be clicked, with a name at the left and a detail at the right.
struct Line {
  std::string_view text, detail;
  bool lit = false;
  Color color;
};
bool draw_line(Ui& ui, const std::string& id, const Box& box, const Line& line);

// mapping_tensors.cpp: every tensor of the files, of which a click gives one to the chosen role; other files.
void draw_tensors(Ui& ui, MappingDialogState& state, float width, float height);
// mapping_roles.cpp: the kinds of source; the roles of one, each with its tensor and that one's axes.
void draw_kinds(Ui& ui, MappingDialogState& state);
void draw_roles(Ui& ui, MappingDialogState& state);
// mapping_result.cpp: what is still to be said, and what comes of it.
void draw_result(Ui& ui, MappingDialogState& state);

}  // namespace qkv::mapping_parts
