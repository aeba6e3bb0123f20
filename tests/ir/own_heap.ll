; A program's own malloc and its kin lose their names, in their own module too, so that nobody gets blocks of another heap than the
; runtime's (Hide.h). Other names that they have lead to the runtime's as well. A private function of such a name is the program's; so
; are operators, and other functions that the runtime exports.

; CHECK-NOT: @also_
@also_malloc = weak hidden alias ptr (i64), ptr @malloc
@also_free = alias void (ptr), ptr @free

; CHECK: define internal {{.*}}ptr @own.malloc(i64 %bytes)
define ptr @malloc(i64 %bytes) {
  ret ptr null
}
; CHECK: define internal void @own.free(ptr %block)
define weak void @free(ptr %block) {
  ret void
}
; CHECK: define {{.*}}ptr @_Znwm(i64 %bytes)
define ptr @_Znwm(i64 %bytes) {
  ret ptr null
}
; CHECK: define i64 @syscall(i64 %number)
define i64 @syscall(i64 %number) {
  ret i64 0
}
; CHECK: define internal {{.*}}ptr @valloc(i64 %bytes)
define internal ptr @valloc(i64 %bytes) {
  ret ptr null
}
; CHECK: define {{.*}}ptr @uses(i64 %bytes)
define ptr @uses(i64 %bytes) {
; CHECK: call ptr @__spill_malloc(
  %block = call ptr @malloc(i64 %bytes)
; CHECK: call void @__spill_free(
  call void @free(ptr %block)
; CHECK: call ptr @valloc(
  %private = call ptr @valloc(i64 %bytes)
; CHECK: call ptr @_Znwm(
  %new = call ptr @_Znwm(i64 %bytes)
; CHECK: call i64 @syscall(
  call i64 @syscall(i64 39)
  ret ptr %new
}
; CHECK: define weak hidden {{.*}}ptr @also_malloc(i64 %0)
; CHECK-NEXT: [[BLOCK:%.*]] = musttail call ptr @__spill_malloc(i64 %0)
; CHECK-NEXT: ret ptr [[BLOCK]]
; CHECK: define {{.*}}void @also_free(ptr %0)
; CHECK-NEXT: musttail call void @__spill_free(ptr %0)
; CHECK-NEXT: ret void
