; OPTIONS: -spill-persist=record -spill-persist-direct=0
; Beside spilling: the runtime for persistent memory gets the program's own addresses, what is stored goes where the
; translation says, and calls of that runtime are calls like others, after which a page is translated anew.

; CHECK-LABEL: define void @update(
; CHECK: store atomic i64 %{{.*}}, ptr %{{.*}} release
; CHECK: %spill.pointer = getelementptr i8, ptr %p, i64
; CHECK: store i64 1, ptr %spill.pointer{{.*}}, align 8
; CHECK: call void @__spillway_persist_store(ptr %p, i64 8)
; CHECK: call void @__spillway_persist_flush(ptr %p)
; CHECK: store atomic i64 %{{.*}}, ptr %{{.*}} release
; CHECK: store i64 2, ptr %spill.pointer{{.*}}, align 8
; CHECK: call void @__spillway_persist_store(ptr %p, i64 8)
; CHECK: ret
define void @update(ptr %p) {
  store i64 1, ptr %p, align 8
  call void asm sideeffect "clwb $0", "=*m,~{memory}"(ptr elementtype(i8) %p)
  store i64 2, ptr %p, align 8
  ret void
}

; CHECK-LABEL: define void @copy(
; CHECK: call ptr @__spill_memcpy(ptr %p, ptr %q, i64 %n)
; CHECK: call void @__spillway_persist_store(ptr %p, i64 %n)
; CHECK: call ptr @__spill_strcpy(ptr %p, ptr %q)
; CHECK: call i64 @__spill_strlen(ptr %p)
define void @copy(ptr %p, ptr %q, i64 %n) {
  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %q, i64 %n, i1 false)
  %r = call ptr @strcpy(ptr %p, ptr %q)
  ret void
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare ptr @strcpy(ptr, ptr)
