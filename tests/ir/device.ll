; OPTIONS: -spill-persist=record
; The half of an offloading compilation that is for a device is left alone.
target triple = "nvptx64-nvidia-cuda"

; CHECK: @llvm.global_ctors =
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 65535, ptr @begin, ptr null }]

; CHECK: define ptr @malloc(i64 %bytes) {
define ptr @malloc(i64 %bytes) {
  ret ptr null
}

; CHECK: define void @begin() {
; CHECK-NEXT: ret void
define void @begin() {
  ret void
}

; CHECK: define i32 @work(ptr %p) {
; CHECK-NEXT: store i32 1, ptr %p, align 4
; CHECK-NEXT: %block = call ptr @malloc(i64 8)
; CHECK-NEXT: %v = load i32, ptr %block, align 4
; CHECK-NEXT: ret i32 %v
define i32 @work(ptr %p) {
  store i32 1, ptr %p, align 4
  %block = call ptr @malloc(i64 8)
  %v = load i32, ptr %block, align 4
  ret i32 %v
}
; CHECK-NOT: spill
