; OPTIONS: -spill-loops=0 -spill-copy-aligned=0 -spill-prefetch=0
; Pages that loops stay in are held: translated only where the address is elsewhere.

declare void @other()

; A pointer that advances: whether the page is held is a difference and a comparison. What was translated last
; time goes on from one iteration to the next.
; CHECK-LABEL: define i64 @advancing(
; CHECK: loop:
; CHECK: [[PAGE:%spill.page.*]] = phi i64 [ -9223372036854775808, %entry ], [ %spill.page
; CHECK: [[ENTRY:%spill.held.*]] = phi i64 [ 1, %entry ], [ %spill.held
; CHECK: [[DISTANCE:%.*]] = sub i64 [[BEGIN:%.*]], [[PAGE]]
; CHECK: %spill.elsewhere = icmp ugt i64 [[DISTANCE]], 4088
; CHECK: br i1 %spill.elsewhere, label %spill.move, label %[[HOT:.*]], !prof
; CHECK: spill.move:
; CHECK: %spill.crosses{{.*}} = icmp ugt i32 {{.*}}, -8388608
; CHECK: br i1 %spill.crosses{{.*}}, label %{{[0-9]+}}, label %spill.arrive, !prof
; CHECK: spill.arrive:
; CHECK: [[SLOT:%.*]] = getelementptr inbounds i64, ptr %spill.slots, i64 2
; CHECK: store atomic i64 [[BEGIN]], ptr [[SLOT]] release
; CHECK: (i64 [[BEGIN]], ptr @__spillway_translate_live4_stub)
; CHECK: [[NEW:%.*]] = and i64 [[BEGIN]], -4096
; CHECK: [[HOT]]:
; CHECK: phi i64 [ [[NEW]], {{.*}} ], [ [[PAGE]], %loop ]
; CHECK: phi i64 [ %spill.d, {{.*}} ], [ [[ENTRY]], %loop ]
; CHECK-NOT: store atomic
; CHECK: ret
define i64 @advancing(ptr %p) {
entry:
  br label %loop
loop:
  %q = phi ptr [ %p, %entry ], [ %next, %loop ]
  %v = load i64, ptr %q, align 8
  %next = getelementptr inbounds i64, ptr %q, i64 1
  %done = icmp eq i64 %v, 0
  br i1 %done, label %out, label %loop
out:
  ret i64 %v
}

; A pointer that does not change needs no page: its entry is asked for. It may lie across an edge for as long as the
; loop runs: then both pages' entries are looked at, and where neither is spilled that is held.
; CHECK-LABEL: define void @constant(
; CHECK: loop:
; CHECK-NOT: -9223372036854775808
; CHECK: [[ENTRY:%.*]] = phi i64 [ 0, %entry ], [ {{%.*}}, %{{.*}} ]
; CHECK: [[BEGIN:%.*]] = ptrtoint ptr %p to i64
; CHECK: %spill.elsewhere = icmp eq i64 [[ENTRY]], 0
; CHECK: spill.move:
; CHECK: br i1 %spill.crosses{{.*}}, label %spill.edge, label %spill.arrive, !prof
; CHECK: spill.edge:
; CHECK: lshr i64 [[BEGIN]], 12
; CHECK: [[FIRST:%.*]] = load atomic i64, ptr {{.*}} acquire
; CHECK: [[FIRST_PLAIN:%.*]] = icmp eq i64 [[FIRST]], 1
; CHECK: [[END:%.*]] = add i64 [[BEGIN]], 3
; CHECK: lshr i64 [[END]], 12
; CHECK: [[LAST:%.*]] = load atomic i64, ptr {{.*}} acquire
; CHECK: [[LAST_PLAIN:%.*]] = icmp eq i64 [[LAST]], 1
; CHECK: [[BOTH:%.*]] = and i1 [[FIRST_PLAIN]], [[LAST_PLAIN]]
; CHECK: br i1 [[BOTH]], label %spill.plain, label %[[ALONE:.*]]
; CHECK: spill.plain:
; CHECK-NEXT: br label %[[HOT:.*]]
; CHECK: [[ALONE]]:
; CHECK: call {{.*}}@__spillway_store4_live5_stub
; CHECK: [[HOT]]:
; CHECK: phi i64 [ 1, %spill.plain ]
; CHECK: ret
define void @constant(ptr %p, i32 %n) {
entry:
  br label %loop
loop:
  %i = phi i32 [ %n, %entry ], [ %half, %next ]
  %odd = trunc i32 %i to i1
  br i1 %odd, label %then, label %next
then:
  store i32 %i, ptr %p, align 4
  br label %next
next:
  %half = lshr i32 %i, 1
  %done = icmp eq i32 %half, 0
  br i1 %done, label %out, label %loop
out:
  ret void
}

; Nothing is held over a call, nor in a loop that calls often.
; CHECK-LABEL: define void @rarely(
; CHECK-NOT: spill.elsewhere
; CHECK: ret
define void @rarely(ptr %p, i32 %n) {
entry:
  br label %loop
loop:
  %q = phi ptr [ %p, %entry ], [ %up, %next ]
  %i = phi i32 [ %n, %entry ], [ %half, %next ]
  %odd = trunc i32 %i to i1
  br i1 %odd, label %then, label %next, !prof !1
then:
  call void @other()
  br label %next
next:
  store i32 %i, ptr %q, align 4
  %up = getelementptr inbounds i32, ptr %q, i64 1
  %half = lshr i32 %i, 1
  %done = icmp eq i32 %half, 0
  br i1 %done, label %out, label %loop
out:
  ret void
}

; But where the loop calls rarely: the call lets go of it.
; CHECK-LABEL: define void @seldom(
; CHECK: loop:
; CHECK: [[PAGE:%spill.page.*]] = phi i64 [ -9223372036854775808, %entry ]
; CHECK: next:
; CHECK: phi i64 [ -9223372036854775808, %then ], [ [[PAGE]], %loop ]
; CHECK: phi i64 [ 1, %then ], [ {{%.*}}, %loop ]
; CHECK: %spill.elsewhere = icmp ugt i64
; CHECK: ret
define void @seldom(ptr %p, i32 %n) {
entry:
  br label %loop
loop:
  %q = phi ptr [ %p, %entry ], [ %up, %next ]
  %i = phi i32 [ %n, %entry ], [ %half, %next ]
  %odd = trunc i32 %i to i1
  br i1 %odd, label %then, label %next, !prof !0
then:
  call void @other()
  br label %next
next:
  store i32 %i, ptr %q, align 4
  %up = getelementptr inbounds i32, ptr %q, i64 1
  %half = lshr i32 %i, 1
  %done = icmp eq i32 %half, 0
  br i1 %done, label %out, label %loop
out:
  ret void
}
!0 = !{!"branch_weights", i32 1, i32 100}
!1 = !{!"branch_weights", i32 2, i32 1}

; Members of an object that stays, before and behind what is called now and then: one entry, of one window, is kept for
; both, and let go of by the call.
; CHECK-LABEL: define i64 @both(
; CHECK: loop:
; CHECK: [[ENTRY:%spill.held.*]] = phi i64 [ 0, %entry ]
; CHECK-NOT: phi i64 [ 0, %entry ]{{.*}}held
; CHECK: %spill.elsewhere{{.*}} = icmp eq i64 [[ENTRY]], 0
; CHECK: icmp ugt i32 {{.*}}, -41943040
; CHECK: [[SLOT:%.*]] = getelementptr inbounds i64, ptr %spill.slots, i64 2
; CHECK: store atomic i64 {{.*}}, ptr [[SLOT]] release
; CHECK: latch:
; CHECK: [[LEFT:%spill.held.*]] = phi i64 [ 0, %then ], [ {{%spill.held.*}}, %{{.*}} ]
; CHECK: %spill.elsewhere{{.*}} = icmp eq i64 [[LEFT]], 0
; CHECK: icmp ugt i32 {{.*}}, -41943040
; CHECK: [[SAME:%.*]] = getelementptr inbounds i64, ptr %spill.slots, i64 2
; CHECK: store atomic i64 {{.*}}, ptr [[SAME]] release
; CHECK: ret
define i64 @both(ptr %object, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  %first.at = getelementptr inbounds i8, ptr %object, i64 16
  %first = load i64, ptr %first.at, align 8
  %odd = trunc i64 %first to i1
  br i1 %odd, label %then, label %latch, !prof !0
then:
  call void @other()
  br label %latch
latch:
  %second.at = getelementptr inbounds i8, ptr %object, i64 32
  %second = load i64, ptr %second.at, align 8
  %next = add nuw i64 %i, %second
  %done = icmp ugt i64 %next, %n
  br i1 %done, label %out, label %loop
out:
  ret i64 %i
}

; The one that runs most holds the page, though the other comes first: it takes the same slot all the same.
; CHECK-LABEL: define i64 @last(
; CHECK: then:
; CHECK-NOT: ptr %spill.slots, i64 0
; CHECK: [[SLOT:%.*]] = getelementptr inbounds i64, ptr %spill.slots, i64 2
; CHECK: store atomic i64 {{.*}}, ptr [[SLOT]] release
; CHECK: latch:
; CHECK: [[SAME:%.*]] = getelementptr inbounds i64, ptr %spill.slots, i64 2
; CHECK: store atomic i64 {{.*}}, ptr [[SAME]] release
; CHECK: ret
define i64 @last(ptr %object, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  %odd = trunc i64 %i to i1
  br i1 %odd, label %then, label %latch
then:
  %first.at = getelementptr inbounds i8, ptr %object, i64 16
  store i64 %i, ptr %first.at, align 8
  br label %latch
latch:
  %second.at = getelementptr inbounds i8, ptr %object, i64 32
  %second = load i64, ptr %second.at, align 8
  %next = add nuw i64 %i, %second
  %done = icmp ugt i64 %next, %n
  br i1 %done, label %out, label %loop
out:
  ret i64 %i
}

; Where an array begins, loaded before the loop and again in it where something was stored.
; CHECK-LABEL: define i64 @again(
; CHECK: loop:
; CHECK: phi i64 [ -9223372036854775808, %{{[0-9]+}} ]
; CHECK: %spill.elsewhere{{.*}} = icmp ugt i64
; CHECK: ret
define i64 @again(ptr %object, i64 %n) {
entry:
  %first = load ptr, ptr %object, align 8
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  %base = phi ptr [ %first, %entry ], [ %now, %latch ]
  %at = getelementptr inbounds i64, ptr %base, i64 %i
  %v = load i64, ptr %at, align 8
  %odd = trunc i64 %v to i1
  br i1 %odd, label %then, label %latch
then:
  store i64 0, ptr %at, align 8
  %reload = load ptr, ptr %object, align 8
  br label %latch
latch:
  %now = phi ptr [ %base, %loop ], [ %reload, %then ]
  %next = add nuw i64 %i, 1
  %done = icmp eq i64 %v, %n
  br i1 %done, label %out, label %loop
out:
  ret i64 %i
}

; Where an array begins is a member of an object that stays: both are held, the array by its page.
; CHECK-LABEL: define i64 @member(
; CHECK: loop:
; CHECK-DAG: phi i64 [ 0, %entry ]
; CHECK-DAG: phi i64 [ -9223372036854775808, %entry ]
; CHECK-DAG: phi i64 [ 1, %entry ]
; CHECK: %spill.elsewhere{{.*}} = icmp eq i64
; CHECK: %spill.elsewhere{{.*}} = icmp ugt i64
; CHECK: ret
define i64 @member(ptr %object) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %base = load ptr, ptr %object, align 8
  %q = getelementptr inbounds i64, ptr %base, i64 %i
  %v = load i64, ptr %q, align 8
  store i64 0, ptr %q, align 8
  %next = add nuw i64 %i, 1
  %done = icmp eq i64 %v, 0
  br i1 %done, label %out, label %loop
out:
  ret i64 %i
}

; It is held in the inner loop alone where the outer one calls.
; CHECK-LABEL: define void @between(
; CHECK: inner:
; CHECK: phi i64 [ -9223372036854775808, %outer{{.*}} ]
; CHECK: ret
define void @between(ptr %p) {
entry:
  br label %outer
outer:
  %q = phi ptr [ %p, %entry ], [ %up, %next ]
  call void @other()
  br label %inner
inner:
  %r = phi ptr [ %q, %outer ], [ %up, %inner ]
  %v = load i8, ptr %r, align 1
  %up = getelementptr inbounds i8, ptr %r, i64 1
  %more = icmp sgt i8 %v, 9
  br i1 %more, label %inner, label %next
next:
  %done = icmp eq i8 %v, 0
  br i1 %done, label %out, label %outer
out:
  ret void
}

; Lists are not, nor what doubles: the next address may be anywhere.
; CHECK-LABEL: define void @list(
; CHECK-NOT: spill.elsewhere
; CHECK: ret
define void @list(ptr %p) {
entry:
  br label %loop
loop:
  %q = phi ptr [ %p, %entry ], [ %next, %loop ]
  %next = load ptr, ptr %q, align 8
  %done = icmp eq ptr %next, null
  br i1 %done, label %out, label %loop
out:
  ret void
}

; CHECK-LABEL: define void @heap(
; CHECK-NOT: spill.elsewhere
; CHECK: ret
define void @heap(ptr %p) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 1, %entry ], [ %next, %loop ]
  %q = getelementptr inbounds i32, ptr %p, i64 %i
  %v = load i32, ptr %q, align 4
  %twice = shl i64 %i, 1
  %next = add i64 %twice, 1
  %done = icmp eq i32 %v, 0
  br i1 %done, label %out, label %loop
out:
  ret void
}

; A pointer that goes on where the inner loop left it is held in the outer one too. Its slot is nobody else's in all of
; it, also where the code comes before the leader's.
; CHECK-LABEL: define void @nested(
; CHECK: outer:
; CHECK: phi i64 [ -9223372036854775808, %entry ]
; CHECK: ptr %spill.slots, i64 3
; CHECK: i64 {{.*}}, ptr @__spillway_translate_stub, i64 12)
; CHECK: inner:
; CHECK: ptr %spill.slots, i64 2
; CHECK: ret
define void @nested(ptr %p, ptr %list) {
entry:
  br label %outer
outer:
  %q = phi ptr [ %p, %entry ], [ %up, %next ]
  %node = phi ptr [ %list, %entry ], [ %link, %next ]
  %link = load ptr, ptr %node, align 8
  %other = getelementptr inbounds i8, ptr %node, i64 8
  store i32 1, ptr %other, align 4
  br label %inner
inner:
  %r = phi ptr [ %q, %outer ], [ %up, %inner ]
  %v = load i8, ptr %r, align 1
  %up = getelementptr inbounds i8, ptr %r, i64 1
  %more = icmp ne i8 %v, 0
  br i1 %more, label %inner, label %next
next:
  %done = icmp eq ptr %link, null
  br i1 %done, label %out, label %outer
out:
  ret void
}

; Rows of a graph: what begins where the row before ended is held in the outer loop, and so not split. The neighbour
; itself may be anywhere.
; CHECK-LABEL: define i32 @rows(
; CHECK: vertex:
; CHECK-DAG: phi i64 [ -9223372036854775808, %entry ]
; CHECK-DAG: phi i64 [ -9223372036854775808, %entry ]
; CHECK: edge:
; CHECK-NOT: [ -9223372036854775808
; CHECK: ret
define i32 @rows(ptr %offsets, ptr %edges, ptr %values, i64 %n) {
entry:
  br label %vertex
vertex:
  %v = phi i64 [ 0, %entry ], [ %v.next, %next ]
  %total = phi i32 [ 0, %entry ], [ %total.next, %next ]
  %at = getelementptr inbounds i64, ptr %offsets, i64 %v
  %begin = load i64, ptr %at, align 8
  %v.next = add nuw i64 %v, 1
  %end.at = getelementptr inbounds i64, ptr %offsets, i64 %v.next
  %end = load i64, ptr %end.at, align 8
  %none = icmp uge i64 %begin, %end
  br i1 %none, label %next, label %edge
edge:
  %e = phi i64 [ %begin, %vertex ], [ %e.next, %edge ]
  %sum = phi i32 [ %total, %vertex ], [ %sum.next, %edge ]
  %edge.at = getelementptr inbounds i32, ptr %edges, i64 %e
  %other = load i32, ptr %edge.at, align 4
  %index = zext i32 %other to i64
  %value.at = getelementptr inbounds i32, ptr %values, i64 %index
  %value = load i32, ptr %value.at, align 4
  %sum.next = add i32 %sum, %value
  %e.next = add nuw i64 %e, 1
  %last = icmp uge i64 %e.next, %end
  br i1 %last, label %next, label %edge
next:
  %total.next = phi i32 [ %total, %vertex ], [ %sum.next, %edge ]
  %done = icmp eq i64 %v.next, %n
  br i1 %done, label %out, label %vertex
out:
  ret i32 %total.next
}

; Strings that a list has: the next may begin anywhere, so each is held alone.
; CHECK-LABEL: define void @strings(
; CHECK: inner:
; CHECK-DAG: phi i64 [ -9223372036854775808, %outer{{.*}} ]
; CHECK: ret
define void @strings(ptr %list) {
entry:
  br label %outer
outer:
  %node = phi ptr [ %list, %entry ], [ %link, %next ]
  %link = load ptr, ptr %node, align 8
  %text.at = getelementptr inbounds i8, ptr %node, i64 8
  %text = load ptr, ptr %text.at, align 8
  br label %inner
inner:
  %r = phi ptr [ %text, %outer ], [ %up, %inner ]
  %v = load i8, ptr %r, align 1
  %up = getelementptr inbounds i8, ptr %r, i64 1
  %more = icmp ne i8 %v, 0
  br i1 %more, label %inner, label %next
next:
  %done = icmp eq ptr %link, null
  br i1 %done, label %out, label %outer
out:
  ret void
}

; Pages are held for what runs most, though other accesses of the loop come first.
; CHECK-LABEL: define i64 @hottest(
; CHECK: loop:
; CHECK: phi i64 [ -9223372036854775808, %entry ], [ %spill.page
; CHECK: ret
define i64 @hottest(ptr %p, ptr %a, ptr %b, ptr %c, ptr %d) {
entry:
  br label %loop
loop:
  %q = phi ptr [ %p, %entry ], [ %next, %hot ]
  %w = phi i64 [ 0, %entry ], [ %v, %hot ]
  %odd = trunc i64 %w to i1
  br i1 %odd, label %rare, label %hot, !prof !2
rare:
  store i64 %w, ptr %a, align 8
  store i64 %w, ptr %b, align 8
  store i64 %w, ptr %c, align 8
  store i64 %w, ptr %d, align 8
  br label %hot
hot:
  %v = load i64, ptr %q, align 8
  %next = getelementptr inbounds i64, ptr %q, i64 1
  %done = icmp eq i64 %v, 0
  br i1 %done, label %out, label %loop
out:
  ret i64 %v
}
!2 = !{!"branch_weights", i32 1, i32 10}
