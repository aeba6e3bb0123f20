; Functions of the program's own that have the names of the C library's comparisons, and take something else, are called.

declare i32 @bcmp(i32, i32, i32)
declare i32 @memcmp(ptr, i32, i64)

; CHECK-LABEL: define i32 @numbers(
; CHECK: call i32 @__spill_bcmp(i32 %a, i32 %b, i32 4)
; CHECK: ret
define i32 @numbers(i32 %a, i32 %b) {
  %r = call i32 @bcmp(i32 %a, i32 %b, i32 4)
  ret i32 %r
}

; CHECK-LABEL: define i32 @number(
; CHECK: call i32 @__spill_memcmp(ptr %p, i32 %b, i64 8)
; CHECK: ret
define i32 @number(ptr %p, i32 %b) {
  %r = call i32 @memcmp(ptr %p, i32 %b, i64 8)
  ret i32 %r
}
