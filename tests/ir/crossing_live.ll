; OPTIONS: -spill-loops=0
; An access that crosses a page's edge between two that share a translation: the slow path keeps their slot (bit 2).

; CHECK-LABEL: define i64 @load(
; CHECK: (i64 {{.*}}, ptr @__spillway_load8_live5_stub)
; CHECK: ret
define i64 @load(ptr %p, ptr %q) {
  store i8 1, ptr %p
  %v = load i64, ptr %q
  %f = getelementptr i8, ptr %p, i64 16
  store i8 2, ptr %f
  ret i64 %v
}

; CHECK-LABEL: define void @store(
; CHECK: (i64 {{.*}}, ptr @__spillway_store8_live5_stub, i64 %v)
; CHECK: ret
define void @store(ptr %p, ptr %q, i64 %v) {
  store i8 1, ptr %p
  store i64 %v, ptr %q
  %f = getelementptr i8, ptr %p, i64 16
  store i8 2, ptr %f
  ret void
}

; CHECK-LABEL: define i128 @wide(
; CHECK: @__spillway_cross_load_stub(i64 {{.*}}, i64 16, ptr %spill.buffer, i64 4)
; CHECK: @__spillway_cross_store_stub(i64 {{.*}}, i64 16, ptr %spill.buffer, i64 4)
; CHECK: ret
define i128 @wide(ptr %p, ptr %q, ptr %r) {
  store i8 1, ptr %p
  %v = load i128, ptr %q
  store i128 %v, ptr %r
  %f = getelementptr i8, ptr %p, i64 16
  store i8 2, ptr %f
  ret i128 %v
}

; CHECK-LABEL: define i64 @atomic(
; CHECK: @__spillway_cross_map_stub(i64 {{.*}}, i64 8, i64 4)
; CHECK: ret
define i64 @atomic(ptr %p, ptr %q) {
  store i8 1, ptr %p
  %v = atomicrmw add ptr %q, i64 1 seq_cst
  %f = getelementptr i8, ptr %p, i64 16
  store i8 2, ptr %f
  ret i64 %v
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
; CHECK-LABEL: define void @copy(
; CHECK: (i64 {{.*}}, ptr @__spillway_copy40_live4_stub, i64 {{.*}})
; CHECK: ret
define void @copy(ptr %p, ptr %q, ptr %r) {
  store i8 1, ptr %p
  call void @llvm.memcpy.p0.p0.i64(ptr %q, ptr %r, i64 40, i1 false)
  %f = getelementptr i8, ptr %p, i64 16
  store i8 2, ptr %f
  ret void
}
