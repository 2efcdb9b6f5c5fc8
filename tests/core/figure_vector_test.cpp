// SVG and PDF: what is in them, and that it is the figure.
#include <doctest/doctest.h>
#include <expat.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "core/figure/picture_format.h"
#include "tests/core/figure_support.h"
#include "tests/support/token_session.h"

using namespace qkv;
using test::layout, test::run, test::session_of;

namespace {

// Of a figure that is not made of pixels.
FigureSpec spec_of(FigureView view, int cell_px = 32) {
  FigureSpec spec = test::spec_of(view, cell_px);
  spec.pixels_per_unit = 0;
  return spec;
}

std::string written(const Figure& figure, PictureFormat format, double scale = 1) {
  const TextShaper shaper;
  const Result<Bytes> bytes = figure_bytes(figure, shaper, format, scale);
  if (!bytes.ok()) FAIL(bytes.error().message);
  return {reinterpret_cast<const char*>(bytes.value().data()), bytes.value().size()};
}

// An element of an SVG, in the order of the file.
struct Element {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string text;  // of its own, without that of the elements in it
  int depth = 0;

  double number(const std::string& key) const { return std::stod(attributes.at(key)); }
  bool has(const std::string& key) const { return attributes.contains(key); }
};

struct Document {
  std::vector<Element> elements;
  std::vector<std::size_t> open;
};

// Fails where expat finds that it is no XML.
std::vector<Element> parse(const std::string& svg) {
  Document document;
  XML_Parser parser = XML_ParserCreate("UTF-8");
  XML_SetUserData(parser, &document);
  XML_SetElementHandler(
      parser,
      [](void* data, const XML_Char* name, const XML_Char** attributes) {
        auto& d = *static_cast<Document*>(data);
        Element element{name, {}, "", static_cast<int>(d.open.size())};
        for (; *attributes != nullptr; attributes += 2) element.attributes[attributes[0]] = attributes[1];
        d.open.push_back(d.elements.size());
        d.elements.push_back(std::move(element));
      },
      [](void* data, const XML_Char*) { static_cast<Document*>(data)->open.pop_back(); });
  XML_SetCharacterDataHandler(parser, [](void* data, const XML_Char* text, int length) {
    auto& d = *static_cast<Document*>(data);
    d.elements[d.open.back()].text.append(text, static_cast<std::size_t>(length));
  });
  const XML_Status status = XML_Parse(parser, svg.data(), static_cast<int>(svg.size()), 1);
  const std::string problem = status == XML_STATUS_OK ? "" : XML_ErrorString(XML_GetErrorCode(parser));
  XML_ParserFree(parser);
  REQUIRE_MESSAGE(status == XML_STATUS_OK, problem);
  return std::move(document.elements);
}

bool has_text(const std::vector<Element>& elements, const std::string& text) {
  return std::ranges::any_of(
      elements, [&](const Element& e) { return (e.name == "text" || e.name == "title") && e.text == text; });
}

const Element* find_text(const std::vector<Element>& elements, const std::string& text) {
  const auto found =
      std::ranges::find_if(elements, [&](const Element& e) { return e.name == "text" && e.text == text; });
  return found == elements.end() ? nullptr : &*found;
}

std::string hex(Color c) {
  char text[8];
  std::snprintf(text, sizeof text, "#%02x%02x%02x", c.r, c.g, c.b);
  return text;
}

Color table_color(const FigureMatrix& m, Index row, Index col, ThemeName theme) {
  return color_table(m.colormap, theme)[static_cast<std::size_t>(table_index(m.range.position(m.value(row, col))))];
}

// Pixels of an image that an SVG holds.
PixelImage embedded(const Element& image) {
  const std::string prefix = "data:image/png;base64,";
  const std::string& link = image.attributes.at("xlink:href");
  REQUIRE(link.starts_with(prefix));
  std::string bytes;
  std::uint32_t bits = 0;
  int held = 0;
  for (const char c : std::string_view(link).substr(prefix.size())) {
    static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) continue;
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    if ((held += 6) >= 8) bytes += static_cast<char>(bits >> (held -= 8) & 0xff);
  }
  Result<PixelImage> decoded = decode_png(as_bytes(bytes));
  REQUIRE(decoded.ok());
  return std::move(decoded).value();
}

}  // namespace

