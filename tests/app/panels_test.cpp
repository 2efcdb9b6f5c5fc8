// The panels around the stage: set-up, tabs, commands, dialogs.
#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "app/panels/file_dialog.h"
#include "core/session/session_file.h"
#include "tests/app/harness.h"

using namespace qkv;

namespace {

struct TempFolder {
  std::filesystem::path path;
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "qkvlab-test-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path = pattern;
  }
  ~TempFolder() { std::filesystem::remove_all(path); }
};

}  // namespace

TEST_CASE("heads, sizes and options are set from the left panel") {
  Harness h;
  h.click("field/heads");
  h.key(Key::kA, true);
  h.type("4");
  h.key(Key::kEnter);
  CHECK(h.app().trace()->shapes.heads == 4);
  CHECK(h.trace(MatrixKind::kScores, 0)(1, 0) == 5.0f);
  h.click("field/d-k");
  h.type("5");
  h.key(Key::kEnter);
  CHECK(h.app().trace()->shapes.d_k == 5);
  h.click("switch/causal");
  CHECK(h.trace(MatrixKind::kAttn, 0)(0, 2) == 0.0f);
  h.click("switch/wo");
  CHECK(h.app().trace()->out.has_value());
}

TEST_CASE("a wrong number in a field is refused with nothing changed") {
  Harness h;
  h.click("field/heads");
  h.type("many");
  h.key(Key::kEnter);
  CHECK(h.app().trace()->shapes.heads == 1);
}

TEST_CASE("the source changes both ways with every number kept") {
  Harness h;
  const Matrix scores = h.trace(MatrixKind::kScores);
  h.click("source/1");
  CHECK(h.app().trace()->shapes.d_model == 9);
  CHECK(h.trace(MatrixKind::kScores) == scores);
  h.click("tab/projection");
  CHECK(h.has("matrix/x/1"));
  CHECK(h.has("matrix/wq/1"));
  h.click("source/0");
  CHECK(h.app().trace()->shapes.d_model == 0);
  CHECK(h.trace(MatrixKind::kScores) == scores);
  CHECK(h.app().session().view.tab == Tab::kHead);
}

TEST_CASE("tabs show their matrices") {
  Harness h;
  h.click("tab/heads");
  CHECK(h.has("head-card/1"));
  CHECK_FALSE(h.has("matrix/q/1"));
  h.click("tab/concat");
  CHECK(h.has("matrix/concat/1"));
  h.click("button/add-wo");
  CHECK(h.has("matrix/wo/1"));
  CHECK(h.has("matrix/out/1"));
  h.click("tab/heads");
  h.click("head-card/1");
  CHECK(h.has("matrix/q/1"));
}

TEST_CASE("undo, redo and the edited mark") {
  Harness h;
  CHECK(h.app().window_title().rfind("• ", 0) != 0);
  h.click("switch/causal");
  CHECK(h.app().window_title().rfind("• ", 0) == 0);
  h.key(Key::kZ, true);
  CHECK(h.app().window_title().rfind("• ", 0) != 0);
  h.key(Key::kY, true);
  CHECK(h.app().session().problem.options.causal);
}

TEST_CASE("the palette finds and runs a command") {
  Harness h;
  h.key(Key::kP, true, true);
  h.frames(2);
  h.type("dark");
  h.key(Key::kEnter);
  CHECK(h.app().preferences().theme == ThemeName::kDark);
}

TEST_CASE("saving asks for a place once, and the file reads back") {
  TempFolder folder;
  Harness h;
  h.click("switch/causal");
  h.key(Key::kS, true);
  h.key(Key::kA, true);
  h.click("file-dialog/name");
  h.key(Key::kA, true);
  h.type((folder.path / "貓.qkv.json").string());
  h.key(Key::kEnter);
  const Result<Session> read = read_session(folder.path / "貓.qkv.json");
  REQUIRE(read.ok());
  CHECK(read.value().problem.options.causal);
  CHECK(h.app().window_title().rfind("• ", 0) != 0);
}

TEST_CASE("a place that can't be written says why and keeps the work unsaved") {
  Harness h;
  h.click("switch/causal");
  h.key(Key::kS, true);
  h.click("file-dialog/name");
  h.key(Key::kA, true);
  h.type("/no/such/folder/x.qkv.json");
  h.key(Key::kEnter);
  CHECK(h.has("toast/0"));
  CHECK(h.app().window_title().rfind("• ", 0) == 0);
}

TEST_CASE("pictures are exported from the menu") {
  TempFolder folder;
  Harness h;
  h.key(Key::kE, true);
  h.click("export/path");
  h.key(Key::kA, true);
  h.type((folder.path / "one-head.png").string());
  h.click("export/ok");
  CHECK(std::filesystem::file_size(folder.path / "one-head.png") > 1000);
}

