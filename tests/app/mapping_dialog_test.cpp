// The dialog in which a person says what the tensors of a file are.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/app/harness.h"
#include "tests/app/mapping_on_disk.h"

using namespace qkv;
using namespace qkv::test;

namespace {

std::vector<NamedArray> tokens_or_heads_first() {
  return {array_of("query", {5, 3, 4}, 1), array_of("key", {5, 3, 4}, 2), array_of("value", {5, 3, 4}, 3)};
}

const DirectSource& direct(const App& app) { return std::get<DirectSource>(app.session().problem.source); }

}  // namespace

TEST_CASE("mapping dialog: a file that is clear opens at once") {
  const TensorsOnDisk file({array_of("q", {2, 4, 3}, 1), array_of("k", {2, 4, 3}, 2), array_of("v", {2, 4, 3}, 3)});
  Harness h;
  h.app().open_file(file.path());
  h.frames(2);
  CHECK_FALSE(h.has("mapping/ok"));
  CHECK(direct(h.app()).q.size() == 2);
  CHECK(direct(h.app()).q[0].rows() == 4);
}

TEST_CASE("mapping dialog: what is open is asked, and nothing opens before the answer") {
  const TensorsOnDisk file(tokens_or_heads_first());
  Harness h;
  h.app().open_file(file.path());
  h.frames(2);
  REQUIRE(h.has("mapping/ok"));
  for (const std::string name : {"mapping/role/q", "mapping/tensor/value", "mapping/layout/k", "mapping/question"}) {
    CHECK_MESSAGE(h.has(name), name);
  }
  h.click("mapping/ok");
  CHECK(h.has("mapping/ok"));
  h.click("mapping/question");
  h.frames(2);
  h.click("mapping/question/NHD");
  h.frames(2);
  CHECK_FALSE(h.has("mapping/question"));
  h.click("mapping/ok");
  h.frames(2);
  CHECK_FALSE(h.has("mapping/ok"));
  REQUIRE(direct(h.app()).q.size() == 3);
  CHECK(direct(h.app()).q[0].rows() == 5);
  // [tokens, heads, d]: token 1 of head 2 begins after one whole token and two heads of four.
  CHECK(direct(h.app()).q[2]->coeff(1, 0) == std::get<std::vector<float>>(array_of("query", {5, 3, 4}, 1).values)[20]);
}

TEST_CASE("mapping dialog: a layout and a tensor chosen by hand, Cancel and Escape") {
  const TensorsOnDisk file(tokens_or_heads_first());
  Harness h;
  const std::string before = h.app().session().title;
  h.app().open_file(file.path());
  h.frames(2);
  h.click("mapping/cancel");
  h.frames(2);
  CHECK_FALSE(h.has("mapping/ok"));
  CHECK(h.app().session().title == before);

  h.app().open_file(file.path());
  h.frames(2);
  h.key(Key::kEscape);
  h.frames(2);
  CHECK_FALSE(h.has("mapping/ok"));
  CHECK(h.app().session().title == before);

  h.app().open_file(file.path());
  h.frames(2);
  h.click("mapping/role/v");
  h.click("mapping/tensor/key");
  h.frames(2);
  h.click("mapping/question");
  h.frames(2);
  h.click("mapping/question/HND");
  h.frames(2);
  h.click("mapping/ok");
  h.frames(2);
  REQUIRE(direct(h.app()).v.size() == 5);
  CHECK(direct(h.app()).v[1]->coeff(2, 3) == direct(h.app()).k[1]->coeff(2, 3));
}

TEST_CASE("mapping dialog: names that say nothing are given their roles one after the other") {
  const TensorsOnDisk file({array_of("first", {4, 4}, 1), array_of("second", {4, 4}, 2), array_of("ids", {9}, 2)});
  Harness h;
  h.app().open_file(file.path());
  h.frames(2);
  REQUIRE(h.has("mapping/ok"));
  for (const auto& [role, name] : {std::pair("q", "first"), std::pair("k", "second"), std::pair("v", "first")}) {
    h.click(std::string("mapping/role/") + role);
    h.click(std::string("mapping/tensor/") + name);
    h.frames(2);
  }
  h.click("mapping/ok");
  h.frames(2);
  REQUIRE(direct(h.app()).q.size() == 1);
  CHECK(direct(h.app()).v[0]->coeff(3, 3) == direct(h.app()).q[0]->coeff(3, 3));

  // The same file as attention weights.
  h.app().open_file(file.path());
  h.frames(2);
  h.click("mapping/kind/2");
  h.frames(2);
  h.click("mapping/tensor/second");
  h.frames(2);
  h.click("mapping/ok");
  h.frames(2);
  CHECK(std::get<WeightsSource>(h.app().session().problem.source).attn.size() == 1);
}

TEST_CASE("mapping dialog: a choice goes on to the next role, and Return opens what can be opened") {
  const TensorsOnDisk file({array_of("first", {4, 4}, 1), array_of("second", {4, 4}, 2), array_of("third", {4, 4}, 3)});
  Harness h;
  const std::string before = h.app().session().title;
  h.app().open_file(file.path());
  h.frames(2);
  REQUIRE(h.has("mapping/ok"));
  h.key(Key::kEnter);  // nothing to open yet
  h.click("mapping/tensor/first");
  h.click("mapping/role/v");
  h.click("mapping/tensor/third");
  REQUIRE(h.has("mapping/ok"));
  CHECK(h.app().session().title == before);
  h.click("mapping/tensor/second");  // of K, which was left out
  // All are there: a choice stays with its role, to be corrected.
  h.click("mapping/tensor/third");
  h.click("mapping/tensor/second");
  // In a list that is open Return chooses of it.
  h.click("mapping/layout/q");
  h.key(Key::kEnter);
  REQUIRE(h.has("mapping/ok"));
  h.frames(2);
  h.key(Key::kEnter);
  CHECK_FALSE(h.has("mapping/ok"));
  REQUIRE(direct(h.app()).q.size() == 1);
  const auto cell = [](const std::string& name, int salt) {
    return std::get<std::vector<float>>(array_of(name, {4, 4}, salt).values)[6];
  };
  CHECK(direct(h.app()).q[0]->coeff(1, 2) == cell("first", 1));
  CHECK(direct(h.app()).k[0]->coeff(1, 2) == cell("second", 2));
  CHECK(direct(h.app()).v[0]->coeff(1, 2) == cell("third", 3));
}

TEST_CASE("mapping dialog: the layers and heads of a model") {
  std::vector<NamedArray> arrays = {array_of("x", {5, 8}, 1)};
  for (const std::string layer : {"0", "1", "2"}) {
    arrays.push_back(array_of("h." + layer + ".attn.c_attn.weight", {8, 24}, layer[0]));
  }
  const TensorsOnDisk file(arrays);
  Harness h;
  h.app().open_file(file.path());
  h.frames(2);
  REQUIRE(h.has("mapping/question"));
  h.click("mapping/question");
  h.frames(2);
  h.click("mapping/question/2");
  h.frames(2);
  REQUIRE(h.has("mapping/layer"));
  h.click("mapping/layer");
  h.key(Key::kA, true);
  h.type("2");
  h.key(Key::kEnter);
  h.frames(2);
  h.click("mapping/ok");
  h.frames(2);
  const auto& source = std::get<ProjectedSource>(h.app().session().problem.source);
  CHECK(source.heads == 2);
  CHECK(source.wk->coeff(0, 0) == std::get<std::vector<float>>(arrays[3].values)[8]);
  CHECK(h.app().session().title.ends_with(", layer 2"));
}
