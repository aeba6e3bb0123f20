// Every intercepted function that runtime.c does not define goes to the C library.
#define SPILLWAY_INTERCEPT(name)                                                       \
  __asm__(".weak __spill_" #name "\n.type __spill_" #name ",@function\n__spill_" #name \
          ":\n"                                                                        \
          ".weak " #name "\njmp *" #name "@GOTPCREL(%rip)\n");
#include "spillway/interceptors.inc"
