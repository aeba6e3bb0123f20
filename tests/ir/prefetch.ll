; Loops that look ahead.
; OPTIONS: -spill-copy-aligned=0

declare void @other(ptr)

; Every so many iterations the loop asks whether pages are missed; it can still be split at page edges.
; CHECK-LABEL: define i64 @indirect(
; CHECK: spill.ahead:
; CHECK: %spill.ahead.left = phi i64
; CHECK: %spill.ahead.wanted = load atomic i64, ptr @__spillway_look_ahead monotonic
; CHECK: [[NOBODY:%.*]] = icmp eq i64 %spill.ahead.wanted, 0
; CHECK: br i1 [[NOBODY]], label %spill.ahead.enter, label %spill.ahead.look
; CHECK: spill.ahead.enter:
; CHECK: %spill.ahead.pause = phi i64 [ 512, %spill.ahead ], [ [[PAUSE:%.*]], %spill.ahead.look ]
; CHECK: call i64 @llvm.umin.i64(i64 %spill.ahead.left, i64 %spill.ahead.pause)
; CHECK: spill.plan:
; CHECK: spill.ahead.back:
; CHECK: spill.ahead.look:
; CHECK-NEXT: [[PAUSE]] = call preserve_allcc i64 @indirect.spill.ahead(
; CHECK-NEXT: br label %spill.ahead.enter
define i64 @indirect(ptr %a, ptr %b, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %s = phi i64 [ 0, %entry ], [ %s.next, %loop ]
  %p = getelementptr inbounds i64, ptr %b, i64 %i
  %k = load i64, ptr %p, align 8
  %q = getelementptr inbounds i64, ptr %a, i64 %k
  %v = load i64, ptr %q, align 8
  %s.next = add i64 %s, %v
  %i.next = add nuw i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %out, label %loop
out:
  ret i64 %s.next
}

; The first load of an address may be one that the program would not do.
; CHECK-LABEL: define void @conditional(
; CHECK: call preserve_allcc i64 @conditional.spill.ahead(
define void @conditional(ptr %a, ptr %b, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %latch ]
  %c = trunc i64 %i to i1
  br i1 %c, label %then, label %latch
then:
  %p = getelementptr inbounds i64, ptr %b, i64 %i
  %k = load i64, ptr %p, align 8
  %q = getelementptr inbounds i64, ptr %a, i64 %k
  store i64 1, ptr %q, align 8
  br label %latch
latch:
  %i.next = add nuw i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %out, label %loop
out:
  ret void
}

; A loop that may end early comes back without a count.
; CHECK-LABEL: define i64 @early(
; CHECK: spill.ahead:
; CHECK-NOT: umin
; CHECK: spill.ahead.look:
; CHECK: call preserve_allcc i64 @early.spill.ahead({{.*}}, i64 -1)
define i64 @early(ptr %a, ptr %b) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %latch ]
  %p = getelementptr inbounds i64, ptr %b, i64 %i
  %k = load i64, ptr %p, align 8
  %last = icmp eq i64 %k, 0
  br i1 %last, label %out, label %latch
latch:
  %q = getelementptr inbounds i64, ptr %a, i64 %k
  store i64 1, ptr %q, align 8
  %i.next = add nuw i64 %i, 1
  br label %loop
out:
  ret i64 %i
}

; What a call is given is looked at, and the call may end the loop: nothing is loaded from plain memory.
; CHECK-LABEL: define void @calls(
; CHECK: call preserve_allcc i64 @calls.spill.ahead(
define void @calls(ptr %b, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %p = getelementptr inbounds ptr, ptr %b, i64 %i
  %q = load ptr, ptr %p, align 8
  call void @other(ptr %q)
  %i.next = add nuw i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %out, label %loop
out:
  ret void
}

; CHECK-LABEL: define i64 @divides(
; CHECK: call preserve_allcc i64 @divides.spill.ahead(
define i64 @divides(ptr %a, ptr %b, i64 %n, i64 %m) "instrument-function-entry-inlined"="__cyg_profile_func_enter" {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %s = phi i64 [ 0, %entry ], [ %s.next, %loop ]
  %p = getelementptr inbounds i64, ptr %b, i64 %i
  %k = load i64, ptr %p, align 8
  %r = urem i64 %k, %m
  %q = getelementptr inbounds i64, ptr %a, i64 %r
  %v = load i64, ptr %q, align 8
  %s.next = add i64 %s, %v
  %i.next = add nuw i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %out, label %loop
out:
  ret i64 %s.next
}

; Rows of a graph look ahead, too, and keep the page over that: what begins where the row before ended is held in the
; outer loop, and neither split nor let go of.
; CHECK-LABEL: define i32 @rows(
; CHECK: vertex:
; CHECK-DAG: phi i64 [ -9223372036854775808, %entry ]
; CHECK-DAG: phi i64 [ -9223372036854775808, %entry ]
; CHECK-NOT: spill.plan
; CHECK: spill.ahead:
; CHECK-NOT: [ -9223372036854775808
; CHECK: call i64 @llvm.umin.i64(i64 %spill.ahead.left, i64 %spill.ahead.pause)
; CHECK-NOT: [ -9223372036854775808
; CHECK: call preserve_allcc i64 @rows.spill.ahead({{.*}}) #[[KEEPS:[0-9]+]]
; CHECK-NOT: call preserve_allcc
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

; A sequence is read ahead of anyway.
; CHECK-LABEL: define i64 @sequence(
; CHECK-NOT: spill.ahead
; CHECK: ret i64
define i64 @sequence(ptr %b, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %s = phi i64 [ 0, %entry ], [ %s.next, %loop ]
  %p = getelementptr inbounds i64, ptr %b, i64 %i
  %v = load i64, ptr %p, align 8
  %s.next = add i64 %s, %v
  %i.next = add nuw i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %out, label %loop
out:
  ret i64 %s.next
}

; What is volatile or atomic is not loaded ahead.
; CHECK-LABEL: define void @watched(
; CHECK-NOT: spill.ahead
; CHECK: ret void
define void @watched(ptr %a, ptr %b, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %p = getelementptr inbounds i64, ptr %b, i64 %i
  %k = load volatile i64, ptr %p, align 8
  %q = getelementptr inbounds i64, ptr %a, i64 %k
  store i64 1, ptr %q, align 8
  %m = load atomic i64, ptr %p monotonic, align 8
  %r = getelementptr inbounds i32, ptr %a, i64 %m
  store i32 1, ptr %r, align 8
  %i.next = add nuw i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %out, label %loop
out:
  ret void
}

; Nor is anything for which a function of the program's own may be called: it would take slots that are in use.
; CHECK-LABEL: define void @remainders(
; CHECK-NOT: spill.ahead
; CHECK: ret void
define void @remainders(ptr %a, ptr %b, i64 %n, double %m) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %p = getelementptr inbounds double, ptr %b, i64 %i
  %v = load double, ptr %p, align 8
  %r = frem double %v, %m
  %k = fptoui double %r to i64
  %q = getelementptr inbounds i64, ptr %a, i64 %k
  store i64 1, ptr %q, align 8
  %i.next = add nuw i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %out, label %loop
out:
  ret void
}

; Where one load leads to the next nobody knows what comes.
; CHECK-LABEL: define i64 @list(
; CHECK-NOT: spill.ahead
; CHECK: ret i64
define i64 @list(ptr %first) {
entry:
  br label %loop
loop:
  %p = phi ptr [ %first, %entry ], [ %next, %loop ]
  %s = phi i64 [ 0, %entry ], [ %s.next, %loop ]
  %q = getelementptr inbounds i64, ptr %p, i64 1
  %v = load i64, ptr %q, align 8
  %s.next = add i64 %s, %v
  %next = load ptr, ptr %p, align 8
  %done = icmp eq ptr %next, null
  br i1 %done, label %out, label %loop
out:
  ret i64 %s.next
}

; Addresses that are loaded, in a loop that stores nothing, and in one that has yet to store what it will load.
; CHECK-LABEL: define i64 @chain(
; CHECK: call preserve_allcc i64 @chain.spill.ahead(
define i64 @chain(ptr %queue, ptr %values, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %s = phi i64 [ 0, %entry ], [ %s.next, %loop ]
  %at = getelementptr inbounds ptr, ptr %queue, i64 %i
  %node = load ptr, ptr %at, align 8
  %key.at = getelementptr inbounds i8, ptr %node, i64 8
  %key = load i64, ptr %key.at, align 8
  %value.at = getelementptr inbounds i64, ptr %values, i64 %key
  %value = load i64, ptr %value.at, align 8
  %s.next = add i64 %s, %value
  %i.next = add nuw i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %out, label %loop
out:
  ret i64 %s.next
}

; CHECK-LABEL: define i64 @queue(
; CHECK: call preserve_allcc i64 @queue.spill.ahead(
define i64 @queue(ptr %queue, ptr %values, ptr %nodes, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %s = phi i64 [ 0, %entry ], [ %s.next, %loop ]
  %at = getelementptr inbounds ptr, ptr %queue, i64 %i
  %node = load ptr, ptr %at, align 8
  %key.at = getelementptr inbounds i8, ptr %node, i64 8
  %key = load i64, ptr %key.at, align 8
  %value.at = getelementptr inbounds i64, ptr %values, i64 %key
  %value = load i64, ptr %value.at, align 8
  %s.next = add i64 %s, %value
  %end.at = getelementptr inbounds i8, ptr %at, i64 64
  %more = getelementptr inbounds i8, ptr %nodes, i64 %key
  store ptr %more, ptr %end.at, align 8
  %i.next = add nuw i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %out, label %loop
out:
  ret i64 %s.next
}

; Rows of those vertices that lie in a queue begin anywhere: the loop over the queue looks to where they begin, besides
; the loop over a row.
; CHECK-LABEL: define i32 @neighbours(
; CHECK-DAG: call preserve_allcc i64 @neighbours.spill.ahead(
; CHECK-DAG: call preserve_allcc i64 @neighbours.spill.ahead.{{[0-9]+}}(
define i32 @neighbours(ptr %order, ptr %offsets, ptr %edges, ptr %values, i64 %n) {
entry:
  br label %vertex
vertex:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %total = phi i32 [ 0, %entry ], [ %total.next, %next ]
  %order.at = getelementptr inbounds i32, ptr %order, i64 %i
  %vertex.at = load i32, ptr %order.at, align 4
  %v = zext i32 %vertex.at to i64
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
  %i.next = add nuw i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %out, label %vertex
out:
  ret i32 %total.next
}

; A pointer that is loaded anew after each store, from where it was, is taken for one that stays.
; CHECK-LABEL: define void @reloaded(
; CHECK: call preserve_allcc i64 @reloaded.spill.ahead(
define void @reloaded(ptr %graph, ptr %queue, i64 %n) {
entry:
  %first = load ptr, ptr %graph, align 8
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %values = phi ptr [ %first, %entry ], [ %again, %loop ]
  %at = getelementptr inbounds i64, ptr %queue, i64 %i
  %key = load i64, ptr %at, align 8
  %value.at = getelementptr inbounds i64, ptr %values, i64 %key
  store i64 1, ptr %value.at, align 8
  %again = load ptr, ptr %graph, align 8
  %i.next = add nuw i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %out, label %loop
out:
  ret void
}

; One that comes from elsewhere each time is not.
; CHECK-LABEL: define void @moved(
; CHECK-NOT: spill.ahead
; CHECK: ret void
define void @moved(ptr %first, ptr %queue, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %values = phi ptr [ %first, %entry ], [ %again, %loop ]
  %at = getelementptr inbounds i64, ptr %queue, i64 %i
  %key = load i64, ptr %at, align 8
  %value.at = getelementptr inbounds i64, ptr %values, i64 %key
  store i64 1, ptr %value.at, align 8
  %again = load ptr, ptr %values, align 8
  %i.next = add nuw i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %out, label %loop
out:
  ret void
}

; What the caller says is memory can be loaded from there, though not every iteration does.
; CHECK-LABEL: define void @table(
; CHECK: call preserve_allcc i64 @table.spill.ahead(
define void @table(ptr dereferenceable(8) %graph, ptr %queue, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %latch ]
  %at = getelementptr inbounds i64, ptr %queue, i64 %i
  %key = load i64, ptr %at, align 8
  %none = icmp eq i64 %key, 0
  br i1 %none, label %latch, label %then
then:
  %values = load ptr, ptr %graph, align 8
  %value.at = getelementptr inbounds i64, ptr %values, i64 %key
  store i64 1, ptr %value.at, align 8
  br label %latch
latch:
  %i.next = add nuw i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %out, label %loop
out:
  ret void
}

; Where a loop inside ends is not known ahead: what it found last is taken for what it finds first, which may be no address.
; CHECK-LABEL: define i64 @probed(
; CHECK: call preserve_allcc i64 @probed.spill.ahead(
define i64 @probed(ptr %keys, ptr %slots, ptr %data, ptr %values, i64 %n) {
entry:
  br label %key
key:
  %i = phi i64 [ 0, %entry ], [ %i.next, %found ]
  %s = phi i64 [ 0, %entry ], [ %s.next, %found ]
  %key.at = getelementptr inbounds i64, ptr %keys, i64 %i
  %hash = load i64, ptr %key.at, align 8
  br label %probe
probe:
  %h = phi i64 [ %hash, %key ], [ %h.next, %probe ]
  %slot.at = getelementptr inbounds i64, ptr %slots, i64 %h
  %slot = load i64, ptr %slot.at, align 8
  %h.five = mul i64 %h, 5
  %h.next = add i64 %h.five, 1
  %is.gone = icmp eq i64 %slot, -1
  br i1 %is.gone, label %probe, label %found
found:
  %index.at = getelementptr inbounds i64, ptr %data, i64 %slot
  %index = load i64, ptr %index.at, align 8
  %value.at = getelementptr inbounds i64, ptr %values, i64 %index
  %value = load i64, ptr %value.at, align 8
  %s.next = add i64 %s, %value
  %i.next = add nuw i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %out, label %key
out:
  ret i64 %s.next
}

; Nor does it load anything from where it begins, if it leaves that out.
; CHECK-LABEL: define i64 @skipped(
; CHECK: call preserve_allcc i64 @skipped.spill.ahead(
define i64 @skipped(ptr %nodes, ptr %values, i64 %n) {
entry:
  br label %each
each:
  %i = phi i64 [ 0, %entry ], [ %i.next, %found ]
  %s = phi i64 [ 0, %entry ], [ %s.next, %found ]
  br label %search
search:
  %k = phi i64 [ 0, %each ], [ %k.next, %next ]
  %node = phi ptr [ null, %each ], [ %node.next, %next ]
  %is.none = icmp eq ptr %node, null
  br i1 %is.none, label %next, label %look
look:
  %field = getelementptr inbounds i8, ptr %node, i64 8
  %key = load i64, ptr %field, align 8
  %is.found = icmp ugt i64 %key, %i
  br i1 %is.found, label %found, label %next
next:
  %node.at = getelementptr inbounds ptr, ptr %nodes, i64 %k
  %node.next = load ptr, ptr %node.at, align 8
  %k.next = add nuw i64 %k, 1
  br label %search
found:
  %index = add i64 %key, %i
  %value.at = getelementptr inbounds i64, ptr %values, i64 %index
  %value = load i64, ptr %value.at, align 8
  %s.next = add i64 %s, %value
  %i.next = add nuw i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %out, label %each
out:
  ret i64 %s.next
}

; A pointer that is taken for one that stays may be another from the second iteration on, though nothing is stored.
; CHECK-LABEL: define i64 @first_of_others(
; CHECK: call preserve_allcc i64 @first_of_others.spill.ahead(
define i64 @first_of_others(ptr %first, ptr %others, ptr %values, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %s = phi i64 [ 0, %entry ], [ %s.next, %loop ]
  %p = phi ptr [ %first, %entry ], [ %others, %loop ]
  %at = getelementptr inbounds i64, ptr %p, i64 %i
  %index = load i64, ptr %at, align 8
  %value.at = getelementptr inbounds i64, ptr %values, i64 %index
  %value = load i64, ptr %value.at, align 8
  %s.next = add i64 %s, %value
  %i.next = add nuw i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %out, label %loop
out:
  ret i64 %s.next
}

; A loop inside that waits for another thread may do so for ever: what lies behind it may never be loaded, and be no memory.
; CHECK-LABEL: define i64 @published(
; CHECK: call preserve_allcc i64 @published.spill.ahead(
define i64 @published(ptr %count, ptr %log, ptr %values, i64 %n) {
entry:
  br label %each
each:
  %i = phi i64 [ 0, %entry ], [ %i.next, %there ]
  %s = phi i64 [ 0, %entry ], [ %s.next, %there ]
  br label %wait
wait:
  %published = load atomic i64, ptr %count acquire, align 8
  %is.there = icmp ugt i64 %published, %i
  br i1 %is.there, label %there, label %wait
there:
  %at = getelementptr inbounds i64, ptr %log, i64 %i
  %key = load i64, ptr %at, align 8
  %value.at = getelementptr inbounds i64, ptr %values, i64 %key
  %value = load i64, ptr %value.at, align 8
  %s.next = add i64 %s, %value
  %i.next = add nuw i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %out, label %each
out:
  ret i64 %s.next
}

; So may any other cycle, which is entered at two places.
; CHECK-LABEL: define i64 @published_by_either(
; CHECK: call preserve_allcc i64 @published_by_either.spill.ahead(
define i64 @published_by_either(ptr %counts, ptr %log, ptr %values, i64 %n) {
entry:
  br label %each
each:
  %i = phi i64 [ 0, %entry ], [ %i.next, %there ]
  %s = phi i64 [ 0, %entry ], [ %s.next, %there ]
  %odd = trunc i64 %i to i1
  br i1 %odd, label %first, label %second
first:
  %by.first = load atomic i64, ptr %counts acquire, align 8
  %is.by.first = icmp ugt i64 %by.first, %i
  br i1 %is.by.first, label %there, label %second
second:
  %second.at = getelementptr inbounds i64, ptr %counts, i64 1
  %by.second = load atomic i64, ptr %second.at acquire, align 8
  %is.by.second = icmp ugt i64 %by.second, %i
  br i1 %is.by.second, label %there, label %first
there:
  %at = getelementptr inbounds i64, ptr %log, i64 %i
  %key = load i64, ptr %at, align 8
  %value.at = getelementptr inbounds i64, ptr %values, i64 %key
  %value = load i64, ptr %value.at, align 8
  %s.next = add i64 %s, %value
  %i.next = add nuw i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %out, label %each
out:
  ret i64 %s.next
}

; What looks ahead: what each iteration loads may come from plain memory, the address is only told of.
; CHECK-LABEL: define internal preserve_allcc i64 @indirect.spill.ahead(
; CHECK: [[STATE:%.*]] = call ptr @__spillway_look_ahead_begin(ptr @indirect.spill.ahead.loop, i64 {{%.*}}, i64 {{%.*}}, ptr
; CHECK: [[NOW:%.*]] = call i64 @__spillway_look_ahead_next(ptr [[STATE]])
; CHECK: icmp slt i64 [[NOW]], 0
; CHECK: [[FROM:%.*]] = call i64 @__spillway_look_ahead_load(ptr [[STATE]], i64 {{%.*}}, i64 8, i64 3)
; CHECK: icmp eq i64 [[FROM]], 0
; CHECK: [[THERE:%.*]] = inttoptr i64 [[FROM]] to ptr
; CHECK: load i64, ptr [[THERE]], align 1, !nosanitize
; CHECK: call void @__spillway_look_ahead_note(ptr [[STATE]], i64 {{%.*}})
; CHECK-NOT: store

; CHECK-LABEL: define internal preserve_allcc i64 @conditional.spill.ahead(
; CHECK: [[EVEN_OR_ODD:%.*]] = freeze i1
; CHECK-NEXT: br i1 [[EVEN_OR_ODD]]
; CHECK: call i64 @__spillway_look_ahead_load(ptr {{%.*}}, i64 {{%.*}}, i64 8, i64 2)

; What would end the loop leaves nothing out.
; CHECK-LABEL: define internal preserve_allcc i64 @early.spill.ahead(
; CHECK-NOT: freeze i1
; CHECK: call i64 @__spillway_look_ahead_load(ptr {{%.*}}, i64 {{%.*}}, i64 8, i64 2)
; CHECK-NOT: freeze i1
; CHECK-LABEL: define internal preserve_allcc i64 @calls.spill.ahead(
; CHECK: call i64 @__spillway_look_ahead_load(ptr {{%.*}}, i64 {{%.*}}, i64 8, i64 2)

; A divisor that is zero by then divides nothing.
; CHECK-LABEL: define internal preserve_allcc i64 @divides.spill.ahead(
; CHECK: [[SAFE:%.*]] = select i1 {{%.*}}, i64 1, i64 {{%.*}}
; CHECK: urem i64 {{%.*}}, [[SAFE]]

; What is at an address that was loaded comes from plain memory too, but where the address may be another by then.
; CHECK-LABEL: define internal preserve_allcc i64 @chain.spill.ahead(
; CHECK: call i64 @__spillway_look_ahead_load(ptr {{%.*}}, i64 {{%.*}}, i64 8, i64 3)
; CHECK: call i64 @__spillway_look_ahead_load(ptr {{%.*}}, i64 {{%.*}}, i64 8, i64 3)
; CHECK: call void @__spillway_look_ahead_note(
; CHECK: call i64 @__spillway_look_ahead_load(ptr {{%.*}}, i64 {{%.*}}, i64 8, i64 1)
; CHECK: call void @__spillway_look_ahead_note(
; CHECK-LABEL: define internal preserve_allcc i64 @queue.spill.ahead(
; CHECK: call i64 @__spillway_look_ahead_load(ptr {{%.*}}, i64 {{%.*}}, i64 8, i64 3)
; CHECK: call i64 @__spillway_look_ahead_load(ptr {{%.*}}, i64 {{%.*}}, i64 8, i64 3)
; CHECK: call void @__spillway_look_ahead_note(
; CHECK: call i64 @__spillway_look_ahead_load(ptr {{%.*}}, i64 {{%.*}}, i64 8, i64 0)
; CHECK: call void @__spillway_look_ahead_note(

; CHECK-LABEL: define internal preserve_allcc i64 @neighbours.spill.ahead(
; CHECK-LABEL: define internal preserve_allcc i64 @neighbours.spill.ahead.{{[0-9]+}}(
; CHECK: call i64 @__spillway_look_ahead_load(ptr {{%.*}}, i64 {{%.*}}, i64 4, i64 3)
; CHECK: call i64 @__spillway_look_ahead_load(ptr {{%.*}}, i64 {{%.*}}, i64 8, i64 1)
; CHECK: call i64 @__spillway_look_ahead_load(ptr {{%.*}}, i64 {{%.*}}, i64 4, i64 0)
; CHECK: call void @__spillway_look_ahead_note(
; CHECK-LABEL: define internal preserve_allcc i64 @reloaded.spill.ahead(
; CHECK: call i64 @__spillway_look_ahead_load(ptr {{%.*}}, i64 {{%.*}}, i64 8, i64 3)
; CHECK: call void @__spillway_look_ahead_note(
; CHECK-LABEL: define internal preserve_allcc i64 @table.spill.ahead(
; CHECK: call i64 @__spillway_look_ahead_load(ptr {{%.*}}, i64 {{%.*}}, i64 8, i64 3)
; CHECK: freeze i1
; CHECK: call i64 @__spillway_look_ahead_load(ptr {{%.*}}, i64 {{%.*}}, i64 8, i64 4)
; CHECK: call void @__spillway_look_ahead_note(
; CHECK-LABEL: define internal preserve_allcc i64 @probed.spill.ahead(
; CHECK: call void @__spillway_look_ahead_note(
; CHECK: call i64 @__spillway_look_ahead_load(ptr {{%.*}}, i64 {{%.*}}, i64 8, i64 3)
; CHECK: call i64 @__spillway_look_ahead_load(ptr {{%.*}}, i64 {{%.*}}, i64 8, i64 1)
; CHECK: call void @__spillway_look_ahead_note(
; CHECK: call i64 @__spillway_look_ahead_load(ptr {{%.*}}, i64 {{%.*}}, i64 8, i64 1)
; CHECK: call i64 @__spillway_look_ahead_load(ptr {{%.*}}, i64 {{%.*}}, i64 8, i64 0)
; CHECK: call void @__spillway_look_ahead_note(
; CHECK-LABEL: define internal preserve_allcc i64 @skipped.spill.ahead(
; CHECK: call i64 @__spillway_look_ahead_load(ptr {{%.*}}, i64 {{%.*}}, i64 8, i64 0)
; CHECK: call void @__spillway_look_ahead_note(
; CHECK-LABEL: define internal preserve_allcc i64 @first_of_others.spill.ahead(
; CHECK: call i64 @__spillway_look_ahead_load(ptr {{%.*}}, i64 {{%.*}}, i64 8, i64 0)
; CHECK: call void @__spillway_look_ahead_note(

; CHECK-LABEL: define internal preserve_allcc i64 @published.spill.ahead(
; CHECK: call i64 @__spillway_look_ahead_load(ptr {{%.*}}, i64 {{%.*}}, i64 8, i64 2)
; CHECK: call void @__spillway_look_ahead_note(
; CHECK-LABEL: define internal preserve_allcc i64 @published_by_either.spill.ahead(
; CHECK: call i64 @__spillway_look_ahead_load(ptr {{%.*}}, i64 {{%.*}}, i64 8, i64 2)
; CHECK: call void @__spillway_look_ahead_note(

; It leaves all vector registers as they are, and all slots: it calls nothing of the program's when it begins.
; CHECK-NOT: "instrument-function-entry-inlined"{{.*}}vzeroupper
; CHECK: attributes #{{[0-9]+}} = { {{.*}}"target-features"="-vzeroupper"
; CHECK-NOT: "instrument-function-entry-inlined"{{.*}}vzeroupper
; CHECK: attributes #[[KEEPS]] = { {{.*}}"spillway-keeps"
; CHECK-NOT: "instrument-function-entry-inlined"{{.*}}vzeroupper
