; Where nothing is translated on some paths, these do not ask for the slots; in a loop they are asked for ahead of it.
; CHECK-LABEL: define void @sometimes(
; CHECK-NOT: @__spillway_slots
; CHECK: br i1 %c
; CHECK: then:
; CHECK-NEXT: call ptr @llvm.threadlocal.address.p0(ptr @__spillway_slots)
; CHECK-NEXT: %spill.slots = load
; CHECK: loop:
; CHECK: store atomic
define void @sometimes(ptr %p, i1 %c) {
entry:
  br i1 %c, label %then, label %out
then:
  br label %loop
loop:
  %q = load ptr, ptr %p, align 8
  %done = icmp eq ptr %q, null
  br i1 %done, label %out, label %loop
out:
  ret void
}
