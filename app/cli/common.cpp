#include "app/cli/common.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <system_error>

#include "app/assets.h"
#include "app/cli/help.h"
#include "core/base/ascii.h"
#include "core/base/number_text.h"
#include "core/base/utf8.h"
#include "core/session/session_file.h"

namespace qkv::cli {

namespace fs = std::filesystem;

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUsage:
      return kExitUsage;
    case ErrorCode::kNoDisplay:
      return kExitDisplay;
    case ErrorCode::kCannotWrite:
      return kExitWrite;
    case ErrorCode::kBadInput:
    case ErrorCode::kUnsupported:
    case ErrorCode::kCannotRead:
    case ErrorCode::kCancelled:
      return kExitInput;
  }
  return kExitInput;
}

Error located(std::string_view where, Error error) {
  error.message = std::string(where) + ": " + error.message;
  return error;
}

Error with_deed(std::string_view deed, Error error) {
  const bool by_system = error.code == ErrorCode::kCannotRead || error.code == ErrorCode::kCannotWrite;
  return by_system ? located(deed, std::move(error)) : error;
}

void say_note(const Result<Input>& input) {
  if (!input.ok() || input.value().note.empty()) return;
  std::fputs(("qkvlab: note: " + printable(input.value().note) + "\n").c_str(), stderr);
}

int report(const Status& status) {
  if (status.ok()) return kExitDone;
  std::fputs(("qkvlab: " + printable(status.error().message) + "\n").c_str(), stderr);
  return exit_code(status.error().code);
}

std::optional<int> parse_arguments(CLI::App& app, const std::string& usage, const Arguments& arguments) {
  app.formatter(std::make_shared<HelpFormatter>(usage));
  app.set_help_flag("-h,--help", "This help");
  try {
    app.parse(Arguments(arguments.rbegin(), arguments.rend()));  // CLI11 takes them from the back
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    return report(print(app.help()));
  } catch (const CLI::ParseError& error) {
    std::string message = error.what();
    // A word in capitals, such as FILE, is the name of an argument.
    const bool is_name = message.size() > 1 && std::isupper(static_cast<unsigned char>(message[1])) != 0;
    if (!is_name) message.replace(0, 1, lower_ascii(message.substr(0, 1)));
    while (!message.empty() && (message.back() == '\n' || message.back() == '.')) message.pop_back();
    return report(usage_error(message + "; see " + app.get_name() + " --help"));
  }
}

CLI::Option* add_text(CLI::App& app, const std::string& flags, std::optional<std::string>& text,
                      const std::string& value_name, const std::string& help) {
  const CLI::Validator not_empty([](std::string& given) { return given.empty() ? "is empty" : ""; }, "");
  return app.add_option(flags, text, help)->type_name(value_name)->check(not_empty);
}

Result<int> parse_int(std::string_view flag, std::string_view text, int least, int most) {
  int value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size() || value < least || value > most) {
    return usage_error(std::string(flag) + ": \"" + std::string(text) + "\" is not a whole number from " +
                       std::to_string(least) + " to " + std::to_string(most));
  }
  return value;
}

Result<float> parse_number(std::string_view flag, std::string_view text) {
  const std::optional<float> value = parse_float(text);
  if (!value) {
    return usage_error(std::string(flag) + ": \"" + std::string(text) +
                       "\" is not a number; write it with a decimal point, such as 0.5");
  }
  return *value;
}

std::string name_list(const std::vector<std::string_view>& names) {
  std::string list;
  for (const std::string_view name : names) {
    if (!list.empty()) list += ", ";
    list += name;
  }
  return list;
}

Error unknown_name(std::string_view flag, std::string_view text, const std::vector<std::string_view>& names) {
  return usage_error(std::string(flag) + ": there is no \"" + std::string(text) + "\"; there are " + name_list(names));
}

Result<ThemeName> parse_theme(std::string_view text) {
  const std::optional<ThemeName> theme = theme_from_name(text);
  if (!theme) return unknown_name("--theme", text, {"light", "dark"});
  return *theme;
}

