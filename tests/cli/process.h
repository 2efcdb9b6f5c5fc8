// Runs a program as a user does, and takes down what it said and how it ended.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace qkv::test {

// Variables over the test's own environment; nullopt removes one.
using Environment = std::map<std::string, std::optional<std::string>>;

struct Finished {
  int exit_code = -1;  // 128 + the signal's number for a program that a signal ended; -1: not started or not in time
  std::string out, err;
};

// A running program. Its stdin is empty; stdout and stderr are kept.
class Process {
 public:
  Process(const std::vector<std::string>& words, const Environment& environment = {});
  ~Process();  // ends the program where it still runs
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  bool running();
  // Waits; after `seconds` the program is ended, and the exit code is -1.
  Finished wait(double seconds = 60);
  void signal(int number);
  pid_t id() const { return pid_; }
  // What it has written so far.
  std::string out() const;
  std::string err() const;

 private:
  pid_t pid_ = -1;
  int status_ = 0;
  int out_ = -1, err_ = -1;
};

inline Finished run_process(const std::vector<std::string>& words, const Environment& environment = {}) {
  return Process(words, environment).wait();
}

// A new folder that is removed with all it holds.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::vector<std::string> names() const;  // of what is in it, sorted

 private:
  std::filesystem::path path_;
};

void write_text(const std::filesystem::path& path, std::string_view text);
std::string read_text(const std::filesystem::path& path);

}  // namespace qkv::test
