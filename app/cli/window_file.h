// The file that the window is opened with.
#pragma once

#include <memory>
#include <string>

#include "app/cli/map_flags.h"
#include "app/panels/opening.h"

namespace qkv::cli {

// Begins to read it. Where little is to be read the end is waited for, so that what is wrong with the file is told
// before there is a window; the rest goes on in the window. nullptr for the worked example, which is no file.
Result<std::unique_ptr<BegunFile>> begin_window_file(const std::string& name, const MapFlags& flags);

}  // namespace qkv::cli
