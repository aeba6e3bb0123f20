; OPTIONS: -spill-persist=flush -spill-translate=0 -spill-persist-direct=0
; Flushes and fences become calls; nothing else is touched, and nothing is translated.

; CHECK-NOT: __spillway_slots
; CHECK-LABEL: define i64 @update(
; CHECK-NEXT: store i64 1, ptr %p
; CHECK-NEXT: call void @__spillway_persist_flush(ptr %p)
; CHECK-NEXT: call void @__spillway_persist_flush(ptr %q)
; CHECK-NEXT: call void @__spillway_persist_flush_ordered(ptr %p)
; CHECK-NEXT: call void @__spillway_persist_fence()
; CHECK-NEXT: %v = load i64, ptr %q
; CHECK-NEXT: ret i64 %v
define i64 @update(ptr %p, ptr %q) memory(readwrite) {
  store i64 1, ptr %p
  call void @llvm.x86.clwb(ptr %p)
  call void @llvm.x86.clflushopt(ptr %q)
  call void @llvm.x86.sse2.clflush(ptr %p)
  call void @llvm.x86.sse.sfence()
  %v = load i64, ptr %q
  ret i64 %v
}

; Functions of libraries keep their names, and so do their stores.
; CHECK-LABEL: define void @copies(
; CHECK-NEXT: call ptr @memcpy(ptr %p, ptr %q, i64 %n)
; CHECK-NEXT: call void @llvm.memset
; CHECK-NEXT: call void @llvm.x86.sse2.lfence()
; CHECK-NEXT: call void @llvm.prefetch
; CHECK-NEXT: store i64 1, ptr %p, align 8, !nontemporal
; CHECK-NEXT: ret
define void @copies(ptr %p, ptr %q, i64 %n) {
  %r = call ptr @memcpy(ptr %p, ptr %q, i64 %n)
  call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 %n, i1 false)
  call void @llvm.x86.sse2.lfence()
  call void @llvm.prefetch.p0(ptr %p, i32 1, i32 3, i32 1)
  store i64 1, ptr %p, align 8, !nontemporal !0
  ret void
}

declare void @llvm.x86.clwb(ptr)
declare void @llvm.x86.clflushopt(ptr)
declare void @llvm.x86.sse2.clflush(ptr)
declare void @llvm.x86.sse.sfence()
declare void @llvm.x86.sse2.lfence()
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare ptr @memcpy(ptr, ptr, i64)
!0 = !{i32 1}
