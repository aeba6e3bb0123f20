; Functions with two bodies, and the ways from native loops into the instrumented one (compiler/Bodies.h).
; OPTIONS: -spill-bodies=2 -spill-loops=0 -spill-held=0 -spill-copy-aligned=0 -spill-prefetch=0
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

; CHECK: @__spillway_has_native_bodies = weak_odr constant i8 1, comdat

; The slots are loaded where they are used.
; CHECK-LABEL: define i32 @load(
; CHECK:         %spill.native{{[0-9]*}} = load volatile i8, ptr inttoptr (i64 1879035904 to ptr), align 1
; CHECK-NEXT:    %spill.over{{[0-9]*}} = icmp eq i8 %spill.native{{[0-9]*}}, 0
; CHECK-NEXT:    br i1 %spill.over{{[0-9]*}}, label %[[INSTRUMENTED:.*]], label %[[NATIVE:.*]], !prof
; CHECK:       [[NATIVE]]:
; CHECK-NEXT:    %[[V:.*]] = load i32, ptr %p
; CHECK-NEXT:    ret i32 %[[V]]
; CHECK:       [[INSTRUMENTED]]:
; CHECK:         %spill.slots = load ptr
; CHECK:         store atomic i64 %spill.address{{[0-9]*}}
define i32 @load(ptr %p) {
  %v = load i32, ptr %p
  ret i32 %v
}

; Nothing to translate: one body, no test.
; CHECK-LABEL: define i32 @plain(
; CHECK-NOT:     volatile
; CHECK:         ret i32
define i32 @plain(i32 %n) {
  %a = alloca i32
  store i32 %n, ptr %a
  %v = call i32 @callee(ptr %a)
  ret i32 %v
}
declare i32 @callee(ptr)

; What is alive at the loop's head goes with the way, each with its own name in the other body. A small loop looks
; once in four iterations.
; CHECK-LABEL: define i64 @loop(
; CHECK:         br i1 %spill.over{{[0-9]*}}, label %[[START:.*]], label %[[NATIVE:.*]], !prof
; CHECK:       [[NATIVE]]:
; CHECK-NEXT:    %[[STEP:.*]] = mul i64 %n, 3
; CHECK-NEXT:    br label %[[HEAD:.*]]
; CHECK:       [[HEAD]]:
; CHECK-NEXT:    %[[I:.*]] = phi i64
; CHECK-NEXT:    %[[SUM:.*]] = phi i64
; CHECK-NEXT:    load volatile i8
; CHECK-NEXT:    icmp eq
; CHECK-NEXT:    br i1 %{{.*}}, label %spill.leave, label %[[REST:.*]], !prof
; CHECK:       spill.leave:
; CHECK-NEXT:    br label %spill.way
; CHECK:       [[REST]]:
; CHECK-NEXT:    getelementptr
; CHECK-COUNT-4: load i64, ptr
; CHECK-NOT:     load
; CHECK:         ret i64
; CHECK:       spill.way:
; CHECK-NEXT:    call ptr @llvm.threadlocal.address
; CHECK-NEXT:    %[[WAYSLOTS:.*]] = load ptr
; CHECK-NEXT:    br label %[[IHEAD:.*]]
; CHECK:       [[IHEAD]]:
; CHECK-DAG:     phi ptr [ %spill.slots, %[[START]] ], {{.*}}[ %[[WAYSLOTS]], %spill.way ]
; CHECK-DAG:     phi i64 [ %step, %[[START]] ], {{.*}}[ %[[STEP]], %spill.way ]
; CHECK-DAG:     phi i64 [ 0, %[[START]] ], {{.*}}[ %[[I]], %spill.way ]
; CHECK-DAG:     phi i64 [ 7, %[[START]] ], {{.*}}[ %[[SUM]], %spill.way ]
define i64 @loop(ptr %p, i64 %n) {
entry:
  %step = mul i64 %n, 3
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %head ]
  %sum = phi i64 [ 7, %entry ], [ %more, %head ]
  %q = getelementptr i64, ptr %p, i64 %i
  %v = load i64, ptr %q
  %more = add i64 %sum, %v
  %next = add i64 %i, %step
  %again = icmp ult i64 %next, %n
  br i1 %again, label %head, label %exit
exit:
  ret i64 %more
}

; A loop within a loop: one test each, and a way each.
; CHECK-LABEL: define void @nested(
; CHECK-COUNT-3: load volatile i8, ptr inttoptr (i64 1879035904 to ptr)
; CHECK-NOT:     load volatile
; CHECK:       spill.way:
; CHECK:       spill.way{{[0-9]+}}:
; CHECK-NOT:   spill.way{{[0-9]*}}:
define void @nested(ptr %p, i64 %n, i64 %m) {
entry:
  br label %outer
outer:
  %i = phi i64 [ 0, %entry ], [ %i.next, %latch ]
  %row = mul i64 %i, %m
  br label %inner
inner:
  %j = phi i64 [ 0, %outer ], [ %j.next, %inner ]
  %at = add i64 %row, %j
  %q = getelementptr i32, ptr %p, i64 %at
  store i32 0, ptr %q
  %j.next = add i64 %j, 1
  %j.done = icmp eq i64 %j.next, %m
  br i1 %j.done, label %latch, label %inner
latch:
  %i.next = add i64 %i, 1
  %i.done = icmp eq i64 %i.next, %n
  br i1 %i.done, label %exit, label %outer
exit:
  ret void
}

; A loop that ends soon has no test, unless it calls something.
; CHECK-LABEL: define void @short(
; CHECK-COUNT-1: load volatile i8, ptr inttoptr (i64 1879035904 to ptr)
; CHECK-NOT:     load volatile
; CHECK-LABEL: define void @short_with_call(
; CHECK-COUNT-2: load volatile i8, ptr inttoptr (i64 1879035904 to ptr)
define void @short(ptr %p) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %head ]
  %q = getelementptr i64, ptr %p, i64 %i
  store i64 0, ptr %q
  %next = add i64 %i, 1
  %again = icmp ult i64 %next, 64
  br i1 %again, label %head, label %exit
exit:
  ret void
}
define void @short_with_call(ptr %p) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %head ]
  %q = getelementptr i64, ptr %p, i64 %i
  store i64 0, ptr %q
  %r = call i32 @callee(ptr %p)
  %next = add i64 %i, 1
  %again = icmp ult i64 %next, 64
  br i1 %again, label %head, label %exit
exit:
  ret void
}

; So does one that has no last iteration. One that calls something, or is to be small, looks each time.
; CHECK-LABEL: define i64 @length(
; CHECK-COUNT-2: load volatile i8, ptr inttoptr (i64 1879035904 to ptr)
; CHECK-COUNT-4: load i8, ptr
; CHECK-NOT:     load volatile
; CHECK:       spill.way:
; CHECK-LABEL: define i64 @calls(
; CHECK-COUNT-2: load volatile i8, ptr inttoptr (i64 1879035904 to ptr)
; CHECK-COUNT-1: load i8, ptr
; CHECK-NOT:     load i8
; CHECK:         ret i64
; CHECK-LABEL: define i64 @sized(
; CHECK-COUNT-2: load volatile i8, ptr inttoptr (i64 1879035904 to ptr)
; CHECK-COUNT-1: load i8, ptr
; CHECK-NOT:     load i8
; CHECK:         ret i64
define i64 @length(ptr %p) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %head ]
  %q = getelementptr i8, ptr %p, i64 %i
  %c = load i8, ptr %q
  %next = add i64 %i, 1
  %end = icmp eq i8 %c, 0
  br i1 %end, label %exit, label %head
exit:
  ret i64 %i
}
define i64 @calls(ptr %p) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %head ]
  %q = getelementptr i8, ptr %p, i64 %i
  %c = load i8, ptr %q
  %r = call i32 @callee(ptr %q)
  %next = add i64 %i, 1
  %end = icmp eq i8 %c, 0
  br i1 %end, label %exit, label %head
exit:
  ret i64 %i
}
define i64 @sized(ptr %p) optsize {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %head ]
  %q = getelementptr i8, ptr %p, i64 %i
  %c = load i8, ptr %q
  %next = add i64 %i, 1
  %end = icmp eq i8 %c, 0
  br i1 %end, label %exit, label %head
