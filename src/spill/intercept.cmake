# The interceptors of C library functions (interceptors.inc). In these files memcpy and its kin are the
# C library's fast ones: they are called with plain pointers only (intercept.h).
set(SPILL_INTERCEPT_SOURCES
  access.cc
  format.cc
  format_printf.cc
  format_scanf.cc
  intercept_callback.cc
  intercept_condition.cc
  intercept_descriptor.cc
  intercept_futex.cc
  intercept_io.cc
  intercept_kernel.cc
  intercept_mask.cc
  intercept_memory.cc
  intercept_mutex.cc
  intercept_number.cc
  intercept_path.cc
  intercept_printf.cc
  intercept_process.cc
  intercept_rwlock.cc
  intercept_scanf.cc
  intercept_semaphore.cc
  intercept_socket.cc
  intercept_sort.cc
  intercept_stdio.cc
  intercept_string.cc
  intercept_string_search.cc
  intercept_system.cc
  intercept_time.cc
  once.c
  parking.cc)
set_source_files_properties(${SPILL_INTERCEPT_SOURCES} PROPERTIES COMPILE_DEFINITIONS SPILLWAY_KEEP_LIBC_MEMORY)
# Exceptions of the program's own pass through it.
set_source_files_properties(once.c PROPERTIES COMPILE_OPTIONS -fexceptions)
