; Functions with two bodies, and the ways from native loops into the instrumented one (compiler/bodies/Bodies.h). The
; instrumented ones come behind all others.
; OPTIONS: -spill-bodies=2 -spill-loops=0 -spill-held=0 -spill-copy-aligned=0 -spill-prefetch=0
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

; CHECK: @__spillway_has_native_bodies = weak_odr constant i8 1, comdat

; CHECK-LABEL: define i32 @load(
; CHECK:         %spill.native{{[0-9]*}} = load volatile i8, ptr inttoptr (i64 1879035904 to ptr), align 1
; CHECK-NEXT:    %spill.over{{[0-9]*}} = icmp eq i8 %spill.native{{[0-9]*}}, 0
; CHECK-NEXT:    br i1 %spill.over{{[0-9]*}}, label %[[OVER:.*]], label %[[NATIVE:.*]], !prof
; CHECK:       [[NATIVE]]:
; CHECK-NEXT:    %[[V:.*]] = load i32, ptr %p
; CHECK-NEXT:    ret i32 %[[V]]
; CHECK:       [[OVER]]:
; CHECK-NEXT:    %[[R:.*]] = musttail call i32 @load.spill(ptr %p)
; CHECK-NEXT:    ret i32 %[[R]]
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

; What is alive at the loop's head goes with the way: arguments as ever, the rest in the frame. A small loop looks
; once in four iterations.
; CHECK-LABEL: define i64 @loop(
; CHECK-NEXT:  entry:
; CHECK-NEXT:    %spill.cargo = alloca [28 x i8], align 8, !stack-protector
; CHECK:         br i1 %spill.over{{[0-9]*}}, label %spill.instrumented, label %[[NATIVE:.*]], !prof
; CHECK:       [[NATIVE]]:
; CHECK-NEXT:    %step = mul i64 %n, 3
; CHECK-NEXT:    br label %[[HEAD:.*]]
; CHECK:       [[HEAD]]:
; CHECK-NEXT:    %[[I:.*]] = phi i64
; CHECK-NEXT:    %[[SUM:.*]] = phi i64
; CHECK-NEXT:    load volatile i8
; CHECK-NEXT:    icmp eq
; CHECK-NEXT:    br i1 %{{.*}}, label %spill.leave, label %[[REST:.*]], !prof
; CHECK:       spill.leave:
; CHECK-NEXT:    store i32 0, ptr %spill.cargo, align 1
; CHECK-NEXT:    %[[AT:.*]] = getelementptr
; CHECK-NEXT:    store i64 %[[I]], ptr %[[AT]], align 1
; CHECK-NEXT:    %[[AT:.*]] = getelementptr
; CHECK-NEXT:    store i64 %[[SUM]], ptr %[[AT]], align 1
; CHECK-NEXT:    %[[AT:.*]] = getelementptr
; CHECK-NEXT:    store i64 %step, ptr %[[AT]], align 1
; CHECK-NEXT:    %[[R:.*]] = call i64 @loop.spill(ptr %p, i64 %n, i64 poison, ptr nest {{.*}}%spill.cargo)
; CHECK-NEXT:    ret i64 %[[R]]
; CHECK:       [[REST]]:
; CHECK-NEXT:    getelementptr
; CHECK-COUNT-4: load i64, ptr
; CHECK-NOT:     load
; CHECK:         ret i64
; CHECK:       spill.instrumented:
; CHECK-NEXT:    %[[R:.*]] = tail call i64 @loop.spill(ptr %p, i64 %n, i64 %seed, ptr nest {{.*}}null)
; CHECK-NEXT:    ret i64 %[[R]]
define i64 @loop(ptr noalias %p, i64 noundef %n, i64 noundef returned %seed) {
entry:
  %step = mul i64 %n, 3
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %head ]
  %sum = phi i64 [ %seed, %entry ], [ %more, %head ]
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

; Exceptions pass through what has gone over.
; CHECK-LABEL: define i32 @throws(
; CHECK:         call i32 @throws.spill(ptr %p, ptr nest {{.*}}%spill.cargo)
; CHECK-COUNT-1: landingpad
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

; Variables of the stack stay where they are.
; CHECK-LABEL: define void @stack(
; CHECK:         %a = alloca [8 x i32]
; CHECK:       spill.leave:
; CHECK:         store ptr %a, ptr %{{.*}}, align 1
; CHECK:         store ptr %at, ptr %{{.*}}, align 1
define void @stack(ptr %p, i64 %k) {
entry:
  %a = alloca [8 x i32]
  %at = getelementptr i32, ptr %a, i64 %k
  br label %head
head:
  store i32 1, ptr %at
  call void @llvm.lifetime.start.p0(i64 32, ptr %a)
  store i32 2, ptr %a
  call void @llvm.lifetime.end.p0(i64 32, ptr %a)
  %v = load i1, ptr %p
  br i1 %v, label %head, label %exit
exit:
  ret void
}
declare void @llvm.lifetime.start.p0(i64, ptr)
declare void @llvm.lifetime.end.p0(i64, ptr)

; So do copies of arguments that the caller made, and what is returned there.
; CHECK-LABEL: define void @copied(
; CHECK:       spill.leave:
; CHECK:         store ptr %l, ptr %{{.*}}, align 1
; CHECK:         call void @copied.spill(ptr sret(i64) %r, ptr byval([9 x i64]) %l, ptr %p, ptr nest {{.*}}%spill.cargo)
; CHECK:       spill.instrumented:
; CHECK-NEXT:    tail call void @copied.spill(ptr sret(i64) %r, ptr byval([9 x i64]) %l, ptr %p, ptr nest {{.*}}null)
define void @copied(ptr sret(i64) noalias %r, ptr byval([9 x i64]) %l, ptr %p) {
entry:
  br label %head
head:
  %sum = phi i64 [ 0, %entry ], [ %more, %head ]
  %v = load i64, ptr %p
  %w = load i64, ptr %l
  %more = add i64 %v, %w
  store i64 %more, ptr %l
  %again = icmp ult i64 %more, 1000
  br i1 %again, label %head, label %exit
exit:
  store i64 %more, ptr %r
  ret void
}

; Native code calls the C library for what it only does to memory, and stores past no cache.
; CHECK-LABEL: define void @library(
; CHECK:         call void @llvm.memcpy
; CHECK-NEXT:    call i64 @strlen(
; CHECK-NEXT:    call ptr @__spill_malloc(
; CHECK-NEXT:    store i64 %{{.*}}, ptr %q{{[^!]*$}}
define void @library(ptr %p, ptr %q, i64 %n) {
  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %q, i64 %n, i1 false)
  %length = call i64 @strlen(ptr %p)
  %m = call ptr @malloc(i64 1)
  store i64 %length, ptr %q, !nontemporal !0
  ret void
}
declare i64 @strlen(ptr)
declare ptr @malloc(i64)

; Calls: who is called by native bodies alone does not look, unless it may call itself. Others may be called by anybody.
; CHECK-LABEL: define i32 @calls_others(
; CHECK-COUNT-1: load volatile i8
; CHECK-NOT:     load volatile i8
; CHECK:         call i32 @known(ptr %p)
; CHECK-NEXT:    call i32 @circle(ptr %p)
; CHECK-NEXT:    call i32 @taken(ptr %p)
; CHECK-NEXT:    call i32 @shared(ptr %p)
; CHECK-LABEL: define internal i32 @known(
; CHECK-NOT:     load volatile i8
; CHECK-LABEL: define internal i32 @circle(
; CHECK-COUNT-1: load volatile i8
; CHECK-NOT:     load volatile i8
; CHECK-LABEL: define internal i32 @circle_too(
; CHECK-NOT:     load volatile i8
; CHECK-LABEL: define internal i32 @taken(
; CHECK-COUNT-1: load volatile i8
; CHECK-LABEL: define internal i32 @called_by_one_body(
; CHECK-COUNT-1: load volatile i8
; CHECK-LABEL: define i32 @one_body(
; CHECK:         call i32 @called_by_one_body(
; CHECK-LABEL: define linkonce_odr i32 @shared(
; CHECK-COUNT-1: load volatile i8
$shared = comdat any
@pointer = global ptr @taken
define i32 @calls_others(ptr %p) {
  %v = load i32, ptr %p
  %a = call i32 @known(ptr %p)
  %b = call i32 @circle(ptr %p)
  %c = call i32 @taken(ptr %p)
  %d = call i32 @shared(ptr %p)
  ret i32 %v
}
define internal i32 @known(ptr %p) {
  %v = load i32, ptr %p
  ret i32 %v
}
define internal i32 @circle(ptr %p) {
  %v = load i32, ptr %p
  %r = call i32 @circle_too(ptr %p)
  ret i32 %v
}
define internal i32 @circle_too(ptr %p) {
entry:
  br label %head
head:
  %i = phi i32 [ 0, %entry ], [ %next, %head ]
  store i32 %i, ptr %p
  %next = add i32 %i, 1
  %again = icmp ult i32 %next, 10
  br i1 %again, label %head, label %exit
exit:
  %r = call i32 @circle(ptr %p)
  ret i32 %r
}
define internal i32 @taken(ptr %p) {
  %v = load i32, ptr %p
  ret i32 %v
}
define internal i32 @called_by_one_body(ptr %p) {
  %v = load i32, ptr %p
  ret i32 %v
}
define i32 @one_body(ptr %p) noinline optnone {
  %v = load i32, ptr %p
  %w = call i32 @called_by_one_body(ptr %p)
  ret i32 %v
}
define linkonce_odr i32 @shared(ptr %p) comdat {
  %v = load i32, ptr %p
  ret i32 %v
}

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
; CHECK-LABEL: define i32 @marked(
; CHECK-NOT:     volatile
; CHECK-LABEL: define void @leaves(
; CHECK-NOT:     volatile
; CHECK-LABEL: define i32 @variable(
; CHECK-NOT:     volatile
; CHECK-LABEL: define ptr @asks_for_its_frame(
; CHECK-NOT:     volatile
; CHECK-LABEL: define void @gives_back(
; CHECK-NOT:     volatile
; CHECK-LABEL: define void @ends_by_a_call(
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
define i32 @marked(ptr %p) {
  call void asm sideeffect "mark: nop", ""()
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
define i32 @variable(ptr %p, ...) {
  %v = load i32, ptr %p
  ret i32 %v
}
define ptr @asks_for_its_frame(ptr %p) {
entry:
  br label %head
head:
  %v = load i1, ptr %p
  br i1 %v, label %head, label %exit
exit:
  %r = call ptr @llvm.returnaddress(i32 0)
  ret ptr %r
}
define void @gives_back(ptr %p, i64 %n) {
entry:
  %s = call ptr @llvm.stacksave.p0()
  %a = alloca i8, i64 %n
  %r = call i32 @callee(ptr %a)
  br label %head
head:
  %v = load i1, ptr %p
  br i1 %v, label %head, label %exit
exit:
  call void @llvm.stackrestore.p0(ptr %s)
  ret void
}
define void @ends_by_a_call(ptr %p) {
entry:
  br label %head
head:
  %v = load i1, ptr %p
  br i1 %v, label %head, label %exit
exit:
  musttail call void @ends_by_a_call(ptr %p)
  ret void
}

; Without loops both work.
; CHECK-LABEL: define ptr @has_the_same_frame(
; CHECK:         musttail call ptr @has_the_same_frame.spill(ptr %p)
; CHECK-LABEL: define void @hands_on(
; CHECK:         musttail call void @hands_on(ptr %p)
; CHECK:         musttail call void @hands_on.spill(ptr %p)
define ptr @has_the_same_frame(ptr %p) {
  store i32 1, ptr %p
  %r = call ptr @llvm.returnaddress(i32 0)
  ret ptr %r
}
define void @hands_on(ptr %p) {
  store i32 1, ptr %p
  musttail call void @hands_on(ptr %p)
  ret void
}
declare ptr @llvm.returnaddress(i32)
declare ptr @llvm.stacksave.p0()
declare void @llvm.stackrestore.p0(ptr)

; The instrumented bodies.
; CHECK-LABEL: define internal i32 @load.spill(ptr %p)
; CHECK-NOT:     volatile
; CHECK:         %spill.slots = load ptr
; CHECK:         store atomic i64 %spill.address{{[0-9]*}}

; Nothing is said of arguments that need not come. The slots are loaded once.
; CHECK-LABEL: define internal i64 @loop.spill(ptr %p, i64 %n, i64 %seed, ptr nest "spillway-plain" %spill.cargo)
; CHECK:         %spill.slots = load ptr
; CHECK-NEXT:    icmp ne ptr %spill.cargo, null
; CHECK-NEXT:    br i1 %{{.*}}, label %spill.arrive, label %[[START:.*]], !prof
; CHECK:       spill.arrive:
; CHECK-NEXT:    %[[NUMBER:.*]] = load i32, ptr %spill.cargo, align 1
; CHECK-NEXT:    switch i32 %[[NUMBER]], label %spill.way [
; CHECK-NEXT:    ]
; CHECK:       [[START]]:
; CHECK-NEXT:    %step = mul i64 %n, 3
; CHECK:       spill.way:
; CHECK-NEXT:    getelementptr
; CHECK-NEXT:    %[[WI:.*]] = load i64
; CHECK-NEXT:    getelementptr
; CHECK-NEXT:    %[[WSUM:.*]] = load i64
; CHECK-NEXT:    getelementptr
; CHECK-NEXT:    %[[WSTEP:.*]] = load i64
; CHECK-NEXT:    br label %[[IHEAD:.*]]
; CHECK:       [[IHEAD]]:
; CHECK-DAG:     phi i64 [ %step, %[[START]] ], {{.*}}[ %[[WSTEP]], %spill.way ]
; CHECK-DAG:     phi i64 [ 0, %[[START]] ], {{.*}}[ %[[WI]], %spill.way ]
; CHECK-DAG:     phi i64 [ %seed, %[[START]] ], {{.*}}[ %[[WSUM]], %spill.way ]

; CHECK-LABEL: define internal void @nested.spill(
; CHECK:         switch i32 %{{.*}}, label %spill.way [
; CHECK-NEXT:      i32 1, label %spill.way1
; CHECK-NEXT:    ]

; CHECK-LABEL: define internal i32 @throws.spill(
; CHECK-COUNT-1: landingpad
; CHECK-NOT:     landingpad

; A pointer to the stack that comes by a way is known to be one. Its variable has no lifetime here.
; CHECK-LABEL: define internal void @stack.spill(
; CHECK-NOT:     lifetime
; CHECK:         %[[AT:.*]] = phi ptr {{.*}}spill.way
; CHECK:         store i32 1, ptr %[[AT]]
; CHECK-NOT:     lifetime
; CHECK:         store i32 2, ptr
; CHECK-NOT:     lifetime
; CHECK:         ret void

; CHECK-LABEL: define internal void @copied.spill(ptr sret(i64) %r, ptr byval([9 x i64]) %l, ptr %p, ptr nest
; CHECK:         phi ptr [ %l, {{.*}} ], [ %{{.*}}, %spill.way ]

; CHECK-LABEL: define internal void @library.spill(
; CHECK:         call ptr @__spill_memcpy
; CHECK-NEXT:    call i64 @__spill_strlen(
; CHECK-NEXT:    call ptr @__spill_malloc(

; They call each other, but where the linker may drop them.
; CHECK-LABEL: define internal i32 @calls_others.spill(
; CHECK:         call i32 @known.spill(ptr %p)
; CHECK-NEXT:    call i32 @circle.spill(ptr %p)
; CHECK-NEXT:    call i32 @taken.spill(ptr %p)
; CHECK-NEXT:    call i32 @shared(ptr %p)
; CHECK-LABEL: define internal i32 @circle.spill(
; CHECK:         call i32 @circle_too.spill(ptr %p)
; CHECK-LABEL: define internal i32 @shared.spill(
; CHECK-SAME:    comdat($shared)
; CHECK-LABEL: define internal void @hands_on.spill(
; CHECK:         musttail call void @hands_on.spill(ptr %p)
!0 = !{i32 1}
