# What this project is compiled with, and the headers that are parsed once for many files.
#
#   spillway_warnings       what all code of ours is warned of
#   spillway_common         that, where includes begin, and the sanitizer's flags: of whatever takes libraries of src
#   spillway_runtime_flags  that, and those of code that lives inside users' processes (spillway_runtime_library())
#   spillway_reuse_headers(TARGET OWNER)
#       an object library whose files of C++ have the flags of OWNER takes its precompiled headers: spillway_runtime_headers,
#       spillway_program_headers.

add_library(spillway_warnings INTERFACE)
target_compile_options(spillway_warnings INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Werror=return-type
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual -Wno-invalid-offsetof>)

add_library(spillway_common INTERFACE)
target_include_directories(spillway_common INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
target_link_libraries(spillway_common INTERFACE spillway_warnings Threads::Threads)
if(SPILLWAY_SANITIZE STREQUAL "address")
  # The runtime has no RTTI, which the vptr check reads.
  target_compile_options(spillway_common INTERFACE -fsanitize=address,undefined -fno-sanitize=vptr -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_link_options(spillway_common INTERFACE -fsanitize=address,undefined)
  if(SPILLWAY_FUZZ)
    target_compile_options(spillway_common INTERFACE -fsanitize=fuzzer-no-link)
  endif()
elseif(SPILLWAY_SANITIZE STREQUAL "thread")
  target_compile_options(spillway_common INTERFACE -fsanitize=thread -fno-omit-frame-pointer)
  target_link_options(spillway_common INTERFACE -fsanitize=thread)
endif()

set(runtime_options -fvisibility=hidden -ftls-model=initial-exec -fno-builtin
  $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions -fno-rtti -fno-threadsafe-statics -Werror=global-constructors -fvisibility-inlines-hidden>)
add_library(spillway_runtime_flags INTERFACE)
target_link_libraries(spillway_runtime_flags INTERFACE spillway_common)
target_compile_options(spillway_runtime_flags INTERFACE ${runtime_options})
target_compile_options(spillway_runtime_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:SHELL:-include ${CMAKE_SOURCE_DIR}/src/base/plain_memory.h>)
if(SPILLWAY_SANITIZE)
  target_compile_definitions(spillway_runtime_flags INTERFACE SPILLWAY_KEEP_LIBC_MEMORY)  # they watch memcpy
endif()

# Headers of libraries take most of the time of nearly every file: parsed once for all files of the same flags. Not with
# sanitizers: there a file that includes too little does not compile. Nor with a compiler cache, to which what is
# parsed in one folder is not what is parsed in another.
if(SPILLWAY_SANITIZE OR CMAKE_CXX_COMPILER_LAUNCHER)
  set(precompile OFF)
else()
  set(precompile ON)
endif()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/headers.cc CONTENT "// Owns precompiled headers.\n")
if(precompile)
  set(headers <algorithm> <array> <atomic> <bit> <cstring> <expected> <memory> <new> <optional> <span> <string_view> <utility>)
  add_library(spillway_runtime_headers OBJECT ${CMAKE_BINARY_DIR}/headers.cc)
  target_link_libraries(spillway_runtime_headers PRIVATE spillway_common)
  target_compile_options(spillway_runtime_headers PRIVATE ${runtime_options})
  target_precompile_headers(spillway_runtime_headers PRIVATE ${headers})
  add_library(spillway_program_headers OBJECT ${CMAKE_BINARY_DIR}/headers.cc)
  target_link_libraries(spillway_program_headers PRIVATE spillway_common)
  target_precompile_headers(spillway_program_headers PRIVATE ${headers} <functional> <map> <string> <vector>)
endif()

function(spillway_reuse_headers target owner)
  if(NOT precompile)
    return()
  endif()
  target_precompile_headers(${target} REUSE_FROM ${owner})
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources EXCLUDE REGEX "\\.cc$")
  set_source_files_properties(${sources} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# Tests know their lines, not their variables: a fifth of the time to compile them.
set(test_options -fno-rtti -gline-tables-only)
set(test_link_options -fuse-ld=lld)  # a quarter of the time to link them
# GoogleTest's headers and those that many tests include, for tests of the same optimization.
if(BUILD_TESTING)
  foreach(owner spillway_test_headers spillway_test_headers_unoptimized)
    add_library(${owner} OBJECT ${CMAKE_BINARY_DIR}/headers.cc)
    target_link_libraries(${owner} PRIVATE spillway_common GTest::gtest GTest::gtest_main)
    target_compile_options(${owner} PRIVATE ${test_options} -fPIE)
    target_precompile_headers(${owner} PRIVATE <gtest/gtest.h>
      <algorithm> <array> <atomic> <bit> <chrono> <cstring> <deque> <expected> <filesystem> <fstream> <functional> <map> <memory> <mutex> <new> <optional>
      <random> <set> <span> <string> <string_view> <thread> <unordered_map> <utility> <vector>)
  endforeach()
  target_compile_options(spillway_test_headers_unoptimized PRIVATE -O0)
endif()
