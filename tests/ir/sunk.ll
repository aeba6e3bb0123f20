; OPTIONS: -spill-loops=0 -spill-segments=0
; A pointer that another block computed: an access that shares a translation computes it from its base, so
; that it becomes a part of the address again.

; CHECK-LABEL: define i64 @shared(
; CHECK: then:
; CHECK: %f1 = getelementptr i8, ptr %p, i64 16
; CHECK: %spill.pointer{{.*}} = getelementptr i8, ptr %f1, i64
; CHECK: ret
define i64 @shared(ptr %p, i1 %c) {
  %f = getelementptr i8, ptr %p, i64 16
  %a = load i64, ptr %p, align 8
  br i1 %c, label %then, label %out
then:
  %b = load i64, ptr %f, align 8
  ret i64 %b
out:
  ret i64 %a
}

; Alone, its address is needed anyway.
; CHECK-LABEL: define i64 @alone(
; CHECK: then:
; CHECK: ptrtoint ptr %f to i64
; CHECK: ret
define i64 @alone(ptr %p, i1 %c) {
  %f = getelementptr i8, ptr %p, i64 16
  br i1 %c, label %then, label %out
then:
  %b = load i64, ptr %f, align 8
  ret i64 %b
out:
  ret i64 0
}
