; OPTIONS: -spill-loops=0 -spill-segments=0
; Pointers of other address spaces (%fs, %gs).

declare void @llvm.memcpy.p0.p257.i64(ptr, ptr addrspace(257), i64, i1)

; One that was made an ordinary pointer leads to where an ordinary one leads: also where it is computed again.
; CHECK-LABEL: define i64 @cast(
; CHECK: addrspacecast ptr addrspace(257) %s to ptr
; CHECK-NOT: addrspace
; CHECK: then:
; CHECK-NOT: addrspace
; CHECK: ret i64
define i64 @cast(ptr addrspace(257) %s, i1 %c) {
  %p = addrspacecast ptr addrspace(257) %s to ptr
  %f = getelementptr i8, ptr %p, i64 16
  %a = load i64, ptr %p, align 8
  br i1 %c, label %then, label %out
then:
  %b = load i64, ptr %f, align 8
  ret i64 %b
out:
  ret i64 %a
}

; What is copied from there is nothing that the runtime could find.
; CHECK-LABEL: define void @copied(
; CHECK-NEXT: call void @llvm.memcpy.p0.p257.i64(ptr %p, ptr addrspace(257) %s, i64 24, i1 false)
; CHECK-NEXT: ret void
define void @copied(ptr %p, ptr addrspace(257) %s) {
  call void @llvm.memcpy.p0.p257.i64(ptr %p, ptr addrspace(257) %s, i64 24, i1 false)
  ret void
}
