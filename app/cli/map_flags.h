// Which tensor of a file is what: the flags of the command line, and opening an input by them.
#pragma once

#include "app/cli/common.h"
#include "core/session/tensor_mapping.h"

namespace qkv::cli {

// The words as given.
struct MapFlags {
  std::vector<std::string> with;  // further files
  std::optional<std::string> map, layout, heads, kv_heads, layer, batch, module;
  bool uint16_is_bfloat16 = false;
  std::string_view layout_flag = "--layout";  // what --layout is called in the command
};

// `layout_flag` is "--axes" where --layout is something else in the command (the picture's).
void add_map_flags(CLI::App& app, MapFlags& flags, std::string_view layout_flag = "--layout");

// Whether any was given.
bool has_any(const MapFlags& flags);
// Errors: kUsage naming the flag.
Result<MappingRequest> mapping_request(const MapFlags& flags);
// FILE, as it was opened, and those of --with, read as --uint16-is-bfloat16 says. Errors bear the file's name; kUsage
// where no file has arrays that the flag is about.
Result<TensorSet> tensor_set(const std::string& name, TensorFile file, const MapFlags& flags,
                             ReadProgress* progress = nullptr);
// That --uint16-is-bfloat16 was given without an array that it is about.
Error no_uint16();
// The flag that settles a question, with the first choice as an example: "--layout HND", "--heads N".
std::string settling_flag(const MappingQuestion& question, const MapFlags& flags);

// As open_input(name), with the tensors mapped as the flags say. kBadInput for what the flags leave open: the message
// lists the choices and the flag that settles each.
Result<Input> open_input(const std::string& name, const MapFlags& flags);
// The same without a line on the terminal: whoever waits looks at `progress`.
Result<Input> open_input(const std::string& name, const MapFlags& flags, ReadProgress* progress);

// The input of tensors that are mapped as the request says; the flags name what would settle a question.
Result<Input> mapped_input(const std::string& name, const TensorSet& files, const MappingRequest& request,
                           const MapFlags& flags, ReadProgress* progress = nullptr);

}  // namespace qkv::cli