TEST_CASE("an SVG is XML with every token as text, in every view and theme") {
  Session session = worked_example();
  session.problem.wo = random_matrix(4, 3, 3);
  session.problem.options.causal = true;
  const Trace trace = run(session);
  for (const FigureView view : {FigureView::kMatrix, FigureView::kHead, FigureView::kHeads, FigureView::kConcat}) {
    for (const ThemeName theme : {ThemeName::kLight, ThemeName::kDark}) {
      FigureSpec spec = spec_of(view);
      spec.theme = theme;
      const Figure figure = layout(session, trace, spec);
      const std::vector<Element> elements = parse(written(figure, PictureFormat::kSvg, 1.5));
      CHECK(elements.front().name == "svg");
      CHECK(elements.front().number("width") == figure.width * 1.5);
      CHECK(elements[1].attributes.at("fill") == hex(palette(theme).stage));
      for (const FigureText& text : figure.texts)
        CHECK_MESSAGE((text.text.empty() || has_text(elements, text.text)), text.text);
      if (view == FigureView::kHead || view == FigureView::kMatrix) {
        for (const std::string& token : session.tokens) CHECK(has_text(elements, token));
      }
      spec.transparent = true;
      const std::vector<Element> clear = parse(written(layout(session, trace, spec), PictureFormat::kSvg));
      CHECK(clear.size() == elements.size() - 1);
    }
  }
}

TEST_CASE("whatever a token holds, the SVG stays XML and the text stays what is shown") {
  const std::string cut(200, 'w');
  const std::vector<std::string> tokens = {"<&>\"'",       "שלום",      "مرحبا", "hi😀there", "a\nb\tc", "\xff\xfe",
                                           "\xef\xbf\xbf", "  spaces ", cut,     "\u200b",   "]]>",     "−1"};
  const Session session = session_of(tokens);
  const Trace trace = run(session);
  const std::vector<Element> elements = parse(written(layout(session, trace, spec_of(FigureView::kMatrix)),  //
                                                      PictureFormat::kSvg));
  for (const char* token :
       {"<&>\"'", "שלום", "مرحبا", "hi😀there", "a↵b⇥c", "‹FF FE›", "�", "··spaces·", "]]>", "−1", "‹U+200B›"}) {
    CHECK_MESSAGE(find_text(elements, token) != nullptr, token);
  }
  CHECK(find_text(elements, cut) == nullptr);
  CHECK(has_text(elements, cut));  // as the title of what is shown of it
  const auto shortened = std::ranges::find_if(elements, [](const Element& e) {
    return e.name == "text" && e.text.starts_with("www") && e.text.ends_with("…");
  });
  REQUIRE(shortened != elements.end());
  CHECK(shortened->number("textLength") <= 140);
  CHECK(elements.front().attributes.at("xml:space") == "preserve");
}

TEST_CASE("text stands where it is measured to stand") {
  const Session session = session_of({"abc", "שלום", "x"});
  const Trace trace = run(session);
  const Figure figure = layout(session, trace, spec_of(FigureView::kMatrix, 64));
  const std::vector<Element> elements = parse(written(figure, PictureFormat::kSvg));
  const TextShaper shaper;
  int rows = 0;
  for (const FigureText& text : figure.texts) {
    if (text.anchor != 1 || text.text.size() < 2) continue;
    const Element* element = find_text(elements, text.text);
    REQUIRE(element != nullptr);
    const TextSize size = shaper.measure(text.text, text.style);
    // The right end, which is where right-to-left text starts.
    const bool rtl = text.text == "שלום";
    CHECK(element->number("x") == doctest::Approx(text.x + size.width).epsilon(1e-5));
    CHECK(element->number("y") == doctest::Approx(text.y + size.baseline).epsilon(1e-5));
    CHECK(element->has("direction") == rtl);
    CHECK(element->has("text-anchor") == !rtl);
    if (!rtl) CHECK(element->attributes.at("text-anchor") == "end");
    CHECK(element->number("font-size") == text.style.size);
    ++rows;
  }
  CHECK(rows >= 2);
}

