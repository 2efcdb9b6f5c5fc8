# Settings that every target of the project shares.

function(qkv_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
                                           -Wnon-virtual-dtor -Woverloaded-virtual -Wimplicit-fallthrough)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC 12 warns of overlapping copies inside std::string's own operator+ (its bugs 105329 and 105651).
    target_compile_options(${target} PRIVATE -Wno-restrict -Wno-array-bounds -Wno-stringop-overread
                                             -Wno-stringop-overflow)
    # And of what std::variant destroys where NDEBUG is set, and std::regex moves with sanitizers (its bug 105562).
    target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
  endif()
  if(QKV_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

function(qkv_sanitize target)
  if(QKV_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${QKV_SANITIZE} -fno-sanitize-recover=all
                                             -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${QKV_SANITIZE})
  endif()
endfunction()

# A library that the fuzzers need, neither instrumented nor optimized, since that takes clang minutes for each file.
function(qkv_outside_fuzzing target)
  if(QKV_BUILD_FUZZ)
    target_compile_options(${target} PRIVATE -fno-sanitize=all -O0)
  endif()
endfunction()

# A static library of one layer. What it may know is what it links.
function(qkv_library target)
  add_library(${target} STATIC ${ARGN})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  qkv_warnings(${target})
  qkv_sanitize(${target})
endfunction()

# Headers that most files of a target read, compiled once. Eigen alone costs seconds a file.
function(qkv_precompile target)
  if(NOT QKV_SANITIZE OR QKV_BUILD_FUZZ)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()

function(qkv_program target)
  add_executable(${target} ${ARGN})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  qkv_warnings(${target})
  qkv_sanitize(${target})
  if(QKV_SANITIZE MATCHES address)
    target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/keep_loaded.cpp)
  endif()
endfunction()

# Embeds text files in a generated source: `std::string_view NAME(std::string_view file)` in namespace qkv
# finds one by its file name, or is empty.
function(qkv_embed target function_name)
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/${function_name}.cpp)
  set(entries "")
  foreach(path IN LISTS ARGN)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
    file(READ ${path} content)
    get_filename_component(name ${path} NAME)
    string(APPEND entries "  if (file == \"${name}\") return R\"qkv_embed(${content})qkv_embed\";\n")
  endforeach()
  file(CONFIGURE OUTPUT ${generated} @ONLY CONTENT
"#include <string_view>
namespace qkv {
std::string_view @function_name@(std::string_view file);
std::string_view @function_name@(std::string_view file) {
@entries@  return {};
}
}  // namespace qkv
")
  target_sources(${target} PRIVATE ${generated})
endfunction()
