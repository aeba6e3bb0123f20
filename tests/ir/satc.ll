; Translation by software caches: each access asks the thread's Direct cache, and nothing is shared.
; OPTIONS: -spill-satc -spill-assume-aligned

; CHECK-LABEL: define i32 @load(ptr %p)
; CHECK-NEXT: %spill.address = ptrtoint ptr %p to i64
; CHECK-NEXT: [[HIGH:%.*]] = lshr i64 %spill.address, 44
; CHECK-NEXT: %spill.range = icmp eq i64 [[HIGH]], 1
; CHECK-NEXT: br i1 %spill.range, label %[[PROBE:.*]], label %[[JOIN:.*]]
; CHECK: [[PROBE]]:
; CHECK-NEXT: fence syncscope("singlethread") seq_cst
; CHECK-NEXT: [[SATC:%.*]] = call ptr @llvm.threadlocal.address.p0(ptr @__spillway_satc)
; CHECK: %spill.lines = load ptr, ptr {{.*}}, align 8
; CHECK: %spill.mask = load i64, ptr {{.*}}, align 8
; CHECK: %spill.bytes = load i64, ptr {{.*}}, align 8
; CHECK-NEXT: [[SHIFTED:%.*]] = lshr i64 %spill.address, 8
; CHECK-NEXT: [[OFFSET:%.*]] = and i64 [[SHIFTED]], %spill.mask
; CHECK-NEXT: %spill.line = getelementptr i8, ptr %spill.lines, i64 [[OFFSET]]
; CHECK: %spill.begin = load atomic i64, ptr {{.*}} monotonic, align 8
; CHECK-NEXT: [[DISTANCE:%.*]] = sub i64 %spill.address, %spill.begin
; CHECK-NEXT: %spill.misses = icmp uge i64 [[DISTANCE]], %spill.bytes
; CHECK-NEXT: br i1 %spill.misses, label %[[SLOW:.*]], label %[[HIT:.*]], !prof
; CHECK: [[SLOW]]:
; CHECK-NEXT: call { i64, i64 } asm sideeffect "callq ${3:P}", {{.*}}(i64 %spill.address, ptr @__spillway_satc_translate_live0_stub)
; CHECK: [[HIT]]:
; CHECK: %spill.entry = load atomic i64, ptr {{.*}} monotonic, align 8
; CHECK: [[JOIN]]:
; CHECK-NEXT: %spill.d = phi i64 [ 1, %0 ]
; CHECK: %v = load i32, ptr %spill.pointer, align 4
define i32 @load(ptr %p) {
  %v = load i32, ptr %p, align 4
  ret i32 %v
}

; Two accesses of one object are two translations.
; CHECK-LABEL: define i32 @twice(
; CHECK-COUNT-2: ptr @__spillway_satc_translate_live0_stub
; CHECK-NOT: ptr @__spillway_satc_translate_live0_stub
; CHECK: ret i32
define i32 @twice(ptr %p) {
  %v = load i32, ptr %p, align 4
  %q = getelementptr i8, ptr %p, i64 4
  %w = load i32, ptr %q, align 4
  %s = add i32 %v, %w
  ret i32 %s
}

; A loop is neither split nor does it look ahead.
; CHECK-LABEL: define i64 @sum(
; CHECK-COUNT-1: ptr @__spillway_satc_translate_live0_stub
; CHECK-NOT: ptr @__spillway_satc_translate_live0_stub
; CHECK-NOT: __spillway_look_ahead
; CHECK: ret i64
define i64 @sum(ptr %p, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %s = phi i64 [ 0, %entry ], [ %more, %loop ]
  %at = getelementptr i64, ptr %p, i64 %i
  %v = load i64, ptr %at, align 8
  %more = add i64 %s, %v
  %next = add i64 %i, 1
  %done = icmp eq i64 %next, %n
  br i1 %done, label %end, label %loop
end:
  ret i64 %more
}

; A copy goes through the stack: its two sides may need the same line.
; CHECK-LABEL: define void @copy(
; CHECK: %spill.copied = alloca i8, i64 48, align 16
; CHECK: call void @llvm.memcpy.inline.p0.p0.i64(ptr align 16 %spill.copied, ptr {{.*}}%spill.pointer{{[0-9]*}}, i64 48, i1 false)
; CHECK: ptr @__spillway_satc_translate_live0_stub
; CHECK: call void @llvm.memcpy.inline.p0.p0.i64(ptr {{.*}}%spill.pointer{{[0-9]*}}, ptr align 16 %spill.copied, i64 48, i1 false)
define void @copy(ptr %to, ptr %from) {
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %to, ptr align 8 %from, i64 48, i1 false)
  ret void
}

; Assembly with two operands in memory needs both at a time: the table and its slots.
; CHECK-LABEL: define void @two(
; CHECK-NOT: ptr @__spillway_satc_translate_live0_stub
; CHECK: store atomic i64 {{.*}} release
; CHECK: store atomic i64 {{.*}} release
; CHECK: ret void
define void @two(ptr %p, ptr %q) {
  call void asm sideeffect "movq $1, %rax; movq %rax, $0", "=*m,*m,~{rax}"(ptr elementtype(i8) %p, ptr elementtype(i8) %q)
  ret void
}

; An atomic is one access.
; CHECK-LABEL: define i64 @add(
; CHECK: ptr @__spillway_satc_translate_live0_stub
; CHECK: atomicrmw add ptr %spill.pointer
define i64 @add(ptr %p) {
  %v = atomicrmw add ptr %p, i64 1 seq_cst
  ret i64 %v
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
