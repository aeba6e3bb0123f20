; Code that runs rarely is small: an access there is a call of a stub, asks nothing of those that share a translation if
; they may have none, and loops there are left as they are. Rarely is what the program itself calls so: a
; case of a switch is not.

; CHECK-LABEL: define i64 @rarely(
; CHECK: entry:
; CHECK: store atomic i64 {{.*}} release
; CHECK: rare:
; CHECK-NOT: %spill.entry
; CHECK: call { i64, i64 } asm sideeffect "callq ${3:P}", {{.*}}@__spillway_load8_live1_stub)
; CHECK: call { i64, i64 } asm sideeffect "callq ${3:P}", {{.*}}@__spillway_store4_live1_stub, i64
; CHECK-NOT: %spill.entry
; CHECK: ret i64
define i64 @rarely(ptr %p, ptr %q) {
entry:
  %v = load i64, ptr %p, align 8
  %is.zero = icmp eq i64 %v, 0
  br i1 %is.zero, label %rare, label %out, !prof !0
rare:
  %at = getelementptr i8, ptr %p, i64 8
  %w = load i64, ptr %at, align 8
  store i32 1, ptr %q, align 4
  br label %out
out:
  %r = phi i64 [ %v, %entry ], [ %w, %rare ]
  ret i64 %r
}

; What surely lies in the page of one that ran shares its translation: that is the least code.
; CHECK-LABEL: define i8 @beside(
; CHECK: rare:
; CHECK-NOT: asm sideeffect
; CHECK: ret i8
define i8 @beside(ptr %p) {
entry:
  %v = load i8, ptr %p
  %is.zero = icmp eq i8 %v, 0
  br i1 %is.zero, label %rare, label %out, !prof !0
rare:
  %w = load i8, ptr %p
  br label %out
out:
  %r = phi i8 [ %v, %entry ], [ %w, %rare ]
  ret i8 %r
}

; CHECK-LABEL: define i64 @half(
; CHECK: some:
; CHECK: %spill.entry
; CHECK: ret i64
define i64 @half(ptr %p, i1 %c) {
entry:
  br i1 %c, label %some, label %out
some:
  %v = load i64, ptr %p, align 8
  br label %out
out:
  %r = phi i64 [ 0, %entry ], [ %v, %some ]
  ret i64 %r
}

; A loop that runs less than once in a thousand calls is neither split nor looks ahead.
; CHECK-LABEL: define void @loop(
; CHECK: __spillway_load8_live1_stub
; CHECK-NOT: @__spillway_look_ahead
; CHECK-NOT: %spill.entry
; CHECK: ret void
define void @loop(ptr %p, i64 %n, ptr %q) {
entry:
  %few = icmp eq i64 %n, 0
  br i1 %few, label %ahead, label %out, !prof !0
ahead:
  br label %again
again:
  %i = phi i64 [ 0, %ahead ], [ %next, %again ]
  %at = getelementptr i64, ptr %p, i64 %i
  %v = load i64, ptr %at, align 8
  %there = getelementptr i8, ptr %q, i64 %v
  store i8 0, ptr %there
  %next = add nuw nsw i64 %i, 1
  %more = icmp ne i64 %next, %n
  br i1 %more, label %again, label %out
out:
  ret void
}

; CHECK-LABEL: define i64 @small(
; CHECK-NOT: %spill.entry
; CHECK: __spillway_load8_live1_stub
; CHECK-NOT: %spill.entry
; CHECK: ret i64
define i64 @small(ptr %p) minsize optsize {
  %v = load i64, ptr %p, align 8
  ret i64 %v
}

; CHECK-LABEL: define i64 @coldly(
; CHECK-NOT: %spill.entry
; CHECK: __spillway_load8_live1_stub
; CHECK: ret i64
define i64 @coldly(ptr %p) cold {
  %v = load i64, ptr %p, align 8
  ret i64 %v
}

!0 = !{!"branch_weights", i32 1, i32 1000000}
