// `qkvlab render`: the pixels of its pictures against the tables of colours, at the places that --layout gives.
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/tensor_io/tensor_file.h"
#include "tests/cli/picture_support.h"
#include "tests/cli/support.h"

using namespace qkv;
using namespace qkv::test;
using Json = nlohmann::json;

namespace {

struct Picture {
  PixelImage image;
  Json layout;

  Color at(double x, double y) const {
    const auto column = static_cast<int>(std::floor(x)), row = static_cast<int>(std::floor(y));
    REQUIRE((column >= 0 && row >= 0 && column < image.width && row < image.height));
    const std::size_t first =
        4 * (static_cast<std::size_t>(row) * static_cast<std::size_t>(image.width) + static_cast<std::size_t>(column));
    return {image.rgba[first], image.rgba[first + 1], image.rgba[first + 2], image.rgba[first + 3]};
  }
};

Picture render(std::vector<std::string> words) {
  const TempFolder folder;
  words.insert(words.begin(), "render");
  words.insert(words.end(), {"-o", folder / "figure.png", "--layout", folder / "layout.json"});
  check_silent(qkvlab(words));
  REQUIRE(folder.names() == std::vector<std::string>{"figure.png", "layout.json"});
  Picture picture{decoded(folder / "figure.png"), Json::parse(read_text(folder / "layout.json"))};
  CHECK(picture.image.width == std::ceil(picture.layout["width"].get<double>()));
  CHECK(picture.image.height == std::ceil(picture.layout["height"].get<double>()));
  return picture;
}

// The colour of a value a hair (`nudge`, in positions of the range) to either side: the value was rounded to float32.
Color expected_color(double value, const Json& matrix, ThemeName theme, double nudge) {
  const double low = matrix["range"][0], high = matrix["range"][1];
  return color_table(matrix["colormap"].get<std::string>(),
                     theme)[static_cast<std::size_t>(table_index((value - low) / (high - low) + nudge))];
}

// Every visible cell of the matrix is the colour of the reference's value. `want` is [heads, rows, cols].
void check_cells(const Picture& picture, const Json& matrix, const Tensor64& want, ThemeName theme) {
  CAPTURE(matrix.dump());
  const std::size_t rows = matrix["rows"], cols = matrix["cols"], head = matrix["head"];
  REQUIRE(want.shape[1] == rows);
  REQUIRE(want.shape[2] == cols);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < cols; ++j) {
      const double x = matrix["x"].get<double>() + (static_cast<double>(j) + 0.5) * matrix["cell_w"].get<double>();
      const double y = matrix["y"].get<double>() + (static_cast<double>(i) + 0.5) * matrix["cell_h"].get<double>();
      const double value = want.values[(head * rows + i) * cols + j];
      const Color pixel = picture.at(x, y);
      const bool agrees =
          pixel == expected_color(value, matrix, theme, -1e-6) || pixel == expected_color(value, matrix, theme, 1e-6);
      if (!agrees) ++wrong;
    }
  }
  CHECK(wrong == 0);
}

// The reference's name for each matrix of a picture.
const std::map<std::string, std::string> kReferenceNames{{"q", "q"},           {"v", "v"},       {"scores", "scores"},
                                                         {"scaled", "scaled"}, {"attn", "attn"}, {"heads_out", "out"}};

Tensor64 reference(const std::string& file, const std::string& name) {
  const Result<TensorFile> opened = TensorFile::open(file);
  REQUIRE(opened.ok());
  Result<Tensor64> tensor = opened.value().read_float64(name);
  REQUIRE(tensor.ok());
  return std::move(tensor).value();
}

int check_known_matrices(const Picture& picture, const std::string& file, ThemeName theme) {
  int checked = 0;
  for (const Json& matrix : picture.layout["matrices"]) {
    const auto name = kReferenceNames.find(matrix["matrix"].get<std::string>());
    if (name == kReferenceNames.end() || matrix.value("transposed", false)) continue;
    check_cells(picture, matrix, reference(file, name->second), theme);
    ++checked;
  }
  return checked;
}

}  // namespace

