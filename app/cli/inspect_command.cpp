// `qkvlab inspect`: what a session or tensor file holds.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/cli/commands.h"
#include "app/cli/mapping_report.h"
#include "app/cli/reading_line.h"
#include "app/cli/table.h"
#include "core/attention/given_weights.h"
#include "core/base/number_text.h"
#include "core/session/session_differences.h"
#include "core/session/session_file.h"
#include "core/tensor_io/tensor_file.h"

namespace qkv::cli {
namespace {

using Json = nlohmann::ordered_json;
using Row = std::vector<std::string>;

// The options as in a session file, with the scale in effect and of the bias its shape.
Json options_json(const AttentionOptions& options, const Shapes& shapes) {
  Json json;
  if (options.rope) {
    json["rope"] = {{"base", options.rope->base},
                    {"style", options.rope->style == RopeStyle::kHalf ? "half" : "interleaved"}};
  }
  json["scale"] = options.scale ? static_cast<double>(*options.scale) : effective_scale(options, shapes.d_k);
  if (options.softcap) json["softcap"] = *options.softcap;
  json["alibi"] = options.alibi;
  if (options.bias) json["bias"] = {options.bias->rows(), options.bias->cols()};
  json["causal"] = options.causal;
  json["align"] = options.align == CausalAlign::kTopLeft ? "top_left" : "bottom_right";
  if (options.window) json["window"] = *options.window;
  if (!options.key_valid.empty()) json["key_valid"] = options.key_valid;
  if (!options.sink.empty()) json["sink"] = options.sink;
  return json;
}

// As the key "kind" in a session file.
std::string_view source_name(const Source& source) {
  if (is_weights_only(source)) return "weights";
  return std::holds_alternative<DirectSource>(source) ? "qkv" : "projected";
}

Json session_json(const Session& session, const Shapes& shapes) {
  Json json;
  json["title"] = session.title;
  json["source"] = source_name(session.problem.source);
  json["tokens"] = session.tokens;
  if (session.key_tokens) json["key_tokens"] = *session.key_tokens;
  json["shapes"] = {{"nq", shapes.nq}, {"nk", shapes.nk}, {"heads", shapes.heads}};
  if (is_weights_only(session.problem.source)) {
    json["rows_not_summing_to_1"] = count_unnormalised(given_trace(session.problem, shapes));
    return json;
  }
  json["shapes"].update({{"kv_heads", shapes.kv_heads}, {"d_k", shapes.d_k}, {"d_v", shapes.d_v}});
  if (shapes.d_model > 0) json["shapes"]["d_model"] = shapes.d_model;
  if (shapes.d_out > 0) json["shapes"]["d_out"] = shapes.d_out;
  json["wo"] = session.problem.wo.has_value();
  json["attention"] = options_json(session.problem.options, shapes);
  return json;
}

std::string joined(const std::vector<std::string>& tokens) {
  std::string line;
  for (const std::string& token : tokens) line += (line.empty() ? "" : " ") + printable(token);
  return line;
}

Row options_row(const AttentionOptions& options, const Shapes& shapes) {
  std::string text;
  if (options.rope) {
    text += options.rope->style == RopeStyle::kHalf ? "rope half" : "rope interleaved";
    text += " base " + format_shortest(options.rope->base) + ", ";
  }
  text += "scale " + (options.scale ? format_shortest(*options.scale)
                                    : "1/√d_k = " + format_fixed(effective_scale(options, shapes.d_k), 4));
  if (options.softcap) text += ", softcap " + format_shortest(*options.softcap);
  if (options.alibi) text += ", alibi";
  if (options.bias) text += ", bias " + std::to_string(shapes.nq) + " × " + std::to_string(shapes.nk);
  if (options.causal) {
    text += ", causal";
    if (shapes.nq != shapes.nk) text += options.align == CausalAlign::kTopLeft ? " top_left" : " bottom_right";
  }
  if (options.window) text += ", window " + std::to_string(*options.window);
  std::string list;
  for (const std::uint8_t valid : options.key_valid)
    list += (list.empty() ? ", key_valid " : ",") + std::to_string(valid);
  text += std::exchange(list, "");
  for (const float sink : options.sink) list += (list.empty() ? ", sink " : ",") + format_shortest(sink);
  text += list;
  return {"attention", text};
}

std::string session_table(const Session& session, const Shapes& shapes) {
  const bool given = is_weights_only(session.problem.source);
  std::vector<Row> rows;
  rows.push_back({"session", printable(session.title)});
  rows.push_back({"source", std::string(source_words(session.problem.source))});
  rows.push_back({"tokens", std::to_string(shapes.nq) + ": " + joined(session.tokens)});
  if (session.key_tokens) rows.push_back({"keys", std::to_string(shapes.nk) + ": " + joined(*session.key_tokens)});
  std::string heads = std::to_string(shapes.heads);
  if (shapes.kv_heads != shapes.heads) heads += " (" + std::to_string(shapes.kv_heads) + " key/value heads)";
  rows.push_back({"heads", heads});
  if (given) {
    const Index off = count_unnormalised(given_trace(session.problem, shapes));
    const std::string of = std::to_string(shapes.heads * shapes.nq);
    rows.push_back({"rows", off == 0 ? of + ", all sum to 1" : std::to_string(off) + " of " + of + " do not sum to 1"});
    return table(rows);
  }
  rows.push_back({"d_k, d_v", std::to_string(shapes.d_k) + ", " + std::to_string(shapes.d_v)});
  if (shapes.d_model > 0) rows.push_back({"d_model", std::to_string(shapes.d_model)});
  const std::string wo_shape = std::to_string(shapes.heads * shapes.d_v) + " × " + std::to_string(shapes.d_out);
  rows.push_back({"W^O", session.problem.wo ? wo_shape : "none"});
  rows.push_back(options_row(session.problem.options, shapes));
  return table(rows);
}

// Whether 16-bit unsigned integers are read as bfloat16 numbers.
bool is_bfloat16(const NamedTensors& file, const TensorInfo& array) {
  return std::ranges::find(file.bfloat16, array.name) != file.bfloat16.end();
}

Json array_json(const TensorInfo& array, bool is_bfloat16) {
  Json json;
  json["name"] = array.name;
  json["dtype"] = array.dtype;
  if (is_bfloat16) json["stored"] = "uint16";
  json["shape"] = array.shape;
  json["bytes"] = array.bytes;
  json["readable"] = array.problem.empty();
  if (!array.problem.empty()) json["problem"] = array.problem;
  return json;
}

std::string arrays_table(const NamedTensors& file) {
  std::vector<Row> rows{{"name", "dtype", "shape", "readable"}};
  for (const TensorInfo& array : file.file.tensors()) {
    const std::string stored = is_bfloat16(file, array) ? " (stored as uint16)" : "";
    rows.push_back({printable(array.name), printable(array.dtype) + stored, shape_text(array.shape),
                    array.problem.empty() ? "yes" : "no: " + printable(array.problem)});
  }
  return table(rows);
}

std::string dump(const std::string& name, const char* kind, const Json& content) {
  Json json;
  json["file"] = name;
  json["kind"] = kind;
  json.update(content);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Status inspect_session(const std::string& name, const Session& session, bool as_json) {
  const Result<Shapes> shapes = check_session(session);
  if (!shapes.ok()) return located(name, shapes.error());
  if (as_json) {
    Json json = session_json(session, shapes.value());
    if (session.origin != nullptr) json["mapping"] = origin_json(session);
    return print(dump(name, "session", json));
  }
  return print(session_table(session, shapes.value()) + origin_table(session));
}

Status inspect_tensors(const std::string& name, const TensorFile& file, const MapFlags& flags, bool as_json) {
  const Result<MappingRequest> request = mapping_request(flags);
  if (!request.ok()) return request.error();
  const Result<TensorSet> files = tensor_set(name, file, flags);
  if (!files.ok()) return files.error();
  const MappingProposal proposal = propose_mapping(files.value(), request.value());
  const NamedTensors& shown = files.value().front();
  if (!as_json) return print(arrays_table(shown) + "\n" + mapping_table(files.value(), proposal, flags));
  Json arrays = Json::array();
  for (const TensorInfo& array : shown.file.tensors()) arrays.push_back(array_json(array, is_bfloat16(shown, array)));
  return print(dump(name, "tensors", {{"arrays", arrays}, {"mapping", mapping_json(files.value(), proposal, flags)}}));
}

Status inspect(const std::string& name, const MapFlags& flags, bool as_json) {
  const Result<std::filesystem::path> path = find_input_file(name);
  if (!path.ok()) {  // the worked example is there without a file
    const Result<Input> input = open_input(name);
    return input.ok() ? inspect_session(name, input.value().session, as_json) : Status(input.error());
  }
  Result<MappedFile> content = map_input(name, path.value());
  if (!content.ok()) return content.error();
  std::optional<ReadingLine> line(name);
  const std::span<const std::byte> bytes = content.value().bytes();
  if (looks_like_session(bytes)) {
    const Result<Session> session = parse_session(as_text(bytes), folder_of(path.value()), line->progress());
    line.reset();
    return session.ok() ? inspect_session(name, session.value(), as_json) : Status(located(name, session.error()));
  }
  const Result<TensorFile> file =
      TensorFile::from_file(std::move(content).value(), path.value().stem().string(), {}, line->progress());
  line.reset();
  return file.ok() ? inspect_tensors(name, file.value(), flags, as_json) : Status(located(name, file.error()));
}

}  // namespace

int inspect_command(const Arguments& words) {
  std::optional<std::string> file;
  MapFlags mapping;
  bool as_json = false;
  CLI::App app{
      "Says what FILE holds: of a session its tokens, shapes and options, and the files that its numbers came\n"
      "from; of tensors each array's name, type and shape, whether it can be read, and what it would be to a session.",
      "qkvlab inspect"};
  add_text(app, "FILE", file, "", "Session or tensors (.npz, .npy, .safetensors, .csv), or the name of an example")
      ->required();
  add_map_flags(app, mapping);
  app.add_flag("--json", as_json, "As JSON, for scripts");
  app.footer(
      "Examples:\n"
      "  qkvlab inspect cat_sleeps\n"
      "  qkvlab inspect layer.npz --json\n");
  if (const std::optional<int> code = parse_arguments(app, "FILE [--json] [options]", words)) return *code;
  return report(inspect(*file, mapping, as_json));
}

}  // namespace qkv::cli
