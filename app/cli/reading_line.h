// A line on stderr that says how far a long reading is, where stderr is a terminal.
#pragma once

#include <string>
#include <thread>

#include "core/base/read_progress.h"

namespace qkv::cli {

// The line appears after a moment, so that what is read at once says nothing, and is gone at the end of the scope.
class ReadingLine {
 public:
  explicit ReadingLine(const std::string& name);
  ReadingLine(const ReadingLine&) = delete;
  ReadingLine& operator=(const ReadingLine&) = delete;

  // Of the reading, for whoever reads.
  ReadProgress* progress() { return &progress_; }

 private:
  void write_until_stopped(const std::stop_token& stop) const;

  std::string name_;
  ReadProgress progress_;
  std::jthread thread_;
};

}  // namespace qkv::cli