TEST_CASE("one matrix: each cell has the colour of its value in the table") {
  const std::string file = kData + "sdpa/plain.npz";
  for (const std::string map : {"viridis", "cividis", "magma", "grey", "blue-orange", "purple-green"}) {
    for (const ThemeName theme : {ThemeName::kLight, ThemeName::kDark}) {
      const std::string theme_text = theme == ThemeName::kLight ? "light" : "dark";
      for (const std::string matrix : {"attn", "scores"}) {
        const Picture picture = render({file, "--matrix", matrix, "--head", "1", "--cell-px", "8", "--colormap", map,
                                        "--theme", theme_text, "--range", "auto"});
        REQUIRE(picture.layout["matrices"].size() == 1);
        const Json& only = picture.layout["matrices"][0];
        CHECK(only["head"] == 1);
        CHECK(only["colormap"] == map);
        CHECK(only["cell_w"] == 8);
        CHECK(check_known_matrices(picture, file, theme) == 1);
      }
    }
  }
}

TEST_CASE("views of a head and of all heads: each cell has the colour of its value") {
  const std::string file = kData + "sdpa/plain.npz";
  const Picture head = render({file, "--head", "1", "--cell-px", "8"});
  CHECK(check_known_matrices(head, file, ThemeName::kLight) >= 5);
  const Picture heads = render({file, "--view", "heads", "--cell-px", "9", "--theme", "dark"});
  CHECK(check_known_matrices(heads, file, ThemeName::kDark) == 2);
}

TEST_CASE("ranges and maps go to the matrices that they are for") {
  const auto find = [](const Picture& picture, const std::string& name) {
    for (const Json& matrix : picture.layout["matrices"]) {
      if (matrix["matrix"] == name) return matrix;
    }
    return Json();
  };
  const Picture as_is = render({"worked_example"});
  CHECK(find(as_is, "attn")["colormap"] == "viridis");
  CHECK(find(as_is, "attn")["range"] == Json{0, 1});
  CHECK(find(as_is, "scores")["colormap"] == "blue-orange");
  CHECK(find(as_is, "scores")["range"] == Json{-5, 5});

  const Picture sequential = render({"worked_example", "--colormap", "magma", "--range", "unit"});
  CHECK(find(sequential, "attn")["colormap"] == "magma");
  CHECK(find(sequential, "scores")["colormap"] == "blue-orange");
  CHECK(find(sequential, "scores")["range"] == Json{-5, 5});
  const Picture diverging = render({"worked_example", "--colormap", "purple-green", "--range", "-7,9.5"});
  CHECK(find(diverging, "attn")["colormap"] == "viridis");
  CHECK(find(diverging, "attn")["range"] == Json{-7, 9.5});
  CHECK(find(diverging, "scores")["colormap"] == "purple-green");
  CHECK(find(diverging, "scores")["range"] == Json{-7, 9.5});
  const Picture concat = render({"worked_example", "--view", "concat", "--range", "-2,2"});
  CHECK(find(concat, "concat")["range"] == Json{-2, 2});
}

TEST_CASE("a transparent picture has no background, an opaque one has the theme's") {
  const Picture opaque = render({"worked_example", "--matrix", "attn"});
  CHECK(opaque.at(0, 0).a == 255);
  const Picture clear = render({"worked_example", "--matrix", "attn", "--transparent"});
  CHECK(clear.at(0, 0).a == 0);
}

TEST_CASE("masked cells are no value's colour, and options on the command line mask") {
  const Picture plain = render({"worked_example", "--matrix", "attn", "--cell-px", "9"});
  const Picture masked = render({"worked_example", "--matrix", "attn", "--cell-px", "9", "--causal"});
  const Json& matrix = masked.layout["matrices"][0];
  const double x = matrix["x"].get<double>() + 2.5 * 9, y = matrix["y"].get<double>() + 0.5 * 9;
  CHECK(masked.at(x, y) != plain.at(x, y));
  CHECK(masked.at(x, y) != expected_color(0, matrix, ThemeName::kLight, 0));
}

TEST_CASE("neither a display nor a home is needed, and the same input gives the same picture") {
  const TempFolder folder;
  const Environment bare{{"DISPLAY", std::nullopt}, {"WAYLAND_DISPLAY", std::nullopt}, {"HOME", std::nullopt}};
  check_silent(qkvlab({"render", "worked_example", "-o", folder / "a.png"}, bare));
  check_silent(qkvlab({"render", "worked_example", "-o", folder / "b.PNG"}));
  CHECK(read_text(folder / "a.png") == read_text(folder / "b.PNG"));
}
