// Finds the files that come with the program: beside an installed program, or in the source tree it was built from.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace qkv {

// Folder that holds sessions/ and the rest: $QKVLAB_ASSETS, else <program>/../share/qkvlab, else the source tree's
// assets/. nullopt where none exists.
std::optional<std::filesystem::path> assets_folder();

struct Example {
  std::string name;   // "cat_sleeps": what the command line takes
  std::string title;  // from the session file
  std::filesystem::path path;
};

// assets/sessions in the order of the menu: the worked example first.
std::vector<Example> examples();
std::optional<std::filesystem::path> find_example(const std::string& name);

}  // namespace qkv
