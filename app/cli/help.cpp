#include "app/cli/help.h"

#include <sstream>

#include "core/base/utf8.h"

namespace qkv::cli {
namespace {

constexpr std::size_t kIndent = 26;  // columns left of the descriptions
constexpr std::size_t kWidth = 100;  // columns of a line

std::size_t characters_in(const std::string& text) {
  std::size_t count = 0;
  for (std::size_t pos = 0; pos < text.size(); ++count) next_code_point(text, pos);
  return count;
}

// `left` and beside it `text`, broken at spaces.
std::string two_columns(const std::string& left, const std::string& text) {
  std::string out = "  " + left;
  std::size_t column = 2 + characters_in(left);
  if (column + 2 > kIndent) {
    out += "\n";
    column = 0;
  }
  out += std::string(kIndent - column, ' ');
  column = kIndent;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::size_t length = characters_in(word);
    if (column > kIndent && column + 1 + length > kWidth) {
      out += "\n" + std::string(kIndent, ' ');
      column = kIndent;
    } else if (column > kIndent) {
      out += " ";
      ++column;
    }
    out += word;
    column += length;
  }
  return out + "\n";
}

std::string spelled(const CLI::Option& option, bool is_positional) {
  if (is_positional) return option.get_name(true);
  std::string names;
  const auto add = [&](const std::string& dashes, const std::string& name) {
    names += (names.empty() ? "" : ", ") + dashes + name;
  };
  for (const std::string& name : option.get_snames()) add("-", name);
  for (const std::string& name : option.get_lnames()) add("--", name);
  const std::string value = option.get_type_size() > 0 ? option.get_type_name() : "";
  return value.empty() ? names : names + " " + value;
}

}  // namespace

std::string HelpFormatter::make_usage(const CLI::App* app, std::string) const {
  return "\nUsage: " + app->get_name() + " " + usage_ + "\n";
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  return two_columns(spelled(*option, is_positional), option->get_description());
}

std::string HelpFormatter::make_group(std::string, bool is_positional, std::vector<const CLI::Option*> options) const {
  std::string out = "\n";
  for (const CLI::Option* option : options) out += make_option(option, is_positional);
  return out;
}

}  // namespace qkv::cli
