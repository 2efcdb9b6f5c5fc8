// Tokens that no file names, counted from 1 as everything in the window.
#include "app/unnamed_tokens.h"

#include <doctest/doctest.h>

#include "app/panels/inspector_words.h"
#include "app/panels/mapping_dialog.h"
#include "tests/app/harness.h"
#include "tests/app/mapping_on_disk.h"

using namespace qkv;
using namespace qkv::test;

namespace {

using Tokens = std::vector<std::string>;

std::vector<NamedArray> inputs() {
  return {array_of("q", {1, 3, 2}, 1), array_of("k", {1, 4, 2}, 2), array_of("v", {1, 4, 2}, 3)};
}

}  // namespace

TEST_CASE("unnamed tokens: rows count from 1 as columns do") {
  const TensorsOnDisk file(inputs());
  Harness h;
  h.app().open_file(file.path());
  h.frames(2);
  CHECK(h.app().session().tokens == Tokens{"1", "2", "3"});
  CHECK(h.app().session().key_tokens == Tokens{"1", "2", "3", "4"});
  CHECK(cell_name({MatrixKind::kHeadsOut, 0}, 2, 1, h.app().session(), TokenStyle::kPlain) == "O[3, 2]");
}

TEST_CASE("unnamed tokens: the mapping dialog shows them as they will be") {
  const TensorsOnDisk file(inputs());
  Result<TensorFile> tensors = TensorFile::open(file.path());
  REQUIRE(tensors.ok());
  MappingDialogState dialog;
  open_mapping_dialog(dialog, file.path(), std::move(tensors).value());
  REQUIRE(dialog.session);
  CHECK(dialog.session->tokens == Tokens{"1", "2", "3"});
}

TEST_CASE("unnamed tokens: names that are given stay, whatever they are") {
  std::vector<NamedArray> arrays = inputs();
  arrays.push_back({"tokens_utf8", {5}, std::vector<std::uint8_t>{'0', '\n', '1', '\n', '2'}});
  const TensorsOnDisk file(arrays);
  Harness h;
  h.app().open_file(file.path());
  h.frames(2);
  CHECK(h.app().session().tokens == Tokens{"0", "1", "2"});
  CHECK(h.app().session().key_tokens == Tokens{"1", "2", "3", "4"});

  Session typed = worked_example();
  typed.tokens = {"0", "1", "2"};
  h.app().open(typed, {});
  CHECK(h.app().session().tokens == typed.tokens);
}
