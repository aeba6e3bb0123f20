; OPTIONS: -spill-persist=flush -spill-persist-direct=0
; A function is done once for persistent memory, and once for spilled memory, independently.

@annotation = private constant [11 x i8] c"spill_none\00"
@llvm.global.annotations = appending global [1 x { ptr, ptr, ptr, i32, ptr }] [{ ptr, ptr, ptr, i32, ptr } { ptr @left_alone, ptr @annotation, ptr null, i32 0, ptr null }]
@indirect = ifunc void (), ptr @resolver

; CHECK-LABEL: define i32 @persisted(
; CHECK-NOT: call void @__spillway_persist
; CHECK: @__spillway_{{translate|load4}}_live1_stub
; CHECK: atomicrmw
define i32 @persisted(ptr %p) "spillway-persist" {
  %v = atomicrmw add ptr %p, i32 1 seq_cst
  ret i32 %v
}
; CHECK-LABEL: define i32 @spilled(
; CHECK-NOT: @__spillway_{{translate|load4}}_live1_stub
; CHECK: call void @__spillway_persist_fence()
; CHECK: atomicrmw add ptr %p
define i32 @spilled(ptr %p) "spillway" {
  %v = atomicrmw add ptr %p, i32 1 seq_cst
  ret i32 %v
}

; Its fences hold for what others flushed.
; CHECK-LABEL: define void @left_alone(
; CHECK: call void @__spillway_persist_fence()
; CHECK: store i32 1, ptr %p
define void @left_alone(ptr %p) {
  call void @llvm.x86.sse.sfence()
  store i32 1, ptr %p
  ret void
}

; The runtime cannot be called yet; there is nothing but assembly.
; CHECK-LABEL: define {{.*}}ptr @resolver(
; CHECK: call void @llvm.x86.sse.sfence()
define ptr @resolver() {
  call void @llvm.x86.sse.sfence()
  ret ptr null
}
; CHECK-LABEL: define void @naked(
; CHECK: asm sideeffect "sfence
define void @naked() naked {
  call void asm sideeffect "sfence\0A ret", ""()
  unreachable
}
declare void @llvm.x86.sse.sfence()
