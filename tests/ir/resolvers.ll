; What runs before the runtime does translates nothing: the resolver of an indirect function, what stands in .preinit_array, and what
; they call. What may be the program's only copy of something is as ever, and they call one of their own; what another object may
; replace is called as ever.

@indirect = ifunc void (), ptr @resolver
@elsewhere = external global ptr
@another_name = alias void (ptr), ptr @named
@one = internal constant ptr @first, section ".preinit_array"
@more = internal constant [2 x ptr] [ptr @other, ptr @second], section ".preinit_array"

; CHECK-LABEL: define {{.*}}@resolver(
; CHECK-NOT: spill
; CHECK: call void @shared.early(
; CHECK: call void @replaceable(
; CHECK: ret ptr
define internal ptr @resolver() {
  %p = load ptr, ptr @elsewhere, align 8
  store i32 1, ptr %p, align 4
  call void @called(ptr %p)
  call void @shared(ptr %p)
  call void @another_name(ptr %p)
  call void @replaceable(ptr %p)
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
; CHECK: call void @shared(
define linkonce_odr void @shared(ptr %p) {
  store i32 4, ptr %p, align 4
  call void @shared(ptr %p)
  ret void
}

; CHECK-LABEL: define {{.*}}@named(
; CHECK-NOT: spill
; CHECK: ret void
define void @named(ptr %p) {
  store i32 5, ptr %p, align 4
  ret void
}

; CHECK-LABEL: define {{.*}}@replaceable(
; CHECK: spill.slots
define weak void @replaceable(ptr %p) {
  store i32 6, ptr %p, align 4
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

; CHECK-LABEL: define {{.*}}@shared.early(
; CHECK-NOT: spill
; CHECK: call void @shared.early(
; CHECK: ret void
