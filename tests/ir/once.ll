; A function is instrumented once, even when the pass meets it again.
; CHECK-LABEL: define i32 @done(
; CHECK-NOT: spill
; CHECK: ret
define i32 @done(ptr %p) "spillway" {
  %v = load i32, ptr %p
  ret i32 %v
}
; CHECK-LABEL: define i32 @fresh(
; CHECK: @__spillway_translate_stub
define i32 @fresh(ptr %p) {
  %v = load i32, ptr %p
  ret i32 %v
}
