#include <algorithm>
#include <cmath>
#include <span>

#include "core/base/number_text.h"
#include "core/base/utf8.h"
#include "core/session/origin_json.h"
#include "core/session/session_file.h"

namespace qkv {

namespace {

void append_text(std::string& out, std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += '"';
  for (const char c : sanitize_utf8(text)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 0xf];
    } else {
      out += c;
    }
  }
  out += '"';
}

void append_number(std::string& out, float value) {
  if (!std::isfinite(value)) {
    out += '"' + format_shortest(value) + '"';
  } else if (value == 0 && std::signbit(value)) {
    out += "-0.0";  // parsers read -0 as the integer 0
  } else {
    out += format_shortest(value);
  }
}

void append_numbers(std::string& out, std::span<const float> values) {
  out += '[';
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ", ";
    append_number(out, values[i]);
  }
  out += ']';
}

void append_row(std::string& out, const Matrix& matrix, Index row) {
  append_numbers(out, {matrix.data() + row * matrix.cols(), static_cast<std::size_t>(matrix.cols())});
}

void append_texts(std::string& out, const std::vector<std::string>& texts) {
  out += '[';
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) out += ", ";
    append_text(out, texts[i]);
  }
  out += ']';
}

// Members of objects, each on its own line and indented by depth.
class Writer {
 public:
  void open() {
    out_ += '{';
    ++depth_;
    first_ = true;
  }
  void close() {
    --depth_;
    new_line();
    out_ += '}';
    first_ = false;
  }
  // Begins a member; its value is appended to text().
  std::string& member(std::string_view key) {
    if (!first_) out_ += ',';
    first_ = false;
    new_line();
    append_text(out_, key);
    out_ += ": ";
    return out_;
  }
  std::string& text() { return out_; }

  void matrix(const Matrix& matrix) {
    open_list();
    for (Index row = 0; row < matrix.rows(); ++row) {
      next_item(row > 0);
      append_row(out_, matrix, row);
    }
    close_list();
  }
  void matrices(const std::vector<SharedMatrix>& heads) {
    open_list();
    for (std::size_t h = 0; h < heads.size(); ++h) {
      next_item(h > 0);
      matrix(heads[h].get());
    }
    close_list();
  }

 private:
  void open_list() {
    out_ += '[';
    ++depth_;
  }
  void next_item(bool follows) {
    if (follows) out_ += ',';
    new_line();
  }
  void close_list() {
    --depth_;
    new_line();
    out_ += ']';
  }
  void new_line() {
    out_ += '\n';
    out_.append(2 * depth_, ' ');
  }

  std::string out_;
  std::size_t depth_ = 0;
  bool first_ = true;
};

void write_matrix(Writer& writer, std::string_view key, const SharedMatrix& matrix) {
  writer.member(key);
  writer.matrix(matrix.get());
}

void write_row(Writer& writer, std::string_view key, const std::optional<SharedMatrix>& row) {
  if (row) append_row(writer.member(key), row->get(), 0);
}

void write_heads(Writer& writer, std::string_view key, const std::vector<SharedMatrix>& heads) {
  writer.member(key);
  writer.matrices(heads);
}

void write_source(Writer& writer, const Source& source) {
  writer.member("source");
  writer.open();
  if (const auto* direct = std::get_if<DirectSource>(&source)) {
    writer.member("kind") += "\"qkv\"";
    write_heads(writer, "q", direct->q);
    write_heads(writer, "k", direct->k);
    write_heads(writer, "v", direct->v);
  } else if (const auto* given = std::get_if<WeightsSource>(&source)) {
    writer.member("kind") += "\"weights\"";
    write_heads(writer, "attn", given->attn);
  } else {
    const auto& projected = std::get<ProjectedSource>(source);
    writer.member("kind") += "\"projected\"";
    writer.member("heads") += std::to_string(projected.heads);
    writer.member("kv_heads") += std::to_string(projected.kv_heads);
    write_matrix(writer, "x", projected.x);
    write_matrix(writer, "wq", projected.wq);
    write_matrix(writer, "wk", projected.wk);
    write_matrix(writer, "wv", projected.wv);
    write_row(writer, "bq", projected.bq);
    write_row(writer, "bk", projected.bk);
    write_row(writer, "bv", projected.bv);
  }
  writer.close();
}

void write_rope(Writer& writer, const Rope& rope) {
  std::string& text = writer.member("rope") += "{\"base\": ";
  append_number(text, rope.base);
  text += rope.style == RopeStyle::kHalf ? ", \"style\": \"half\"}" : ", \"style\": \"interleaved\"}";
}

