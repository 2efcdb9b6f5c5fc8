#include "app/gl/frame_renderer.h"

#include <imgui_impl_opengl3.h>

#include "app/gl/errors.h"
#include "app/gl/pixel_snap.h"
#include "app/platform/imgui_compat.h"

namespace qkv {

Result<std::unique_ptr<FrameRenderer>> FrameRenderer::create() {
  Result<HeatmapRenderer> heatmaps = HeatmapRenderer::create();
  if (!heatmaps) return heatmaps.error();
  std::unique_ptr<FrameRenderer> renderer(new FrameRenderer(std::move(heatmaps).value()));
  // The backend finds OpenGL's functions in libGL.so.1; through libglvnd they serve EGL contexts as well.
  renderer->backend_started_ = ImGui_ImplOpenGL3_Init("#version 330 core");
  if (!renderer->backend_started_)
    return Error{ErrorCode::kNoDisplay, "OpenGL does not start for the interface; install libgl1"};
  check_gl("starting the interface's renderer");
  return renderer;
}

FrameRenderer::~FrameRenderer() {
  if (backend_started_) ImGui_ImplOpenGL3_Shutdown();
}

void FrameRenderer::begin_frame(bool fonts_rebuilt) {
  images_.begin_frame();
  if (fonts_rebuilt) compat::upload_fonts();
  ImGui_ImplOpenGL3_NewFrame();
  check_gl("uploading fonts");
}

void FrameRenderer::render(int width, int height, Color background) {
  ImDrawData* data = ImGui::GetDrawData();
  heatmaps_.begin_frame(data->DisplaySize, data->FramebufferScale.x, height);
  glDisable(GL_SCISSOR_TEST);
  glViewport(0, 0, width, height);
  glClearColor(static_cast<float>(background.r) / 255, static_cast<float>(background.g) / 255,
               static_cast<float>(background.b) / 255, 1);
  glClear(GL_COLOR_BUFFER_BIT);
  snap_to_pixels(*data, [this](const ImDrawCmd& command) {
    return compat::is_font_texture(command) ? compat::font_texture_size() : images_.size(compat::texture_id(command));
  });
  ImGui_ImplOpenGL3_RenderDrawData(data);
  check_gl("drawing a frame");
}

}  // namespace qkv
