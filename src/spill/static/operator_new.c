// The linker directs calls of operator new here (--wrap), so that its malloc calls can be told from the C library's own.
// In C, so that exceptions pass: std::bad_alloc, and whatever the program's own operator throws.
#include "spill/static/operator_new.h"

#include <stddef.h>

__thread int spillway_in_operator_new = 0;

// Null in a program without the C++ library.
__attribute__((weak)) void* __real__Znwm(size_t bytes);
__attribute__((weak)) void* __real__ZnwmSt11align_val_t(size_t bytes, size_t alignment);

static void leave(int* entered) {
  (void)entered;
  spillway_in_operator_new = 0;
}

void* __wrap__Znwm(size_t bytes);
void* __wrap__Znwm(size_t bytes) {
  __attribute__((cleanup(leave))) int entered = spillway_in_operator_new = 1;
  return __real__Znwm != NULL ? __real__Znwm(bytes) : NULL;
}

void* __wrap__ZnwmSt11align_val_t(size_t bytes, size_t alignment);
void* __wrap__ZnwmSt11align_val_t(size_t bytes, size_t alignment) {
  __attribute__((cleanup(leave))) int entered = spillway_in_operator_new = 1;
  return __real__ZnwmSt11align_val_t(bytes, alignment);
}
