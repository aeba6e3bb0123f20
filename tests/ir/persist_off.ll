; Without -fspill-persist flushes stay what they are.

; CHECK-NOT: __spillway_persist
define i32 @update(ptr %p) {
  call void @llvm.x86.clwb(ptr %p)
  call void asm sideeffect "clwb $0", "=*m,~{memory}"(ptr elementtype(i8) %p)
  call void @llvm.x86.sse.sfence()
  %v = atomicrmw add ptr %p, i32 1 seq_cst
  ret i32 %v
}
; CHECK: call void @llvm.x86.clwb(
; CHECK: call void asm sideeffect "clwb $0"
; CHECK: call void @llvm.x86.sse.sfence()

declare void @llvm.x86.clwb(ptr)
declare void @llvm.x86.sse.sfence()
