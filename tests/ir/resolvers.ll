; What runs before the runtime does translates nothing: the resolver of an indirect function, what stands in .preinit_array, and what
; they call. What may be the program's only copy of something is as ever.

@indirect = ifunc void (), ptr @resolver
@elsewhere = external global ptr
@one = internal constant ptr @first, section ".preinit_array"
@more = internal constant [2 x ptr] [ptr @other, ptr @second], section ".preinit_array"

; CHECK-LABEL: define {{.*}}@resolver(
; CHECK-NOT: spill
; CHECK: ret ptr
define internal ptr @resolver() {
  %p = load ptr, ptr @elsewhere, align 8
  store i32 1, ptr %p, align 4
  call void @called(ptr %p)
  call void @shared(ptr %p)
  ret ptr @other
}

; CHECK-LABEL: define {{.*}}@called(
; CHECK-NOT: spill
; CHECK: ret void
define internal void @called(ptr %p) {
  store i32 2, ptr %p, align 4
  call void @further(ptr %p)
  ret void
}

; CHECK-LABEL: define {{.*}}@further(
; CHECK-NOT: spill
; CHECK: ret void
define void @further(ptr %p) {
  store i32 3, ptr %p, align 4
  ret void
}

; CHECK-LABEL: define {{.*}}@shared(
; CHECK: spill.slots
define linkonce_odr void @shared(ptr %p) {
  store i32 4, ptr %p, align 4
  ret void
}

; CHECK-LABEL: define {{.*}}@first(
; CHECK-NOT: spill
; CHECK: ret void
define internal void @first(i32 %count, ptr %arguments) {
  store ptr null, ptr %arguments, align 8
  ret void
}
; CHECK-LABEL: define {{.*}}@second(
; CHECK-NOT: spill
; CHECK: ret void
define internal void @second(i32 %count, ptr %arguments) {
  store ptr null, ptr %arguments, align 8
  ret void
}

; CHECK-LABEL: define {{.*}}@other(
; CHECK: ret void
define void @other() {
  ret void
}