exit:
  ret i64 %i
}

; A cycle that is no loop: one of its blocks has the test.
; CHECK-LABEL: define void @two_entries(
; CHECK-COUNT-2: load volatile i8, ptr inttoptr (i64 1879035904 to ptr)
; CHECK-NOT:     load volatile
; CHECK:       spill.way:
define void @two_entries(ptr %p, i1 %c) {
entry:
  br i1 %c, label %a, label %b
a:
  %x = load i1, ptr %p
  br i1 %x, label %b, label %exit
b:
  %y = load i1, ptr %p
  br i1 %y, label %a, label %exit
exit:
  ret void
}

; Exceptions: both bodies have their landing pads.
; CHECK-LABEL: define i32 @throws(
; CHECK-COUNT-2: landingpad
; CHECK-NOT:     landingpad
define i32 @throws(ptr %p) personality ptr @__gxx_personality_v0 {
entry:
  br label %head
head:
  %sum = phi i32 [ 0, %entry ], [ %r, %next ]
  %v = load i32, ptr %p
  %r = invoke i32 @callee(ptr %p) to label %next unwind label %lpad
next:
  %c = icmp eq i32 %r, %v
  br i1 %c, label %head, label %exit
lpad:
  %e = landingpad { ptr, i32 } cleanup
  store i32 %sum, ptr %p
  resume { ptr, i32 } %e
exit:
  ret i32 %sum
}
declare i32 @__gxx_personality_v0(...)

; A pointer to the stack that comes by a way is known to be one.
; CHECK-LABEL: define void @stack(
; CHECK:       spill.way:
; CHECK:         %[[AT:.*]] = phi ptr {{.*}}[ %at.native, %spill.way ]
; CHECK-NEXT:    store i32 1, ptr %[[AT]]
define void @stack(ptr %p, i64 %k) {
entry:
  %a = alloca [8 x i32]
  %at = getelementptr i32, ptr %a, i64 %k
  br label %head
head:
  store i32 1, ptr %at
  %v = load i1, ptr %p
  br i1 %v, label %head, label %exit
exit:
  ret void
}

; Native code calls the C library for what it only does to memory, and stores past no cache.
; CHECK-LABEL: define void @library(
; CHECK:         call void @llvm.memcpy
; CHECK-NEXT:    call i64 @strlen(
; CHECK-NEXT:    call ptr @__spill_malloc(
; CHECK-NEXT:    store i64 %{{.*}}, ptr %q{{[^!]*$}}
; CHECK:         call ptr @__spill_memcpy
; CHECK-NEXT:    call i64 @__spill_strlen(
; CHECK-NEXT:    call ptr @__spill_malloc(
define void @library(ptr %p, ptr %q, i64 %n) {
  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %q, i64 %n, i1 false)
  %length = call i64 @strlen(ptr %p)
  %m = call ptr @malloc(i64 1)
  store i64 %length, ptr %q, !nontemporal !0
  ret void
}
declare i64 @strlen(ptr)
declare ptr @malloc(i64)

; Code that may not exist twice, or is to be small.
; CHECK-LABEL: define i32 @labels(
; CHECK-NOT:     volatile
; CHECK-LABEL: define i32 @jumps(
; CHECK-NOT:     volatile
; CHECK-LABEL: define i32 @small(
; CHECK-NOT:     volatile
; CHECK-LABEL: define i32 @unoptimised(
; CHECK-NOT:     volatile
; CHECK-LABEL: define i32 @once(
; CHECK-NOT:     volatile
; CHECK-LABEL: define void @leaves(
; CHECK-NOT:     volatile
define i32 @labels(ptr %p, ptr %to) {
  indirectbr ptr %to, [label %a, label %b]
a:
  %v = load i32, ptr %p
  ret i32 %v
b:
  ret i32 0
}
define i32 @jumps(ptr %p) {
  %c = call i32 @setjmp(ptr %p) returns_twice
  %v = load i32, ptr %p
  ret i32 %v
}
define i32 @small(ptr %p) minsize {
  %v = load i32, ptr %p
  ret i32 %v
}
define i32 @unoptimised(ptr %p) noinline optnone {
  %v = load i32, ptr %p
  ret i32 %v
}
define i32 @once(ptr %p) {
  call void @callee_once() noduplicate
  %v = load i32, ptr %p
  ret i32 %v
}
define void @leaves(ptr %p) {
  store i32 1, ptr %p
  call void @llvm.eh.sjlj.longjmp(ptr %p)
  unreachable
}
declare void @llvm.eh.sjlj.longjmp(ptr)
declare i32 @setjmp(ptr)
declare void @callee_once()
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
; CHECK-LABEL: declare void @callee_once
!0 = !{i32 1}
