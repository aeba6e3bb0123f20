; Code that was inlined from a function that is done already has slots, as its compiler has given them out: the function that has it
; now is left alone. It calls stubs, and may have translations alive between comparisons, so that this function has no red zone
; either, and is compiled to no calls of memcmp.

@__spillway_slots = external thread_local(initialexec) global ptr
declare ptr @llvm.threadlocal.address.p0(ptr)
declare hidden void @__spillway_translate_stub()
declare hidden void @__spillway_load4_live1_stub()

; CHECK-LABEL: define void @around(
; CHECK-SAME: {{.*}} [[ADAPTED:#[0-9]+]] {
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
  %pair = call { i64, i64 } asm sideeffect "callq ${3:P}", "={rax},={r11},1,i,0,~{memory},~{dirflag},~{fpsr},~{flags}"(i64 %address, ptr @__spillway_translate_stub, i64 8)
  store i32 1, ptr %q, align 4
  ret void
}

; So has what was translated out of line alone.
; CHECK-LABEL: define i32 @out_of_line(
; CHECK-SAME: {{.*}} [[ADAPTED]] {
; CHECK-NOT: store atomic
; CHECK: store i32 %v, ptr %q, align 4
; CHECK-NOT: store atomic
; CHECK: ret i32
define i32 @out_of_line(ptr %p, ptr %q) {
  %address = ptrtoint ptr %p to i64
  %pair = call { i64, i64 } asm sideeffect "callq ${3:P}", "={rax},={r11},1,i,~{memory},~{dirflag},~{fpsr},~{flags}"(i64 %address, ptr @__spillway_load4_live1_stub)
  %wide = extractvalue { i64, i64 } %pair, 0
  %v = trunc i64 %wide to i32
  store i32 %v, ptr %q, align 4
  ret i32 %v
}

; CHECK-LABEL: define void @beside(
; CHECK: store atomic i64 {{.*}} release
; CHECK: ret void
define void @beside(ptr %q) {
  store i32 1, ptr %q, align 4
  ret void
}

; CHECK: attributes [[ADAPTED]] = { noredzone "no-builtin-memcmp" }
