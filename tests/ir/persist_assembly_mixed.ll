; OPTIONS: -spill-persist=flush -spill-translate=0 -spill-persist-direct=0
; Assembly of other instructions stays whole. Nothing is put off past what orders flushes, or may.

; CHECK-LABEL: define void @mixed(
; CHECK: icmp ne i32
; CHECK: call void @__spillway_persist_fence()
; CHECK: call void asm sideeffect "clwb ($0); sfence; nop"
; CHECK: icmp ne i32
; CHECK: call void @__spillway_persist_fence()
; CHECK: call void asm sideeffect "lock; xaddl $1, $0"
; CHECK: icmp ne i32
; CHECK: call void @__spillway_persist_fence()
; CHECK: call void asm sideeffect "xchgq %rax, ($0)"
; CHECK: icmp ne i32
; CHECK: call void @__spillway_persist_fence()
; CHECK: call void asm sideeffect ".byte 0x0f, 0xae, 0xf8"
; CHECK: icmp ne i32
; CHECK: call i32 asm sideeffect "MFENCE; rdtsc", "={ax},~{dx}"
; CHECK: icmp ne i32
; CHECK: call void asm sideeffect "clflush 64($0)"
; CHECK: ret
define void @mixed(ptr %p) {
  call void asm sideeffect "clwb ($0); sfence; nop", "r"(ptr %p)
  call void asm sideeffect "lock; xaddl $1, $0", "=*m,r"(ptr elementtype(i32) %p, i32 1)
  call void asm sideeffect "xchgq %rax, ($0)", "r,~{rax}"(ptr %p)
  call void asm sideeffect ".byte 0x0f, 0xae, 0xf8", ""()
  %t = call i32 asm sideeffect "MFENCE; rdtsc", "={ax},~{dx}"()
  call void asm sideeffect "clflush 64($0)", "r"(ptr %p)
  ret void
}

; Not understood: the line is somewhere else than an operand says, or the operand changes.
; CHECK-LABEL: define ptr @elsewhere(
; CHECK-NEXT: call void asm sideeffect "clwb 64($0)"
; CHECK-NEXT: call void asm sideeffect "clwb (%rax)"
; CHECK-NEXT: call void asm sideeffect "clwb $0", "*m"(ptr addrspace(257) elementtype(i8) %s)
; CHECK-NEXT: call void asm sideeffect "clwb ($2)", "r,r"(ptr %p, ptr %p)
; CHECK-NEXT: call void asm sideeffect "clwb ($0)", "r"(i32 1)
; CHECK-NEXT: call void asm sideeffect "clwb $0", "{ax}"(ptr %p)
; CHECK-NEXT: call ptr asm sideeffect "clwb ($0)", "=r,0"(ptr %p)
; CHECK-NOT: call void @
; CHECK: ret
define ptr @elsewhere(ptr %p, ptr addrspace(257) %s) {
  call void asm sideeffect "clwb 64($0)", "r"(ptr %p)
  call void asm sideeffect "clwb (%rax)", "{rax}"(ptr %p)
  call void asm sideeffect "clwb $0", "*m"(ptr addrspace(257) elementtype(i8) %s)
  call void asm sideeffect "clwb ($2)", "r,r"(ptr %p, ptr %p)
  call void asm sideeffect "clwb ($0)", "r"(i32 1)
  call void asm sideeffect "clwb $0", "{ax}"(ptr %p)
  %r = call ptr asm sideeffect "clwb ($0)", "=r,0"(ptr %p)
  ret ptr %r
}

; CHECK-LABEL: define void @others(
; CHECK-NEXT: asm sideeffect "", "~{memory}"
; CHECK-NEXT: asm sideeffect "pause"
; CHECK-NEXT: asm sideeffect "lfence"
; CHECK-NEXT: asm sideeffect "blocked: movl $$1, $0"
; CHECK-NEXT: ret
define void @others(ptr %p) {
  call void asm sideeffect "", "~{memory}"()
  call void asm sideeffect "pause", ""()
  call void asm sideeffect "lfence", ""()
  call void asm sideeffect "blocked: movl $$1, $0", "=*m"(ptr elementtype(i32) %p)
  ret void
}
