// Parts of the window that need no frame: text editing, layout, the clipboard's format, preferences.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "app/panels/cell_editor.h"
#include "app/panels/export_dialog.h"
#include "app/panels/fit.h"
#include "app/panels/head_tab.h"
#include "app/panels/inspector.h"
#include "app/ui/preferences.h"
#include "app/ui/text_edit.h"
#include "core/base/file.h"

using namespace qkv;

namespace {

// One code point at a time: enough for ASCII.
const MoveCaret kByByte = [](std::string_view text, std::size_t index, int direction) {
  if (direction < 0) return index == 0 ? std::size_t{0} : index - 1;
  return index < text.size() ? index + 1 : index;
};

}  // namespace

TEST_CASE("text editing replaces the selection and moves by words") {
  TextEdit edit;
  edit.set("one two");
  edit.move_by(-1, true, true, kByByte);
  CHECK(edit.selected() == "two");
  edit.insert("2\n");
  CHECK(edit.text == "one 2 ");
  edit.select_all();
  edit.erase(-1, false, kByByte);
  CHECK(edit.text.empty());
  edit.insert("a b");
  edit.select_word(1, kByByte);
  CHECK(edit.selected() == "a");
}

TEST_CASE("tab-separated text round trips and refuses what is no number by place") {
  Matrix m(2, 2);
  m << 1.5f, -0.1f, 3e-9f, 4;
  const Result<Matrix> back = from_tsv(to_tsv(m));
  REQUIRE(back.ok());
  CHECK(back.value() == m);
  CHECK_FALSE(from_tsv("").ok());
  const Result<Matrix> word = from_tsv("1\t2\n3\tx");
  REQUIRE_FALSE(word.ok());
  CHECK(word.error().message.find("line 2, column 2: \"x\" is not a number") != std::string::npos);
  const Result<Matrix> ragged = from_tsv("1\t2\n3");
  REQUIRE_FALSE(ragged.ok());
  CHECK(ragged.error().message.find("line 2 has 1 cell but line 1 has 2") != std::string::npos);
  const Result<Matrix> named = from_tsv("token\ta\tb\r\nthe\t1,5\t2\r\n");
  REQUIRE_FALSE(named.ok());
  CHECK(named.error().message ==
        "Can't paste: line 2, column 2: \"1,5\" is not a number; write the decimal point as \".\"");
  const Result<Matrix> table = from_tsv("token,a,b\nthe,1.5,-0.1\ncat,3e-9,4\n");
  REQUIRE(table.ok());
  CHECK(table.value() == m);
  CHECK_FALSE(from_tsv("1\t1e39").ok());
}

TEST_CASE("cells fit the room and are no larger than they need to be") {
  const std::array<Index, 3> few = {3, 3, 3};
  CHECK(fit_axes(few, 10000).cell == doctest::Approx(kLargestCell));
  CHECK(fit_axes(few, 270).cell == doctest::Approx(30));
  const std::array<Index, 3> many = {512, 512, 64};
  for (const float room : {600.0f, 200.0f, 40.0f}) {
    const AxisFit fit = fit_axes(many, room);
    float total = 0;
    for (const Index count : many) total += fit.length(count);
    CHECK(total <= room + 0.5f);
  }
  CHECK(fit_axes(many, 600).length(64) >= kSmallestSide);
}

TEST_CASE("cells of one matrix are squares, and a strip takes the room beside it") {
  const auto check = [](CellSize cell, double w, double h) {
    CHECK(cell.w == doctest::Approx(w));
    CHECK(cell.h == doctest::Approx(h));
  };
  check(fit_cells(10, 20, 1000, 1000, 128), 50, 50);
  check(fit_cells(3, 3, 1000, 1000, 128), 128, 128);
  check(fit_cells(1000, 1000, 900, 700, 128), 0.7, 0.7);
  check(fit_cells(1024, 64, 896, 512, 128), 14, 0.5);  // a key of all its columns
  check(fit_cells(1024, 4, 896, 512, 128), 22, 0.5);
  check(fit_cells(64, 1024, 512, 896, 128), 0.5, 14);
}

TEST_CASE("the head tab stays inside the stage at every size") {
  for (const float width : {420.0f, 700.0f, 1400.0f})
    for (const Index n : {Index{1}, Index{3}, Index{12}, Index{64}, Index{512}})
      for (const bool mask : {false, true}) {
        HeadLayoutInput in;
        in.min = {0, 0};
        in.max = {width, 700};
        in.shapes = {n, n, 8, 8, 8, 8, 0, 0};
        in.mask = mask;
        in.query_labels = in.key_labels = 40;
        const HeadLayout layout = layout_head(in);
        CHECK(layout.q.min.x >= 0);
        CHECK(layout.out.min.x + layout.out.size.x <= width);
        CHECK(layout.q.min.y == layout.out.min.y);
        CHECK(layout.q.size.y == layout.attn.size.y);
        CHECK(layout.k.min.x == layout.scores.min.x);
        CHECK(layout.k.size.x == layout.scores.size.x);
      }
}

TEST_CASE("long numbers are written in groups of three") {
  CHECK(grouped_digits(0.579926083443, 12) == "0.579 926 083 443");
  CHECK(grouped_digits(5, 4) == "5.000");
}

TEST_CASE("file names for exports come from the title") {
  CHECK(export_file_name("The worked example", {}) == "the-worked-example-attn.png");
  FigureSpec spec;
  spec.view = FigureView::kHeads;
  CHECK(export_file_name("a/b: 貓", spec) == "a-b-貓-heads.png");
  spec.view = FigureView::kConcat;
  CHECK(export_file_name("", spec) == "attention-concat.png");
  CHECK(export_file_name("", spec, PictureFormat::kPdf) == "attention-concat.pdf");
}

TEST_CASE("preferences round trip, and a damaged file gives the defaults") {
  const std::filesystem::path file = std::filesystem::temp_directory_path() / "qkvlab-preferences-test" / "p.json";
  Preferences p;
  p.theme = ThemeName::kDark;
  p.left_width = 300;
  p.inspector_hidden = true;
  p.recent = {"/tmp/貓.qkv.json"};
  REQUIRE(save_preferences(p, file).ok());
  const Preferences back = load_preferences(file);
  CHECK(back.theme == ThemeName::kDark);
  CHECK(back.left_width == 300);
  CHECK(back.inspector_hidden);
  CHECK_FALSE(back.setup_hidden);
  CHECK(back.recent == p.recent);
  REQUIRE(write_file_atomically(file, std::string_view("{\"left_width\": \"wide\", [")).ok());
  CHECK(load_preferences(file).left_width == Preferences{}.left_width);
  std::filesystem::remove_all(file.parent_path());
}
