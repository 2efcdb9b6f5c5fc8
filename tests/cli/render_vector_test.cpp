// `qkvlab render` to SVG and PDF, looked at by other programs: rsvg-convert, pdftocairo, pdftotext.
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/session/session_file.h"
#include "tests/cli/picture_support.h"
#include "tests/cli/support.h"
#include "tests/support/token_session.h"

using namespace qkv;
using namespace qkv::test;
using Json = nlohmann::json;

namespace {

bool runs(const std::string& program) { return run_process({program, "--version"}).exit_code != 127; }

// The picture of a page, a pixel a unit.
PixelImage rasterised(const TempFolder& folder, const std::string& page) {
  const std::string png = folder / "raster.png";
  Finished done;
  if (page.ends_with(".svg")) {
    done = run_process({"rsvg-convert", "--unlimited", "-o", png, page});
  } else {
    done = run_process({"pdftocairo", "-png", "-r", "96", "-singlefile", page, folder / "raster"});
  }
  CHECK_MESSAGE(done.exit_code == 0, done.err);
  return decoded(png);
}

int difference(const PixelImage& a, const PixelImage& b, int x, int y) {
  const auto at = [&](const PixelImage& image) {
    return 4 * (static_cast<std::size_t>(y) * static_cast<std::size_t>(image.width) + static_cast<std::size_t>(x));
  };
  int most = 0;
  for (std::size_t i = 0; i < 3; ++i) most = std::max(most, std::abs(a.rgba[at(a) + i] - b.rgba[at(b) + i]));
  return most;
}

// The mean over all pixels.
double mean_difference(const PixelImage& a, const PixelImage& b) {
  double sum = 0;
  for (int y = 0; y < a.height; ++y) {
    for (int x = 0; x < a.width; ++x) sum += difference(a, b, x, y);
  }
  return sum / a.width / a.height;
}

// How many cells differ by more than `most` in a point left of their number.
int different_cells(const PixelImage& a, const PixelImage& b, const Json& layout, int most) {
  int different = 0;
  for (const Json& m : layout["matrices"]) {
    const double w = m["cell_w"], h = m["cell_h"];
    for (int r = 0; r < m["rows"]; ++r) {
      for (int c = 0; c < m["cols"]; ++c) {
        const int x = static_cast<int>(m["x"].get<double>() + w * c + std::min(2.0, w / 2));
        const int y = static_cast<int>(m["y"].get<double>() + h * (r + 0.5));
        different += difference(a, b, x, y) > most ? 1 : 0;
      }
    }
  }
  return different;
}

std::string words_of_page(const std::string& pdf) {
  const Finished text = run_process({"pdftotext", pdf, "-"});
  CHECK(text.exit_code == 0);
  return text.out;
}

// Without the marks of direction that pdftotext puts around right-to-left text.
std::string without_marks(std::string text) {
  for (const std::string mark : {"\u202a", "\u202b", "\u202c", "\u200e", "\u200f"}) {
    for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark)) text.erase(at, mark.size());
  }
  return text;
}

}  // namespace

TEST_CASE("SVG and PDF look like the PNG, in every view, and say the same of where cells are") {
  if (!runs("rsvg-convert") || !runs("pdftocairo")) {
    MESSAGE("skipped: rsvg-convert or pdftocairo is missing (Debian packages librsvg2-bin, poppler-utils)");
    return;
  }
  struct Case {
    std::string name;
    std::vector<std::string> words;
  };
  const std::vector<Case> cases{
      {"matrix", {"worked_example", "--matrix", "attn", "--cell-px", "40"}},
      {"hidden cells", {"thinking_machines", "--matrix", "attn", "--causal", "--theme", "dark"}},
      {"clipped cells", {"worked_example", "--matrix", "scores", "--range", "2,3"}},
      {"head", {"worked_example"}},
      {"heads", {"thinking_machines", "--view", "heads", "--cell-px", "20"}},
      {"concat", {"thinking_machines", "--view", "concat", "--cell-px", "9", "--theme", "dark"}},
      {"many cells", {kData + "sdpa/long_row.npz", "--matrix", "attn", "--cell-px", "3", "--range", "auto"}},
  };
  for (const Case& each : cases) {
    CAPTURE(each.name);
    const TempFolder folder;
    std::vector<PixelImage> images;
    std::vector<std::string> layouts;
    for (const std::string name : {"a.png", "a.svg", "a.pdf"}) {
      std::vector<std::string> words{"render"};
      words.insert(words.end(), each.words.begin(), each.words.end());
      words.insert(words.end(), {"-o", folder / name, "--layout", folder / "layout.json"});
      check_silent(qkvlab(words));
      layouts.push_back(read_text(folder / "layout.json"));
      images.push_back(name == "a.png" ? decoded(folder / name) : rasterised(folder, folder / name));
    }
    const Json layout = Json::parse(layouts[0]);
    for (std::size_t i : {1, 2}) {
      CAPTURE(i);
      CHECK(layouts[i] == layouts[0]);
      REQUIRE(images[i].width == images[0].width);
      REQUIRE(images[i].height == images[0].height);
      // The lines on hidden cells are smooth in one and of whole pixels in the other: their cells are left out.
      const bool hatched = each.name == "hidden cells";
      if (!hatched) CHECK(different_cells(images[0], images[i], layout, 1) == 0);
      // What remains is the edges of text and of the hatch, and in SVG that rsvg-convert has no tabular digits.
      CHECK(mean_difference(images[0], images[i]) < 4);
    }
  }
}

