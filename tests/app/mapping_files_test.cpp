// The dialog in which a person says what tensors are: more than one file, heads of K and V, bfloat16, and a mapping
// that the session remembers.
#include <doctest/doctest.h>

#include "core/session/session_file.h"
#include "core/session/tensor_origin.h"
#include "tests/app/harness.h"
#include "tests/app/mapping_on_disk.h"
#include "tests/support/bfloat16_file.h"

using namespace qkv;
using namespace qkv::test;

namespace {

const ProjectedSource& projected(const App& app) { return std::get<ProjectedSource>(app.session().problem.source); }
const DirectSource& direct(const App& app) { return std::get<DirectSource>(app.session().problem.source); }

void type_number(Harness& h, const std::string& widget, std::string_view number) {
  h.click(widget);
  h.key(Key::kA, true);
  h.type(number);
  h.key(Key::kEnter);
  h.frames(2);
}

void add_file(Harness& h, const fs::path& path) {
  h.click("mapping/add-file");
  h.frames(3);
  REQUIRE(h.has("file-dialog/name"));
  CHECK_FALSE(h.has("mapping/ok"));
  h.key(Key::kA, true);
  h.type(path.string());
  h.key(Key::kEnter);
  h.frames(4);
  REQUIRE(h.has("mapping/ok"));
}

// The command that asks what the tensors of a file are.
void ask(Harness& h, const fs::path& path) {
  h.key(Key::kP, true, true);
  h.frames(2);
  h.type("open tensors");
  h.key(Key::kEnter);
  h.frames(3);
  REQUIRE(h.has("file-dialog/name"));
  h.key(Key::kA, true);
  h.type(path.string());
  h.key(Key::kEnter);
  h.frames(4);
}

}  // namespace

TEST_CASE("mapping dialog: a second file holds the weights, and K and V may have fewer heads") {
  const TensorsOnDisk hidden({array_of("hidden_states", {5, 8}, 1)}, "hidden");
  const TensorsOnDisk weights({array_of("q_proj.weight", {8, 8}, 2), array_of("k_proj.weight", {4, 8}, 3),
                               array_of("v_proj.weight", {4, 8}, 4), array_of("hidden_states", {6, 8}, 5)},
                              "weights");
  Harness h;
  h.app().open_file(hidden.path());
  h.frames(2);
  REQUIRE(h.has("mapping/ok"));
  CHECK(h.has("mapping/role/wq"));  // what rows of X come closest to

  // Without a choice the dialog comes back as it was.
  h.click("mapping/add-file");
  h.frames(3);
  h.click("file-dialog/cancel");
  h.frames(4);
  REQUIRE(h.has("mapping/ok"));
  CHECK(h.has("mapping/tensor/hidden_states"));
  add_file(h, hidden.path().string() + ".missing");
  add_file(h, hidden.path());                    // that is there already
  CHECK(h.has("mapping/tensor/hidden_states"));  // not said with its file, as where two have it

  add_file(h, weights.path());
  const std::string of_second = "mapping/tensor/" + weights.path().filename().string() + ":";
  CHECK(h.has(of_second + "q_proj.weight"));
  // The rows of X are in both files: that is asked. A name that both have is said with its file.
  h.click("mapping/role/x");
  h.click("mapping/tensor/hidden_states");
  h.frames(2);
  REQUIRE(h.has("mapping/question"));
  REQUIRE(h.has("mapping/heads"));
  REQUIRE(h.has("mapping/kv_heads"));
  type_number(h, "mapping/heads", "4");
  CHECK_FALSE(h.has("mapping/question"));
  h.click("mapping/ok");
  h.frames(3);
  CHECK(projected(h.app()).heads == 4);
  CHECK(projected(h.app()).kv_heads == 2);
  CHECK(projected(h.app()).x.rows() == 5);
  REQUIRE(h.app().session().origin != nullptr);
  CHECK(h.app().session().origin->files.size() == 2);

  // The other X, and one head of K and V asked for: 8 numbers of Q make two heads of the size of the one of K.
  ask(h, hidden.path());
  REQUIRE(h.has("mapping/ok"));
  h.click("mapping/role/x");
  h.click(of_second + "hidden_states");
  h.frames(2);
  type_number(h, "mapping/heads", "2");
  type_number(h, "mapping/kv_heads", "1");
  h.click("mapping/ok");
  h.frames(3);
  CHECK(projected(h.app()).x.rows() == 6);
  CHECK(projected(h.app()).heads == 2);
  CHECK(projected(h.app()).kv_heads == 1);
}

