// The command line: `qkvlab [FILE]`, run, render, screenshot, inspect.
#pragma once

namespace qkv {

// Exit codes: 0 done, 2 wrong usage, 3 bad input file, 4 no display or no OpenGL, 5 cannot write.
int run_command_line(int argc, char** argv);

}  // namespace qkv
