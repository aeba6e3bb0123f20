; A type's alignment is a claim, not a fact: x86 programs access misaligned objects. Every access of more than a
; byte looks at the page's edge.

; CHECK-LABEL: @load(
; CHECK: icmp ugt i32 {{%.*}}, -8388608
; CHECK: @__spillway_load8_stub
define i64 @load(ptr %p) {
  %v = load i64, ptr %p, align 8
  ret i64 %v
}

; CHECK-LABEL: @store(
; CHECK: icmp ugt i32 {{%.*}}, -4194304
; CHECK: @__spillway_store4_stub
define void @store(ptr %p, i32 %v) {
  store i32 %v, ptr %p, align 4
  ret void
}

; A byte never crosses.
; CHECK-LABEL: @byte(
; CHECK-NOT: crosses
; CHECK: ret i8
define i8 @byte(ptr %p) {
  %v = load i8, ptr %p
  ret i8 %v
}