TEST_CASE("mapping dialog: a file that was added is taken out again, with what was said of its tensors") {
  const TensorsOnDisk first({array_of("one", {4, 4}, 1), array_of("two", {4, 4}, 2)}, "first");
  const TensorsOnDisk second({array_of("two", {4, 4}, 3), array_of("three", {4, 4}, 4)}, "second");
  const std::string added = second.path().filename().string();
  Harness h;
  ask(h, first.path());
  REQUIRE(h.has("mapping/ok"));
  add_file(h, second.path());
  CHECK_FALSE(h.has("mapping/remove/" + first.path().filename().string()));
  h.click("mapping/tensor/one");
  h.click("mapping/tensor/" + added + ":two");
  h.click("mapping/tensor/" + added + ":three");
  h.click("mapping/remove/" + added);
  h.frames(2);
  CHECK_FALSE(h.has("mapping/tensor/" + added + ":three"));
  CHECK_FALSE(h.has("mapping/remove/" + added));
  h.key(Key::kEnter);  // K and V are not there any more
  REQUIRE(h.has("mapping/ok"));
  h.click("mapping/role/k");
  h.click("mapping/tensor/two");
  h.click("mapping/tensor/one");
  h.key(Key::kEnter);
  h.frames(3);
  CHECK_FALSE(h.has("mapping/ok"));
  CHECK(direct(h.app()).k[0].get() != direct(h.app()).q[0].get());
  CHECK(direct(h.app()).v[0].get() == direct(h.app()).q[0].get());
  CHECK(h.app().session().origin->files.size() == 1);
}

TEST_CASE("mapping dialog: 16-bit integers are shown as the bfloat16 numbers that they hold") {
  const std::vector<BitsArray> arrays = qkv_bits(4, 3);
  const TensorsOnDisk file(safetensors_of_bits(arrays), "bits.safetensors");
  Harness h;
  h.app().open_file(file.path());  // clear: whole numbers
  h.frames(2);
  CHECK(direct(h.app()).q[0]->coeff(0, 0) > 1000);
  ask(h, file.path());
  REQUIRE(h.has("mapping/bfloat16"));
  h.click("mapping/bfloat16");
  h.frames(2);
  h.click("mapping/ok");
  h.frames(3);
  CHECK(direct(h.app()).q[0]->coeff(1, 2) == arrays[0].values[5]);
  CHECK(h.app().session().origin->files.front().bfloat16 == std::vector<std::string>{"q", "k", "v"});

  // It begins as it was left, and can be undone.
  ask(h, file.path());
  REQUIRE(h.has("mapping/other"));
  h.click("mapping/bfloat16");
  h.frames(2);
  h.click("mapping/ok");
  h.frames(3);
  CHECK(direct(h.app()).q[0]->coeff(0, 0) > 1000);
}

TEST_CASE("mapping dialog: what was corrected is there when the file is opened again from the session") {
  const TensorsOnDisk file({array_of("q", {2, 4, 3}, 1), array_of("k", {2, 4, 3}, 2), array_of("v", {2, 4, 3}, 3)});
  const fs::path saved = file.path().string() + ".qkv.json";
  Harness h;
  ask(h, file.path());
  REQUIRE(h.has("mapping/ok"));
  CHECK_FALSE(h.has("mapping/other"));
  h.click("mapping/role/v");
  h.click("mapping/tensor/k");
  h.frames(2);
  // By another name than its own the axes are not told.
  h.click("mapping/question");
  h.frames(2);
  h.click("mapping/question/HND");
  h.frames(2);
  h.click("mapping/ok");
  h.frames(3);
  const Matrix corrected = direct(h.app()).v[1].get();
  CHECK(corrected == direct(h.app()).k[1].get());
  REQUIRE(write_session(h.app().session(), saved).ok());

  // Opened the plain way it is asked about too: it is not what the names propose.
  h.app().open_file(saved);
  h.frames(3);
  REQUIRE(h.app().session().origin != nullptr);
  h.app().open_file(file.path());
  h.frames(3);
  REQUIRE(h.has("mapping/other"));
  h.click("mapping/ok");
  h.frames(3);
  CHECK(direct(h.app()).v[1].get() == corrected);

  // Starting over forgets it.
  h.app().open_file(file.path());
  h.frames(3);
  h.click("mapping/other");
  h.frames(2);
  CHECK_FALSE(h.has("mapping/other"));
  h.click("mapping/ok");
  h.frames(3);
  CHECK(direct(h.app()).v[1].get() != corrected);
  fs::remove(saved);
}

TEST_CASE("mapping dialog: heads side by side that nothing counts are typed") {
  const TensorsOnDisk file({array_of("q", {1, 6, 16}, 1), array_of("k", {1, 6, 8}, 2), array_of("v", {1, 6, 8}, 3)},
                           "grouped");
  Harness h;
  h.app().open_file(file.path());
  h.frames(2);
  REQUIRE(h.has("mapping/heads"));
  type_number(h, "mapping/heads", "4");
  h.click("mapping/ok");
  h.frames(3);
  const auto& source = std::get<DirectSource>(h.app().session().problem.source);
  CHECK(source.q.size() == 4);
  CHECK(source.k.size() == 2);
  CHECK(source.q[0].cols() == 4);
}
