# How this project builds its units. SpillwayFlags.cmake has what they are compiled with.
#
#   spillway_runtime_library(NAME SOURCES ...)
#       an object library of code that lives inside users' processes: no exceptions, RTTI, static
#       constructors or thread-safe statics; calls to memcpy and its kin that the compiler makes up
#       go to base::plain_* (src/base/plain_memory.h), never to the C library's intercepted names.
#   spillway_install(TARGET ...)
#       install(TARGETS TARGET ...), and `make product` builds the target.
#   spillway_test(NAME [UNOPTIMIZED] SOURCES ... [OPTIMIZED ...] [DEPENDS ...] [TIMEOUT SECONDS])
#       a GoogleTest program registered with ctest, one ctest entry per program. Without RTTI: its devices and the like derive from classes
#       of the runtime, which have none. UNOPTIMIZED: its own code is compiled by -O0, in less than half the time, since it waits for what it
#       tests; not for tests of races between a few instructions, nor models that compute: of these OPTIMIZED names the sources.
#       TIMEOUT is 600; four times as long with a sanitizer.
#   spillway_require_all_tests(FOLDER ...)
#       after all tests of the folders: every *_test.cc there is in one.
#   spillway_fuzz(NAME SOURCES ... DEPENDS ...)
#       with SPILLWAY_FUZZ, which instruments the units too (make fuzz): a libFuzzer program in fuzz/ of
#       the build, part of the target `fuzzers`. Otherwise a test that runs the inputs of tests/fuzz/NAME.hex.
#
# Object libraries do not carry their objects through each other: whoever takes one names what it needs of the layers below as well.
set(storage_and_below spillway_storage spillway_persist spillway_sys spillway_base)
set(task_and_below spillway_task spillway_task_overflow ${storage_and_below})
set(pagecache_and_below spillway_pagecache spillway_set_policy ${task_and_below})
set(kv_and_below spillway_kv ${task_and_below})

function(spillway_runtime_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES" ${ARGN})
  add_library(${name} OBJECT ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE spillway_runtime_flags)
  spillway_reuse_headers(${name} spillway_runtime_headers)
endfunction()

function(spillway_install target)
  install(TARGETS ${target} ${ARGN})
  set_property(GLOBAL APPEND PROPERTY SPILLWAY_INSTALLED ${target})
endfunction()

function(spillway_test name)
  cmake_parse_arguments(ARG "UNOPTIMIZED" "TIMEOUT" "SOURCES;OPTIMIZED;DEPENDS" ${ARGN})
  if(NOT BUILD_TESTING)
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  set_source_files_properties(${ARG_OPTIMIZED} PROPERTIES COMPILE_OPTIONS -O2 SKIP_PRECOMPILE_HEADERS ON)
  list(TRANSFORM ARG_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ OUTPUT_VARIABLE sources)
  set_property(GLOBAL APPEND PROPERTY SPILLWAY_TEST_SOURCES ${sources})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} spillway_common GTest::gtest GTest::gtest_main)
  target_compile_options(${name} PRIVATE ${test_options})
  if(ARG_UNOPTIMIZED AND NOT SPILLWAY_SANITIZE)
    target_compile_options(${name} PRIVATE -O0)
    target_precompile_headers(${name} REUSE_FROM spillway_test_headers_unoptimized)
  else()
    target_precompile_headers(${name} REUSE_FROM spillway_test_headers)
  endif()
  target_link_options(${name} PRIVATE ${test_link_options})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  if(SPILLWAY_SANITIZE)
    math(EXPR ARG_TIMEOUT "4 * ${ARG_TIMEOUT}")
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT})
endfunction()

# Stops when a source file of a test is in none: it would pass for ever.
function(spillway_require_all_tests)
  get_property(sources GLOBAL PROPERTY SPILLWAY_TEST_SOURCES)
  foreach(folder IN LISTS ARGN)
    file(GLOB_RECURSE found CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*_test.cc)
    list(REMOVE_ITEM found ${sources})
    if(found)
      message(FATAL_ERROR "no test is made of ${found}: name it in a spillway_test()")
    endif()
  endforeach()
endfunction()

# Runs inputs from a file where libFuzzer would make them.
if(BUILD_TESTING AND NOT SPILLWAY_FUZZ)
  add_library(spillway_fuzz_replay OBJECT ${CMAKE_SOURCE_DIR}/tests/fuzz/replay.cc)
  target_link_libraries(spillway_fuzz_replay PRIVATE spillway_common)
endif()

function(spillway_fuzz name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  if(NOT SPILLWAY_FUZZ AND NOT BUILD_TESTING)
    return()
  endif()
  if(SPILLWAY_FUZZ AND NOT SPILLWAY_SANITIZE STREQUAL "address")
    message(FATAL_ERROR "SPILLWAY_FUZZ needs SPILLWAY_SANITIZE=address; use the preset fuzz")
  endif()
  add_executable(${name} ${ARG_SOURCES})
  foreach(dependency IN LISTS ARG_DEPENDS)
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:${dependency}>)
  endforeach()
  target_link_libraries(${name} PRIVATE spillway_common)
  target_compile_options(${name} PRIVATE -fno-rtti)  # as tests
  if(NOT SPILLWAY_FUZZ)
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:spillway_fuzz_replay>)
    target_compile_options(${name} PRIVATE ${test_options})
    if(NOT SPILLWAY_SANITIZE)
      target_compile_options(${name} PRIVATE -O0)
    endif()
    target_link_options(${name} PRIVATE ${test_link_options})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    add_test(NAME ${name} COMMAND ${name} ${CMAKE_SOURCE_DIR}/tests/fuzz/${name}.hex)
    set_tests_properties(${name} PROPERTIES TIMEOUT 300)
    return()
  endif()
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
  if(NOT TARGET fuzzers)
    add_custom_target(fuzzers)
  endif()
  add_dependencies(fuzzers ${name})
endfunction()