void write_options(Writer& writer, const AttentionOptions& options) {
  writer.member("attention");
  writer.open();
  if (options.rope) write_rope(writer, *options.rope);
  if (options.scale) append_number(writer.member("scale"), *options.scale);
  if (options.softcap) append_number(writer.member("softcap"), *options.softcap);
  if (options.alibi) writer.member("alibi") += "true";
  if (options.bias) write_matrix(writer, "bias", *options.bias);
  writer.member("causal") += options.causal ? "true" : "false";
  writer.member("align") += options.align == CausalAlign::kTopLeft ? "\"top_left\"" : "\"bottom_right\"";
  if (options.window) writer.member("window") += std::to_string(*options.window);
  if (!options.key_valid.empty()) {
    const std::vector<float> valid(options.key_valid.begin(), options.key_valid.end());
    append_numbers(writer.member("key_valid"), valid);
  }
  if (!options.sink.empty()) append_numbers(writer.member("sink"), options.sink);
  writer.close();
}

// One tensor as session files refer to one.
void append_reference(std::string& out, const MappedTensor& mapped, const OriginFile& file,
                      const std::filesystem::path& folder) {
  const auto number = [&](std::string_view key, std::uint64_t value) {
    if (value > 0) out += ", \"" + std::string(key) + "\": " + std::to_string(value);
  };
  append_text(out += "{\"file\": ", origin_path_text(file.path, folder));
  append_text(out += ", \"name\": ", mapped.name);
  if (std::ranges::find(file.bfloat16, mapped.name) != file.bfloat16.end()) out += ", \"bfloat16\": true";
  const TensorReading& reading = mapped.reading;
  if (!reading.layout.empty()) {
    append_text(out += ", \"layout\": ", layout_text(reading.layout));
    number("heads", static_cast<std::uint64_t>(reading.heads));
    number("kv_heads", static_cast<std::uint64_t>(reading.kv_heads));
    number("layer", reading.layer);
    number("batch", reading.batch);
  }
  out += '}';
}

void write_origin(Writer& writer, const TensorOrigin& origin, const std::filesystem::path& folder) {
  writer.member("mapping");
  writer.open();
  if (origin.mapping.heads > 0) writer.member("heads") += std::to_string(origin.mapping.heads);
  if (origin.mapping.kv_heads > 0) writer.member("kv_heads") += std::to_string(origin.mapping.kv_heads);
  writer.member("tensors");
  writer.open();
  for (const MappedTensor& mapped : origin.mapping.tensors) {
    append_reference(writer.member(role_key(mapped.role)), mapped, origin.files[mapped.file], folder);
  }
  writer.close();
  writer.close();
}

void append_range(std::string& out, const RangeSpec& range) {
  switch (range.mode) {
    case RangeMode::kUnit:
      out += "\"unit\"";
      return;
    case RangeMode::kAuto:
      out += "\"auto\"";
      return;
    case RangeMode::kSymmetric:
      out += "\"symmetric\"";
      return;
    case RangeMode::kLog:
      out += "\"log\"";
      return;
    case RangeMode::kCustom:
      append_numbers(out, std::vector<float>{range.low, range.high});
      return;
  }
}

void write_view(Writer& writer, const ViewSettings& view) {
  writer.member("view");
  writer.open();
  append_text(writer.member("tab"), tab_name(view.tab));
  writer.member("head") += std::to_string(view.head);
  if (view.lens != Lens::kValues) append_text(writer.member("lens"), lens_name(view.lens));
  append_text(writer.member("weights_map"), view.weights_map);
  append_text(writer.member("signed_map"), view.signed_map);
  append_range(writer.member("weights_range"), view.weights_range);
  append_range(writer.member("signed_range"), view.signed_range);
  writer.member("decimals") += std::to_string(view.decimals);
  if (view.raw_tokens) writer.member("raw_tokens") += "true";
  writer.close();
}

std::string_view split_name(TokenSplit split) {
  switch (split) {
    case TokenSplit::kWhiteSpace:
      return "white_space";
    case TokenSplit::kCjk:
      return "cjk";
    case TokenSplit::kCharacters:
      return "characters";
  }
  return "white_space";
}

}  // namespace

std::string session_to_json(const Session& session, const std::filesystem::path& folder) {
  Writer writer;
  writer.open();
  writer.member("qkvlab") += "1";
  if (!session.title.empty()) append_text(writer.member("title"), session.title);
  if (!session.note.empty()) append_text(writer.member("note"), session.note);
  append_text(writer.member("split"), split_name(session.split));
  append_texts(writer.member("tokens"), session.tokens);
  if (session.key_tokens) append_texts(writer.member("key_tokens"), *session.key_tokens);
  write_source(writer, session.problem.source);
  if (session.problem.wo) write_matrix(writer, "wo", *session.problem.wo);
  write_row(writer, "bo", session.problem.bo);
  write_options(writer, session.problem.options);
  if (session.origin) write_origin(writer, *session.origin, folder);
  write_view(writer, session.view);
  writer.close();
  return std::move(writer.text()) + '\n';
}

}  // namespace qkv