Result<fs::path> find_input_file(const std::string& name) {
  std::error_code problem;
  const fs::file_status status = fs::status(name, problem);
  if (fs::is_directory(status)) {
    return Error{ErrorCode::kCannotRead, name + ": is a folder; name a file in it"};
  }
  if (fs::exists(status)) return fs::path(name);
  if (status.type() != fs::file_type::not_found) {
    return Error{ErrorCode::kCannotRead, name + ": " + problem.message()};
  }
  if (const auto example = find_example(name)) return *example;
  std::string message = name + ": no such file, and no example or command of that name";
  std::vector<std::string_view> names;
  const std::vector<Example> all = examples();
  for (const Example& example : all) names.push_back(example.name);
  if (!names.empty()) message += "; the examples are " + name_list(names);
  return Error{ErrorCode::kCannotRead, std::move(message)};
}

bool is_session_file(const fs::path& path) {
  std::error_code problem;
  if (!fs::is_regular_file(path, problem)) return false;
  std::string head(512, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(file.gcount()));
  return looks_like_session(as_bytes(head));
}

Result<Bytes> read_input(const std::string& name, const fs::path& path) {
  Result<Bytes> content = read_file(path);
  if (!content.ok()) return located(name, with_deed("cannot be read", content.error()));
  return content;
}

Result<MappedFile> map_input(const std::string& name, const fs::path& path) {
  Result<MappedFile> file = MappedFile::open(path);
  if (!file.ok()) return located(name, with_deed("cannot be read", file.error()));
  return file;
}

Result<Trace> compute(const std::string& name, const Session& session) {
  ThreadPool pool;
  Result<Trace> trace = forward(session.problem, {.pool = &pool});
  if (!trace.ok()) return located(name, trace.error());
  return trace;
}

Status check_output(const std::string& out, const fs::path& input) {
  if (out.empty()) return usage_error("-o: the name of the file to write is empty");
  const auto cannot_write = [&](const std::string& reason) {
    return Error{ErrorCode::kCannotWrite, out + ": " + reason};
  };
  std::error_code problem;
  const fs::path target = fs::path(out);
  const fs::file_status status = fs::status(target, problem);
  if (fs::is_directory(status)) return cannot_write("is a folder; name a file in it");
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  if (!fs::is_directory(folder, problem)) {
    if (!problem) problem = std::make_error_code(std::errc::not_a_directory);
    return cannot_write("cannot write into " + folder.string() + ": " + problem.message());
  }
  if (!target.has_filename()) return cannot_write("is the name of a folder; name a file in it");
  if (fs::equivalent(target, input, problem) && !problem) {
    return usage_error(out + ": is the input file, which would be lost; give -o another name");
  }
  return Done{};
}

Result<PictureFormat> parse_picture_format(const std::string& out, std::span<const PictureFormat> formats) {
  const std::optional<PictureFormat> format = picture_format(fs::path(out));
  if (format && std::ranges::find(formats, *format) != formats.end()) return *format;
  std::vector<std::string_view> names;
  for (const PictureFormat each : formats) names.push_back(extension_of(each));
  return usage_error(out + ": is no picture's name here; give -o a name that ends in " +
                     (names.size() == 1 ? "" : "one of ") + name_list(names));
}

Status check_picture_outputs(const std::string& out, const std::optional<std::string>& layout, const fs::path& input) {
  if (const Status free = check_output(out, input); !free.ok() || !layout) return free;
  if (fs::path(*layout).lexically_normal() == fs::path(out).lexically_normal()) {
    return usage_error(*layout + ": is the name of the picture too; give --layout another");
  }
  return check_output(*layout, input);
}

Status write_output(const std::string& out, std::span<const std::byte> content) {
  const Status written = write_file_atomically(fs::path(out), content);
  if (!written.ok()) return located(out, with_deed("cannot be written", written.error()));
  return written;
}

std::string printable(std::string_view text) {
  std::string clean = sanitize_utf8(text);
  std::replace_if(
      clean.begin(), clean.end(), [](unsigned char byte) { return byte < 0x20 || byte == 0x7f; }, ' ');
  return clean;
}

Status print(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) {
    return Error{ErrorCode::kCannotWrite, "stdout: " + std::generic_category().message(errno)};
  }
  return Done{};
}

}  // namespace qkv::cli
