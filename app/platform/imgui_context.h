// The ImGui context of a host.
#pragma once

#include <imgui.h>

namespace qkv {

// Current from construction to destruction. Writes no files of its own.
class ImGuiSession {
 public:
  ImGuiSession() : context_(ImGui::CreateContext()) {
    ImGuiIO& io = ImGui::GetIO();
    io.IniFilename = nullptr;
    io.LogFilename = nullptr;
  }
  ~ImGuiSession() { ImGui::DestroyContext(context_); }
  ImGuiSession(const ImGuiSession&) = delete;
  ImGuiSession& operator=(const ImGuiSession&) = delete;

 private:
  ImGuiContext* context_;
};

}  // namespace qkv
