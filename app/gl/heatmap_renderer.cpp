#include "app/gl/heatmap_renderer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include "app/gl/errors.h"
#include "core/base/number_text.h"
#include "core/figure/colormap.h"

namespace qkv {
namespace {

constexpr std::uint64_t kKeepFrames = 120;                  // a matrix out of sight is freed after that many
constexpr std::size_t kKeepBytes = std::size_t{512} << 20;  // above this, everything out of sight is
constexpr int kMaxSamples = 8;                              // a side: cells averaged in one pixel
// Logical pixels.
constexpr float kHatchPeriod = 6, kHatchWidth = 1;
constexpr float kMarkCell = 10;  // least side of a cell with a corner mark or frame

constexpr int kValuesUnit = 0, kKeepUnit = 1, kTableUnit = 2;

std::string shader_constants() {
  struct Constant {
    std::string_view name;
    int value;
  };
  const std::array constants{
      Constant{"CELL_VALUE", static_cast<int>(CellClass::kValue)},
      Constant{"CELL_BELOW", static_cast<int>(CellClass::kBelow)},
      Constant{"CELL_ABOVE", static_cast<int>(CellClass::kAbove)},
      Constant{"CELL_MASKED", static_cast<int>(CellClass::kMasked)},
      Constant{"CELL_NAN", static_cast<int>(CellClass::kNan)},
      Constant{"CELL_PLUS_INF", static_cast<int>(CellClass::kPlusInf)},
      Constant{"CELL_MINUS_INF", static_cast<int>(CellClass::kMinusInf)},
      Constant{"MAX_SAMPLES", kMaxSamples},
      Constant{"TABLE_SIZE", static_cast<int>(std::tuple_size_v<ColorTable>)},
  };
  std::string text;
  for (const Constant& constant : constants)
    text += "const int " + std::string(constant.name) + " = " + std::to_string(constant.value) + ";\n";
  return text + "const float LOG_START = " + format_fixed(kLogStart, 12, false) + ";\n";
}

void set_color(GLint place, Color color) {
  glUniform4f(place, static_cast<float>(color.r) / 255, static_cast<float>(color.g) / 255,
              static_cast<float>(color.b) / 255, static_cast<float>(color.a) / 255);
}

// A cell coordinate as a whole number that int holds and the part above it.
std::pair<int, float> split(double coordinate) {
  const double whole = std::clamp(std::floor(coordinate), -1e9, 1e9);
  return {static_cast<int>(whole), static_cast<float>(std::clamp(coordinate - whole, 0.0, 1.0))};
}

// A frame's pixels never lie between device pixels, whatever the scale: sharp edges at 1.25 and 1.5 too.
float to_device(float logical, float scale) { return std::round(logical * scale); }

bool same_matrix(const HeatmapDraw& heatmap, std::uint64_t version, int rows, int cols) {
  return version == heatmap.version && rows == heatmap.rows && cols == heatmap.cols;
}

}  // namespace

Result<HeatmapRenderer> HeatmapRenderer::create(int texture_limit) {
  const Result<std::string> vertex = shader_source("heatmap.vert");
  if (!vertex) return vertex.error();
  const Result<std::string> fragment = shader_source("heatmap.frag");
  if (!fragment) return fragment.error();
  Result<Program> program = Program::link(vertex.value(), fragment.value(), shader_constants());
  if (!program) return program.error();

  HeatmapRenderer renderer;
  renderer.program_ = std::move(program).value();
  renderer.vertex_array_ = create_gl<GlVertexArrayKind>();
  const int driver_limit = max_texture_size();
  renderer.texture_limit_ = texture_limit > 0 ? std::min(texture_limit, driver_limit) : driver_limit;
  glUseProgram(renderer.program_.id());
  glUniform1i(renderer.program_.uniform("u_values"), kValuesUnit);
  glUniform1i(renderer.program_.uniform("u_keep"), kKeepUnit);
  glUniform1i(renderer.program_.uniform("u_table"), kTableUnit);
  glUseProgram(0);
  check_gl("making the heat map renderer");
  return renderer;
}

void HeatmapRenderer::begin_frame(ImVec2 display_size, float scale, int framebuffer_height) {
  ++frame_;
  scale_ = scale;
  framebuffer_width_ = static_cast<int>(std::lround(display_size.x * scale));
  framebuffer_height_ = framebuffer_height;
  evict();
}

void HeatmapRenderer::evict() {
  std::size_t bytes = 0;
  for (const auto& [key, matrix] : matrices_) bytes += matrix.values.bytes + matrix.keep.bytes;
  // A matrix drawn in the last frame has last_frame = frame_ − 1.
  const std::uint64_t keep_frames = bytes > kKeepBytes ? 1 : kKeepFrames;
  std::erase_if(matrices_, [&](const auto& entry) { return entry.second.last_frame + keep_frames < frame_; });
}

bool HeatmapRenderer::upload(const HeatmapDraw& heatmap, Matrix& matrix) const {
  const std::size_t rows = static_cast<std::size_t>(heatmap.rows), cols = static_cast<std::size_t>(heatmap.cols);
  const std::size_t limit = static_cast<std::size_t>(texture_limit_);
  const std::size_t cells = rows * cols;
  if (cells > limit * limit) return false;
  matrix.fold = rows > limit || cols > limit ? texture_limit_ : 0;
  const int width = matrix.fold > 0 ? matrix.fold : heatmap.cols;

  matrix.keep = {};
  Result<Texture> values = upload_texture(TexelFormat::kFloat, width, heatmap.values, cells);
  if (!values) return false;
  matrix.values = std::move(values).value();
  if (heatmap.keep == nullptr) return true;

  std::vector<std::uint8_t> visible(cells);
  for (std::size_t i = 0; i < cells; ++i) visible[i] = heatmap.keep[i] != 0 ? 255 : 0;
  Result<Texture> keep = upload_texture(TexelFormat::kByte, width, visible.data(), cells);
  if (!keep) return false;
  matrix.keep = std::move(keep).value();
  return true;
}

const HeatmapRenderer::Matrix& HeatmapRenderer::matrix(const HeatmapDraw& heatmap) {
  auto [it, is_new] = matrices_.try_emplace(heatmap.key);
  Matrix& matrix = it->second;
  matrix.last_frame = frame_;
  if (is_new || !same_matrix(heatmap, matrix.version, matrix.rows, matrix.cols)) {
    matrix.available = upload(heatmap, matrix);
    if (!matrix.available) {
      matrix.values = {};
      matrix.keep = {};
    }
    matrix.version = heatmap.version;
    matrix.rows = heatmap.rows;
    matrix.cols = heatmap.cols;
  }
  return matrix;
}

const HeatmapRenderer::Table& HeatmapRenderer::table(const std::string& colormap, ThemeName theme) {
  auto [it, is_new] = tables_.try_emplace({is_colormap(colormap) ? colormap : "viridis", theme});
  if (is_new) {
    const ColorTable colors = color_table(it->first.first, theme);
    static_assert(sizeof(Color) == 4, "colours are uploaded as RGBA bytes");
    Result<Texture> texture =
        upload_texture(TexelFormat::kRgba, static_cast<int>(colors.size()), colors.data(), colors.size());
    if (texture) it->second.colors = std::move(texture).value();
    it->second.ink_low = ink_on(colors.front());
    it->second.ink_high = ink_on(colors.back());
  }
  return it->second;
}

bool HeatmapRenderer::set_scissor(const ImVec4& clip) const {
  const int left = std::max(0, static_cast<int>(to_device(clip.x, scale_)));
  const int top = std::max(0, static_cast<int>(to_device(clip.y, scale_)));
  const int right = std::min(framebuffer_width_, static_cast<int>(to_device(clip.z, scale_)));
  const int bottom = std::min(framebuffer_height_, static_cast<int>(to_device(clip.w, scale_)));
  if (right <= left || bottom <= top) return false;
  glEnable(GL_SCISSOR_TEST);
  glScissor(left, framebuffer_height_ - bottom, right - left, bottom - top);
  return true;
}

void HeatmapRenderer::set_place(const HeatmapDraw& heatmap) const {
  const auto [first_col, col_part] = split(heatmap.first_col);
  const auto [first_row, row_part] = split(heatmap.first_row);
  const float period = std::max(3.0f, std::round(kHatchPeriod * scale_));
  const double x = (heatmap.first_col + heatmap.origin_col) * heatmap.cell_w;
  const double y = (heatmap.first_row + heatmap.origin_row) * heatmap.cell_h;
  const double phase = std::fmod((x + y) * scale_, static_cast<double>(period));
  glUniform4f(program_.uniform("u_rect"), to_device(heatmap.min.x, scale_), to_device(heatmap.min.y, scale_),
              to_device(heatmap.max.x, scale_), to_device(heatmap.max.y, scale_));
  glUniform2f(program_.uniform("u_framebuffer"), static_cast<float>(framebuffer_width_),
              static_cast<float>(framebuffer_height_));
  glUniform2i(program_.uniform("u_first"), first_col, first_row);
  glUniform2f(program_.uniform("u_first_part"), col_part, row_part);
  glUniform2f(program_.uniform("u_cell"), static_cast<float>(heatmap.cell_w * scale_),
              static_cast<float>(heatmap.cell_h * scale_));
  glUniform1f(program_.uniform("u_radius"), heatmap.radius * scale_);
  glUniform1f(program_.uniform("u_hatch_phase"), static_cast<float>(phase));
  glUniform1f(program_.uniform("u_hatch_period"), period);
  glUniform1f(program_.uniform("u_hatch_width"), kHatchWidth * scale_);
  glUniform1f(program_.uniform("u_pixel"), scale_);
  glUniform1f(program_.uniform("u_mark_cell"), kMarkCell * scale_);
}

void HeatmapRenderer::set_colors(const HeatmapDraw& heatmap, const Table& table) const {
  const ColorRange& range = heatmap.range;
  const bool wide = std::isinf(range.high - range.low);
  glUniform1f(program_.uniform("u_low"), range.low);
  glUniform1f(program_.uniform("u_high"), range.high);
  glUniform1f(program_.uniform("u_prescale"), wide ? 0.5f : 1.0f);
  glUniform1i(program_.uniform("u_flat"), range.flat || !(range.low < range.high));

  const double log_low = range.log ? std::log2(static_cast<double>(range.low)) : 0;
  const double log_high = range.log ? std::log2(static_cast<double>(range.high)) : 1;
  glUniform1i(program_.uniform("u_log"), range.log);
  glUniform1f(program_.uniform("u_log_low"), static_cast<float>(log_low));
  glUniform1f(program_.uniform("u_log_factor"), static_cast<float>(1 / (log_high - log_low)));

  const Palette& colors = palette(heatmap.theme);
  set_color(program_.uniform("u_masked"), colors.masked);
  set_color(program_.uniform("u_masked_line"), colors.masked_line);
  set_color(program_.uniform("u_nan"), colors.nan_cell);
  set_color(program_.uniform("u_warning"), colors.warning);
  set_color(program_.uniform("u_ink_low"), table.ink_low);
  set_color(program_.uniform("u_ink_high"), table.ink_high);
}

void HeatmapRenderer::draw(const HeatmapDraw& heatmap, const ImVec4& clip) {
  if (heatmap.values == nullptr || heatmap.rows <= 0 || heatmap.cols <= 0) return;
  if (!(heatmap.cell_w > 0) || !(heatmap.cell_h > 0) || !set_scissor(clip)) return;
  const Matrix& shown = matrix(heatmap);
  const Table& colors = table(heatmap.colormap, heatmap.theme);

  glUseProgram(program_.id());
  glBindVertexArray(vertex_array_.get());
  set_place(heatmap);
  set_colors(heatmap, colors);
  glUniform2i(program_.uniform("u_stored"), heatmap.cols, heatmap.rows);
  glUniform1i(program_.uniform("u_fold"), shown.fold);
  glUniform1i(program_.uniform("u_transposed"), heatmap.transposed);
  glUniform1i(program_.uniform("u_has_keep"), static_cast<bool>(shown.keep.handle));
  glUniform1i(program_.uniform("u_unavailable"), !shown.available || !colors.colors.handle);

  glActiveTexture(GL_TEXTURE0 + kKeepUnit);
  glBindTexture(GL_TEXTURE_2D, shown.keep.handle.get());
  glActiveTexture(GL_TEXTURE0 + kTableUnit);
  glBindTexture(GL_TEXTURE_2D, colors.colors.handle.get());
  glActiveTexture(GL_TEXTURE0 + kValuesUnit);  // last: ImGui's backend binds to unit 0
  glBindTexture(GL_TEXTURE_2D, shown.values.handle.get());
  glDrawArrays(GL_TRIANGLE_STRIP, 0, 4);
  check_gl("drawing a heat map");
}

}  // namespace qkv
