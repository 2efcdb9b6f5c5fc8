#include "app/panels/save_arrays.h"

#include <imgui.h>

#include <utility>

#include "app/engine/pending.h"
#include "app/panels/cell_editor.h"
#include "app/panels/export_dialog.h"
#include "app/panels/lens.h"
#include "core/attention/streamed_pass.h"
#include "core/session/array_files.h"
#include "core/session/session_tensors.h"

namespace qkv {
namespace {

// As text a number takes about ten bytes.
constexpr Index kMostCopied = 4'000'000;
// Of a matrix that is worked out while it is read.
constexpr Index kMostRead = Index{1} << 26;

std::string size_text(Index rows, Index cols) { return std::to_string(rows) + " × " + std::to_string(cols); }

// "d_attn" of a gradient, "attn_bfloat16_error" of what a format changes.
std::string array_name(const StageInput& in, MatrixId id) {
  const std::string name(file_key(id.kind));
  if (in.lens == nullptr || !has_lens(in, id)) return name;
  const std::optional<NumberFormat> format = lens_format(in.lens->request.lens);
  return format ? name + "_" + std::string(format_name(*format)) + "_error" : "d_" + name;
}

bool has_several_heads(const Shapes& shapes, MatrixKind kind) {
  if (!is_per_head(kind)) return false;
  return (kind == MatrixKind::kK || kind == MatrixKind::kV ? shapes.kv_heads : shapes.heads) > 1;
}

// A streamed head's output is filled in row by row.
bool is_unfinished(const StageInput& in, MatrixId id) {
  return is_refining(in.computed.trace) && id.kind == MatrixKind::kHeadsOut;
}

}  // namespace

MatrixId meant_matrix(const StageInput& in, const StageState& state) {
  const std::optional<CellRef> cell = focus_cell(state);
  return cell ? cell->id : MatrixId{MatrixKind::kAttn, in.session.view.head};
}

void copy_matrix(const StageInput& in, const StageState& state, ActionQueue& queue) {
  const MatrixId id = meant_matrix(in, state);
  const ShownCells cells = displayed_cells(in, id);
  if (!cells) {
    queue.messages.push_back(is_pending(in.computed) ? why_missing(in)
                                                     : "Nothing to copy: choose a cell of a matrix first");
    return;
  }
  if (cells.rows * cells.cols > kMostCopied) {
    queue.messages.push_back("Too many numbers to copy as text: " + size_text(cells.rows, cells.cols) +
                             ". Save the matrix, or choose at most 4,000,000 cells");
    return;
  }
  if (is_unfinished(in, id)) {
    queue.messages.push_back(why_missing(in));
    return;
  }
  Matrix block = cells.block({0, 0, cells.rows, cells.cols});
  if (state.selection && state.selection->id == id && state.selection->transposed) block = Matrix(block.transpose());
  ImGui::SetClipboardText(to_tsv(block).c_str());
  queue.messages.push_back("Copied " + array_name(in, id) + ", " + size_text(block.rows(), block.cols()) +
                           " numbers, as tab-separated text");
}

void copy_code(const StageInput& in, CodeKind kind, ActionQueue& queue) {
  const std::string title(code_title(kind));
  const Result<Shapes> shapes = check_session(in.session);
  if (!shapes) return;  // never: a session in the window agrees with itself
  if (const Status fits = check_script(shapes.value()); !fits) {
    queue.messages.push_back(fits.error().message);
    return;
  }
  if (kind == CodeKind::kLatex) {
    if (is_refining(in.computed.trace) || is_pending(in.computed)) {
      queue.messages.push_back(why_missing(in));
      return;
    }
    ImGui::SetClipboardText(latex_document(in.computed.session, in.computed.trace).c_str());
    queue.messages.push_back("Copied a LaTeX document of this session");
    return;
  }
  const Index count = numbers_in_script(in.session.problem);
  if (count > kMostWrittenNumbers) {
    queue.messages.push_back("Too many numbers for the clipboard (" + std::to_string(count) +
                             "). Save the session; qkvlab code FILE --as " + std::string(code_key(kind)) +
                             " -o OUT.py writes a script and its numbers");
    return;
  }
  ImGui::SetClipboardText((kind == CodeKind::kNumpy ? numpy_script(in.session) : pytorch_script(in.session)).c_str());
  queue.messages.push_back("Copied a " + title + " script that computes this session");
}

std::string matrix_file_name(const StageInput& in, MatrixId id) {
  const std::string head =
      has_several_heads(in.computed.trace.shapes, id.kind) ? "-" + std::to_string(id.head + 1) : "";
  return file_stem(in.session.title) + "-" + array_name(in, id) + head + ".csv";
}

std::string arrays_file_name(const StageInput& in) { return file_stem(in.session.title) + ".npz"; }

Result<ArrayContent> matrix_content(const StageInput& in, MatrixId id, const std::filesystem::path& path, bool labels) {
  const ShownCells cells = displayed_cells(in, id);
  if (!cells) return bad_input("there is no such matrix any more");
  if (is_unfinished(in, id)) return bad_input(why_missing(in));
  if (cells.held == nullptr && cells.rows * cells.cols > kMostRead) {
    return unsupported(size_text(cells.rows, cells.cols) +
                       " numbers are too many to save: choose cells and copy them instead");
  }
  const Matrix block = cells.block({0, 0, cells.rows, cells.cols});
  NamedArray array{
      array_name(in, id), {static_cast<std::uint64_t>(cells.rows), static_cast<std::uint64_t>(cells.cols)}, {}};
  const std::vector<float> values(block.data(), block.data() + block.size());
  if (id.kind == MatrixKind::kKeep) {
    array.values = std::vector<std::uint8_t>(values.begin(), values.end());
  } else {
    array.values = values;
  }
  const ArrayFormat format = array_format(path);
  std::optional<TableNames> names;
  if (labels && format == ArrayFormat::kCsv) names = names_of(in.computed.session, id.kind, cells.rows, cells.cols);
  Result<Bytes> bytes = array_file(format, {std::move(array)}, names ? &*names : nullptr);
  if (!bytes) return bytes.error();
  return ArrayContent{std::move(bytes).value(), size_text(cells.rows, cells.cols) + " numbers"};
}

Result<ArrayContent> all_content(const StageInput& in) {
  if (is_refining(in.computed.trace) || is_pending(in.computed)) return bad_input(why_missing(in));
  const std::vector<NamedArray> arrays = arrays_of(in.computed.trace);
  Result<Bytes> bytes = npz_bytes(arrays);
  if (!bytes) return bytes.error();
  std::string words = std::to_string(arrays.size()) + " arrays";
  if (!in.computed.trace.streams.empty()) words += "; scores, scaled, keep and attn are too large and left out";
  return ArrayContent{std::move(bytes).value(), std::move(words)};
}

}  // namespace qkv
