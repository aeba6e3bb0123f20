; Code that was inlined from a function that is done already has slots, as its compiler has given them out: the function that has it
; now is left alone.

@__spillway_slots = external thread_local(initialexec) global ptr
declare ptr @llvm.threadlocal.address.p0(ptr)

; CHECK-LABEL: define void @around(
; CHECK: store atomic i64 %address, ptr %slot release
; CHECK-NOT: store atomic
; CHECK-NOT: spill.
; CHECK: ret void
define void @around(ptr %p, ptr %q) {
  %variable = call ptr @llvm.threadlocal.address.p0(ptr @__spillway_slots)
  %slots = load ptr, ptr %variable, align 8
  %slot = getelementptr inbounds i64, ptr %slots, i64 2
  %address = ptrtoint ptr %p to i64
  store atomic i64 %address, ptr %slot release, align 8
  store i32 1, ptr %q, align 4
  ret void
}

; CHECK-LABEL: define void @beside(
; CHECK: store atomic i64 {{.*}} release
; CHECK: ret void
define void @beside(ptr %q) {
  store i32 1, ptr %q, align 4
  ret void
}
