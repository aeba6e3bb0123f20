; OPTIONS: -spill-assume-aligned -spill-loops=0
; Where a translation ends: at whatever may evict its page or use its slot.

declare void @free(ptr)
declare void @other()
declare float @llvm.fabs.f32(float)
declare double @llvm.sin.f64(double)
declare double @llvm.fma.f64(double, double, double)
declare double @llvm.nearbyint.f64(double)
declare double @llvm.experimental.constrained.sin.f64(double, metadata, metadata)
declare double @llvm.experimental.constrained.frem.f64(double, double, metadata, metadata)
declare <4 x i32> @llvm.masked.gather.v4i32.v4p257(<4 x ptr addrspace(257)>, i32, <4 x i1>, <4 x i32>)
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

; A prefetch does not.
; CHECK-LABEL: define i32 @hinted(
; CHECK: store atomic
; CHECK: call void @llvm.prefetch.p0(
; CHECK-NOT: store atomic
; CHECK: ret
define i32 @hinted(ptr %p, ptr %q) {
  store i32 0, ptr %p, align 4
  call void @llvm.prefetch.p0(ptr %q, i32 0, i32 3, i32 1)
  %v = load i32, ptr %p, align 4
  ret i32 %v
}

; The block that is freed may be the one that was translated.
; CHECK-LABEL: define i32 @freed(
; CHECK: store atomic
; CHECK: call void @__spill_free(ptr %q)
; CHECK: store atomic
; CHECK: ret
define i32 @freed(ptr %p, ptr %q) {
  store i32 0, ptr %p, align 4
  call void @free(ptr %q)
  %v = load i32, ptr %p, align 4
  ret i32 %v
}

; A copy between objects on the stack is the C library's function, which is the runtime's in some programs.
; CHECK-LABEL: define void @copied(
; CHECK: store atomic
; CHECK: call void @llvm.memcpy.p0.p0.i64(ptr %a, ptr %b, i64 %n
; CHECK: store atomic
; CHECK: ret
define void @copied(ptr %p, i64 %n) {
  %a = alloca [4000 x i8]
  %b = alloca [4000 x i8]
  store i32 0, ptr %p, align 4
  call void @llvm.memcpy.p0.p0.i64(ptr %a, ptr %b, i64 %n, i1 false)
  store i32 1, ptr %p, align 4
  ret void
}

; So is one of constant size that code generation would call a function for, and none that it expands.
; CHECK-LABEL: define void @copied_bytes(
; CHECK: store atomic
; CHECK: call void @llvm.memcpy.inline.p0.p0.i64(ptr %a, ptr %b, i64 128
; CHECK-NOT: store atomic
; CHECK: call void @llvm.memcpy.p0.p0.i64(ptr %a, ptr %b, i64 129
; CHECK: store atomic
; CHECK: call void @llvm.memmove.p0.p0.i64(ptr %a, ptr %b, i64 65
; CHECK: store atomic
; CHECK: ret
define void @copied_bytes(ptr %p) {
  %a = alloca [4000 x i8]
  %b = alloca [4000 x i8]
  store i32 0, ptr %p, align 4
  call void @llvm.memcpy.p0.p0.i64(ptr %a, ptr %b, i64 128, i1 false)
  store i32 1, ptr %p, align 4
  call void @llvm.memcpy.p0.p0.i64(ptr %a, ptr %b, i64 129, i1 false)
  store i32 2, ptr %p, align 4
  call void @llvm.memmove.p0.p0.i64(ptr %a, ptr %b, i64 65, i1 false)
  store i32 3, ptr %p, align 4
  ret void
}

; A vector of addresses is accessed without calling anything.
; CHECK-LABEL: define <4 x i32> @gathered(
; CHECK: store atomic
; CHECK: call <4 x i32> @llvm.masked.gather
; CHECK-NOT: store atomic
; CHECK: ret
define <4 x i32> @gathered(ptr %p, <4 x ptr addrspace(257)> %g, <4 x i1> %m) {
  store i32 0, ptr %p, align 4
  %v = call <4 x i32> @llvm.masked.gather.v4i32.v4p257(<4 x ptr addrspace(257)> %g, i32 4, <4 x i1> %m, <4 x i32> undef)
  store i32 1, ptr %p, align 4
  ret <4 x i32> %v
}

; Assembly that accesses no memory uses no slot; any other is taken for a call.
; CHECK-LABEL: define void @assembled(
; CHECK: store atomic
; CHECK: asm "bswap $0"
; CHECK-NOT: store atomic
; CHECK: asm "nop"
; CHECK: store atomic
; CHECK: ret
define void @assembled(ptr %p, i32 %v) {
  store i32 0, ptr %p, align 4
  %w = call i32 asm "bswap $0", "=r,0"(i32 %v) memory(none)
  store i32 %w, ptr %p, align 4
  call void asm "nop", ""()
  store i32 1, ptr %p, align 4
  ret void
}

; What becomes a call of the runtime, too.
; CHECK-LABEL: define void @filled(
; CHECK: store atomic
; CHECK: call ptr @__spill_memset(
; CHECK: store atomic
; CHECK: ret
define void @filled(ptr %p, ptr %q, i64 %n) {
  store i32 0, ptr %p, align 4
  call void @llvm.memset.p0.i64(ptr %q, i8 0, i64 %n, i1 false)
  store i32 1, ptr %p, align 4
  ret void
}

; A call behind the first access, in its block.
; CHECK-LABEL: define void @behind(
; CHECK: store atomic
; CHECK: call void @other()
; CHECK: store atomic
; CHECK: ret
define void @behind(ptr %p, i1 %c) {
  store i32 0, ptr %p, align 4
  call void @other()
  br i1 %c, label %then, label %out
then:
  store i32 1, ptr %p, align 4
  br label %out
out:
  ret void
}

; A call before the second access, in its block.
; CHECK-LABEL: define void @before(
; CHECK: store atomic
; CHECK: call void @other()
; CHECK: store atomic
; CHECK: ret
define void @before(ptr %p, i1 %c) {
  store i32 0, ptr %p, align 4
  br i1 %c, label %then, label %out
then:
  call void @other()
  store i32 1, ptr %p, align 4
  br label %out
out:
  ret void
}

; A call later in a loop comes before the next turn.
; CHECK-LABEL: define void @around(
; CHECK: store atomic
; CHECK: loop:
; CHECK: store atomic
; CHECK: call void @other()
; CHECK: ret
define void @around(ptr %p, i1 %c) {
entry:
  store i32 0, ptr %p, align 4
  br label %loop
loop:
  store i32 1, ptr %p, align 4
  br label %latch
latch:
  call void @other()
  br i1 %c, label %loop, label %out
out:
  ret void
}

; Arithmetic ends nothing.
; CHECK-LABEL: define float @arithmetic(
; CHECK: store atomic
; CHECK-NOT: store atomic
; CHECK: ret
define float @arithmetic(ptr %p) {
  %v = load float, ptr %p, align 4
  %w = call float @llvm.fabs.f32(float %v)
  store float %w, ptr %p, align 4
  ret float %v
}

; But not what becomes a call of a function that the program may have itself.
; CHECK-LABEL: define double @mathematics(
; CHECK: store atomic
; CHECK: call double @llvm.sin.f64(
; CHECK: store atomic
; CHECK: ret
define double @mathematics(ptr %p) {
  %v = load double, ptr %p, align 8
  %w = call double @llvm.sin.f64(double %v)
  store double %w, ptr %p, align 8
  ret double %v
}

; Where roundings count it is one too.
; CHECK-LABEL: define double @strictly(
; CHECK: store atomic
; CHECK: call double @llvm.experimental.constrained.sin.f64(
; CHECK: store atomic
; CHECK: ret
define double @strictly(ptr %p) strictfp {
  %v = load double, ptr %p, align 8
  %w = call double @llvm.experimental.constrained.sin.f64(double %v, metadata !"round.dynamic", metadata !"fpexcept.strict") strictfp
  store double %w, ptr %p, align 8
  ret double %v
}

; No processor has an instruction for a remainder.
; CHECK-LABEL: define double @remainder(
; CHECK: store atomic
; CHECK: frem double
; CHECK: store atomic
; CHECK: call double @llvm.experimental.constrained.frem.f64(
; CHECK: store atomic
; CHECK: ret
define double @remainder(ptr %p, double %d) strictfp {
  %v = load double, ptr %p, align 8
  %w = frem double %v, %d
  store double %w, ptr %p, align 8
  %x = call double @llvm.experimental.constrained.frem.f64(double %w, double %d, metadata !"round.dynamic", metadata !"fpexcept.strict") strictfp
  store double %x, ptr %p, align 8
  ret double %v
}

; To code generation both are arithmetic: nothing but what is done around them keeps them where they are.
; CHECK-LABEL: define double @in_place(
; CHECK: %v = load double
; CHECK: [[X:%.*]] = call double asm sideeffect "", "=x,0,~{memory}"(double %x)
; CHECK-NEXT: %s = call double @llvm.sin.f64(double [[X]])
; CHECK-NEXT: [[S:%.*]] = call double asm sideeffect "", "=x,0,~{memory}"(double %s)
; CHECK-NEXT: %r = fmul double %v, [[S]]
define double @in_place(ptr %p, double %x) {
  %v = load double, ptr %p, align 8
  %s = call double @llvm.sin.f64(double %x)
  %r = fmul double %v, %s
  ret double %r
}
; CHECK-LABEL: define x86_fp80 @in_place_by_memory(
; CHECK: %v = load x86_fp80
; CHECK-NEXT: store volatile x86_fp80 %x, ptr [[BEFORE:%.*]], align
; CHECK-NEXT: call void asm sideeffect "", "~{memory}"()
; CHECK-NEXT: [[X:%.*]] = load volatile x86_fp80, ptr [[BEFORE]], align
; CHECK-NEXT: %s = frem x86_fp80 [[X]], %y
; CHECK-NEXT: store volatile x86_fp80 %s, ptr [[BEHIND:%.*]], align
; CHECK-NEXT: call void asm sideeffect "", "~{memory}"()
; CHECK-NEXT: [[S:%.*]] = load volatile x86_fp80, ptr [[BEHIND]], align
; CHECK-NEXT: %r = fmul x86_fp80 %v, [[S]]
define x86_fp80 @in_place_by_memory(ptr %p, x86_fp80 %x, x86_fp80 %y) {
  %v = load x86_fp80, ptr %p, align 16
  %s = frem x86_fp80 %x, %y
  %r = fmul x86_fp80 %v, %s
  ret x86_fp80 %r
}
; CHECK-LABEL: define double @in_no_place(
; CHECK-NOT: asm
; CHECK: ret
define double @in_no_place(double %x) {
  %s = call double @llvm.sin.f64(double %x)
  ret double %s
}

; What some processors have an instruction for is a call for others.
; CHECK-LABEL: define double @fused(
; CHECK: store atomic
; CHECK: call double @llvm.fma.f64(
; CHECK: store atomic
; CHECK: call double @llvm.nearbyint.f64(
; CHECK: store atomic
; CHECK: ret
define double @fused(ptr %p) {
  %v = load double, ptr %p, align 8
  %w = call double @llvm.fma.f64(double %v, double %v, double %v)
  store double %w, ptr %p, align 8
  %x = call double @llvm.nearbyint.f64(double %w)
  store double %x, ptr %p, align 8
  ret double %v
}
; CHECK-LABEL: define double @fused_at_once(
; CHECK: store atomic
; CHECK-NOT: store atomic
; CHECK: ret
define double @fused_at_once(ptr %p) "target-features"="+fma,+sse4.1" {
  %v = load double, ptr %p, align 8
  %w = call double @llvm.fma.f64(double %v, double %v, double %v)
  store double %w, ptr %p, align 8
  %x = call double @llvm.nearbyint.f64(double %w)
  store double %x, ptr %p, align 8
  ret double %v
}

; What the first access says of its alignment says nothing of the bytes below it.
; CHECK-LABEL: define i32 @below(
; CHECK: spill.crosses
; CHECK: ret
define i32 @below(ptr %p) {
  store i32 0, ptr %p, align 4
  %f = getelementptr i8, ptr %p, i64 -4
  %v = load i32, ptr %f, align 4
  ret i32 %v
}
