// How far a reading is, as a bar with words below it.
#pragma once

#include <string>

#include "app/ui/ui.h"
#include "core/base/read_progress.h"

namespace qkv {

// Over the whole width that there is, registered as `name`; the next frame is due soon.
void draw_reading_bar(Ui& ui, const std::string& name, const ReadProgress& progress);

}  // namespace qkv
