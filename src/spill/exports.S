// The names that the runtime exports for code that was not compiled by spillcc: each SPILLWAY_INTERPOSE
// line of the list jumps to the runtime's replacement. (static/CMakeLists.txt gives them others.)
#define SPILLWAY_INTERCEPT(name)
#define SPILLWAY_INTERPOSE(name) \
  .globl name; .type name, @function; .p2align 4; name: jmp __spill_##name; .size name, . - name;
  .text
#include "spillway/interceptors.inc"

// syscall(2) of such code: the C library's, instruction by instruction, but for futexes, whose words may be spilled, and for
// calls that libraries make by number with the program's memory (intercept/syscall.cc). Those find their arguments where
// the caller left them.
#include <asm/unistd.h>
  .globl syscall
  .type syscall, @function
  .p2align 4
syscall:
  .cfi_startproc
  cmpq $__NR_futex, %rdi
  je spillway_foreign_futex
  .irp number, __NR_preadv, __NR_pwritev, __NR_recvmmsg, __NR_sendmmsg, __NR_getrandom, __NR_statx
  cmpq $\number, %rdi
  je spillway_foreign_call
  .endr
  movq %rdi, %rax
  movq %rsi, %rdi
  movq %rdx, %rsi
  movq %rcx, %rdx
  movq %r8, %r10
  movq %r9, %r8
  movq 8(%rsp), %r9
  syscall
  cmpq $-4095, %rax
  jae 1f
  ret
1:
  negq %rax
  pushq %rax
  .cfi_adjust_cfa_offset 8
  call __errno_location@PLT
  popq %rcx
  .cfi_adjust_cfa_offset -8
  movl %ecx, (%rax)
  movq $-1, %rax
  ret
  .cfi_endproc
  .size syscall, . - syscall

  .section .note.GNU-stack,"",@progbits
