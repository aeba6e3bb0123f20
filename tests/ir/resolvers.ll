; What runs before the runtime does translates nothing: the resolver of an indirect function, what stands in .preinit_array, and copies
; of what they call. For the rest of the program that is as ever, and so is what another object may replace.

@indirect = ifunc void (), ptr @resolver
@elsewhere = external global ptr
@another_name = alias void (ptr), ptr @named
@one = internal constant ptr @first, section ".preinit_array"
@more = internal constant [2 x ptr] [ptr @other, ptr @second], section ".preinit_array"

; CHECK-LABEL: define {{.*}}@resolver(
; CHECK-NOT: spill
; CHECK: call void @called.early(
; CHECK: call void @shared.early(
; CHECK: call void @named.early(
; CHECK: call void @replaceable(
; CHECK: call void @jumps(
; CHECK: call void @marked(
; CHECK: ret ptr
define internal ptr @resolver() {
  %p = load ptr, ptr @elsewhere, align 8
  store i32 1, ptr %p, align 4
  call void @called(ptr %p)
  call void @shared(ptr %p)
  call void @another_name(ptr %p)
  call void @replaceable(ptr %p)
  call void @jumps(ptr %p, ptr blockaddress(@jumps, %on))
  call void @marked(ptr %p)
  ret ptr @other
}

; CHECK-LABEL: define {{.*}}@called(
; CHECK: spill.slots
; CHECK: call void @further(
define internal void @called(ptr %p) {
  store i32 2, ptr %p, align 4
  call void @further(ptr %p)
  ret void
}

; CHECK-LABEL: define {{.*}}@further(
; CHECK: spill.slots
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
; CHECK: spill.slots
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

; What cannot exist twice is left alone itself.
; CHECK-LABEL: define {{.*}}@jumps(
; CHECK-NOT: spill
; CHECK: indirectbr
define void @jumps(ptr %p, ptr %to) {
entry:
  store i32 7, ptr %p, align 4
  indirectbr ptr %to, [label %on]
on:
  ret void
}

; CHECK-LABEL: define {{.*}}@marked(
; CHECK-NOT: spill
; CHECK: ret
define void @marked(ptr %p) {
  call void asm sideeffect "mark: nop", ""()
  store i32 8, ptr %p, align 4
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

; CHECK-LABEL: define {{.*}}@called.early(
; CHECK-NOT: spill
; CHECK: call void @further.early(
; CHECK: ret void
; CHECK-LABEL: define {{.*}}@shared.early(
; CHECK-NOT: spill
; CHECK: call void @shared.early(
; CHECK: ret void
; CHECK-LABEL: define {{.*}}@named.early(
; CHECK-NOT: spill
; CHECK: ret void
; CHECK-LABEL: define {{.*}}@further.early(
; CHECK-NOT: spill
; CHECK: ret void
