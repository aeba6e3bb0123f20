// The names that the runtime exports for code that was not compiled by spillcc: each SPILLWAY_INTERPOSE
// line of the list jumps to the runtime's replacement. (static/CMakeLists.txt gives them others.)
#define SPILLWAY_INTERCEPT(name)
#define SPILLWAY_INTERPOSE(name) \
  .globl name; .type name, @function; .p2align 4; name: jmp __spill_##name; .size name, . - name;
  .text
#include "spillway/interceptors.inc"
  .section .note.GNU-stack,"",@progbits