TEST_CASE("a small matrix is one rectangle a cell, in the colours of the table") {
  Session session = worked_example();
  session.problem.options.causal = true;
  const Trace trace = run(session);
  const Figure figure = layout(session, trace, spec_of(FigureView::kMatrix));
  const FigureMatrix& m = figure.matrices.front();
  const std::vector<Element> elements = parse(written(figure, PictureFormat::kSvg));
  CHECK(std::ranges::count(elements, "image", &Element::name) == 1);  // the colour bar
  for (Index r = 0; r < 3; ++r) {
    for (Index c = 0; c < 3; ++c) {
      const double x = m.x + 32 * static_cast<double>(c), y = m.y + 32 * static_cast<double>(r);
      const auto at_cell = [&](const Element& e) {
        return e.name == "rect" && e.number("x") == x && e.number("y") == y && e.has("fill") && !e.has("rx") &&
               e.number("width") < 60;
      };
      CHECK(std::ranges::count_if(elements, at_cell) == (c <= r ? 1 : 0));
      const auto cell = std::ranges::find_if(elements, at_cell);
      if (c <= r) CHECK(cell->attributes.at("fill") == hex(table_color(m, r, c, ThemeName::kLight)));
    }
  }
  const auto hatch = std::ranges::find_if(elements, [](const Element& e) {
    return e.name == "path" && e.attributes.at("fill") == hex(palette(ThemeName::kLight).masked_line);
  });
  CHECK(hatch != elements.end());
}

TEST_CASE("a large matrix is one image inside, a pixel a unit") {
  Session session = session_of(std::vector<std::string>(40, "x"));
  session.problem.options.causal = true;
  const Trace trace = run(session);
  const Figure figure = layout(session, trace, spec_of(FigureView::kMatrix, 7));
  const FigureMatrix& m = figure.matrices.front();
  const std::vector<Element> elements = parse(written(figure, PictureFormat::kSvg));
  const auto image = std::ranges::find(elements, "image", &Element::name);
  REQUIRE(image != elements.end());
  CHECK(std::ranges::count(elements, "image", &Element::name) == 2);  // and the colour bar
  CHECK(image->number("x") == m.x);
  CHECK(image->number("width") == 280);
  const PixelImage pixels = embedded(*image);
  REQUIRE(pixels.width == 280);
  REQUIRE(pixels.height == 280);
  const TextShaper shaper;
  const Result<PixelImage> png = decode_png(figure_png(figure, shaper).value());
  REQUIRE(png.ok());
  int different = 0;
  for (int y = 0; y < 280; ++y) {
    for (int x = 0; x < 280; ++x) {
      const std::size_t here = 4 * static_cast<std::size_t>(y * 280 + x);
      const std::size_t there = 4 * (static_cast<std::size_t>(y + m.y) * static_cast<std::size_t>(png.value().width) +
                                     static_cast<std::size_t>(x + m.x));
      different += std::equal(&pixels.rgba[here], &pixels.rgba[here + 4], &png.value().rgba[there]) ? 0 : 1;
    }
  }
  CHECK(different == 0);
}

TEST_CASE("pages have no limit of pixels, and images in them stay within reason") {
  const Session session = session_of(std::vector<std::string>(300, "x"));
  const Trace trace = run(session);
  FigureSpec spec = spec_of(FigureView::kMatrix, 256);
  const Figure figure = layout(session, trace, spec);
  CHECK(figure.width > kMaxFigurePx);
  const std::vector<Element> elements = parse(written(figure, PictureFormat::kSvg));
  const auto image = std::ranges::find(elements, "image", &Element::name);
  REQUIRE(image != elements.end());
  CHECK(image->number("width") == 300 * 256);
  CHECK(embedded(*image).width == 300 * 13);  // (2^24)^½ / 300
  spec.pixels_per_unit = 1;
  const TextShaper shaper;
  CHECK_FALSE(layout_figure(session, trace, spec, shaper).ok());
}

