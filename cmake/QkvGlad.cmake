# Loaders for OpenGL 3.3 core and EGL 1.5, generated offline by glad 2. Defines qkv_glad.
# /usr/bin comes first: a python3 earlier on the PATH may lack the glad module that Debian's script imports.
find_program(QKV_GLAD glad PATHS /usr/bin NO_DEFAULT_PATH)
if(NOT QKV_GLAD)
  find_program(QKV_GLAD glad REQUIRED)
endif()

set(QKV_GLAD_DIR ${PROJECT_BINARY_DIR}/glad)
add_custom_command(
  OUTPUT ${QKV_GLAD_DIR}/src/gl.c ${QKV_GLAD_DIR}/include/glad/gl.h
         ${QKV_GLAD_DIR}/src/egl.c ${QKV_GLAD_DIR}/include/glad/egl.h
  COMMAND ${QKV_GLAD} --quiet --reproducible --api gl:core=3.3 --extensions "" --out-path ${QKV_GLAD_DIR} c
  COMMAND ${QKV_GLAD} --quiet --reproducible --api egl=1.5
          --extensions EGL_MESA_platform_surfaceless,EGL_EXT_platform_base,EGL_KHR_surfaceless_context
          --out-path ${QKV_GLAD_DIR} c --loader
  COMMENT "Generating OpenGL and EGL loaders"
  VERBATIM)
add_library(qkv_glad STATIC ${QKV_GLAD_DIR}/src/gl.c ${QKV_GLAD_DIR}/src/egl.c
                            ${QKV_GLAD_DIR}/include/glad/gl.h ${QKV_GLAD_DIR}/include/glad/egl.h)
target_include_directories(qkv_glad SYSTEM PUBLIC ${QKV_GLAD_DIR}/include)
target_link_libraries(qkv_glad PUBLIC ${CMAKE_DL_LIBS})
