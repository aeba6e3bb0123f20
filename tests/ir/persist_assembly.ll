; OPTIONS: -spill-persist=flush -spill-translate=0 -spill-persist-direct=0
; Inline assembly that only flushes and fences is replaced whole: each way to write it.

; CHECK: @__spillway_persist_thread = external thread_local(initialexec) global [5 x i64]

; CHECK-LABEL: define void @memory(
; CHECK-NEXT: call void @__spillway_persist_flush(ptr %p)
; CHECK-NEXT: call void @__spillway_persist_flush(ptr %p)
; CHECK-NEXT: call void @__spillway_persist_flush_ordered(ptr %p)
; CHECK-NEXT: call void @__spillway_persist_flush_ordered(ptr %q)
; CHECK-NEXT: ret
define void @memory(ptr %p, ptr %q) {
  call void asm sideeffect "clwb $0", "=*m,*m,~{dirflag},~{fpsr},~{flags}"(ptr elementtype(i8) %p, ptr elementtype(i8) %p)
  call void asm sideeffect "\09clflushopt\09${0}\0A\09", "=*m,~{memory}"(ptr elementtype(i8) %p)
  call void asm sideeffect "clflush $0", "*m"(ptr elementtype([64 x i8]) %p)
  call void asm sideeffect "CLFLUSH $1", "*m,*m"(ptr elementtype(i8) %p, ptr elementtype(i8) %q)
  ret void
}

; A prefix before instructions that old assemblers know.
; CHECK-LABEL: define void @prefixed(
; CHECK-NEXT: call void @__spillway_persist_flush(ptr %p)
; CHECK-NEXT: call void @__spillway_persist_flush(ptr %p)
; CHECK-NEXT: call void @__spillway_persist_flush(ptr %q)
; CHECK-NEXT: ret
define void @prefixed(ptr %p, ptr %q) {
  call void asm sideeffect ".byte 0x66; clflush $0", "=*m,*m,~{dirflag},~{fpsr},~{flags}"(ptr elementtype(i8) %p, ptr elementtype(i8) %p)
  call void asm sideeffect ".byte 0x66; xsaveopt $0", "=*m,*m,~{dirflag},~{fpsr},~{flags}"(ptr elementtype(i8) %p, ptr elementtype(i8) %p)
  call void asm sideeffect " .byte 102\0Axsaveopt ( $0 );", "r"(ptr %q)
  ret void
}

; CHECK-LABEL: define void @registers(
; CHECK-NEXT: call void @__spillway_persist_flush(ptr %p)
; CHECK-NEXT: [[A:%.*]] = inttoptr i64 %a to ptr
; CHECK-NEXT: call void @__spillway_persist_flush_ordered(ptr [[A]])
; CHECK-NEXT: call void @__spillway_persist_flush(ptr %p)
; CHECK-NEXT: call void @__spillway_persist_flush(ptr %p)
; CHECK-NEXT: ret
define void @registers(ptr %p, i64 %a) {
  call void asm sideeffect "clwb ($0)", "r,~{memory}"(ptr %p)
  call void asm sideeffect "clflush ($1)", "i,{ax}"(i64 7, i64 %a)
  call void asm sideeffect "clwb (${0:q})", "r"(ptr %p)
  call void asm sideeffect "clwb ${0:a}", "r"(ptr %p)
  ret void
}

; CHECK-LABEL: define void @intel(
; CHECK-NEXT: call void @__spillway_persist_flush(ptr %p)
; CHECK-NEXT: call void @__spillway_persist_flush_ordered(ptr %p)
; CHECK-NEXT: call void @__spillway_persist_flush(ptr %p)
; CHECK-NEXT: ret
define void @intel(ptr %p) {
  call void asm sideeffect inteldialect "clwb byte ptr [$0]", "r"(ptr %p)
  call void asm sideeffect inteldialect "clflush BYTE PTR $0", "*m"(ptr elementtype(i8) %p)
  call void asm sideeffect ".intel_syntax noprefix\0Aclwb [$0]\0A.att_syntax prefix", "r"(ptr %p)
  ret void
}

; Several at once, in their order, with comments. An mfence stays one.
; CHECK-LABEL: define void @several(
; CHECK-NEXT: call void @__spillway_persist_flush(ptr %p)
; CHECK-NEXT: call void @__spillway_persist_flush(ptr %q)
; CHECK-NEXT: call void @__spillway_persist_fence()
; CHECK-NEXT: call void @__spillway_persist_flush_ordered(ptr %q)
; CHECK-NEXT: [[P:%.*]] = call ptr @llvm.threadlocal.address.p0(ptr @__spillway_persist_thread)
; CHECK-NEXT: [[AT:%.*]] = getelementptr inbounds i8, ptr [[P]], i64 32
; CHECK-NEXT: [[PENDING:%.*]] = load i32, ptr [[AT]], align 4, !nosanitize
; CHECK-NEXT: [[ANY:%.*]] = icmp ne i32 [[PENDING]], 0
; CHECK-NEXT: br i1 [[ANY]], label %[[FLUSH:.*]], label %[[GO:.*]], !prof
; CHECK: [[FLUSH]]:
; CHECK-NEXT: call void @__spillway_persist_fence()
; CHECK: [[GO]]:
; CHECK-NEXT: call void asm sideeffect "mfence", "~{memory}"()
; CHECK-NEXT: ret
define void @several(ptr %p, ptr %q) {
  call void asm sideeffect "clwb ($0) # the first line\0A\09clwb ($1)\0A\09sfence\0A# mov", "r,r,~{memory}"(ptr %p, ptr %q)
  call void asm sideeffect "clflush $0; mfence;", "*m,~{memory}"(ptr elementtype(i8) %q)
  ret void
}
