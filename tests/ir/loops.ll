; OPTIONS: -spill-held=0 -spill-copy-aligned=0 -spill-prefetch=0
; Loops split at page edges.

declare void @other()

; The inner loop runs on raw addresses: one translation ahead of it, in its own slot, nothing else in it.
; CHECK-LABEL: define i64 @sum(
; CHECK: %spill.left = phi i64
; CHECK: icmp ult i64 %spill.left, 4
; CHECK: spill.plan:
; CHECK: [[CROSSES:%.*]] = icmp ugt i64 [[OFFSET:%.*]], 4088
; CHECK: [[ROOM:%.*]] = sub i64 4088, [[OFFSET]]
; CHECK: [[MORE:%.*]] = udiv i64 [[ROOM]], 8
; CHECK: [[COUNT:%.*]] = add i64 [[MORE]], 1
; CHECK: [[INPAGE:%.*]] = select i1 [[CROSSES]], i64 0, i64 [[COUNT]]
; CHECK: %spill.chunk = call i64 @llvm.umin.i64(i64 %spill.left, i64 [[INPAGE]])
; CHECK: spill.enter:
; CHECK: getelementptr inbounds i64, ptr %spill.slots, i64 2
; CHECK: store atomic
; CHECK: call { i64, i64 } asm sideeffect "callq ${3:P}", "{{.*}}"(i64 {{.*}}, ptr @__spillway_translate_live4_stub)
; CHECK: spill.fast:
; CHECK-NOT: store atomic
; CHECK-NOT: spill.cross
; CHECK: load i64, ptr %spill.pointer
; CHECK-NOT: store atomic
; CHECK: spill.done:
; CHECK: br i1 {{.*}}, label %out, label %loop
; The iteration whose element lies across an edge takes the old way.
; CHECK: spill.body:
; CHECK: store atomic
; CHECK: out:
define i64 @sum(ptr %p, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %s = phi i64 [ 0, %entry ], [ %s.next, %loop ]
  %e = getelementptr inbounds i64, ptr %p, i64 %i
  %v = load i64, ptr %e, align 8
  %s.next = add i64 %s, %v
  %i.next = add nuw i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %out, label %loop
out:
  ret i64 %s.next
}

; Downwards, two pointers, one of them fixed.
; CHECK-LABEL: define void @down(
; CHECK: spill.plan:
; CHECK: udiv i64 {{.*}}, 4
; CHECK: spill.enter:
; CHECK: i64 2
; CHECK: i64 3
; CHECK: spill.fast:
; CHECK-NOT: store atomic
; CHECK: spill.done:
define void @down(ptr %p, ptr %total, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ %n, %entry ], [ %i.next, %loop ]
  %e = getelementptr inbounds i32, ptr %p, i64 %i
  %v = load i32, ptr %e, align 4
  %t = load i32, ptr %total, align 4
  %t.next = add i32 %t, %v
  store i32 %t.next, ptr %total, align 4
  %i.next = add nsw i64 %i, -1
  %done = icmp eq i64 %i.next, 0
  br i1 %done, label %out, label %loop
out:
  ret void
}

; What is accessed under a condition only is not translated ahead.
; CHECK-LABEL: define void @conditional(
; CHECK: spill.enter:
; CHECK: (i64 {{.*}}, ptr @__spillway_translate_live4_stub)
; CHECK-NOT: @__spillway_
; CHECK: spill.fast:
; CHECK: @__spillway_{{load|store}}{{[48]}}_live5_stub
; CHECK: spill.done:
define void @conditional(ptr %p, ptr %q, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %latch ]
  %e = getelementptr inbounds i32, ptr %p, i64 %i
  %v = load i32, ptr %e, align 4
  %c = icmp eq i32 %v, 0
  br i1 %c, label %then, label %latch
then:
  %f = getelementptr inbounds i32, ptr %q, i64 %i
  store i32 1, ptr %f, align 4
  br label %latch
latch:
  %i.next = add nuw i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %out, label %loop
out:
  ret void
}

; An iteration that may be left early does not access what comes after: such loops are left alone, like those
; that call, and those whose number of iterations nobody knows.
; CHECK-LABEL: define void @early(
; CHECK-NOT: spill.plan
; CHECK: ret
define void @early(ptr %p, ptr %q, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %latch ]
  %e = getelementptr inbounds i32, ptr %p, i64 %i
  %v = load i32, ptr %e, align 4
  %c = icmp eq i32 %v, 0
  br i1 %c, label %out, label %latch
latch:
  %f = getelementptr inbounds i32, ptr %q, i64 %i
  store i32 1, ptr %f, align 4
  %i.next = add nuw i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %out, label %loop
out:
  ret void
}

; CHECK-LABEL: define void @calls(
; CHECK-NOT: spill.plan
; CHECK: ret
define void @calls(ptr %p, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %e = getelementptr inbounds i32, ptr %p, i64 %i
  store i32 0, ptr %e, align 4
  call void @other()
  %i.next = add nuw i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %out, label %loop
out:
  ret void
}

; Assembly that defines a symbol must exist once.
; CHECK-LABEL: define void @marked(
; CHECK-NOT: spill.plan
; CHECK: ret
define void @marked(ptr %p, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %e = getelementptr inbounds i32, ptr %p, i64 %i
  %v = call i32 asm "mark: movl $$1, $0", "=r"() nounwind memory(none)
  store i32 %v, ptr %e, align 4
  %i.next = add nuw i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %out, label %loop
out:
  ret void
}

; CHECK-LABEL: define void @uncountable(
; CHECK-NOT: spill.plan
; CHECK: ret
define void @uncountable(ptr %p) {
entry:
  br label %loop
loop:
  %e = phi ptr [ %p, %entry ], [ %next, %loop ]
  %v = load i32, ptr %e, align 4
  %next = getelementptr inbounds i32, ptr %e, i64 1
  %done = icmp eq i32 %v, 0
  br i1 %done, label %out, label %loop
out:
  ret void
}

; Few iterations do not pay.
; CHECK-LABEL: define void @short(
; CHECK-NOT: spill.plan
; CHECK: ret
define void @short(ptr %p) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %e = getelementptr inbounds i32, ptr %p, i64 %i
  store i32 0, ptr %e, align 4
  %i.next = add nuw i64 %i, 1
  %done = icmp eq i64 %i.next, 5
  br i1 %done, label %out, label %loop
out:
  ret void
}

; What the loop's end is decided by and is used behind it comes from where the loop did end.
; CHECK-LABEL: define i64 @rest(
; CHECK: spill.fast:
; CHECK: [[REST:%rest[^ ]*]] = add i64 {{.*}}, 7
; CHECK: spill.done:
; CHECK: out:
; CHECK: phi i64 [ %rest, %{{.*}} ], [ [[REST]], %spill.done ]
define i64 @rest(ptr %p, i64 %end) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %e = getelementptr inbounds i64, ptr %p, i64 %i
  store i64 %i, ptr %e, align 8
  %i.next = add nuw i64 %i, 1
  %rest = add i64 %i.next, 7
  %done = icmp eq i64 %rest, %end
  br i1 %done, label %out, label %loop
out:
  ret i64 %rest
}

; What only decides when the loop ends, here a base that both sides have in common, is in what is left of the loop alone.
; CHECK-LABEL: define void @until_met(
; CHECK: spill.fast:
; CHECK-NOT: load ptr
; CHECK: spill.done:
; CHECK: spill.body:
; CHECK: load ptr, ptr %spill.pointer
; CHECK: ret
define void @until_met(ptr %object, ptr %to, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %e = getelementptr inbounds i64, ptr %to, i64 %i
  store i64 %i, ptr %e, align 8
  %i.next = add nuw i64 %i, 1
  %base = load ptr, ptr %object, align 8
  %at = getelementptr inbounds i8, ptr %base, i64 %i.next
  %end = getelementptr inbounds i8, ptr %base, i64 %n
  %done = icmp eq ptr %at, %end
  br i1 %done, label %out, label %loop
out:
  ret void
}

; An iteration that may wait for others, in a cycle that is entered at two places, translates each time.
; CHECK-LABEL: define i64 @wait_for_each(
; CHECK-NOT: spill.plan
; CHECK: ret
define i64 @wait_for_each(ptr %p, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %latch ]
  %s = phi i64 [ 0, %entry ], [ %s.next, %latch ]
  %e = getelementptr inbounds { i64, i32, i32 }, ptr %p, i64 %i
  %v = load i64, ptr %e, align 8
  %odd = trunc i64 %v to i1
  br i1 %odd, label %a, label %b
a:
  %first.at = getelementptr inbounds i8, ptr %e, i64 8
  %first = load atomic i32, ptr %first.at acquire, align 4
  %unset = icmp eq i32 %first, 0
  br i1 %unset, label %b, label %latch
b:
  %second.at = getelementptr inbounds i8, ptr %e, i64 12
  %second = load atomic i32, ptr %second.at acquire, align 4
  %clear = icmp eq i32 %second, 0
  br i1 %clear, label %a, label %latch
latch:
  %s.next = add i64 %s, %v
  %i.next = add nuw i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %out, label %loop
out:
  ret i64 %s.next
}

; Rows of a graph, whose length is loaded in the loop around: most are short.
; CHECK-LABEL: define i32 @rows(
; CHECK-NOT: spill.plan
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
