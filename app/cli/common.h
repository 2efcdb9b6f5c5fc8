// What the commands share: arguments, values in text, input and output files, and the one line of an error.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/attention/forward.h"
#include "core/base/file.h"
#include "core/base/mapped_file.h"
#include "core/figure/color.h"
#include "core/figure/picture_format.h"
#include "core/session/session.h"

namespace qkv::cli {

inline constexpr int kExitDone = 0;
inline constexpr int kExitDifferent = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInput = 3;
inline constexpr int kExitDisplay = 4;
inline constexpr int kExitWrite = 5;

// Arguments after the name of the program and of the command.
using Arguments = std::vector<std::string>;

int exit_code(ErrorCode code);

// `error` with "where: " before its message: a file's name or a flag.
Error located(std::string_view where, Error error);

// What the system refused, before the reason that it gives: "Permission denied" says neither. Other errors as they are.
Error with_deed(std::string_view deed, Error error);

// The exit code of a command; a failure is printed as one line on stderr, "qkvlab: …".
int report(const Status& status);

// Reads `arguments` into what `app` declares; `usage` is the help's first line after the name. An exit code where that
// ends the program: help was asked for and printed, or the arguments are wrong and the line on stderr says how.
std::optional<int> parse_arguments(CLI::App& app, const std::string& usage, const Arguments& arguments);

// An option that takes one text, which must not be empty; `value_name` stands for it in the help.
CLI::Option* add_text(CLI::App& app, const std::string& flags, std::optional<std::string>& text,
                      const std::string& value_name, const std::string& help);

// Text as a value. Errors: kUsage that names `flag`, the text and what is allowed.
Result<int> parse_int(std::string_view flag, std::string_view text, int least, int most);
Result<float> parse_number(std::string_view flag, std::string_view text);
Result<ThemeName> parse_theme(std::string_view text);
// "a, b, c": what a name can be.
std::string name_list(const std::vector<std::string_view>& names);
Error unknown_name(std::string_view flag, std::string_view text, const std::vector<std::string_view>& names);

// A session or tensor file, or an example's name where no such file exists.
struct Input {
  Session session;
  std::filesystem::path path;  // the file that was read; empty for the worked example built into the program
  bool is_session = false;     // not tensors
  std::string note = {};       // what was taken for granted that no file says, in one line; most often empty
};
// Errors bear the file's name; a name that is neither a file nor an example is told what examples there are. Tensors
// are mapped as they propose themselves; map_flags.h opens them as a person says.
Result<Input> open_input(const std::string& name);
// Writes the note of what was opened to the standard error.
void say_note(const Result<Input>& input);
// The path of `name`: itself where it exists, else the example's. kCannotRead where there is neither.
Result<std::filesystem::path> find_input_file(const std::string& name);

// Whether a file, which can be read again, is a session: what a pipe gives is gone by then.
bool is_session_file(const std::filesystem::path& path);

// A file's content, read whole or mapped into memory where it is large; errors bear `name`.
Result<MappedFile> map_input(const std::string& name, const std::filesystem::path& path);
Result<Bytes> read_input(const std::string& name, const std::filesystem::path& path);

// Every step of the computation, errors bearing the input's name.
Result<Trace> compute(const std::string& name, const Session& session);

// Whether `out` may be written, told before the work: its folder exists, it is no folder, it is not the
// input. Errors: kCannotWrite with the system's reason, kUsage where it is the input.
Status check_output(const std::string& out, const std::filesystem::path& input);
// How a picture is written, by the name of its file. Errors: kUsage where that is none of `formats`.
Result<PictureFormat> parse_picture_format(const std::string& out, std::span<const PictureFormat> formats);
// check_output for a picture and, where asked for, its layout: two files.
Status check_picture_outputs(const std::string& out, const std::optional<std::string>& layout,
                             const std::filesystem::path& input);
// Writes the whole file or nothing. Errors bear the file's name.
Status write_output(const std::string& out, std::span<const std::byte> content);

// Text that keeps one line and a terminal as they are: invalid UTF-8 and control characters are replaced.
std::string printable(std::string_view text);

// Writes to stdout; kCannotWrite where it is full or closed.
Status print(std::string_view text);

}  // namespace qkv::cli
