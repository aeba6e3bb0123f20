; OPTIONS: -spill-loops=0
; A small index, of the first access or of one that follows: the window that is checked for an edge has room for
; all of its values.

; CHECK-LABEL: define void @first(
; CHECK: %spill.crosses = icmp ugt i32 {{.*}}, -67108864
; CHECK: ret
define void @first(ptr %p, i64 %i) {
  %small = and i64 %i, 7
  %e = getelementptr i64, ptr %p, i64 %small
  store i64 0, ptr %e
  %f = getelementptr i8, ptr %p, i64 16
  store i64 0, ptr %f
  ret void
}

; CHECK-LABEL: define void @second(
; CHECK: %spill.crosses = icmp ugt i32 {{.*}}, -67108864
; CHECK: ret
define void @second(ptr %p, i64 %i) {
  store i64 0, ptr %p
  %small = and i64 %i, 7
  %e = getelementptr i64, ptr %p, i64 %small
  store i64 0, ptr %e
  ret void
}

; An index of unknown size is a window of its own.
; CHECK-LABEL: define void @unknown(
; CHECK: icmp ugt i32 {{.*}}, -8388608
; CHECK: icmp ugt i32 {{.*}}, -8388608
; CHECK: ret
define void @unknown(ptr %p, i64 %i) {
  store i64 0, ptr %p
  %e = getelementptr i64, ptr %p, i64 %i
  store i64 0, ptr %e
  ret void
}

; The same of a narrow one whose upper bit is its sign: it is below zero.
; CHECK-LABEL: define void @narrow(
; CHECK: icmp ugt i32 {{.*}}, -8388608
; CHECK: icmp ugt i32 {{.*}}, -8388608
; CHECK: ret
define void @narrow(ptr %p, i7 %i) {
  store i64 0, ptr %p
  %masked = and i7 %i, -64
  %e = getelementptr i8, ptr %p, i7 %masked
  store i64 0, ptr %e
  ret void
}