TEST_CASE("the format of an export follows the name, and the name the format") {
  TempFolder folder;
  Harness h;
  const auto type_path = [&](const std::string& name) {
    h.key(Key::kE, true);
    h.click("export/path");
    h.key(Key::kA, true);
    h.type((folder.path / name).string());
  };
  const auto starts_with = [&](const std::string& name, std::string_view start) {
    const Result<Bytes> bytes = read_file(folder.path / name);
    return bytes.ok() && as_text(bytes.value()).starts_with(start);
  };
  type_path("a.SVG");
  h.click("export/ok");
  CHECK(starts_with("a.SVG", "<?xml"));
  type_path("b.png");
  h.click("export/format");
  h.click("export/format/PDF");
  h.click("export/ok");
  CHECK(starts_with("b.pdf", "%PDF"));
  type_path("plain");
  h.click("export/format");
  h.click("export/format/SVG");
  h.click("export/ok");
  CHECK(starts_with("plain.svg", "<?xml"));
  // The next picture is offered as the last was saved.
  h.key(Key::kE, true);
  h.click("export/path");
  h.key(Key::kA, true);
  h.key(Key::kC, true);
  CHECK(h.clipboard().ends_with(".svg"));
  h.click("export/format");
  h.click("export/format/PDF");
  h.key(Key::kEscape);
  h.frames(3);
  h.key(Key::kE, true);
  h.click("export/path");
  h.key(Key::kA, true);
  h.key(Key::kC, true);
  CHECK(h.clipboard().ends_with(".svg"));  // no picture was saved since
  h.key(Key::kEscape);
  h.frames(3);
  type_path("c.jpg");
  h.click("export/ok");
  h.frames(3);
  CHECK(h.has("export/path"));
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 3);
}

TEST_CASE("an export that fails keeps the dialog and leaves no file") {
  Harness h;
  h.key(Key::kE, true);
  h.click("export/path");
  h.key(Key::kA, true);
  h.type("/no/such/folder/x.png");
  h.click("export/ok");
  h.frames(3);
  CHECK(h.has("export/path"));
}

TEST_CASE("closing with unsaved work asks first") {
  Harness h;
  h.app().request_close();
  h.frames(2);
  CHECK(h.app().should_quit());
  Harness edited;
  edited.click("switch/causal");
  edited.app().request_close();
  edited.frames(3);
  CHECK_FALSE(edited.app().should_quit());
  edited.click("question/cancel");
  CHECK_FALSE(edited.app().should_quit());
  edited.app().request_close();
  edited.frames(3);
  edited.click("question/other");
  CHECK(edited.app().should_quit());
}

TEST_CASE("a bad file says what is wrong and keeps the session") {
  TempFolder folder;
  std::ofstream(folder.path / "bad.qkv.json") << "{\"qkvlab\": 1, \"tokens\": [";
  Harness h;
  h.app().open_file(folder.path / "bad.qkv.json");
  h.frames(2);
  CHECK(h.has("toast/0"));
  CHECK(h.app().session().title == "The worked example");
}

TEST_CASE("an empty folder is no complaint where a file is saved") {
  for (const FilePurpose saves : {FilePurpose::kSaveAs, FilePurpose::kExport, FilePurpose::kScreenshot,
                                  FilePurpose::kSaveMatrix, FilePurpose::kSaveArrays}) {
    CHECK(std::string_view(empty_folder_words(saves)).find("open") == std::string_view::npos);
  }
  CHECK(std::string_view(empty_folder_words(FilePurpose::kOpen)).find("opened") != std::string_view::npos);
}

TEST_CASE("every example opens and every tab draws, in small and large windows") {
  for (const auto& [width, height] : {std::pair{900, 600}, std::pair{1280, 800}, std::pair{1920, 1200}}) {
    Harness h(width, height);
    for (const auto& entry : std::filesystem::directory_iterator(QKV_SOURCE_DIR "/assets/sessions")) {
      h.app().open_file(entry.path());
      h.frames(2);
      for (const char* tab : {"tab/heads", "tab/concat", "tab/head"}) {
        h.click(tab);
        for (const auto& [widget, rect] : h.app().widgets().all()) {
          const std::string& name = widget;
          if (name.rfind("matrix/", 0) != 0) continue;
          CHECK_MESSAGE(rect.min.x < rect.max.x, name);
          // One head scrolls sideways in a narrow window, so that small sessions keep their numbers.
          if (width >= 1280 || std::string_view(tab) != "tab/head")
            CHECK_MESSAGE(rect.max.x <= static_cast<float>(width), name);
        }
      }
    }
  }
}

