#include "app/cli/mapping_report.h"

#include <algorithm>
#include <system_error>

#include "app/cli/table.h"
#include "core/session/tensor_origin.h"

namespace qkv::cli {
namespace {

using Json = nlohmann::ordered_json;
using Row = std::vector<std::string>;

std::string tensor_name(const TensorSet& files, const MappedTensor& mapped) {
  const std::string file = std::filesystem::path(files[mapped.file].name).filename().string();
  return (files.size() > 1 ? file + ":" : "") + mapped.name;
}

// "0 … 11", "0".
std::string counted_range(int count) { return count == 1 ? "0" : "0 … " + std::to_string(count - 1); }

Row layers_row(const MappingProposal& proposal) {
  const std::string text = std::to_string(proposal.layer) + " of " + std::to_string(proposal.layers.front()) + " … " +
                           std::to_string(proposal.layers.back());
  return {"layer", text, "", "another by --layer"};
}

Json question_json(const MappingQuestion& question, const MapFlags& flags) {
  Json json;
  json["about"] = Json::array();
  for (const Role role : question.roles) json["about"].push_back(role_key(role));
  json["text"] = question.text;
  json["choices"] = Json::array();
  for (const MappingQuestion::Choice& choice : question.choices) {
    json["choices"].push_back({{"value", choice.value}, {"meaning", choice.meaning}});
  }
  json["flag"] = settling_flag(question, flags);
  return json;
}

Json tensor_json(const TensorSet& files, const MappedTensor& mapped) {
  Json json;
  json["role"] = role_key(mapped.role);
  if (files.size() > 1) json["file"] = files[mapped.file].name;
  json["name"] = mapped.name;
  json["layout"] = layout_text(mapped.reading.layout);
  json["why"] = mapped.why;
  return json;
}

// "LBHNN, layer 1, batch 0".
std::string reading_text(const TensorReading& reading) {
  std::string text = layout_text(reading.layout);
  if (has_axis(reading.layout, 'L')) text += ", layer " + std::to_string(reading.layer);
  if (has_axis(reading.layout, 'B')) text += ", batch " + std::to_string(reading.batch);
  return text;
}

// The file as it is reached from here.
std::string file_text(const std::filesystem::path& path) {
  std::error_code problem;
  const std::filesystem::path near = std::filesystem::proximate(path, problem);
  return (problem ? path : near).string();
}

}  // namespace

std::string mapping_table(const TensorSet& files, const MappingProposal& proposal, const MapFlags& flags) {
  std::vector<Row> rows{{"role", "tensor", "layout", "why"}};
  for (const MappedTensor& mapped : proposal.mapping.tensors) {
    rows.push_back({std::string(role_key(mapped.role)), printable(tensor_name(files, mapped)),
                    layout_text(mapped.reading.layout), mapped.why});
  }
  if (proposal.mapping.heads > 0) {
    const std::string kv = " (" + std::to_string(proposal.mapping.kv_heads) + " key/value heads)";
    rows.push_back(
        {"heads",
         std::to_string(proposal.mapping.heads) + (proposal.mapping.kv_heads == proposal.mapping.heads ? "" : kv), "",
         ""});
  }
  if (proposal.layers.size() > 1) rows.push_back(layers_row(proposal));
  if (proposal.batches > 1) {
    rows.push_back(
        {"batch", std::to_string(proposal.batch) + " of " + counted_range(proposal.batches), "", "another by --batch"});
  }
  std::string text = rows.size() > 1 ? table(rows) : "";
  for (const MappingQuestion& question : proposal.questions) {
    text += "open: " + printable(question_text(question)) + "; choose with " +
            printable(settling_flag(question, flags)) + "\n";
  }
  if (proposal.error) text += "makes no session: " + printable(proposal.error->message) + "\n";
  return text;
}

Json mapping_json(const TensorSet& files, const MappingProposal& proposal, const MapFlags& flags) {
  Json json;
  json["tensors"] = Json::array();
  for (const MappedTensor& mapped : proposal.mapping.tensors) json["tensors"].push_back(tensor_json(files, mapped));
  if (proposal.mapping.heads > 0) {
    json["heads"] = proposal.mapping.heads;
    json["kv_heads"] = proposal.mapping.kv_heads;
  }
  json["layers"] = proposal.layers;
  json["layer"] = proposal.layer;
  json["batches"] = proposal.batches;
  json["batch"] = proposal.batch;
  json["questions"] = Json::array();
  for (const MappingQuestion& question : proposal.questions) {
    json["questions"].push_back(question_json(question, flags));
  }
  if (proposal.error) json["problem"] = proposal.error->message;
  return json;
}

std::string origin_table(const Session& session) {
  if (session.origin == nullptr) return "";
  std::vector<Row> rows{{"read from", "tensor", "layout", "file", "now"}};
  const std::vector<MappedTensor>& tensors = session.origin->mapping.tensors;
  const std::vector<OriginNow> now = check_origin(session);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const OriginFile& file = session.origin->files[tensors[i].file];
    const bool is_bfloat16 = std::ranges::find(file.bfloat16, tensors[i].name) != file.bfloat16.end();
    rows.push_back({std::string(role_key(tensors[i].role)), printable(tensors[i].name),
                    reading_text(tensors[i].reading) + (is_bfloat16 ? ", uint16 as bfloat16" : ""),
                    printable(file_text(file.path)), printable(now[i].words)});
  }
  return "\n" + table(rows);
}

Json origin_json(const Session& session) {
  Json json = Json::array();
  const std::vector<OriginNow> now = check_origin(session);
  for (std::size_t i = 0; i < now.size(); ++i) {
    const MappedTensor& mapped = session.origin->mapping.tensors[i];
    const OriginFile& file = session.origin->files[mapped.file];
    Json row;
    row["role"] = role_key(mapped.role);
    row["file"] = file.path.string();
    row["name"] = mapped.name;
    row["layout"] = layout_text(mapped.reading.layout);
    if (has_axis(mapped.reading.layout, 'L')) row["layer"] = mapped.reading.layer;
    if (has_axis(mapped.reading.layout, 'B')) row["batch"] = mapped.reading.batch;
    if (std::ranges::find(file.bfloat16, mapped.name) != file.bfloat16.end()) row["stored"] = "uint16";
    row["is_same"] = now[i].is_same;
    row["now"] = now[i].words;
    json.push_back(std::move(row));
  }
  return json;
}

}  // namespace qkv::cli
