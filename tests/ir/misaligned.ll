; A type's alignment is a claim, not a fact: x86 programs access misaligned objects. Every access of more than a
; byte asks whether it may reach over a page's edge. Where the type says that it is aligned to its size, that is whether
; it is not: then it is done out of line, which looks at the edge.

; CHECK-LABEL: @load(
; CHECK: [[LOW:%.*]] = and i64 %spill.address, 7
; CHECK: %spill.odd = icmp ne i64 [[LOW]], 0
; CHECK: br i1 %spill.odd
; CHECK: @__spillway_load8_live1_stub
define i64 @load(ptr %p) {
  %v = load i64, ptr %p, align 8
  ret i64 %v
}

; CHECK-LABEL: @store(
; CHECK: and i64 {{.*}}, 3
; CHECK: @__spillway_store4_live1_stub
define void @store(ptr %p, i32 %v) {
  store i32 %v, ptr %p, align 4
  ret void
}

; Where it says less, the edge is looked at.
; CHECK-LABEL: @packed(
; CHECK-NOT: spill.odd
; CHECK: icmp ugt i32 {{%.*}}, -8388608
; CHECK: ret
define i64 @packed(ptr %p) {
  %v = load i64, ptr %p, align 4
  ret i64 %v
}

; What is loaded and stored again is one window of that size.
; CHECK-LABEL: @changed(
; CHECK: and i64 {{.*}}, 7
; CHECK: br i1 %spill.odd
; CHECK-NOT: spill.cross
; CHECK: ret
define void @changed(ptr %p) {
  %v = load i64, ptr %p, align 8
  %w = add i64 %v, 1
  store i64 %w, ptr %p, align 8
  ret void
}

; The edge is looked at for what more share.
; CHECK-LABEL: @window(
; CHECK-NOT: spill.odd
; CHECK: icmp ugt i32 {{%.*}}, -16777216
; CHECK: ret
define i64 @window(ptr %p) {
  %v = load i64, ptr %p, align 8
  %q = getelementptr i8, ptr %p, i64 8
  store i64 0, ptr %q, align 8
  ret i64 %v
}

; Natively a function copies or sets so many bytes, which takes any address: in line they must do without what their type
; claims, too, or an aligned vector instruction would end the program.
; CHECK-LABEL: @many_bytes(
; CHECK: call void @llvm.memcpy.inline.p0.p0.i64(ptr align 8 {{.*}}, ptr align 8 {{.*}}, i64 129, i1 false)
; CHECK: call void @llvm.memset.inline.p0.i64(ptr align 8 {{.*}}, i8 0, i64 200, i1 false)
; CHECK: ret
define void @many_bytes(ptr %p, ptr %q) {
  call void @llvm.memcpy.p0.p0.i64(ptr align 16 %p, ptr align 32 %q, i64 129, i1 false)
  call void @llvm.memset.p0.i64(ptr align 16 %p, i8 0, i64 200, i1 false)
  ret void
}
; Without optimisation, and where code is to be small, fewer are as many.
; CHECK-LABEL: @many_unoptimised_bytes(
; CHECK: call void @llvm.memcpy.inline.p0.p0.i64(ptr align 8 {{.*}}, ptr align 4 {{.*}}, i64 48, i1 false)
; CHECK: ret
define void @many_unoptimised_bytes(ptr %p, ptr %q) noinline optnone {
  call void @llvm.memcpy.p0.p0.i64(ptr align 16 %p, ptr align 4 %q, i64 48, i1 false)
  ret void
}
; CHECK-LABEL: @many_small_bytes(
; CHECK: call void @llvm.memset.inline.p0.i64(ptr align 8 {{.*}}, i8 0, i64 80, i1 false)
; CHECK: ret
define void @many_small_bytes(ptr %p) optsize {
  call void @llvm.memset.p0.i64(ptr align 16 %p, i8 0, i64 80, i1 false)
  ret void
}
; Of what is done in line natively, too, the claim stays.
; CHECK-LABEL: @few_bytes(
; CHECK: call void @llvm.memcpy.inline.p0.p0.i64(ptr align 16 {{.*}}, ptr align 16 {{.*}}, i64 128, i1 false)
; CHECK: ret
define void @few_bytes(ptr %p, ptr %q) {
  call void @llvm.memcpy.p0.p0.i64(ptr align 16 %p, ptr align 16 %q, i64 128, i1 false)
  ret void
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

; A byte never crosses.
; CHECK-LABEL: @byte(
; CHECK-NOT: crosses
; CHECK: ret i8
define i8 @byte(ptr %p) {
  %v = load i8, ptr %p
  ret i8 %v
}

; Nobody who optimises this again is to believe what the types of pointers claim, and leave the questions out.
; CHECK-LABEL: declare ptr @find()
; CHECK-LABEL: define i64 @claimed(ptr nonnull %p, ptr byval(i64) align 8 %copy)
; CHECK-NOT: !align
; CHECK: call nonnull ptr @find()
; CHECK-NOT: !align
; CHECK: ret
declare align 8 ptr @find()
define i64 @claimed(ptr nonnull align 8 %p, ptr byval(i64) align 8 %copy) {
  %q = load ptr, ptr %p, align 8, !align !0
  %r = call nonnull align 8 ptr @find()
  %v = load i64, ptr %q, align 8
  %w = load i64, ptr %r, align 8
  %s = add i64 %v, %w
  ret i64 %s
}
!0 = !{i64 8}
