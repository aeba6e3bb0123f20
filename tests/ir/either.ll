; What may be spill memory on one path is translated, whatever it is on the others.

; CHECK-LABEL: define i8 @selected(
; CHECK: store atomic
; CHECK: load i8, ptr %spill.pointer
; CHECK: ret
define i8 @selected(ptr %p, i1 %c) {
  %a = alloca i8
  %either = select i1 %c, ptr %a, ptr %p
  %v = load i8, ptr %either
  ret i8 %v
}

; CHECK-LABEL: define i8 @merged(
; CHECK: store atomic
; CHECK: store i8 1, ptr %spill.pointer
; CHECK: ret
define i8 @merged(ptr %p, i1 %c) {
entry:
  %a = alloca i8
  br i1 %c, label %then, label %join
then:
  br label %join
join:
  %either = phi ptr [ %a, %entry ], [ %p, %then ]
  store i8 1, ptr %either
  ret i8 0
}

; A pointer that was stored on the stack is not one to the stack.
; CHECK-LABEL: define i8 @reloaded(
; CHECK: %q = load volatile ptr, ptr %a,
; CHECK: store atomic
; CHECK: load i8, ptr %spill.pointer
; CHECK: ret
define i8 @reloaded(ptr %p) {
  %a = alloca ptr
  store ptr %p, ptr %a
  %q = load volatile ptr, ptr %a
  %v = load i8, ptr %q
  ret i8 %v
}