TEST_CASE("a page that readers do not show is refused with a scale that fits") {
  const Session session = session_of(std::vector<std::string>(100, "x"));
  const Trace trace = run(session);
  const Figure figure = layout(session, trace, spec_of(FigureView::kMatrix, 200));
  const TextShaper shaper;
  const Result<Bytes> refused = figure_pdf(figure, shaper, 1);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == ErrorCode::kBadInput);
  const std::string& message = refused.error().message;
  const double fitting = std::stod(message.substr(message.rfind(' ') + 1));
  CHECK(fitting > 0.9);
  CHECK(fitting < 1);
  CHECK(figure_pdf(figure, shaper, fitting).ok());
}

TEST_CASE("files say nothing of when they were written, and are the same each time") {
  const Session session = session_of({"貓", "追", "老鼠", "hi😀", "שלום"});
  const Trace trace = run(session);
  for (const FigureView view : {FigureView::kMatrix, FigureView::kHead, FigureView::kHeads, FigureView::kConcat}) {
    for (const PictureFormat format : kAllPictureFormats) {
      const Figure figure = layout(session, trace, spec_of(view));
      const std::string first = written(figure, format);
      CHECK(first == written(layout(session, trace, spec_of(view)), format));
      CHECK(first.find("CreationDate") == std::string::npos);
      CHECK(first.find("ModDate") == std::string::npos);
    }
  }
}

TEST_CASE("a scaled PNG has every length times the scale, cells in whole pixels") {
  Session session = worked_example();
  session.problem.options.causal = true;
  const Trace trace = run(session);
  FigureSpec spec = spec_of(FigureView::kMatrix, 11);
  const Figure figure = layout(session, trace, spec);
  const FigureMatrix& m = figure.matrices.front();
  const TextShaper shaper;
  for (const double scale : {0.5, 1.25, 2.0, 3.0}) {
    const Result<PixelImage> image = decode_png(figure_png(figure, shaper, scale).value());
    REQUIRE(image.ok());
    CHECK(image.value().width == std::ceil(figure.width * scale));
    for (Index r = 0; r < 3; ++r) {
      for (Index c = 0; c <= r; ++c) {
        const auto x = static_cast<std::size_t>((m.x + 11 * (static_cast<double>(c) + 0.5)) * scale);
        const auto y = static_cast<std::size_t>((m.y + 11 * (static_cast<double>(r) + 0.5)) * scale);
        const std::uint8_t* p = &image.value().rgba[4 * (y * static_cast<std::size_t>(image.value().width) + x)];
        CHECK(Color{p[0], p[1], p[2], p[3]} == table_color(m, r, c, ThemeName::kLight));
      }
    }
  }
}

TEST_CASE("formats are told by the end of the name") {
  CHECK(picture_format("a.png") == PictureFormat::kPng);
  CHECK(picture_format("a.b/c.SVG") == PictureFormat::kSvg);
  CHECK(picture_format("x.Pdf") == PictureFormat::kPdf);
  CHECK(picture_format("plain") == PictureFormat::kPng);
  CHECK_FALSE(picture_format("a.jpg").has_value());
  for (const PictureFormat format : kAllPictureFormats) {
    CHECK(picture_format("x" + std::string(extension_of(format))) == format);
  }
  Figure figure;
  figure.width = 960;
  figure.height = 480.5;
  CHECK(picture_size(figure, PictureFormat::kPng, 2) == "1920 × 961 pixels");
  CHECK(picture_size(figure, PictureFormat::kPdf, 1) == "254 × 127 mm");
}
