// Code that computes or typesets a session away from this program.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/session/session.h"
#include "core/tensor_io/npz.h"

namespace qkv {

enum class CodeKind { kNumpy, kPytorch, kLatex };
inline constexpr std::array kAllCodeKinds = {CodeKind::kNumpy, CodeKind::kPytorch, CodeKind::kLatex};

// "numpy", "pytorch", "latex", as on the command line, and back.
std::string_view code_key(CodeKind kind);
std::optional<CodeKind> code_kind_from_key(std::string_view key);
// "NumPy", "PyTorch", "LaTeX".
std::string_view code_title(CodeKind kind);
// ".py", ".tex".
std::string_view code_extension(CodeKind kind);

// Numbers that a script of the session needs: its matrices, key_valid and sinks.
Index numbers_in_script(const Problem& problem);
// A script with more of them loads them from a file beside it.
inline constexpr Index kMostWrittenNumbers = 20000;

// Those numbers as the arrays of that file, named as in a session file: float32, key_valid uint8.
std::vector<NamedArray> script_arrays(const Problem& problem);

// Whether code may compute the session: it keeps every matrix, as this program does up to kMostHeldBytes. kUnsupported
// with the size where that is too much, and for weights alone, which nothing computes.
Status check_script(const Shapes& shapes);

// A whole script that computes the session in float64 with every option, prints attn and out, and, when it is given a
// file's name, saves q k v scores scaled keep attn heads_out concat out there. Only steps that this session takes.
// `data_file`: the name of an .npz of script_arrays() beside the script; empty: the numbers are written out.
// The session agrees with itself (check_session).
std::string numpy_script(const Session& session, const std::string& data_file = {});
// Where torch's own scaled_dot_product_attention can compute it, the script compares the two.
std::string pytorch_script(const Session& session, const std::string& data_file = {});

// A whole document for pdflatex, xelatex or lualatex (not pdflatex where a text is not ASCII): the formula, and every
// step as a matrix with its tokens, rounded to the view's decimals; of large ones the first and last rows and columns.
// `trace` is of the session; a streamed one is finished.
std::string latex_document(const Session& session, const Trace& trace);

}  // namespace qkv
