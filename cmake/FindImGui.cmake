# Dear ImGui with its GLFW and OpenGL 3 backends, as Debian packages it: a static library that needs stb and
# FreeType beside it. Defines ImGui::ImGui.
find_package(Freetype REQUIRED)
find_path(ImGui_INCLUDE_DIR imgui.h PATH_SUFFIXES imgui)
find_path(ImGui_BACKENDS_DIR imgui_impl_glfw.h PATH_SUFFIXES imgui/backends)
find_library(ImGui_LIBRARY imgui)
find_library(ImGui_STB_LIBRARY stb)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ImGui REQUIRED_VARS ImGui_LIBRARY ImGui_INCLUDE_DIR ImGui_BACKENDS_DIR
                                                      ImGui_STB_LIBRARY)
if(ImGui_FOUND AND NOT TARGET ImGui::ImGui)
  add_library(ImGui::ImGui UNKNOWN IMPORTED)
  set_target_properties(ImGui::ImGui PROPERTIES IMPORTED_LOCATION ${ImGui_LIBRARY})
  target_include_directories(ImGui::ImGui SYSTEM INTERFACE ${ImGui_INCLUDE_DIR} ${ImGui_BACKENDS_DIR})
  target_link_libraries(ImGui::ImGui INTERFACE ${ImGui_STB_LIBRARY} Freetype::Freetype glfw ${CMAKE_DL_LIBS})
endif()
mark_as_advanced(ImGui_INCLUDE_DIR ImGui_BACKENDS_DIR ImGui_LIBRARY ImGui_STB_LIBRARY)
