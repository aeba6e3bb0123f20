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

; CHECK-LABEL: define i64 @add(
; CHECK: [[MAPPED:%.*]] = call preserve_allcc i64 @__spillway_cross_map_stub(i64 %spill.address, i64 8, i64 0)
; CHECK: [[D:%.*]] = phi i64 [ [[MAPPED]], {{.*}} ], [ %spill.d, {{.*}} ]
; CHECK: sub i64 [[D]], 1
; CHECK: atomicrmw volatile xchg ptr %spill.pointer, i64 1 seq_cst, align 8
define i64 @add(ptr %p) {
  %v = atomicrmw volatile xchg ptr %p, i64 1 seq_cst, align 8
  ret i64 %v
}

; Of an access that claims less alignment than its size code generation makes a call, which is given the program's own
; address, and behind which nothing is known.
; CHECK-LABEL: define i64 @library(
; CHECK: store i32 1, ptr %spill.pointer
; CHECK-NOT: store atomic i64 {{.*}} release
; CHECK: %v = load atomic i64, ptr %p seq_cst, align 4
; CHECK-NEXT: store atomic i16 3, ptr %p release, align 1
; CHECK-NEXT: %w = atomicrmw add ptr %p, i32 1 monotonic, align 2
; CHECK-NEXT: %x = cmpxchg ptr %p, i64 0, i64 %v seq_cst seq_cst, align 4
; CHECK: store atomic i64 {{.*}} release, align 8
; CHECK: store i32 2, ptr %spill.pointer
; CHECK: ret
define i64 @library(ptr %p, ptr %q) {
  store i32 1, ptr %q, align 4
  %v = load atomic i64, ptr %p seq_cst, align 4
  store atomic i16 3, ptr %p release, align 1
  %w = atomicrmw add ptr %p, i32 1 monotonic, align 2
  %x = cmpxchg ptr %p, i64 0, i64 %v seq_cst seq_cst, align 4
  store i32 2, ptr %q, align 4
  ret i64 %v
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

; What is exchanged where it was loaded follows the load's translation, unless that found an edge.
; CHECK-LABEL: define i1 @changed(
; CHECK: [[MAPPED:%.*]] = call preserve_allcc i64 @__spillway_cross_map_stub(i64 {{.*}}, i64 8, i64 4)
; CHECK: store atomic i64 {{.*}} release, align 8
; CHECK: [[ENTRY:%.*]] = phi i64 [ 0, {{.*}} ], [ %spill.d, {{.*}} ]
; CHECK: phi i64 [ [[MAPPED]], {{.*}} ], [ %spill.d, {{.*}} ]
; CHECK: load atomic i64
; CHECK-NOT: store atomic
; CHECK: %spill.crossed = icmp eq i64 [[ENTRY]], 0
; CHECK: call preserve_allcc i64 @__spillway_cross_map_stub(i64 {{.*}}, i64 8, i64 4)
; CHECK: cmpxchg weak ptr
; CHECK: ret
define i1 @changed(ptr %p, i64 %b) {
  %a = load atomic i64, ptr %p monotonic, align 8
  %same = icmp eq i64 %a, %b
  br i1 %same, label %out, label %change
change:
  %pair = cmpxchg weak ptr %p, i64 %a, i64 %b acq_rel monotonic, align 8
  %done = extractvalue { i64, i1 } %pair, 1
  ret i1 %done
out:
  ret i1 false
}

; A loop that waits for others translates each time, though nothing is called and the address is known: so they may
; have made the page another one.
; CHECK-LABEL: define void @wait(
; CHECK: loop:
; CHECK: store atomic i64 {{.*}} release, align 8
; CHECK: load atomic i64, ptr %spill.pointer{{.*}} acquire
; CHECK: ret
define void @wait(ptr %p) {
entry:
  %before = load atomic i64, ptr %p acquire, align 8
  br label %loop
loop:
  %now = load atomic i64, ptr %p acquire, align 8
  %same = icmp eq i64 %now, %before
  br i1 %same, label %loop, label %out
out:
  ret void
}

; So does one that may be entered at two places.
; CHECK-LABEL: define i32 @wait_anywhere(
; CHECK: {{^}}a:
; CHECK: store atomic i64 {{.*}} release, align 8
; CHECK: load atomic i32, ptr %spill.pointer{{.*}} acquire
; CHECK: {{^}}b:
; CHECK: store atomic i64 {{.*}} release, align 8
; CHECK: load atomic i32, ptr %spill.pointer{{.*}} acquire
; CHECK: ret
define i32 @wait_anywhere(ptr %p, i1 %c) {
entry:
  %before = load i32, ptr %p, align 4
  br i1 %c, label %a, label %b
a:
  %first = getelementptr i8, ptr %p, i64 4
  %v = load atomic i32, ptr %first acquire, align 4
  %unset = icmp eq i32 %v, 0
  br i1 %unset, label %b, label %out
b:
  %second = getelementptr i8, ptr %p, i64 8
  %w = load atomic i32, ptr %second acquire, align 4
  %clear = icmp eq i32 %w, 0
  br i1 %clear, label %a, label %out
out:
  ret i32 %before
}

; So does one that waits by copies, which is how a volatile struct is loaded.
; CHECK-LABEL: define i64 @wait_by_copy(
; CHECK: {{^}}loop:
; CHECK: store atomic i64 {{.*}} release, align 8
; CHECK: call void @llvm.memcpy.inline.p0.p0.i64(ptr align 8 %now, ptr align 8 %spill.pointer{{.*}}, i64 8, i1 true)
; CHECK: ret
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define i64 @wait_by_copy(ptr %p) {
entry:
  %now = alloca i64, align 8
  %before = load i64, ptr %p, align 8
  br label %loop
loop:
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %now, ptr align 8 %p, i64 8, i1 true)
  %v = load i64, ptr %now, align 8
  %same = icmp eq i64 %v, %before
  br i1 %same, label %loop, label %out
out:
  ret i64 %v
}

; CHECK-LABEL: define void @watch(
; CHECK: loop:
; CHECK-NOT: spill.elsewhere
; CHECK: store atomic i64 {{.*}} release, align 8
; CHECK: load volatile i64
; CHECK: ret
define void @watch(ptr %p) {
entry:
  br label %loop
loop:
  %now = load volatile i64, ptr %p, align 8
  %same = icmp eq i64 %now, 0
  br i1 %same, label %loop, label %out
out:
  ret void
}
