# Unit tests of the interceptors on spilled memory without a cache (tests/spill_fake).
if(BUILD_TESTING)
  spillway_runtime_library(spillway_intercept SOURCES ${SPILL_INTERCEPT_SOURCES})
  add_library(spillway_spill_fake OBJECT ${CMAKE_SOURCE_DIR}/tests/spill_fake/fake_runtime.cc)
  target_link_libraries(spillway_spill_fake PRIVATE spillway_common)
  target_include_directories(spillway_spill_fake PRIVATE ${CMAKE_SOURCE_DIR}/tests/spill_fake)
endif()
function(spillway_intercept_test name)
  spillway_test(${name} SOURCES ${ARGN}
    DEPENDS spillway_intercept spillway_spill_fake spillway_sys spillway_base LABELS spill)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests/spill_fake)
  # The stand-ins never free, and pointers in spilled memory are found by nobody.
  set_tests_properties(${name} PROPERTIES ENVIRONMENT ASAN_OPTIONS=detect_leaks=0)
endfunction()
if(BUILD_TESTING)
  spillway_intercept_test(intercept_memory_test intercept_memory_test.cc)
  spillway_intercept_test(intercept_string_test intercept_string_test.cc)
  spillway_intercept_test(intercept_stdio_test intercept_stdio_test.cc)
  spillway_intercept_test(intercept_io_test intercept_io_test.cc)
  spillway_intercept_test(intercept_process_test intercept_process_test.cc)
  spillway_intercept_test(intercept_pthread_test intercept_pthread_test.cc)
  # It locks the C library's mutexes by the runtime and unlocks them by the C library.
  set_tests_properties(intercept_pthread_test PROPERTIES ENVIRONMENT "TSAN_OPTIONS=report_mutex_bugs=0")
endif()

if(BUILD_TESTING)
  spillway_runtime_library(spillway_address_space SOURCES address_space.cc)
  spillway_runtime_library(spillway_translate_quick SOURCES translate_quick.c)
endif()
spillway_test(address_space_test SOURCES address_space_test.cc
  DEPENDS spillway_address_space spillway_sys spillway_base LABELS spill)
spillway_test(translate_quick_test SOURCES translate_quick_test.cc
  DEPENDS spillway_translate_quick spillway_sys spillway_base LABELS spill)
