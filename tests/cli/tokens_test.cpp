// `--raw-tokens` of render and screenshot; what is in a file is written and listed as it is stored.
#include "core/base/file.h"
#include "tests/cli/support.h"

using namespace qkv;
using namespace qkv::test;

namespace {

std::string session(const std::string& view) {
  return R"({"qkvlab": 1, "tokens": ["<|endoftext|>", "Hello", "Ġworld"],
    "source": {"kind": "qkv", "q": [[[1, 0], [0, 1], [1, 1]]], "k": [[[1, 0], [0, 1], [1, 1]]],
               "v": [[[1, 0], [0, 1], [1, 1]]]}, "view": {)" +
         view + "}}";
}

std::string read(const std::string& path) {
  const Result<Bytes> bytes = read_file(path);
  REQUIRE(bytes.ok());
  return {reinterpret_cast<const char*>(bytes.value().data()), bytes.value().size()};
}

}  // namespace

TEST_CASE("render shows tokens readably, and as stored with --raw-tokens or where the session says so") {
  const TempFolder folder;
  REQUIRE(write_file_atomically(folder / "s.qkv.json", as_bytes(session(""))).ok());
  REQUIRE(write_file_atomically(folder / "raw.qkv.json", as_bytes(session("\"raw_tokens\": true"))).ok());
  check_silent(qkvlab({"render", folder / "s.qkv.json", "-o", folder / "shown.png"}));
  check_silent(qkvlab({"render", folder / "s.qkv.json", "-o", folder / "flag.png", "--raw-tokens"}));
  check_silent(qkvlab({"render", folder / "raw.qkv.json", "-o", folder / "raw.png"}));
  CHECK(read(folder / "shown.png") != read(folder / "raw.png"));
  CHECK(read(folder / "flag.png") == read(folder / "raw.png"));
  const Finished listed = qkvlab({"inspect", folder / "s.qkv.json"});
  CHECK(listed.exit_code == 0);
  CHECK(listed.out.find("<|endoftext|> Hello Ġworld") != std::string::npos);
}
