; OPTIONS: -spill-reuse=0
; Without reuse each access is translated, all in a scratch slot.

; CHECK-LABEL: define void @twice(
; CHECK: getelementptr inbounds i64, ptr %spill.slots, i64 0
; CHECK: getelementptr inbounds i64, ptr %spill.slots, i64 0
define void @twice(ptr %p) {
  store i32 0, ptr %p, align 4
  store i32 1, ptr %p, align 4
  ret void
}
