// setjmp and contexts in spilled memory. The C library's functions store the caller's registers, then let the
// kernel store the signal mask beside them, which it refuses in spilled memory (EFAULT). The functions here save to
// plain memory below the caller's frame, where context.cc corrects the two registers that differ.
//
// Each starts with its caller's registers: it must not change rbx, rbp and r12 to r15 before they are saved. Plain
// arguments go to the C library's function itself, with a note of the slots with which a context was left (context.cc).

  .set CONTEXT_BYTES, 968   // context.cc asserts these
  .set JUMP_BYTES, 200
  .set R8, 40
  .set R9, 48
  .set R12, 72
  .set R13, 80
  .set R14, 88
  .set R15, 96
  .set RDI, 104
  .set RSI, 112
  .set RBP, 120
  .set RBX, 128
  .set RDX, 136
  .set RCX, 152
  .set RSP, 160
  .set RIP, 168
  .set FLOATS, 224
  .set MXCSR, 24            // in what FLOATS points to

  // Goes to \spilled when the address in \register is spilled memory. Only at a function's begin; keeps rdi and rsi.
  .macro if_spilled register, spilled
  pushq %rdi
  pushq %rsi
  subq $8, %rsp
  .cfi_adjust_cfa_offset 24
  movq \register, %rdi
  call spill_is_spilled
  addq $8, %rsp
  popq %rsi
  popq %rdi
  .cfi_adjust_cfa_offset -24
  testb %al, %al
  jne \spilled
  .endm

  // Calls spill_enter_context with the context in \register, and with whether what is left may be resumed; keeps rdi and rsi.
  .macro enter_context register, goes_on
  pushq %rdi
  pushq %rsi
  subq $8, %rsp
  .cfi_adjust_cfa_offset 24
  movq \register, %rdi
  movl $\goes_on, %esi
  call spill_enter_context
  addq $8, %rsp
  popq %rsi
  popq %rdi
  .cfi_adjust_cfa_offset -24
  .endm

  // Calls spill_note_left with the context in rdi, which its caller leaves; keeps rdi and rsi. Only at a function's begin.
  .macro note_left
  pushq %rdi
  pushq %rsi
  subq $8, %rsp
  .cfi_adjust_cfa_offset 24
  leaq 32(%rsp), %rsi
  call spill_note_left
  addq $8, %rsp
  popq %rsi
  popq %rdi
  .cfi_adjust_cfa_offset -24
  .endm

  .macro function name
  .text
  .globl __spill_\name
  .type __spill_\name, @function
  .p2align 4
__spill_\name:
  .cfi_startproc
  .endm

  .macro end name
  .cfi_endproc
  .size __spill_\name, . - __spill_\name
  .endm

  // int (sigjmp_buf environment[, int saves_mask])
  .macro set_jump name
  function \name
  if_spilled %rdi, 1f
  jmp \name@PLT
1:
  subq $JUMP_BYTES + 16, %rsp
  .cfi_adjust_cfa_offset JUMP_BYTES + 16
  movq %rdi, JUMP_BYTES(%rsp)
  movq %rsp, %rdi
  call \name@PLT
  movq JUMP_BYTES(%rsp), %rdi
  movq %rsp, %rsi
  leaq JUMP_BYTES + 16(%rsp), %rdx
  call spill_store_jump
  addq $JUMP_BYTES + 16, %rsp
  .cfi_adjust_cfa_offset -(JUMP_BYTES + 16)
  xorl %eax, %eax
  ret
  end \name
  .endm

  set_jump setjmp
  set_jump _setjmp
  set_jump __sigsetjmp

  // Saves the caller's context to the one in rdi. On the stack: the plain context, rdi and rsi, and padding.
  .set CONTEXT_FRAME, CONTEXT_BYTES + 32
  .macro save_context
  subq $CONTEXT_FRAME, %rsp
  .cfi_adjust_cfa_offset CONTEXT_FRAME
  movq %rdi, CONTEXT_BYTES(%rsp)
  movq %rsi, CONTEXT_BYTES + 8(%rsp)
  movq %rsp, %rsi
  call spill_load_context
  movq %rsp, %rdi
  call getcontext@PLT
  movq CONTEXT_BYTES(%rsp), %rdi
  movq %rsp, %rsi
  leaq CONTEXT_FRAME(%rsp), %rdx
  call spill_store_context
  .endm

  // Goes on with the context in rdi. Its plain copy may lie below the frame that goes on, where a signal would
  // overwrite it: everything is read before the stack pointer changes.
  .macro go_to_context goes_on
  movq %rsp, %rsi
  movl $\goes_on, %edx
  call spill_prepare_context
  movq %rsp, %rdx
  movq FLOATS(%rdx), %rcx
  fldenv (%rcx)
  ldmxcsr MXCSR(%rcx)
  movq RBX(%rdx), %rbx
  movq RBP(%rdx), %rbp
  movq R12(%rdx), %r12
  movq R13(%rdx), %r13
  movq R14(%rdx), %r14
  movq R15(%rdx), %r15
  movq R8(%rdx), %r8
  movq R9(%rdx), %r9
  movq RDI(%rdx), %rdi
  movq RSI(%rdx), %rsi
  movq RCX(%rdx), %rcx
  movq RIP(%rdx), %r11
  movq RSP(%rdx), %r10
  movq RDX(%rdx), %rdx
  movq %r10, %rsp
  xorl %eax, %eax
  jmp *%r11
  .endm

  // int (ucontext_t*)
  function getcontext
  if_spilled %rdi, 1f
  note_left
  jmp getcontext@PLT
1:
  save_context
  addq $CONTEXT_FRAME, %rsp
  .cfi_adjust_cfa_offset -CONTEXT_FRAME
  xorl %eax, %eax
  ret
  end getcontext

  // int (const ucontext_t*)
  function setcontext
  if_spilled %rdi, 1f
  enter_context %rdi, 0
  jmp setcontext@PLT
1:
  subq $CONTEXT_FRAME, %rsp
  .cfi_adjust_cfa_offset CONTEXT_FRAME
  go_to_context 0
  end setcontext

  // int (ucontext_t* left, const ucontext_t* entered)
  function swapcontext
  if_spilled %rdi, 1f
  if_spilled %rsi, 1f
  note_left
  enter_context %rsi, 1
  jmp swapcontext@PLT
1:
  save_context
  movq CONTEXT_BYTES + 8(%rsp), %rdi
  go_to_context 1
  end swapcontext

  // A context's function returns here if its successor is spilled. Like the C library's own: rbx holds the place of uc_link on the stack.
  .globl spill_end_context
  .hidden spill_end_context
  .type spill_end_context, @function
  .p2align 4
spill_end_context:
  .cfi_startproc
  .cfi_undefined rip
  movq (%rbx), %rdi
  movq %rbx, %rsp
  andq $-16, %rsp
  call __spill_setcontext
  hlt
  .cfi_endproc
  .size spill_end_context, . - spill_end_context

  .section .note.GNU-stack,"",@progbits
