; Atomic loads and stores stay one instruction with their ordering: where they may lie across an edge, both pages
; are mapped at their own address instead of moving the bytes in two steps.

; CHECK-LABEL: define i64 @load(
; CHECK-NOT: cross_load
; CHECK: call preserve_allcc i64 @__spillway_cross_map_stub(i64 {{.*}}, i64 8, i64 0)
; CHECK: %v = load atomic i64, ptr %spill.pointer acquire, align 8
; CHECK: ret
define i64 @load(ptr %p) {
  %v = load atomic i64, ptr %p acquire, align 8
  ret i64 %v
}

; CHECK-LABEL: define void @store(
; CHECK-NOT: cross_store
; CHECK: call preserve_allcc i64 @__spillway_cross_map_stub(i64 {{.*}}, i64 4, i64 0)
; CHECK: store atomic i32 %v, ptr %spill.pointer seq_cst, align 4
; CHECK: ret
define void @store(ptr %p, i32 %v) {
  store atomic i32 %v, ptr %p seq_cst, align 4
  ret void
}

; CHECK-LABEL: define i1 @exchange(
; CHECK: call preserve_allcc i64 @__spillway_cross_map_stub(i64 {{.*}}, i64 8, i64 0)
; CHECK: cmpxchg weak ptr %spill.pointer, i64 %a, i64 %b acq_rel monotonic, align 8
; CHECK: ret
define i1 @exchange(ptr %p, i64 %a, i64 %b) {
  %pair = cmpxchg weak ptr %p, i64 %a, i64 %b acq_rel monotonic, align 8
  %done = extractvalue { i64, i1 } %pair, 1
  ret i1 %done
}
