// How `--help` looks: usage first, options in two columns, lines that fit a terminal.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace qkv::cli {

// `usage` is what follows the program's name: "FILE -o OUT.npz [options]".
class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(std::string usage) : usage_(std::move(usage)) {}

  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_group(std::string group, bool is_positional, std::vector<const CLI::Option*> options) const override;

 private:
  std::string usage_;
};

}  // namespace qkv::cli
