#include "app/cli/mapping_report.h"

#include "app/cli/table.h"

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

}  // namespace qkv::cli
