// Help, version, `qkvlab inspect`, the commands that draw with OpenGL, and the installed program.
#include <nlohmann/json.hpp>

#include "core/figure/paint.h"
#include "core/session/session_file.h"
#include "tests/cli/support.h"

using namespace qkv;
using namespace qkv::test;
using Json = nlohmann::json;

TEST_CASE("help and version go to stdout, and every command has a help with examples") {
  const Finished version = qkvlab({"--version"});
  CHECK(version.exit_code == 0);
  CHECK(version.out == "qkvlab " QKVLAB_VERSION "\n");
  CHECK(version.err == "");
  for (const std::string command : {"", "run", "render", "screenshot", "inspect", "bench"}) {
    CAPTURE(command);
    std::vector<std::string> words{"--help"};
    if (!command.empty()) words.insert(words.begin(), command);
    const Finished help = qkvlab(words);
    CHECK(help.exit_code == 0);
    CHECK(help.err == "");
    CHECK(help.out.find("Usage: qkvlab") != std::string::npos);
    CHECK(help.out.find("Examples:") != std::string::npos);
    words.back() = "-h";
    CHECK(qkvlab(words).out == help.out);
  }
}

TEST_CASE("inspect says what a session holds") {
  const TempFolder folder;
  Session session = worked_example();
  session.problem.options.causal = true;
  session.problem.options.key_valid = {1, 1, 0};
  REQUIRE(write_session(session, folder / "貓.qkv.json").ok());
  const Finished text = qkvlab({"inspect", folder / "貓.qkv.json"});
  CHECK(text.exit_code == 0);
  CHECK(text.out.find("3: 貓 追 老鼠") != std::string::npos);
  CHECK(text.out.find("causal, key_valid 1,1,0") != std::string::npos);

  const Finished as_json = qkvlab({"inspect", folder / "貓.qkv.json", "--json"});
  REQUIRE(as_json.exit_code == 0);
  const Json json = Json::parse(as_json.out);
  CHECK(json["kind"] == "session");
  CHECK(json["tokens"] == Json{"貓", "追", "老鼠"});
  CHECK(json["shapes"]["d_k"] == 3);
  CHECK(json["attention"]["causal"] == true);
  CHECK(json["attention"]["key_valid"] == Json{1, 1, 0});
}

TEST_CASE("inspect says which variants a session has") {
  const TempFolder folder;
  Session session = worked_example();
  session.problem.options = {.causal = true,
                             .key_valid = {1, 1, 0},
                             .softcap = 20.0f,
                             .alibi = true,
                             .bias = SharedMatrix(Matrix::Ones(3, 3)),
                             .window = 2,
                             .sink = {-0.5f}};
  REQUIRE(write_session(session, folder / "a.qkv.json").ok());
  const Finished text = qkvlab({"inspect", folder / "a.qkv.json"});
  CHECK(text.out.find(", softcap 20, alibi, bias 3 × 3, causal, window 2, key_valid 1,1,0, sink -0.5\n") !=
        std::string::npos);
  const Json json = Json::parse(qkvlab({"inspect", folder / "a.qkv.json", "--json"}).out);
  CHECK(json["attention"]["softcap"] == 20);
  CHECK(json["attention"]["alibi"] == true);
  CHECK(json["attention"]["bias"] == Json{3, 3});
  CHECK(json["attention"]["window"] == 2);
  CHECK(json["attention"]["sink"] == Json::array({-0.5}));

  write_text(folder / "rope.qkv.json", R"({"qkvlab": 1, "source": {"kind": "qkv", "q": [[[1, 2]]], "k": [[[1, 2]]],
      "v": [[[1]]]}, "attention": {"rope": {"base": 500, "style": "interleaved"}}})");
  CHECK(qkvlab({"inspect", folder / "rope.qkv.json"}).out.find("rope interleaved base 500, scale") !=
        std::string::npos);
  const Json rope = Json::parse(qkvlab({"inspect", folder / "rope.qkv.json", "--json"}).out)["attention"]["rope"];
  CHECK(rope == Json{{"base", 500}, {"style", "interleaved"}});
}

TEST_CASE("inspect says what a tensor file holds, and which arrays cannot be read") {
  const TempFolder folder;
  const std::string header = R"({"q":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]}})";
  write_text(folder / "a.safetensors",
             std::string(1, static_cast<char>(header.size())) + std::string(7, '\0') + header + "xy");
  const Finished unread = qkvlab({"inspect", folder / "a.safetensors"});
  CHECK(unread.exit_code == 0);
  CHECK_MESSAGE(unread.out.find("no: dtype F8_E4M3 is not read: save it as F32") != std::string::npos, unread.out);
  const Finished text = qkvlab({"inspect", kData + "sdpa/plain.npz"});
  CHECK(text.exit_code == 0);
  CHECK(text.out.starts_with("name"));
  CHECK(text.out.find("float64") != std::string::npos);
  CHECK(text.out.find("uint8") != std::string::npos);
  CHECK(text.out.find("no: ") == std::string::npos);
  const Finished as_json = qkvlab({"inspect", kData + "sdpa/plain.npz", "--json"});
  REQUIRE(as_json.exit_code == 0);
  const Json json = Json::parse(as_json.out);
  CHECK(json["kind"] == "tensors");
  bool found = false;
  for (const Json& array : json["arrays"]) {
    if (array["name"] != "q") continue;
    found = true;
    CHECK(array["dtype"] == "float32");
    CHECK(array["shape"] == Json{2, 7, 8});
    CHECK(array["readable"] == true);
  }
  CHECK(found);
}

