; OPTIONS: -spill-emit=call
; The peer of `spillway bench kernels`: a signed compare and a call for each access, nothing shared, the stack
; left alone, and no trace of slots or table.

; CHECK-NOT: __spillway_slots
; CHECK-LABEL: define i64 @sum(
; CHECK: %[[A:.*]] = ptrtoint ptr %p to i64
; CHECK: %[[C:.*]] = icmp sle i64 %[[A]], 0
; CHECK: br i1 %[[C]], label %[[CACHED:.*]], label %{{.*}}, !prof
; CHECK: [[CACHED]]:
; CHECK: %[[F:.*]] = call ptr @__spillway_bench_translate_load(i64 %[[A]])
; CHECK: %[[P:.*]] = phi ptr [ %p, %{{.*}} ], [ %[[F]], %{{.*}} ]
; CHECK: load i64, ptr %[[P]]
; CHECK: icmp sle i64
; CHECK: call ptr @__spillway_bench_translate_load
define i64 @sum(ptr %p) {
  %a = load i64, ptr %p, align 8
  %q = getelementptr i8, ptr %p, i64 8
  %b = load i64, ptr %q, align 8
  %s = add i64 %a, %b
  ret i64 %s
}

; CHECK-LABEL: define void @store(
; CHECK: call ptr @__spillway_bench_translate_store
define void @store(ptr %p) {
  store i64 1, ptr %p, align 8
  ret void
}

; CHECK-LABEL: define void @stack(
; CHECK-NOT: icmp sle
; CHECK: ret void
define void @stack() {
  %a = alloca i64, align 8
  store volatile i64 1, ptr %a, align 8
  ret void
}
