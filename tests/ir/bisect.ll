; OPTIONS: -spill-first=1 -spill-last=1 -spill-skip-function=^left
; Knobs to find the access that a failure comes from: sites are numbered through the module.
; CHECK-LABEL: define void @f(
; CHECK: store i32 0, ptr %p
; CHECK: store i32 1, ptr %spill.pointer
; CHECK: store i32 2, ptr %p
define void @f(ptr %p) {
  store i32 0, ptr %p
  store i32 1, ptr %p
  store i32 2, ptr %p
  ret void
}
; CHECK-LABEL: define void @left_alone(
; CHECK: store i32 0, ptr %p
define void @left_alone(ptr %p) {
  store i32 0, ptr %p
  ret void
}
