; OPTIONS: -spill-assume-aligned -spill-loops=0 -spill-segments=0
; Accesses that share a translation, and those that must not.

declare void @other()
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; Fields of one object. Nobody knows that they lie in one page: the leader checks the window of 24 bytes, the
; follower asks whether it crossed; then each is translated alone, in a scratch slot. A slow path in between
; keeps the slot of what is shared (bit 2).
; CHECK-LABEL: define i64 @fields(
; CHECK: %spill.crosses = icmp ugt i32 {{.*}}, -25165824
; CHECK: br i1 %spill.crosses, label %[[ALONE:.*]], label %[[HOT:.*]], !prof
; CHECK: [[ALONE]]:
; CHECK: (i64 {{.*}}, ptr @__spillway_load8_live5_stub)
; CHECK: [[HOT]]:
; CHECK: [[SLOT:%.*]] = getelementptr inbounds i64, ptr %spill.slots, i64 2
; CHECK: store atomic i64 %spill.address{{.*}}, ptr [[SLOT]] release
; CHECK: (i64 {{.*}}, ptr @__spillway_translate_live4_stub)
; CHECK: %spill.shared = phi i64 [ 0, {{.*}} ], [ %spill.d{{.*}}, {{.*}} ]
; CHECK: %spill.crossed = icmp eq i64 %spill.shared, 0
; CHECK: br i1 %spill.crossed
; CHECK: [[AGAIN:%.*]] = getelementptr i8, ptr %p, i64 16
; CHECK: [[ADDRESS:%.*]] = ptrtoint ptr [[AGAIN]] to i64
; CHECK: (i64 [[ADDRESS]], ptr @__spillway_load8_live5_stub)
; CHECK-NOT: cross_load
; CHECK: ret
define i64 @fields(ptr %p, ptr %q) {
  %a = load i64, ptr %p, align 8
  store i32 1, ptr %q, align 4
  %f = getelementptr i8, ptr %p, i64 16
  %b = load i64, ptr %f, align 8
  %s = add i64 %a, %b
  ret i64 %s
}

; Inside what the leader's alignment covers there is nothing to check.
; CHECK-LABEL: define i32 @aligned(
; CHECK: store atomic
; CHECK-NOT: spill.cross
; CHECK-NOT: store atomic
; CHECK: ret
define i32 @aligned(ptr %p) {
  store i64 0, ptr %p, align 8
  %f = getelementptr i8, ptr %p, i64 4
  %v = load i32, ptr %f, align 4
  ret i32 %v
}

; A byte never lies across an edge. But where the other side of its copy does, all of the copy is done apart: what follows
; either side asks.
; CHECK-LABEL: define i8 @copied_byte(
; CHECK: phi i64 [ 0, {{.*}} ]
; CHECK: phi i64 [ 0, {{.*}} ]
; CHECK: %spill.crossed{{[0-9]*}} = icmp eq i64 %spill.shared{{[0-9]*}}, 0
; CHECK: store i32 5, ptr
; CHECK: %spill.crossed{{[0-9]*}} = icmp eq i64 %spill.shared{{[0-9]*}}, 0
; CHECK: ret
define i8 @copied_byte(ptr %p, ptr %q) {
  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %q, i64 1, i1 false)
  %f = getelementptr i8, ptr %p, i64 1
  store i32 5, ptr %f, align 1
  %v = load i8, ptr %q, align 1
  ret i8 %v
}

; Indices that differ by a constant.
; CHECK-LABEL: define i32 @indices(
; CHECK: %spill.crossed
; CHECK: ret
define i32 @indices(ptr %p, i32 %i) {
  %i.wide = sext i32 %i to i64
  %e = getelementptr inbounds i32, ptr %p, i64 %i.wide
  %v = load i32, ptr %e, align 4
  %j = add nsw i32 %i, 3
  %j.wide = sext i32 %j to i64
  %f = getelementptr inbounds i32, ptr %p, i64 %j.wide
  store i32 %v, ptr %f, align 4
  ret i32 %v
}

; The sum may wrap: the distance is not constant.
; CHECK-LABEL: define i32 @wrapping(
; CHECK-NOT: %spill.crossed
; CHECK: ret
define i32 @wrapping(ptr %p, i32 %i) {
  %i.wide = sext i32 %i to i64
  %e = getelementptr inbounds i32, ptr %p, i64 %i.wide
  %v = load i32, ptr %e, align 4
  %j = add i32 %i, 3
  %j.wide = sext i32 %j to i64
  %f = getelementptr inbounds i32, ptr %p, i64 %j.wide
  store i32 %v, ptr %f, align 4
  ret i32 %v
}

; Nothing lives across a call.
; CHECK-LABEL: define void @call(
; CHECK: store atomic
; CHECK: call void @other()
; CHECK: store atomic
; CHECK: ret
define void @call(ptr %p) {
  store i32 0, ptr %p, align 4
  call void @other()
  store i32 1, ptr %p, align 4
  ret void
}

; Nor across inline assembly.
; CHECK-LABEL: define void @assembly(
; CHECK: store atomic
; CHECK: call void asm
; CHECK: store atomic
; CHECK: ret
define void @assembly(ptr %p) {
  store i32 0, ptr %p, align 4
  call void asm sideeffect "", ""()
  store i32 1, ptr %p, align 4
  ret void
}

; A call on one of two paths is a call.
; CHECK-LABEL: define void @paths(
; CHECK: store atomic
; CHECK: call void @other()
; CHECK: store atomic
; CHECK: ret
define void @paths(ptr %p, i1 %c) {
  store i32 0, ptr %p, align 4
  br i1 %c, label %then, label %join
then:
  call void @other()
  br label %join
join:
  store i32 1, ptr %p, align 4
  ret void
}

; What was translated on one path only is not translated after the join, and nothing is hoisted.
; CHECK-LABEL: define void @partial(
; CHECK: br i1 %c
; CHECK: store atomic
; CHECK: store atomic
; CHECK: ret
define void @partial(ptr %p, i1 %c) {
  br i1 %c, label %then, label %join
then:
  store i32 0, ptr %p, align 4
  br label %join
join:
  store i32 1, ptr %p, align 4
  ret void
}

; Both sides of a branch follow what was before it; a loop too, as long as it calls nothing.
; CHECK-LABEL: define void @dominated(
; CHECK: store atomic
; CHECK-NOT: store atomic
; CHECK: ret
define void @dominated(ptr %p, i1 %c, i32 %n) {
  store i32 0, ptr %p, align 4
  br i1 %c, label %then, label %loop
then:
  store i32 1, ptr %p, align 4
  br label %loop
loop:
  %i = phi i32 [ 0, %0 ], [ 0, %then ], [ %next, %loop ]
  store i32 %i, ptr %p, align 4
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, %n
  br i1 %more, label %loop, label %out
out:
  ret void
}

; An atomic follows too; where the window crosses, its own pages are mapped, it is never bounced.
; CHECK-LABEL: define void @atomic(
; CHECK: store atomic i64 {{.*}} release, align 8
; CHECK: br i1 %spill.crossed
; CHECK-NOT: cross_load
; CHECK: @__spillway_cross_map
; CHECK: atomicrmw add
define void @atomic(ptr %p) {
  store i32 0, ptr %p, align 4
  %f = getelementptr i8, ptr %p, i64 40
  %old = atomicrmw add ptr %f, i32 1 seq_cst, align 4
  ret void
}

; Too far apart for one window.
; CHECK-LABEL: define void @far(
; CHECK: store atomic
; CHECK: store atomic
; CHECK: ret
define void @far(ptr %p) {
  store i32 0, ptr %p, align 4
  %f = getelementptr i8, ptr %p, i64 400
  store i32 0, ptr %f, align 4
  ret void
}

; However many other cases of a switch translate the address again, the first and the last of them follow what
; was translated before it.
; CHECK-LABEL: define void @cases(
; CHECK: store atomic
; CHECK: {{^}}first:
; CHECK-NOT: store atomic
; CHECK: {{^}}c0:
; CHECK-COUNT-18: store atomic
; CHECK-NOT: store atomic
; CHECK: {{^}}}
define void @cases(ptr %p, i32 %k) {
  store i32 0, ptr %p, align 8
  switch i32 %k, label %first [
    i32 0, label %c0
    i32 1, label %c1
    i32 2, label %c2
    i32 3, label %c3
    i32 4, label %c4
    i32 5, label %c5
    i32 6, label %c6
    i32 7, label %c7
    i32 8, label %c8
    i32 9, label %c9
    i32 10, label %c10
    i32 11, label %c11
    i32 12, label %c12
    i32 13, label %c13
    i32 14, label %c14
    i32 15, label %c15
    i32 16, label %c16
    i32 17, label %c17
    i32 18, label %last
  ]
first:
  store i32 -1, ptr %p, align 8
  ret void
c0:
  call void @other()
  store i32 0, ptr %p, align 8
  ret void
c1:
  call void @other()
  store i32 1, ptr %p, align 8
  ret void
c2:
  call void @other()
  store i32 2, ptr %p, align 8
  ret void
c3:
  call void @other()
  store i32 3, ptr %p, align 8
  ret void
c4:
  call void @other()
  store i32 4, ptr %p, align 8
  ret void
c5:
  call void @other()
  store i32 5, ptr %p, align 8
  ret void
c6:
  call void @other()
  store i32 6, ptr %p, align 8
  ret void
c7:
  call void @other()
  store i32 7, ptr %p, align 8
  ret void
c8:
  call void @other()
  store i32 8, ptr %p, align 8
  ret void
c9:
  call void @other()
  store i32 9, ptr %p, align 8
  ret void
c10:
  call void @other()
  store i32 10, ptr %p, align 8
  ret void
c11:
  call void @other()
  store i32 11, ptr %p, align 8
  ret void
c12:
  call void @other()
  store i32 12, ptr %p, align 8
  ret void
c13:
  call void @other()
  store i32 13, ptr %p, align 8
  ret void
c14:
  call void @other()
  store i32 14, ptr %p, align 8
  ret void
c15:
  call void @other()
  store i32 15, ptr %p, align 8
  ret void
c16:
  call void @other()
  store i32 16, ptr %p, align 8
  ret void
c17:
  call void @other()
  store i32 17, ptr %p, align 8
  ret void
last:
  store i32 -2, ptr %p, align 8
  ret void
}

; Pointers that a loop carries side by side: one is always eight bytes above the other, since both come from where the other's next
; one lies.
; CHECK-LABEL: define void @beside(
; CHECK: %spill.elsewhere = icmp ugt i64 {{.*}}, 4072
; CHECK-NOT: %spill.elsewhere{{[0-9]}}
; CHECK: ret
define void @beside(ptr %p, i64 %v) {
entry:
  %below = getelementptr inbounds i8, ptr %p, i64 -8
  br label %loop
loop:
  %w = phi i64 [ 0, %entry ], [ %x, %loop ]
  %q = phi ptr [ %below, %entry ], [ %next, %loop ]
  %r = phi ptr [ %p, %entry ], [ %q, %loop ]
  store i64 %w, ptr %r, align 8
  %next = getelementptr inbounds i8, ptr %q, i64 -8
  %x = load i64, ptr %next, align 8
  %less = icmp ult i64 %v, %x
  br i1 %less, label %loop, label %out
out:
  ret void
}

; Both go on by the same, whatever is between them: but that has to be known where the loop is entered.
; CHECK-LABEL: define void @both(
; CHECK: %spill.elsewhere = icmp ugt i64 {{.*}}, 4072
; CHECK-NOT: %spill.elsewhere{{[0-9]}}
; CHECK: ret
define void @both(ptr %p, i64 %v) {
entry:
  %above = getelementptr inbounds i8, ptr %p, i64 16
  br label %loop
loop:
  %q = phi ptr [ %p, %entry ], [ %q.next, %loop ]
  %r = phi ptr [ %above, %entry ], [ %r.next, %loop ]
  store i64 %v, ptr %q, align 8
  %x = load i64, ptr %r, align 8
  %q.next = getelementptr inbounds i8, ptr %q, i64 8
  %r.next = getelementptr inbounds i8, ptr %r, i64 8
  %less = icmp ult i64 %v, %x
  br i1 %less, label %loop, label %out
out:
  ret void
}
; CHECK-LABEL: define void @two_arrays(
; CHECK-COUNT-2: %spill.elsewhere{{[0-9]*}} = icmp
; CHECK: ret
define void @two_arrays(ptr %p, ptr %above, i64 %v) {
entry:
  br label %loop
loop:
  %q = phi ptr [ %p, %entry ], [ %q.next, %loop ]
  %r = phi ptr [ %above, %entry ], [ %r.next, %loop ]
  store i64 %v, ptr %q, align 8
  %x = load i64, ptr %r, align 8
  %q.next = getelementptr inbounds i8, ptr %q, i64 8
  %r.next = getelementptr inbounds i8, ptr %r, i64 8
  %less = icmp ult i64 %v, %x
  br i1 %less, label %loop, label %out
out:
  ret void
}

; In the first iteration they are further apart than later.
; CHECK-LABEL: define void @nearer(
; CHECK-COUNT-2: %spill.elsewhere{{[0-9]*}} = icmp
; CHECK: ret
define void @nearer(ptr %p, i64 %v) {
entry:
  %below = getelementptr inbounds i8, ptr %p, i64 -16
  br label %loop
loop:
  %w = phi i64 [ 0, %entry ], [ %x, %loop ]
  %q = phi ptr [ %below, %entry ], [ %next, %loop ]
  %r = phi ptr [ %p, %entry ], [ %q, %loop ]
  store i64 %w, ptr %r, align 8
  %next = getelementptr inbounds i8, ptr %q, i64 -8
  %x = load i64, ptr %next, align 8
  %less = icmp ult i64 %v, %x
  br i1 %less, label %loop, label %out
out:
  ret void
}

; They part: in the second iteration they are 24 bytes apart.
; CHECK-LABEL: define void @apart(
; CHECK-COUNT-2: %spill.elsewhere{{[0-9]*}} = icmp
; CHECK: ret
define void @apart(ptr %p, i64 %v) {
entry:
  %above = getelementptr inbounds i8, ptr %p, i64 16
  br label %loop
loop:
  %q = phi ptr [ %p, %entry ], [ %q.next, %loop ]
  %r = phi ptr [ %above, %entry ], [ %r.next, %loop ]
  store i64 %v, ptr %q, align 8
  %x = load i64, ptr %r, align 8
  %q.next = getelementptr inbounds i8, ptr %q, i64 8
  %r.next = getelementptr inbounds i8, ptr %r, i64 16
  %less = icmp ult i64 %v, %x
  br i1 %less, label %loop, label %out
out:
  ret void
}

; Large elements side by side cross pages' edges more often together than they would by themselves.
; CHECK-LABEL: define void @large(
; CHECK-COUNT-2: %spill.elsewhere{{[0-9]*}} = icmp
; CHECK: ret
define void @large(ptr %p, i64 %v) {
entry:
  %below = getelementptr inbounds i8, ptr %p, i64 -100
  br label %loop
loop:
  %w = phi i64 [ 0, %entry ], [ %x, %loop ]
  %q = phi ptr [ %below, %entry ], [ %next, %loop ]
  %r = phi ptr [ %p, %entry ], [ %q, %loop ]
  store i64 %w, ptr %r, align 8
  %next = getelementptr inbounds i8, ptr %q, i64 -100
  %x = load i64, ptr %next, align 8
  %less = icmp ult i64 %v, %x
  br i1 %less, label %loop, label %out
out:
  ret void
}

; What a loop has found is at the same address behind it, whatever its name is there.
; CHECK-LABEL: define void @behind(
; CHECK: spill.elsewhere
; CHECK: out:
; CHECK-NOT: store atomic
; CHECK: ret
define void @behind(ptr %p) {
entry:
  br label %loop
loop:
  %q = phi ptr [ %p, %entry ], [ %next, %loop ]
  %v = load i64, ptr %q, align 8
  %next = getelementptr inbounds i64, ptr %q, i64 1
  %done = icmp eq i64 %v, 0
  br i1 %done, label %out, label %loop
out:
  %found = phi ptr [ %q, %loop ]
  store i64 1, ptr %found, align 8
  ret void
}
