// Entry points for compiled code, calling convention preserve_allcc: every register but rax and r11 is
// kept, the vector registers too. No C++ compiler guarantees that, so they are saved here.
//
// The quick step of a translation needs the integer registers only; the blocking ones may use all.
// XSAVE area: the standard format up to and including AVX-512 (2,688 bytes), aligned to 64; components
// SSE, AVX, opmask, ZMM_Hi256, Hi16_ZMM (mask 0xe6). spillway_start() checks that the CPU has XSAVE.

  .set XSAVE_BYTES, 2688
  .set XSAVE_MASK, 0xe6

  .macro push_integers
  pushq %rbp
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset rbp, 0
  movq %rsp, %rbp
  .cfi_def_cfa_register rbp
  pushq %rcx
  pushq %rdx
  pushq %rsi
  pushq %rdi
  pushq %r8
  pushq %r9
  pushq %r10
  pushq %rbx
  andq $-64, %rsp
  cld
  .endm

  .macro pop_integers
  leaq -64(%rbp), %rsp
  popq %rbx
  popq %r10
  popq %r9
  popq %r8
  popq %rdi
  popq %rsi
  popq %rdx
  popq %rcx
  popq %rbp
  .cfi_def_cfa rsp, 8
  .endm

  // Calls \target with the vector registers kept. The header of the area must be zero for XRSTOR.
  .macro call_saving_vectors target
  subq $XSAVE_BYTES, %rsp
  xorl %eax, %eax
  movq %rax, 512(%rsp)
  movq %rax, 520(%rsp)
  movq %rax, 528(%rsp)
  movq %rax, 536(%rsp)
  movq %rax, 544(%rsp)
  movq %rax, 552(%rsp)
  movq %rax, 560(%rsp)
  movq %rax, 568(%rsp)
  movq %rdx, %rbx
  xorl %edx, %edx
  movl $XSAVE_MASK, %eax
  xsave64 (%rsp)
  movq %rbx, %rdx
  call \target
  movq %rax, %rbx
  xorl %edx, %edx
  movl $XSAVE_MASK, %eax
  xrstor64 (%rsp)
  movq %rbx, %rax
  .endm

  .text
  .globl __spillway_translate
  .type __spillway_translate, @function
  .p2align 4
__spillway_translate:
  .cfi_startproc
  push_integers
  call spillway_translate_quick
  testq %rax, %rax
  jg 1f
  movq -32(%rbp), %rdi
  movq -24(%rbp), %rsi
  call_saving_vectors spillway_translate_blocking
1:
  pop_integers
  ret
  .cfi_endproc
  .size __spillway_translate, . - __spillway_translate

  .globl __spillway_satc_translate
  .type __spillway_satc_translate, @function
  .p2align 4
__spillway_satc_translate:
  .cfi_startproc
  push_integers
  call spillway_satc_quick
  testq %rax, %rax
  jg 1f
  movq -32(%rbp), %rdi
  call_saving_vectors spillway_satc_blocking
1:
  pop_integers
  ret
  .cfi_endproc
  .size __spillway_satc_translate, . - __spillway_satc_translate

  // \caller, if given: the register that takes the address to which compiled code returns. \quick, if given: called first,
  // with only the integer registers saved; returns whether that was all.
  .macro crossing name, target, caller, quick
  .globl \name
  .type \name, @function
  .p2align 4
\name:
  .cfi_startproc
  push_integers
  .ifnb \caller
  movq 8(%rbp), \caller
  .endif
  .ifnb \quick
  call \quick
  testb %al, %al
  jnz 1f
  movq -8(%rbp), %rcx
  movq -16(%rbp), %rdx
  movq -24(%rbp), %rsi
  movq -32(%rbp), %rdi
  .endif
  call_saving_vectors \target
1:
  pop_integers
  ret
  .cfi_endproc
  .size \name, . - \name
  .endm

  crossing __spillway_cross_load, spillway_cross_load_blocking, , spillway_cross_load_quick
  crossing __spillway_cross_store, spillway_cross_store_blocking, , spillway_cross_store_quick
  crossing __spillway_cross_copy, spillway_cross_copy_blocking, , spillway_cross_copy_quick
  crossing __spillway_cross_map, spillway_cross_map_blocking, %rcx

  // thread_local Slot* __spillway_slots = kUnregisteredSlots, in every new thread before any code runs.
  // (C++ has no constant expression for a pointer to a fixed address.)
#define SPILLWAY_NUMBER(name, value, doc) .set k##name, value;
#define SPILLWAY_SYMBOL(name, symbol, doc) note_symbol name, symbol;
  // Every instrumented object refers to AbiTable's symbol: objects of another version or map do not link.
  .macro define_abi_table symbol
  .data
  .globl \symbol
  .type \symbol, @object
  .size \symbol, 8
\symbol:
  .quad kAbiVersion
  .endm
  .macro note_symbol name, symbol
  .ifc \name, AbiTable
  define_abi_table \symbol
  .endif
  .endm
#include "spillway/abi.inc"
  .section .tdata, "awT", @progbits
  .globl __spillway_slots
  .type __spillway_slots, @object
  .size __spillway_slots, 8
  .p2align 3
__spillway_slots:
  .quad kUnregisteredSlots

  // thread_local SatcThread __spillway_satc: points to a line that may be read, and that holds no page.
  .globl __spillway_satc
  .type __spillway_satc, @object
  .size __spillway_satc, 32
  .p2align 5
__spillway_satc:
  .quad kNativeBodies, 0, 0, 0

  .section .note.GNU-stack,"",@progbits
