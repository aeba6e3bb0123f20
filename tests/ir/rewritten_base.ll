; The pointer that a window is measured from may itself be loaded by a site that is split in two.
; OPTIONS: -spill-assume-aligned
; CHECK-LABEL: define i64 @chain(
; CHECK: [[NEXT:%.*]] = phi ptr
; CHECK: ptrtoint ptr [[NEXT]] to i64
define i64 @chain(ptr %p) {
  %tag = load i64, ptr %p, align 8
  %f = getelementptr i8, ptr %p, i64 16
  %next = load ptr, ptr %f, align 8
  %g = getelementptr i8, ptr %next, i64 8
  %a = load i64, ptr %g, align 8
  %h = getelementptr i8, ptr %next, i64 24
  %b = load i64, ptr %h, align 8
  %s = add i64 %a, %b
  %t = add i64 %s, %tag
  ret i64 %t
}
