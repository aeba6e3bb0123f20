; Loops that look ahead, in which an iteration leaves something out after it has looked at a value.
; OPTIONS: -spill-copy-aligned=0

; What an iteration leaves out after a look at a value the look leaves out, too.
; CHECK-LABEL: define i32 @left_out(
; CHECK: call preserve_allcc i64 @left_out.spill.ahead(
define i32 @left_out(ptr %roots, i32 %largest, ptr %offsets, ptr %edges, i64 %n) {
entry:
  br label %vertex
vertex:
  %v = phi i64 [ 0, %entry ], [ %v.next, %next ]
  %total = phi i32 [ 0, %entry ], [ %total.next, %next ]
  %root.at = getelementptr inbounds i32, ptr %roots, i64 %v
  %root = load atomic i32, ptr %root.at monotonic, align 4
  %is.largest = icmp eq i32 %root, %largest
  br i1 %is.largest, label %next, label %row
row:
  %at = getelementptr inbounds i64, ptr %offsets, i64 %v
  %begin = load i64, ptr %at, align 8
  %edge.at = getelementptr inbounds i32, ptr %edges, i64 %begin
  %edge = load i32, ptr %edge.at, align 4
  %sum = add i32 %total, %edge
  br label %next
next:
  %total.next = phi i32 [ %total, %vertex ], [ %sum, %row ]
  %v.next = add nuw i64 %v, 1
  %done = icmp eq i64 %v.next, %n
  br i1 %done, label %out, label %vertex
out:
  ret i32 %total.next
}

; The same where what has the values is loaded anew from the same place.
; CHECK-LABEL: define i32 @left_out_anew(
; CHECK: call preserve_allcc i64 @left_out_anew.spill.ahead(
define i32 @left_out_anew(ptr dereferenceable(8) %place, i32 %largest, ptr %offsets, ptr %edges, i64 %n) {
entry:
  br label %vertex
vertex:
  %v = phi i64 [ 0, %entry ], [ %v.next, %next ]
  %total = phi i32 [ 0, %entry ], [ %total.next, %next ]
  %roots = load ptr, ptr %place, align 8
  %root.at = getelementptr inbounds i32, ptr %roots, i64 %v
  %root = load atomic i32, ptr %root.at monotonic, align 4
  %is.largest = icmp eq i32 %root, %largest
  br i1 %is.largest, label %next, label %row
row:
  %at = getelementptr inbounds i64, ptr %offsets, i64 %v
  %begin = load i64, ptr %at, align 8
  %edge.at = getelementptr inbounds i32, ptr %edges, i64 %begin
  %edge = load i32, ptr %edge.at, align 4
  %sum = add i32 %total, %edge
  br label %next
next:
  %total.next = phi i32 [ %total, %vertex ], [ %sum, %row ]
  %v.next = add nuw i64 %v, 1
  %done = icmp eq i64 %v.next, %n
  br i1 %done, label %out, label %vertex
out:
  ret i32 %total.next
}

; Two conditions in a row, the second one in front of a loop inside.
; CHECK-LABEL: define i32 @left_out_rows(
; CHECK: call preserve_allcc i64 @left_out_rows.spill.ahead(
define i32 @left_out_rows(ptr %flags, ptr %offsets, ptr %edges, i64 %n) {
entry:
  br label %vertex
vertex:
  %v = phi i64 [ 0, %entry ], [ %v.next, %next ]
  %total = phi i32 [ 0, %entry ], [ %total.next, %next ]
  %flag.at = getelementptr inbounds i8, ptr %flags, i64 %v
  %flag = load i8, ptr %flag.at, align 1
  %is.wanted = icmp ne i8 %flag, 0
  br i1 %is.wanted, label %row, label %next
row:
  %at = getelementptr inbounds i64, ptr %offsets, i64 %v
  %begin = load i64, ptr %at, align 8
  %end.at = getelementptr inbounds i8, ptr %at, i64 8
  %end = load i64, ptr %end.at, align 8
  %is.empty = icmp uge i64 %begin, %end
  br i1 %is.empty, label %next, label %edge
edge:
  %e = phi i64 [ %begin, %row ], [ %e.next, %edge ]
  %sum = phi i32 [ %total, %row ], [ %sum.next, %edge ]
  %edge.at = getelementptr inbounds i32, ptr %edges, i64 %e
  %other = load i32, ptr %edge.at, align 4
  %sum.next = add i32 %sum, %other
  %e.next = add nuw i64 %e, 1
  %last = icmp uge i64 %e.next, %end
  br i1 %last, label %next, label %edge
next:
  %total.next = phi i32 [ %total, %vertex ], [ %total, %row ], [ %sum.next, %edge ]
  %v.next = add nuw i64 %v, 1
  %done = icmp eq i64 %v.next, %n
  br i1 %done, label %out, label %vertex
out:
  ret i32 %total.next
}

; A value that lies anywhere would have to be loaded first, and one that is volatile is not loaded ahead.
; CHECK-LABEL: define void @left_out_at_random(
; CHECK: call preserve_allcc i64 @left_out_at_random.spill.ahead(
define void @left_out_at_random(ptr %queue, ptr %seen, ptr %flags, ptr %values, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %latch ]
  %flag.at = getelementptr inbounds i8, ptr %flags, i64 %i
  %flag = load volatile i8, ptr %flag.at, align 1
  %is.off = icmp eq i8 %flag, 0
  br i1 %is.off, label %latch, label %look
look:
  %at = getelementptr inbounds i64, ptr %queue, i64 %i
  %key = load i64, ptr %at, align 8
  %seen.at = getelementptr inbounds i8, ptr %seen, i64 %key
  %is.seen = load i8, ptr %seen.at, align 1
  %was.seen = icmp ne i8 %is.seen, 0
  br i1 %was.seen, label %latch, label %then
then:
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

; Nothing is left out that is accessed in any case, or has such a thing beside it.
; CHECK-LABEL: define i64 @left_out_here_only(
; CHECK: call preserve_allcc i64 @left_out_here_only.spill.ahead(
define i64 @left_out_here_only(ptr %flags, ptr %index, ptr %values, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %latch ]
  %s = phi i64 [ 0, %entry ], [ %s.next, %latch ]
  %at = getelementptr inbounds i64, ptr %index, i64 %i
  %key = load i64, ptr %at, align 8
  %value.at = getelementptr inbounds i64, ptr %values, i64 %key
  %flag.at = getelementptr inbounds i8, ptr %flags, i64 %i
  %flag = load i8, ptr %flag.at, align 1
  %is.off = icmp eq i8 %flag, 0
  br i1 %is.off, label %latch, label %then
then:
  store i64 1, ptr %value.at, align 8
  br label %latch
latch:
  %beside.at = getelementptr inbounds i8, ptr %value.at, i64 8
  %beside = load i64, ptr %beside.at, align 8
  %s.next = add i64 %s, %beside
  %i.next = add nuw i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %out, label %loop
out:
  ret i64 %s.next
}

; What other threads may exchange need not be where it was.
; CHECK-LABEL: define void @left_out_by_others(
; CHECK: call preserve_allcc i64 @left_out_by_others.spill.ahead(
define void @left_out_by_others(ptr dereferenceable(8) %place, ptr %index, ptr %values, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %latch ]
  %at = getelementptr inbounds i64, ptr %index, i64 %i
  %key = load i64, ptr %at, align 8
  %settings = load atomic ptr, ptr %place monotonic, align 8
  %flag.at = getelementptr inbounds i8, ptr %settings, i64 8
  %flag = load i32, ptr %flag.at, align 4
  %is.off = icmp eq i32 %flag, 0
  br i1 %is.off, label %latch, label %then
then:
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

; A value may lie in order although its address is computed from what others may exchange. Such an address says nothing
; about where the loop is.
; CHECK-LABEL: define void @left_out_from_a_start(
; CHECK: call preserve_allcc i64 @left_out_from_a_start.spill.ahead(
define void @left_out_from_a_start(ptr %place, ptr %kinds, ptr %index, ptr %values, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %latch ]
  %start = load atomic i64, ptr %place monotonic, align 8
  %from = getelementptr inbounds i32, ptr %kinds, i64 %start
  %distance = sub i64 %i, %start
  %kind.at = getelementptr inbounds i32, ptr %from, i64 %distance
  %kind = load i32, ptr %kind.at, align 4
  %is.off = icmp eq i32 %kind, 0
  br i1 %is.off, label %latch, label %then
then:
  %at = getelementptr inbounds i64, ptr %index, i64 %i
  %key = load i64, ptr %at, align 8
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

; Where the value is not in memory, all goes on as if nothing were left out. What lies behind it is not surely loaded.
; CHECK-LABEL: define internal preserve_allcc i64 @left_out.spill.ahead(
; CHECK: [[FROM:%.*]] = call i64 @__spillway_look_ahead_load(ptr {{%.*}}, i64 {{%.*}}, i64 4, i64 3)
; CHECK-NEXT: [[NONE:%.*]] = icmp eq i64 [[FROM]], 0
; CHECK-NEXT: br i1 [[NONE]], label %[[REACHED:[a-z0-9]+]], label %
; CHECK: load i32, ptr {{%.*}}, align 1, !nosanitize
; CHECK: [[LEFT_OUT:%.*]] = freeze i1
; CHECK-NEXT: br i1 [[LEFT_OUT]], label %{{[a-z0-9]+}}, label %[[REACHED]]
; CHECK: {{^}}[[REACHED]]:
; CHECK: call i64 @__spillway_look_ahead_load(ptr {{%.*}}, i64 {{%.*}}, i64 8, i64 2)
; CHECK: call void @__spillway_look_ahead_note(

; The value itself is told of first: it has an address that is loaded.
; CHECK-LABEL: define internal preserve_allcc i64 @left_out_anew.spill.ahead(
; CHECK: call i64 @__spillway_look_ahead_load(ptr {{%.*}}, i64 {{%.*}}, i64 8, i64 4)
; CHECK: call i64 @__spillway_look_ahead_load(ptr {{%.*}}, i64 {{%.*}}, i64 8, i64 4)
; CHECK: call void @__spillway_look_ahead_note(
; CHECK: call i64 @__spillway_look_ahead_load(ptr {{%.*}}, i64 {{%.*}}, i64 4, i64 2)
; CHECK: freeze i1
; CHECK: call i64 @__spillway_look_ahead_load(ptr {{%.*}}, i64 {{%.*}}, i64 8, i64 2)
; CHECK: call void @__spillway_look_ahead_note(

; What the address takes, too, is loaded once: without it nothing can be told of.
; CHECK-LABEL: define internal preserve_allcc i64 @left_out_rows.spill.ahead(
; CHECK: call i64 @__spillway_look_ahead_load(ptr {{%.*}}, i64 {{%.*}}, i64 1, i64 3)
; CHECK: [[WANTED:%.*]] = freeze i1
; CHECK-NEXT: br i1 [[WANTED]], label %{{[a-z0-9]+}}, label %[[LEAVE:[a-z0-9]+]]
; CHECK: [[BEGIN:%.*]] = call i64 @__spillway_look_ahead_load(ptr {{%.*}}, i64 {{%.*}}, i64 8, i64 2)
; CHECK-NEXT: [[NO_BEGIN:%.*]] = icmp eq i64 [[BEGIN]], 0
; CHECK-NEXT: br i1 [[NO_BEGIN]], label %[[LEAVE]], label %
; CHECK: [[END:%.*]] = call i64 @__spillway_look_ahead_load(ptr {{%.*}}, i64 {{%.*}}, i64 8, i64 2)
; CHECK-NEXT: [[NO_END:%.*]] = icmp eq i64 [[END]], 0
; CHECK-NEXT: br i1 [[NO_END]], label %[[BEHIND:[a-z0-9]+]], label %
; CHECK: [[EMPTY:%.*]] = freeze i1
; CHECK-NEXT: br i1 [[EMPTY]], label %[[LEAVE]], label %[[BEHIND]]
; CHECK: {{^}}[[BEHIND]]:
; CHECK-NOT: @__spillway_look_ahead_load(
; CHECK: call void @__spillway_look_ahead_note(

; CHECK-LABEL: define internal preserve_allcc i64 @left_out_at_random.spill.ahead(
; CHECK-NOT: freeze i1
; CHECK-LABEL: define internal preserve_allcc i64 @left_out_here_only.spill.ahead(
; CHECK-NOT: freeze i1
; CHECK-LABEL: define internal preserve_allcc i64 @left_out_by_others.spill.ahead(
; CHECK: call i64 @__spillway_look_ahead_load(ptr {{%.*}}, i64 {{%.*}}, i64 8, i64 4)
; CHECK: call i64 @__spillway_look_ahead_load(ptr {{%.*}}, i64 {{%.*}}, i64 4, i64 0)
; CHECK: freeze i1
; CHECK: call i64 @__spillway_look_ahead_load(ptr {{%.*}}, i64 {{%.*}}, i64 8, i64 3)
; CHECK: call void @__spillway_look_ahead_note(
; CHECK-LABEL: define internal preserve_allcc i64 @left_out_from_a_start.spill.ahead(
; CHECK: call i64 @__spillway_look_ahead_load(ptr {{%.*}}, i64 {{%.*}}, i64 8, i64 1)
; CHECK: call i64 @__spillway_look_ahead_load(ptr {{%.*}}, i64 {{%.*}}, i64 4, i64 2)
; CHECK: freeze i1
; CHECK: call i64 @__spillway_look_ahead_load(ptr {{%.*}}, i64 {{%.*}}, i64 8, i64 2)
; CHECK: call void @__spillway_look_ahead_note(
