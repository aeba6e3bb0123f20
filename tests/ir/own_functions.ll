; The program's own function of a replaced name is found by other modules, where its uses are renamed (Rename.h). Not so what is private, or
; may be replaced by another definition, and what the pass makes calls of itself. Operators are found in another way (own_operators.ll).

; CHECK-NOT: alias
; CHECK: @__spill_send = weak hidden alias i64 (i64), ptr @send
; CHECK-NOT: alias
; CHECK: define {{.*}}i64 @send(i64 %n)
define i64 @send(i64 %n) {
  ret i64 %n
}
define internal i64 @recv(i64 %n) {
  ret i64 %n
}
define weak i64 @poll(i64 %n) {
  ret i64 %n
}
define linkonce_odr i64 @select(i64 %n) {
  ret i64 %n
}
define ptr @memmove(ptr %to, ptr %from, i64 %n) {
  ret ptr %to
}
define ptr @_Znwm(i64 %bytes) {
  ret ptr null
}
declare i64 @bind(i64)
; CHECK: define {{.*}}i64 @uses(i64 %n)
define i64 @uses(i64 %n) {
; CHECK: call i64 @send(
  %own = call i64 @send(i64 %n)
; CHECK: call i64 @recv(
  %private = call i64 @recv(i64 %own)
; CHECK: call i64 @__spill_bind(
  %other = call i64 @bind(i64 %private)
  ret i64 %other
}
