// The commands of the program: each reads its own arguments and gives the exit code.
#pragma once

#include "app/cli/common.h"

namespace qkv::cli {

int run_command(const Arguments& words);
int render_command(const Arguments& words);
int screenshot_command(const Arguments& words);
int inspect_command(const Arguments& words);
int diff_command(const Arguments& words);
int bench_command(const Arguments& words);
int code_command(const Arguments& words);

}  // namespace qkv::cli
