; Without the option no global is touched.

; CHECK: @large = global [500000 x i8] zeroinitializer
; CHECK-NOT: @__spillway_global
; CHECK: define i8 @load(
; CHECK-NOT: spill
; CHECK: ret
@large = global [500000 x i8] zeroinitializer
define i8 @load() {
  %v = load i8, ptr @large
  ret i8 %v
}