TEST_CASE("every list of choices opens, and the scale and the ranges are set from them") {
  Harness h(1440, 1200);
  h.click("field/scale");
  h.click("field/scale/1");
  CHECK(h.app().session().problem.options.scale == 1.0f);
  CHECK(h.trace(MatrixKind::kScaled)(1, 0) == 5.0f);
  h.click("field/scale");
  h.click("field/scale/custom");
  CHECK(h.app().session().problem.options.scale == doctest::Approx(0.5));
  h.click("field/scale");
  h.click("field/scale/1/√dₖ");
  CHECK_FALSE(h.app().session().problem.options.scale.has_value());
  h.click("field/weights-range");
  h.click("field/weights-range/custom");
  CHECK(h.app().session().view.weights_range.mode == RangeMode::kCustom);
  h.click("field/weights-range");
  h.click("field/weights-range/logarithmic");
  CHECK(h.app().session().view.weights_range.mode == RangeMode::kLog);
  h.click("field/signed-range");
  CHECK_FALSE(h.has("field/signed-range/logarithmic"));
  h.click("field/signed-range/automatic");
  CHECK(h.app().session().view.signed_range.mode == RangeMode::kAuto);
  h.click("field/weights-map");
  h.click("field/weights-map/magma");
  CHECK(h.app().session().view.weights_map == "magma");
  h.key(Key::kE, true);
  for (const char* field : {"export/view", "export/format", "export/theme"}) {
    h.click(field);
    h.key(Key::kEscape);
    CHECK(h.has("export/path"));
  }
}

TEST_CASE("the splitters move, and their places are remembered") {
  Harness h;
  const float left = h.app().preferences().left_width, right = h.app().preferences().right_width;
  h.drag("splitter/left", {40, 0});
  CHECK(h.app().preferences().left_width == doctest::Approx(left + 40));
  h.drag("splitter/right", {-30, 0});
  CHECK(h.app().preferences().right_width == doctest::Approx(right + 30));
}

TEST_CASE("an existing file is asked about before it is replaced") {
  TempFolder folder;
  const std::filesystem::path file = folder.path / "kept.png";
  std::ofstream(file) << "precious";
  Harness h;
  h.key(Key::kE, true);
  h.key(Key::kA, true);
  h.type(file.string());
  h.key(Key::kEnter);
  CHECK(std::filesystem::file_size(file) == 8);
  REQUIRE(h.has("question/ok"));
  h.click("question/cancel");
  CHECK(std::filesystem::file_size(file) == 8);
}

TEST_CASE("the inspector follows the arrows until the pointer moves") {
  Harness h;
  h.click("matrix/q/1/cell/0,0");
  h.key(Key::kDown);
  h.type("5");
  h.key(Key::kEscape);
  CHECK(h.trace(MatrixKind::kQ)(1, 0) == 1.0f);
  h.key(Key::kEscape);
  h.key(Key::kDelete);
  CHECK(h.trace(MatrixKind::kQ)(1, 0) == 1.0f);  // nothing is chosen any more
}

TEST_CASE("a number typed into a field counts when the token field takes the keyboard") {
  Harness h;
  h.click("field/heads");
  h.type("3");
  h.click("tokens/text");
  CHECK(h.app().trace()->shapes.heads == 3);
}

TEST_CASE("position, window, soft cap and sink are set from the left panel, and the picture follows") {
  Harness h(1440, 1400);
  h.click("switch/window");
  CHECK(h.trace(MatrixKind::kAttn)(0, 2) == 0.0f);  // 2 keys on either side, itself included
  h.click("field/window");
  h.type("3");
  h.key(Key::kEnter);
  CHECK(h.trace(MatrixKind::kAttn)(0, 2) > 0.1f);
  h.click("switch/window");
  h.click("switch/softcap");
  CHECK(h.trace(MatrixKind::kScaled)(1, 0) < 2.88f);
  h.click("switch/softcap");
  h.click("switch/alibi");
  CHECK(h.trace(MatrixKind::kScaled)(0, 1) < 1.73f);
  h.click("switch/alibi");
  h.click("switch/sink");
  CHECK(h.trace(MatrixKind::kAttn).row(0).sum() < 0.95f);
  h.click("switch/sink");
  h.click("field/rope");
  h.click("field/rope/RoPE, halves");
  CHECK(h.has("toast/0"));  // d_k = 3 is odd
  h.click("field/d-k");
  h.type("4");
  h.key(Key::kEnter);
  h.click("field/rope");
  h.click("field/rope/RoPE, pairs");
  CHECK(h.app().session().problem.options.rope.has_value());
  CHECK(h.trace(MatrixKind::kScores)(1, 0) != 5.0f);
}

TEST_CASE("a list of choices is walked with the arrows") {
  Harness h;
  h.click("field/split");
  h.key(Key::kDown);
  h.key(Key::kEnter);
  CHECK(h.app().session().split == TokenSplit::kCjk);
}

TEST_CASE("scrubbing a number field does not open it for typing") {
  Harness h;
  h.drag("field/heads", {32, 0});
  CHECK(h.app().trace()->shapes.heads > 1);
  const int heads = h.app().trace()->shapes.heads;
  h.type("7");
  h.key(Key::kEnter);
  CHECK(h.app().trace()->shapes.heads == heads);
}

TEST_CASE("a number beyond its range is limited, and says so") {
  Harness h;
  h.click("field/heads");
  h.type("2000");
  h.key(Key::kEnter);
  CHECK(h.app().trace()->shapes.heads == kMaxHeads);
  CHECK(h.has("toast/0"));
}
