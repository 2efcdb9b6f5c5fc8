#include "app/panels/matrix_heatmap.h"

#include <cmath>
#include <utility>

namespace qkv {
namespace {

void draw_held(const StageInput& in, const MatrixCanvas& canvas, HeatmapDraw& draw) {
  const MatrixKind kind = canvas.place.id.kind;
  draw.version = in.version;
  draw.values = canvas.cells.held->data();
  draw.rows = static_cast<int>(canvas.cells.rows);
  draw.cols = static_cast<int>(canvas.cells.cols);
  if (const ForeignMatrix* foreign = canvas.place.foreign) {
    draw.key = (std::uint64_t{1} << 62) | foreign->key;
    draw.version = foreign->version;
    return;
  }
  if (scale_group(kind) == ScaleGroup::kWeights || kind == MatrixKind::kKeep)
    if (in.computed.digest.hidden > 0) draw.keep = in.computed.trace.keep->data();
}

// Blocks of cells in the place of cells. False where there is nothing to draw yet.
bool draw_picture(const Picture* picture, const MatrixPlace& place, HeatmapDraw& draw) {
  if (picture == nullptr || picture->values.size() == 0) return false;
  draw.key |= std::uint64_t{1} << 63;  // not the textures of a held matrix
  draw.version = picture->version;
  draw.values = picture->values.data();
  if (place.id.kind == MatrixKind::kKeep) draw.keep = draw.values;
  if (picture->keep.size() > 0) draw.keep = picture->keep.data();
  draw.rows = static_cast<int>(picture->blocks.rows);
  draw.cols = static_cast<int>(picture->blocks.cols);
  double row_size = std::exp2(picture->row_level), col_size = std::exp2(picture->col_level);
  auto row = static_cast<double>(picture->blocks.row), col = static_cast<double>(picture->blocks.col);
  if (place.transposed) std::swap(row_size, col_size), std::swap(row, col);
  draw.cell_w *= col_size;
  draw.cell_h *= row_size;
  draw.first_row = draw.first_row / row_size - row;
  draw.first_col = draw.first_col / col_size - col;
  draw.origin_row = row;
  draw.origin_col = col;
  return true;
}

}  // namespace

const Picture* picture_of(Ui& ui, const StageInput& in, const MatrixCanvas& canvas) {
  if (canvas.cells.held != nullptr || in.pictures == nullptr) return nullptr;
  PictureRequest request;
  request.id = canvas.place.id;
  request.cell_pixels = std::sqrt(canvas.cell_w() * canvas.cell_h()) * static_cast<double>(ui.scale);
  request.masked = in.computed.digest.hidden > 0;
  Rect drawn = canvas.window();
  if (canvas.place.transposed) drawn = {drawn.col, drawn.row, drawn.cols, drawn.rows};
  request.visible = {canvas.part.row + drawn.row, canvas.part.col + drawn.col, drawn.rows, drawn.cols};
  return in.pictures->get(in.computed.trace, request);
}

void submit_heatmap(Ui& ui, const StageInput& in, const MatrixCanvas& canvas) {
  const MatrixPlace& place = canvas.place;
  HeatmapDraw draw;
  draw.key = (static_cast<std::uint64_t>(place.id.kind) << 32) | static_cast<std::uint32_t>(place.id.head);
  draw.transposed = place.transposed;
  draw.min = place.min;
  draw.max = canvas.max();
  const Index part_row = place.transposed ? canvas.part.col : canvas.part.row;
  const Index part_col = place.transposed ? canvas.part.row : canvas.part.col;
  draw.first_row = canvas.row_view.first + static_cast<double>(part_row);
  draw.first_col = canvas.col_view.first + static_cast<double>(part_col);
  draw.cell_w = canvas.cell_w();
  draw.cell_h = canvas.cell_h();
  if (canvas.cells.held != nullptr) {
    draw_held(in, canvas, draw);
  } else if (!draw_picture(canvas.picture, place, draw)) {
    return;
  }
  draw.colormap = colormap_at(in, place);
  draw.theme = ui.theme;
  draw.range = range_at(in, place);
  if (place.id.kind == MatrixKind::kKeep && place.foreign == nullptr) {
    // Visible keys are quiet, hidden ones hatched.
    draw.colormap = "grey";
    draw.range = {0, ui.theme == ThemeName::kDark ? 5.0f : 1.06f, false};
  }
  draw.radius = kMatrixCornerRadius;
  draw.sink = ui.sink;
  ui.heatmaps.push_back(std::move(draw));
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddCallback(
      [](const ImDrawList*, const ImDrawCmd* command) {
        const auto& heatmap = *static_cast<const HeatmapDraw*>(command->UserCallbackData);
        if (heatmap.sink != nullptr) heatmap.sink->draw(heatmap, command->ClipRect);
      },
      &ui.heatmaps.back());
  list->AddCallback(ImDrawCallback_ResetRenderState, nullptr);
}

}  // namespace qkv
