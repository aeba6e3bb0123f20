// Does what the dynamic loader does for the shared runtime: runs the start before all constructors of the program,
// the end after all its destructors. And a note, by which `spillway run` recognises the program as spillcc's.
  .section .preinit_array, "aw", @preinit_array
  .p2align 3
  .quad spillway_start

  // The lowest priority: runs last.
  .section .fini_array.00000, "aw", @fini_array
  .p2align 3
  .quad spillway_end

  .section .note.spillway, "a", @note
  .p2align 2
  .long 2f - 1f, 4f - 3f, 1
1:
  .asciz "Spillway"
2:
  .p2align 2
3:
#define SPILLWAY_NUMBER(name, value, doc) .set k##name, value;
#include "spillway/abi.inc"
  .long kAbiVersion
4:
  .p2align 2

  .section .note.GNU-stack, "", @progbits
