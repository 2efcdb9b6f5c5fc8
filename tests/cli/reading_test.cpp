// Long readings and writings: a line on a terminal, and nothing half-written when the program is ended.
#include <csignal>

#include "tests/cli/support.h"

using namespace qkv::test;

namespace {

// Runs the program in a terminal of its own and Python lines beside it, which assert. They know `folder`, the
// `terminal` and the process `child`.
void check_in_terminal(const TempFolder& folder, std::vector<std::string> arguments, const std::string& lines) {
  const std::string start = R"(
import os, pty, signal, sys
folder = sys.argv[1]
child, terminal = pty.fork()
if child == 0:
    os.execv(sys.argv[2], sys.argv[2:])
seen = b''
)";
  arguments.insert(arguments.begin(), {"python3", "-c", start + lines, folder.path().string(), kProgram});
  const Finished finished = run_process(arguments);
  CHECK_MESSAGE(finished.exit_code == 0, finished.err);
}

// A table of 96 MiB, which takes some seconds.
void write_table(const TempFolder& folder) {
  std::string line = "0.125";
  for (int i = 1; i < 2048; ++i) line += ",0.125";
  std::string text;
  for (int i = 0; i < 8192; ++i) text += line + "\n";
  write_text(folder / "attn.csv", text);
}

}  // namespace

TEST_CASE("reading: a terminal sees how far it is, and the line is gone at the end") {
  const TempFolder folder;
  write_table(folder);
  check_in_terminal(folder, {"inspect", folder / "attn.csv", "--json"}, R"(
while True:
    try: more = os.read(terminal, 4096)
    except OSError: break
    if not more: break
    seen += more
assert os.waitpid(child, 0)[1] == 0, seen
before, after = seen.split(b'{', 1)
lines = before.split(b'\r\x1b[K')
assert lines[0] == b'' and lines[-1] == b'' and len(lines) > 2, before
for line in lines[1:-1]:
    assert line.startswith(b'qkvlab: attn.csv: '), line
assert any(b'Read' in line and b'of 96 MiB (' in line for line in lines), before
)");
}

TEST_CASE("reading: nothing is said where stderr is no terminal") {
  const TempFolder folder;
  write_table(folder);
  const Finished finished = qkvlab({"inspect", folder / "attn.csv"});
  CHECK(finished.exit_code == 0);
  CHECK(finished.err == "");
}

TEST_CASE("reading: the window is there before a large file is read, and after a small one that is wrong") {
  const TempFolder folder;
  const Environment no_display{
      {"DISPLAY", std::nullopt}, {"WAYLAND_DISPLAY", std::nullopt}, {"XDG_CONFIG_HOME", folder.path().string()}};
  write_text(folder / "small.csv", "1,2\n3,word\n");
  check_refused(qkvlab({folder / "small.csv"}, no_display), 3, "small.csv: ");
  std::string line = "0.125";
  for (int i = 1; i < 1024; ++i) line += ",0.125";
  std::string text;
  while (text.size() < std::size_t{40} << 20) text += line + "\n";
  write_text(folder / "large.csv", text + "word\n");
  check_refused(qkvlab({folder / "large.csv"}, no_display), 4, "display");
  check_refused(qkvlab({"inspect", folder / "large.csv"}, no_display), 3, "large.csv: ");
}

TEST_CASE("reading: Ctrl-C ends it, and no file is there or half there") {
  const TempFolder folder;
  write_table(folder);
  check_in_terminal(folder, {"run", folder / "attn.csv", "-o", folder / "out.npz"}, R"(
while b'MiB' not in seen:
    seen += os.read(terminal, 4096)
os.write(terminal, b'\x03')
status = os.waitpid(child, 0)[1]
assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGINT, status
assert os.listdir(folder) == ['attn.csv'], os.listdir(folder)
)");
}

TEST_CASE("writing: a program that is ended while it writes leaves nothing behind") {
  const TempFolder folder;
  // The system ends it at the first byte beyond the limit.
  const auto write = [&](const std::string& kilobytes) {
    return run_process({"bash", "-c", "ulimit -c 0 -f " + kilobytes + "; exec \"$@\"", "bash", kProgram, "run",
                        "thinking_machines", "-o", folder / "out.npz"});
  };
  CHECK(write("4").exit_code == 128 + SIGXFSZ);
  CHECK(folder.names().empty());
  CHECK(write("unlimited").exit_code == 0);
  const std::string whole = read_text(folder / "out.npz");
  CHECK(whole.size() > 4096);
  CHECK(write("4").exit_code == 128 + SIGXFSZ);
  CHECK(folder.names() == std::vector<std::string>{"out.npz"});
  CHECK(read_text(folder / "out.npz") == whole);
}
