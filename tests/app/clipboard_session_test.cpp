// Text in the clipboard opened as a session.
#include <doctest/doctest.h>

#include "app/panels/opening.h"
#include "core/session/session_file.h"
#include "tests/app/harness.h"

using namespace qkv;

namespace {

void open_clipboard(Harness& h, std::string text) {
  h.set_clipboard(std::move(text));
  h.key(Key::kP, true, true);
  h.frames(2);
  h.type("from the clipboard");
  h.key(Key::kEnter);
  h.frames(3);
}

std::string refusal(std::string_view text) {
  const Result<OpenedFile> opened = open_text(text);
  REQUIRE_FALSE(opened.ok());
  return opened.error().message;
}

}  // namespace

TEST_CASE("clipboard: a session's JSON opens as the session") {
  Harness h;
  Session session = worked_example();
  session.title = "from elsewhere";
  std::get<DirectSource>(session.problem.source).q[0].edit()(0, 0) = 42;
  open_clipboard(h, session_to_json(session));
  CHECK(h.app().session().title == "from elsewhere");
  CHECK(std::get<DirectSource>(h.app().session().problem.source).q[0]->coeff(0, 0) == 42);
  CHECK(h.app().preferences().recent.empty());
  CHECK_FALSE(h.app().window_title().starts_with("•"));
}

TEST_CASE("clipboard: a table is asked about, as a file without a telling name is") {
  Harness h;
  open_clipboard(h, "\tthe\tcat\nthe\t0.25\t0.75\ncat\t1\t0\n");
  REQUIRE(h.has("mapping/ok"));
  CHECK(h.has("mapping/tensor/clipboard"));
  h.click("mapping/kind/2");
  h.frames(2);
  h.click("mapping/tensor/clipboard");
  h.click("mapping/role/tokens");
  h.click("mapping/tensor/clipboard.rows");
  h.frames(2);
  h.click("mapping/ok");
  h.frames(3);
  const auto& source = std::get<WeightsSource>(h.app().session().problem.source);
  REQUIRE(source.attn.size() == 1);
  CHECK(source.attn[0]->coeff(0, 1) == 0.75f);
  CHECK(h.app().session().tokens == std::vector<std::string>{"the", "cat"});
  CHECK(h.app().session().origin == nullptr);

  // Q, K and V in one table: [tokens, 3·d].
  open_clipboard(h, "1,0,2,3,4,5\n0,1,6,7,8,9\n");
  REQUIRE(h.has("mapping/ok"));
  for (const std::string role : {"q", "k", "v"}) {
    h.click("mapping/role/" + role);
    h.click("mapping/tensor/clipboard");
    h.frames(2);
  }
  h.click("mapping/ok");
  h.frames(3);
  CHECK(std::get<DirectSource>(h.app().session().problem.source).v[0]->cols() == 6);
}

TEST_CASE("clipboard: what is no table and no session is refused as a file is") {
  CHECK(refusal("") == "it holds no text: copy a table of numbers, or a session's JSON");
  CHECK(refusal(" \r\n\t") == "it holds no text: copy a table of numbers, or a session's JSON");
  CHECK(refusal("some words of a letter").find("plain text") != std::string::npos);
  CHECK(refusal("{\"a\": 1}").find("\"qkvlab\" is missing") != std::string::npos);
  CHECK(refusal("{\"qkvlab\": 1,").find("line 1") != std::string::npos);
  CHECK(refusal("1,2\n3\n").find("line 2") != std::string::npos);
  const std::string q = R"({"file": "q.npy", "name": "q"})";
  CHECK(refusal(R"({"qkvlab": 1, "source": {"kind": "qkv", "q": )" + q + ", \"k\": " + q + ", \"v\": " + q + "}}") ==
        "q: q.npy is looked for beside the session file, but this is no file");
  Harness h;
  const std::string before = h.app().session().title;
  open_clipboard(h, "some words of a letter");
  CHECK(h.app().session().title == before);
  CHECK_FALSE(h.has("mapping/ok"));
}