TEST_CASE("text in a PDF is text: Chinese, right-to-left, accents and emoji") {
  if (!runs("pdftotext")) {
    MESSAGE("skipped: pdftotext is missing (Debian package poppler-utils)");
    return;
  }
  const TempFolder folder;
  const std::vector<std::string> tokens{"貓", "追", "老鼠", "שלום", "مرحبا", "hi😀", "naïve", "क्षत्रिय"};
  REQUIRE(write_session(session_of(tokens), folder / "s.qkv.json").ok());
  check_silent(
      qkvlab({"render", folder / "s.qkv.json", "-o", folder / "a.pdf", "--matrix", "attn", "--cell-px", "96"}));
  const std::string text = without_marks(words_of_page(folder / "a.pdf"));
  for (const std::string& token : tokens) {
    CHECK_MESSAGE(text.find(token) != std::string::npos, token << " is not in " << text);
  }
  CHECK(text.find("attention weights") != std::string::npos);
}

TEST_CASE("the same session gives the same bytes in every format, whatever the locale and the time zone") {
  const TempFolder folder;
  const std::string locale = folder / "de_DE.UTF-8";
  const bool has_german = run_process({"localedef", "-i", "de_DE", "-f", "UTF-8", locale}).exit_code == 0;
  if (!has_german) MESSAGE("without a decimal comma: localedef has no de_DE here (Debian package locales)");
  const Environment german{
      {"LC_ALL", "de_DE.UTF-8"}, {"LOCPATH", folder.path().string()}, {"TZ", "Asia/Taipei"}, {"HOME", std::nullopt}};
  for (const std::string ending : {"png", "svg", "pdf"}) {
    const std::string a = folder / ("a." + ending), b = folder / ("b." + ending);
    check_silent(qkvlab({"render", "worked_example", "-o", a, "--range", "-1.5,2.5", "--picture-scale", "1.5"}));
    check_silent(
        qkvlab({"render", "worked_example", "-o", b, "--range", "-1.5,2.5", "--picture-scale", "1.5"}, german));
    CHECK(read_text(a) == read_text(b));
  }
}

TEST_CASE("the picture's scale is in the size of each format, and in the layout") {
  const TempFolder folder;
  const auto told = [&](const std::string& name, const std::string& scale) {
    const Finished done = qkvlab({"render", "worked_example", "-o", folder / name, "--verbose", "--picture-scale",
                                  scale, "--layout", folder / "layout.json"});
    CHECK(done.exit_code == 0);
    return done.out.substr(done.out.rfind('('));
  };
  told("a.png", "1");
  const Json once = Json::parse(read_text(folder / "layout.json"));
  const PixelImage small = decoded(folder / "a.png");
  told("b.png", "2");
  const Json twice = Json::parse(read_text(folder / "layout.json"));
  const PixelImage large = decoded(folder / "b.png");
  CHECK(large.width == 2 * small.width);
  CHECK(large.height == 2 * small.height);
  CHECK(twice["matrices"][0]["x"].get<double>() == 2 * once["matrices"][0]["x"].get<double>());
  CHECK(told("c.pdf", "2").ends_with(" mm)\n"));
  CHECK(told("d.png", "2").ends_with(" pixels)\n"));
  CHECK(Json::parse(read_text(folder / "layout.json")) == twice);
}
