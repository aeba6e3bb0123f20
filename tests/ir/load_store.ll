; A load and a store through pointers of unknown origin: the protocol of abi.inc, step by step.
; OPTIONS: -spill-assume-aligned

; CHECK-LABEL: define i32 @load(ptr %p)
; CHECK-NEXT: [[TLS:%.*]] = call ptr @llvm.threadlocal.address.p0(ptr @__spillway_slots)
; CHECK-NEXT: %spill.slots = load ptr, ptr [[TLS]]
; CHECK-NEXT: %spill.address = ptrtoint ptr %p to i64
; CHECK-NEXT: [[SLOT:%.*]] = getelementptr inbounds i64, ptr %spill.slots, i64 0
; CHECK-NEXT: store atomic i64 %spill.address, ptr [[SLOT]] release, align 8
; CHECK-NEXT: fence syncscope("singlethread") seq_cst
; CHECK-NEXT: [[PAGE:%.*]] = lshr i64 %spill.address, 12
; CHECK-NEXT: [[OFFSET:%.*]] = shl i64 [[PAGE]], 3
; CHECK-NEXT: [[WHERE:%.*]] = add i64 [[OFFSET]], 1879048192
; CHECK-NEXT: [[POINTER:%.*]] = inttoptr i64 [[WHERE]] to ptr
; CHECK-NEXT: %spill.entry = load atomic i64, ptr [[POINTER]] acquire, align 8
; CHECK-NEXT: %spill.slow = icmp sle i64 %spill.entry, 0
; CHECK-NEXT: br i1 %spill.slow, label %[[SLOW:.*]], label %[[JOIN:.*]], !prof
; CHECK: [[SLOW]]:
; CHECK-NEXT: [[PAIR:%.*]] = call { i64, i64 } asm sideeffect "callq ${3:P}", "={rax},={r11},1,i,~{memory},~{dirflag},~{fpsr},~{flags}"(i64 %spill.address, ptr @__spillway_translate_live1_stub)
; CHECK-NEXT: [[FOUND:%.*]] = extractvalue { i64, i64 } [[PAIR]], 0
; CHECK: [[JOIN]]:
; CHECK-NEXT: %spill.d = phi i64 [ %spill.entry, %0 ], [ [[FOUND]], %[[SLOW]] ]
; CHECK-NEXT: [[DELTA:%.*]] = sub i64 %spill.d, 1
; CHECK-NEXT: %spill.pointer = getelementptr i8, ptr %p, i64 [[DELTA]]
; CHECK-NEXT: %v = load i32, ptr %spill.pointer, align 4
; CHECK-NEXT: ret i32 %v
define i32 @load(ptr %p) {
  %v = load i32, ptr %p, align 4
  ret i32 %v
}

; Volatile stays, non-temporal does not, nor does what would let a load leave its place.
; CHECK-LABEL: define i64 @kept(
; CHECK: %v = load volatile i64, ptr %spill.pointer{{.*}}, align 8
; CHECK: %w = load i64, ptr %spill.pointer{{[0-9]*}}, align 8{{$}}
; CHECK: store i64 %w, ptr %spill.pointer{{.*}}, align 8{{$}}
define i64 @kept(ptr %p, ptr %q, ptr %r) {
  %v = load volatile i64, ptr %p, align 8
  %w = load i64, ptr %r, align 8, !invariant.load !0
  store i64 %w, ptr %q, align 8, !nontemporal !1
  ret i64 %v
}

; The slow path is a stub of the object: address in r11, live slots in rax. It aligns the stack, and calls through
; the GOT: a PLT stub, bound lazily, does not keep all registers. Its callers have no red zone, and code generation makes
; no calls of their comparisons.
; CHECK: define linkonce_odr hidden void @__spillway_translate_stub() [[STUB:#[0-9]+]] comdat
; CHECK: andq $$-16, %rsp{{.*}}callq *__spillway_translate@GOTPCREL(%rip)
; CHECK: attributes {{.*}} = { noredzone "no-builtin-memcmp" "spillway" }
; CHECK: attributes [[STUB]] = { cold naked noinline nounwind uwtable }

!0 = !{}
!1 = !{i32 1}