TEST_CASE("a window without a display: exit code 4 and one line") {
  const TempFolder folder;
  const Environment no_display{
      {"DISPLAY", std::nullopt}, {"WAYLAND_DISPLAY", std::nullopt}, {"XDG_CONFIG_HOME", folder.path().string()}};
  check_refused(qkvlab({}, no_display), 4, "display");
  check_refused(qkvlab({"worked_example"}, no_display), 4, "display");
  Environment wrong = no_display;
  wrong["DISPLAY"] = ":4095";
  check_refused(qkvlab({}, wrong), 4, "display");
}

TEST_CASE("a screenshot of the window, as large as asked for, with every widget's place") {
  const TempFolder folder;
  const std::string png = folder / "window.png", layout = folder / "layout.json";
  const Finished finished = qkvlab({"screenshot", "worked_example", "-o", png, "--size", "1000x700", "--scale", "1.5",
                                    "--theme", "dark", "--tab", "head", "--layout", layout});
  if (finished.exit_code == 4) {
    check_refused(finished, 4, "");
    CHECK(folder.names().empty());
    MESSAGE("skipped: no EGL with OpenGL 3.3 here: " << finished.err);
    return;
  }
  check_silent(finished);
  const Result<PixelImage> image = decode_png(as_bytes(read_text(png)));
  REQUIRE(image.ok());
  CHECK(image.value().width == 1500);
  CHECK(image.value().height == 1050);
  const Json places = Json::parse(read_text(layout));
  CHECK(places["width"] == 1000);
  CHECK(places["height"] == 700);
  REQUIRE(!places["widgets"].empty());
  CHECK_FALSE(places["widgets"].contains("field/lens-format"));
  const TempFolder seen;
  check_silent(qkvlab(
      {"screenshot", "worked_example", "-o", seen / "lens.png", "--lens", "bfloat16", "--layout", seen / "lens.json"}));
  CHECK(Json::parse(read_text(seen / "lens.json"))["widgets"].contains("field/lens-format"));
  check_refused(qkvlab({"screenshot", "worked_example", "-o", folder / "b.png", "--hover", "no/such/widget"}), 2,
                "no/such/widget");
  const std::string widget = places["widgets"].begin().key();
  check_silent(qkvlab({"screenshot", "worked_example", "-o", folder / "c.png", "--hover", widget}));
  CHECK(folder.names() == std::vector<std::string>{"c.png", "layout.json", "window.png"});
}

TEST_CASE("the installed program finds what came with it") {
  const TempFolder folder;
  const std::string prefix = folder / "usr";
  const Finished installed = run_process({QKV_CMAKE, "--install", QKV_BUILD_DIR, "--prefix", prefix});
  REQUIRE_MESSAGE(installed.exit_code == 0, installed.err);
  for (const std::string file : {"bin/qkvlab", "share/qkvlab/sessions", "share/applications/qkvlab.desktop",
                                 "share/icons/hicolor/scalable/apps/qkvlab.svg"}) {
    CHECK_MESSAGE(std::filesystem::exists(prefix + "/" + file), file);
  }
  // An example that only the installed copy has tells it from the source tree's.
  Session session = worked_example();
  session.title = "only where it is installed";
  REQUIRE(write_session(session, prefix + "/share/qkvlab/sessions/only_here.qkv.json").ok());
  const Finished finished = run_process({prefix + "/bin/qkvlab", "inspect", "only_here"}, {{"QKVLAB_ASSETS", {}}});
  CHECK(finished.exit_code == 0);
  CHECK(finished.out.find("only where it is installed") != std::string::npos);
  check_refused(qkvlab({"inspect", "only_here"}), 3, "the examples are");
  CHECK(qkvlab({"inspect", "only_here"}, {{"QKVLAB_ASSETS", prefix + "/share/qkvlab"}}).exit_code == 0);
}

TEST_CASE("every example opens by its name") {
  for (const std::string name : {"worked_example", "cat_sleeps", "thinking_machines", "long_distance",
                                 "long_distance_causal", "saturation_scaled", "saturation_unscaled"}) {
    CAPTURE(name);
    const TempFolder folder;
    const Finished finished = qkvlab({"inspect", name, "--json"});
    REQUIRE(finished.exit_code == 0);
    CHECK(Json::parse(finished.out)["title"] != "");
    check_silent(qkvlab({"render", name, "-o", folder / "o.png"}));
  }
}
