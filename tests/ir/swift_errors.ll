; OPTIONS: -spill-bodies=2 -spill-copy-aligned=0
; Where Swift's calling convention has an error is a register: LLVM allows nothing with its address but to load, to store, and to
; pass it on as such.

declare swiftcc void @fails(ptr swiftself, ptr swifterror)

; CHECK-LABEL: define swiftcc void @fail(
; CHECK-NOT: spill
; CHECK: %old = load ptr, ptr %error, align 8
; CHECK-NOT: spill
; CHECK: store ptr %context, ptr %error, align 8
; CHECK: ret
define swiftcc void @fail(ptr swiftself %context, ptr swifterror %error) {
  %old = load ptr, ptr %error, align 8
  %none = icmp eq ptr %old, null
  br i1 %none, label %first, label %out
first:
  store ptr %context, ptr %error, align 8
  br label %out
out:
  ret void
}

; A loop around which it lives has no way into another body.
; CHECK-LABEL: define i64 @many(
; CHECK-NOT: spill.cargo
; CHECK: store atomic i64 {{.*}} release, align 8
; CHECK: call swiftcc void @fails(ptr swiftself %p, ptr swifterror %error)
; CHECK-NOT: spill.cargo
; CHECK: ret
define i64 @many(ptr %p, i64 %n) {
entry:
  %error = alloca swifterror ptr, align 8
  store ptr null, ptr %error, align 8
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %more ]
  %at = getelementptr inbounds i64, ptr %p, i64 %i
  store i64 %i, ptr %at, align 8
  call swiftcc void @fails(ptr swiftself %p, ptr swifterror %error)
  %found = load ptr, ptr %error, align 8
  %failed = icmp ne ptr %found, null
  br i1 %failed, label %out, label %more
more:
  %i.next = add nuw i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %out, label %loop
out:
  ret i64 %i
}

; A look ahead does not ask it whether an iteration leaves something out.
; CHECK-LABEL: define void @looks(
; CHECK: call preserve_allcc i64 @looks.spill.ahead(
define void @looks(ptr %index, ptr %values, i64 %n) {
entry:
  %error = alloca swifterror ptr, align 8
  store ptr null, ptr %error, align 8
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %latch ]
  %at = getelementptr inbounds i64, ptr %index, i64 %i
  %key = load i64, ptr %at, align 8
  %found = load ptr, ptr %error, align 8
  %failed = icmp ne ptr %found, null
  br i1 %failed, label %latch, label %then
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
; CHECK-LABEL: define internal preserve_allcc i64 @looks.spill.ahead(
; CHECK-NOT: freeze i1
; CHECK: call void @__spillway_look_ahead_note(
