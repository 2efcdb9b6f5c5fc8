// The program under test, and what every test of the command line asks of it.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/cli/process.h"

namespace qkv::test {

inline const std::string kProgram = QKVLAB_PROGRAM;
inline const std::string kData = QKV_SOURCE_DIR "/tests/data/";

inline Finished qkvlab(std::vector<std::string> words, const Environment& environment = {}) {
  words.insert(words.begin(), kProgram);
  return run_process(words, environment);
}

// Done, without a word.
inline void check_silent(const Finished& finished) {
  CHECK(finished.exit_code == 0);
  CHECK(finished.out == "");
  CHECK(finished.err == "");
}

// Refused with `code` and one line that holds `text`.
inline void check_refused(const Finished& finished, int code, const std::string& text) {
  CHECK(finished.exit_code == code);
  CHECK(finished.out == "");
  CHECK(finished.err.starts_with("qkvlab: "));
  CHECK(finished.err.ends_with("\n"));
  CHECK(std::count(finished.err.begin(), finished.err.end(), '\n') == 1);
  const bool says_it = finished.err.find(text) != std::string::npos;
  CHECK_MESSAGE(says_it, finished.err << " should say: " << text);
}

}  // namespace qkv::test
