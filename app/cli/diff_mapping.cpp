#include "app/cli/diff_mapping.h"

#include <algorithm>
#include <utility>

#include "app/cli/reading_line.h"
#include "core/session/bfloat16_bits.h"
#include "core/session/session_file.h"

namespace qkv::cli {

namespace {

bool is_result(Role role) { return role == Role::kAttn || role == Role::kScores || role == Role::kOut; }

Error says_itself(std::string_view flag, std::string_view whose) {
  return usage_error(std::string(flag) + ": " + std::string(whose) +
                     " is a session, which says itself what is what: the flag is for files of tensors");
}

// Flags about what FILE is made of.
std::string_view flag_of_inputs(const MapFlags& flags) {
  if (!flags.with.empty()) return "--with";
  if (flags.heads) return "--heads";
  if (flags.kv_heads) return "--kv-heads";
  return flags.module ? "--module" : "";
}

std::string_view any_flag(const MapFlags& flags) {
  if (const std::string_view flag = flag_of_inputs(flags); !flag.empty()) return flag;
  if (flags.map) return "--map";
  if (flags.layout) return "--layout";
  if (flags.layer) return "--layer";
  return flags.batch ? "--batch" : "--uint16-is-bfloat16";
}

// The request of the file that a role is of.
Result<MappingRequest*> request_for(DiffMapping& mapping, Role role, const std::string& flag) {
  if (!is_result(role) && !mapping.file_is_session) return &mapping.file;
  if (mapping.other_is_session) return says_itself(flag, "OTHER");
  return &mapping.other;
}

bool has_uint16(const TensorFile& file) { return !bfloat16_candidates(file).empty(); }

}  // namespace

Result<DiffMapping> diff_mapping(const MapFlags& flags, bool file_is_session, bool other_is_session) {
  DiffMapping mapping{flags, file_is_session, other_is_session, {}, {}};
  const Result<MappingRequest> given = mapping_request(flags);
  if (!given.ok()) return given.error();
  if (file_is_session && other_is_session && has_any(flags)) return says_itself(any_flag(flags), "each file");
  const std::string_view of_inputs = flag_of_inputs(flags);
  if (file_is_session && !of_inputs.empty()) return says_itself(of_inputs, "FILE");
  const MappingRequest& all = given.value();
  for (const auto& [role, name] : all.tensors) {
    const std::string flag = "--map " + std::string(role_key(role)) + "=" + name;
    const Result<MappingRequest*> request = request_for(mapping, role, flag);
    if (!request.ok()) return request.error();
    request.value()->tensors[role] = name;
    const bool is_fused = std::ranges::find(all.fused, role) != all.fused.end();
    if (is_fused) request.value()->fused.push_back(role);
  }
  for (const auto& [role, layout] : all.layouts) {
    const std::string flag = "--layout " + std::string(role_key(role)) + "=" + layout_text(layout);
    const Result<MappingRequest*> request = request_for(mapping, role, flag);
    if (!request.ok()) return request.error();
    request.value()->layouts[role] = layout;
  }
  if (all.layout && !file_is_session && !other_is_session) {
    const std::string text = layout_text(*all.layout);
    return usage_error("--layout " + text +
                       ": both files are tensors, and it may be of either: say whose axes it is, " + "q=" + text +
                       " for FILE's inputs or attn=… for OTHER's results");
  }
  (file_is_session ? mapping.other : mapping.file).layout = all.layout;
  mapping.file.heads = all.heads;
  mapping.file.kv_heads = all.kv_heads;
  mapping.file.module = all.module;
  mapping.file.layer = mapping.other.layer = all.layer;
  mapping.file.batch = mapping.other.batch = all.batch;
  return mapping;
}

Result<OtherArrays> open_other(const std::string& name, const DiffMapping& mapping, std::vector<NamePair> names) {
  const Result<std::filesystem::path> path = find_input_file(name);
  if (!path.ok()) return path.error();
  ReadingLine line(name);
  Result<TensorFile> opened = TensorFile::open(path.value(), {}, line.progress());
  if (!opened.ok()) return located(name, with_deed("cannot be read", opened.error()));
  NamedTensors file{name, std::move(opened).value()};
  if (mapping.flags.uint16_is_bfloat16) file = with_bfloat16(std::move(file));
  Result<RequestedPairs> requested = requested_pairs(file.file, mapping.other, std::move(names));
  if (!requested.ok()) return located(name, requested.error());
  const RequestedPairs& taken = requested.value();
  if (mapping.file_is_session) {
    const std::string_view unused = mapping.other.layer && !taken.took_layer   ? "--layer"
                                    : mapping.other.batch && !taken.took_batch ? "--batch"
                                                                               : "";
    if (!unused.empty()) return located(name, usage_error(std::string(unused) + ": no array has an axis for it"));
    if (mapping.flags.uint16_is_bfloat16 && file.bfloat16.empty()) return located(name, no_uint16());
  }
  return OtherArrays{std::move(file.file), std::move(requested).value()};
}

Result<Input> open_diff_input(const std::string& name, const DiffMapping& mapping, const OtherArrays* other) {
  if (mapping.file_is_session) return open_input(name);
  const Result<std::filesystem::path> path = find_input_file(name);
  if (!path.ok()) return path.error();
  ReadingLine line(name);
  Result<TensorFile> file = TensorFile::open(path.value(), {}, line.progress());
  if (!file.ok()) return located(name, with_deed("cannot be read", file.error()));
  MapFlags flags = mapping.flags;
  const auto reads_bfloat16 = [&](const TensorInfo& info) { return info.dtype == "bfloat16"; };
  const bool other_has_some = other != nullptr && std::ranges::any_of(other->file.tensors(), reads_bfloat16);
  if (other_has_some && flags.with.empty() && !has_uint16(file.value())) flags.uint16_is_bfloat16 = false;
  const Result<TensorSet> files = tensor_set(name, std::move(file).value(), flags, line.progress());
  if (!files.ok()) return files.error();
  MappingRequest request = mapping.file, without = mapping.file;
  without.layer.reset();
  without.batch.reset();
  if (other != nullptr && (request.layer || request.batch)) {
    const MappingProposal proposal = propose_mapping(files.value(), without);
    if (other->requested.took_layer && proposal.layers.empty()) request.layer.reset();
    if (other->requested.took_batch && proposal.batches == 1) request.batch.reset();
  }
  return mapped_input(name, files.value(), request, flags, line.progress());
}

}  // namespace qkv::cli
