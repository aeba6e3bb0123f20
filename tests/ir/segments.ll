; OPTIONS: -spill-loops=0
; Accesses of one block that share a translation: the first decides, then nobody asks.

declare void @other()

; One decision, two copies. In the hot one there is one translation and nothing else; in the cold one each
; access is translated alone, in a scratch slot.
; CHECK-LABEL: define i64 @fields(
; CHECK: %spill.crosses = icmp ugt i32 {{.*}}, -25165824
; CHECK: br i1 %spill.crosses, label %[[COLD:.*]], label %[[HOT:.*]], !prof
; CHECK: [[HOT]]:
; CHECK: store atomic i64 {{.*}} release
; CHECK-NOT: store atomic
; CHECK-NOT: spill.crossed
; CHECK: %a = load i64
; CHECK-NOT: spill.crossed
; CHECK: store i64 %a
; CHECK: %b = load i64
; CHECK: br label %[[TAIL:.*]]
; CHECK: [[TAIL]]:
; CHECK: [[B:%.*]] = phi i64 [ %b, {{.*}} ], [ [[OTHERB:%.*]], {{.*}} ]
; CHECK: ret i64 [[B]]
; CHECK: [[COLD]]:
; CHECK-NOT: store atomic
; CHECK-COUNT-3: @__spillway_{{load|store}}8_live{{[0-9]}}_stub
; CHECK-NOT: store atomic
define i64 @fields(ptr %p) {
  %a = load i64, ptr %p, align 8
  %f = getelementptr i8, ptr %p, i64 16
  store i64 %a, ptr %f, align 8
  %g = getelementptr i8, ptr %p, i64 8
  %b = load i64, ptr %g, align 8
  ret i64 %b
}

; Behind the segment somebody follows: the cold copy has no entry for him.
; CHECK-LABEL: define i64 @behind(
; CHECK: %spill.behind = phi i64 [ %spill.d{{.*}}, {{.*}} ], [ 0, {{.*}} ]
; CHECK: %spill.crossed = icmp eq i64 %spill.behind, 0
; CHECK: ret
define i64 @behind(ptr %p, i1 %c) {
  %a = load i64, ptr %p, align 8
  %f = getelementptr i8, ptr %p, i64 16
  store i64 %a, ptr %f, align 8
  br i1 %c, label %then, label %out
then:
  %g = getelementptr i8, ptr %p, i64 8
  %b = load i64, ptr %g, align 8
  ret i64 %b
out:
  ret i64 0
}

; Two that follow in another block ask once.
; CHECK-LABEL: define void @followers(
; CHECK: %spill.crossed = icmp eq i64 %spill.shared, 0
; CHECK: br i1 %spill.crossed
; CHECK-NOT: %spill.crossed
; CHECK: }
define void @followers(ptr %p, i1 %c) {
  %a = load i64, ptr %p, align 8
  br i1 %c, label %then, label %out
then:
  %f = getelementptr i8, ptr %p, i64 16
  store i64 %a, ptr %f, align 8
  %g = getelementptr i8, ptr %p, i64 8
  store i64 %a, ptr %g, align 8
  ret void
out:
  ret void
}

; Two translations that alternate: two decisions, and in the copy where both are hot two translations.
; CHECK-LABEL: define void @alternate(
; CHECK: br i1 %spill.crosses, label %[[COLD:.*]], label %[[HOT:.*]], !prof
; CHECK: [[HOT]]:
; CHECK: store atomic
; CHECK: store i64 1,
; CHECK: br i1 %spill.crosses{{.*}}, label %[[COLDQ:.*]], label %[[BOTH:.*]], !prof
; CHECK: [[BOTH]]:
; CHECK: store atomic
; CHECK-NOT: spill.cross
; CHECK: store i64 2,
; CHECK-NOT: spill.cross
; CHECK: store i64 3,
; CHECK-NOT: spill.cross
; CHECK: store i64 4,
; CHECK: }
define void @alternate(ptr %p, ptr %q) {
  store i64 1, ptr %p, align 8
  store i64 2, ptr %q, align 8
  %f = getelementptr i8, ptr %p, i64 16
  store i64 3, ptr %f, align 8
  %g = getelementptr i8, ptr %q, i64 16
  store i64 4, ptr %g, align 8
  ret void
}

; The object's address was computed in the segment of another: behind it, both copies' count.
; CHECK-LABEL: define void @linked(
; CHECK: [[NEXT:%.*]] = phi ptr
; CHECK: [[ADDRESS:%.*]] = ptrtoint ptr [[NEXT]] to i64
; CHECK: [[LOW:%.*]] = trunc i64 [[ADDRESS]] to i32
; CHECK: asm "imull {{.*}}(i32 [[LOW]])
; CHECK: ret
define void @linked(ptr %p) {
  %n = load ptr, ptr %p, align 8
  %f = getelementptr i8, ptr %p, i64 8
  store i64 1, ptr %f, align 8
  %g = getelementptr i8, ptr %n, i64 16
  store i64 1, ptr %g, align 8
  %h = getelementptr i8, ptr %n, i64 24
  store i64 1, ptr %h, align 8
  ret void
}

; A call ends translations, and so the segment.
; CHECK-LABEL: define void @call(
; CHECK: store atomic
; CHECK: call void @other()
; CHECK-NOT: call void @other()
; CHECK: store atomic
; CHECK: }
define void @call(ptr %p) {
  store i64 0, ptr %p, align 8
  call void @other()
  store i64 1, ptr %p, align 8
  ret void
}

; Nor does it go on over assembly that must exist once.
; CHECK-LABEL: define void @marked(
; CHECK: asm "mark
; CHECK-NOT: asm "mark
define void @marked(ptr %p) {
  store i64 0, ptr %p, align 8
  %v = call i64 asm "mark: movq $$1, $0", "=r"() nounwind memory(none)
  %f = getelementptr i8, ptr %p, i64 16
  store i64 %v, ptr %f, align 8
  ret void
}

; Functions that are to be small are not made larger.
; CHECK-LABEL: define void @small(
; CHECK-COUNT-2: @__spillway_store8_live1_stub
; CHECK-NOT: @__spillway_
; CHECK: }
define void @small(ptr %p) minsize optsize {
  store i64 0, ptr %p, align 8
  %f = getelementptr i8, ptr %p, i64 16
  store i64 1, ptr %f, align 8
  ret void
}
