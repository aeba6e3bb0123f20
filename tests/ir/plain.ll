; What provably is not spill memory is left alone.

@constant = private constant [4 x i32] [i32 1, i32 2, i32 3, i32 4]
@global = global i32 0
@thread = thread_local global i32 0
declare ptr @llvm.threadlocal.address.p0(ptr)
declare ptr @__errno_location()

; CHECK-NOT: @__spillway_slots

; CHECK-LABEL: define i32 @table(
; CHECK-NOT: spill
; CHECK: ret
define i32 @table(i64 %i) {
  %p = getelementptr inbounds [4 x i32], ptr @constant, i64 0, i64 %i
  %v = load i32, ptr %p
  ret i32 %v
}

; CHECK-LABEL: define i32 @stack(
; CHECK-NOT: spill
; CHECK: ret
define i32 @stack(i64 %i, i1 %c) {
  %a = alloca [10 x i32]
  %b = alloca [10 x i32]
  %either = select i1 %c, ptr %a, ptr %b
  %p = getelementptr inbounds i32, ptr %either, i64 %i
  store i32 1, ptr %p
  %v = atomicrmw add ptr %p, i32 1 monotonic
  ret i32 %v
}

; CHECK-LABEL: define i32 @globals(
; CHECK-NOT: spill
; CHECK: ret
define i32 @globals(ptr byval(i64) %copy) {
  %t = call ptr @llvm.threadlocal.address.p0(ptr @thread)
  %e = call ptr @__errno_location()
  store i32 3, ptr @global
  store i32 4, ptr %t
  store i32 5, ptr %e
  %v = load i32, ptr %copy
  ret i32 %v
}

; Other address spaces are not the heap's.
; CHECK-LABEL: define i64 @segment(
; CHECK-NOT: spill
; CHECK: ret
define i64 @segment() {
  %v = load i64, ptr addrspace(257) inttoptr (i64 40 to ptr addrspace(257))
  ret i64 %v
}

; CHECK-LABEL: define i32 @naked(
; CHECK-NOT: spill
; CHECK: ret
define i32 @naked(ptr %p) naked {
  %v = load i32, ptr %p
  ret i32 %v
}

; At the program's wish.
; CHECK-LABEL: define i32 @annotated(
; CHECK-NOT: spill
; CHECK: ret
define i32 @annotated(ptr %p) {
  %v = load i32, ptr %p
  ret i32 %v
}
@text = private constant [11 x i8] c"spill_none\00", section "llvm.metadata"
@file = private constant [2 x i8] c"f\00", section "llvm.metadata"
@llvm.global.annotations = appending global [1 x { ptr, ptr, ptr, i32, ptr }] [{ ptr, ptr, ptr, i32, ptr } { ptr @annotated, ptr @text, ptr @file, i32 1, ptr null }], section "llvm.metadata"

; CHECK: attributes {{.*}} "spillway"
