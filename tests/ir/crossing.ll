; OPTIONS: -spill-assume-aligned -spill-reuse=0
; Accesses that are not provably inside one OS page.

; A load: done out of line where it crosses. The offset in the page stands in the upper twelve of 32 bits,
; as do its limits everywhere: 4096 - 4 bytes are -(4 << 20).
; CHECK-LABEL: define i32 @load(
; CHECK-NOT: %spill.buffer
; CHECK: [[OFFSET:%.*]] = call i32 asm "imull $$1048576, $1, $0", "=r,r,~{flags}"(i32 {{.*}}) #[[PURE:.*]]
; CHECK: %spill.crosses = icmp ugt i32 [[OFFSET]], -4194304
; CHECK: br i1 %spill.crosses, label %[[COLD:.*]], label %[[ONE:.*]], !prof
; CHECK: [[ONE]]:
; CHECK: br i1 %spill.slow, label %[[COLD]], label %[[HOT:.*]], !prof
; CHECK: [[COLD]]:
; CHECK: [[PAIR:%.*]] = call { i64, i64 } asm sideeffect "callq ${3:P}", "={rax},={r11},1,i,~{memory},~{dirflag},~{fpsr},~{flags}"(i64 {{.*}}, ptr @__spillway_load4_live1_stub)
; CHECK: [[WIDE:%.*]] = extractvalue { i64, i64 } [[PAIR]], 0
; CHECK: [[BOUNCED:%.*]] = trunc i64 [[WIDE]] to i32
; CHECK: [[HOT]]:
; CHECK: %v = load i32, ptr %spill.pointer, align 1
; CHECK: phi i32 [ %v, {{.*}} ], [ [[BOUNCED]], %[[COLD]] ]
define i32 @load(ptr %p) {
  %v = load i32, ptr %p, align 1
  ret i32 %v
}

; CHECK-LABEL: define void @store(
; CHECK: icmp ugt i32 {{.*}}, -8388608
; CHECK: call { i64, i64 } asm sideeffect "callq ${3:P}", "={rax},={r11},1,i,{r10},~{memory},~{dirflag},~{fpsr},~{flags}"(i64 {{.*}}, ptr @__spillway_store8_live1_stub, i64 7)
define void @store(ptr %p) {
  store i64 7, ptr %p, align 4
  ret void
}

; Whatever a register can hold.
; CHECK-LABEL: define <2 x float> @vector(
; CHECK: ptr @__spillway_load8_live1_stub)
; CHECK: bitcast i64 {{.*}} to <2 x float>
; CHECK: bitcast double %d to i64
; CHECK: ptr @__spillway_store8_live1_stub, i64
; CHECK: ptrtoint ptr %q to i64
; CHECK: ptr @__spillway_store8_live1_stub, i64
; CHECK: [[NARROW:%.*]] = zext i16 %n to i64
; CHECK: ptr @__spillway_store2_live1_stub, i64 [[NARROW]])
define <2 x float> @vector(ptr %p, double %d, ptr %q, i16 %n) {
  %v = load <2 x float>, ptr %p, align 4
  store double %d, ptr %p, align 4
  store ptr %q, ptr %p, align 4
  store i16 %n, ptr %p, align 1
  ret <2 x float> %v
}

; Through a buffer, which a register cannot hold.
; CHECK-LABEL: define <4 x i32> @by_buffer(
; CHECK: %spill.buffer = alloca i8, i64 16, align 16
; CHECK: call preserve_allcc i64 @__spillway_cross_load_stub(i64 {{.*}}, i64 16, ptr %spill.buffer, i64 0)
; CHECK: load <4 x i32>, ptr %spill.buffer
; CHECK: store i128 7, ptr %spill.buffer
; CHECK: call preserve_allcc i64 @__spillway_cross_store_stub(i64 {{.*}}, i64 16, ptr %spill.buffer, i64 0)
define <4 x i32> @by_buffer(ptr %p) {
  %v = load <4 x i32>, ptr %p, align 1
  store i128 7, ptr %p, align 8
  ret <4 x i32> %v
}

; Nor some that are not whole bytes.
; CHECK-LABEL: define i24 @odd(
; CHECK: @__spillway_cross_load_stub(i64 {{.*}}, i64 3,
define i24 @odd(ptr %p) {
  %v = load i24, ptr %p, align 1
  ret i24 %v
}

; A type of odd size inside its alignment does not cross.
; CHECK-LABEL: define x86_fp80 @extended(
; CHECK-NOT: spill.crosses
; CHECK: ret
define x86_fp80 @extended(ptr %p) {
  %v = load x86_fp80, ptr %p, align 16
  ret x86_fp80 %v
}

; Small constant copies stay in line, code generation must not call memcpy on translated pointers; two slots. Where a side crosses,
; all of it is one call of a stub, which needs no buffer.
; CHECK-LABEL: define void @copy(
; CHECK-NOT: spill.buffer
; CHECK: br i1
; CHECK: [[TO:%.*]] = ptrtoint ptr %p to i64
; CHECK-NEXT: [[FROM:%.*]] = ptrtoint ptr %q to i64
; CHECK-NEXT: call {{.*}} "={rax},={r11},1,i,{r10},~{memory},~{dirflag},~{fpsr},~{flags}"(i64 [[TO]], ptr @__spillway_copy40_live0_stub, i64 [[FROM]])
; CHECK: call { i64, i64 } asm sideeffect "callq ${3:P}", "{{.*}}"(i64 {{.*}}, ptr @__spillway_translate_live1_stub)
; CHECK: call { i64, i64 } asm sideeffect "callq ${3:P}", "{{.*}}"(i64 {{.*}}, ptr @__spillway_translate_live3_stub)
; CHECK: call void @llvm.memcpy.inline.p0.p0.i64(ptr align 8 %spill.pointer{{.*}}, ptr align 8 %spill.pointer{{.*}}, i64 40
define void @copy(ptr %p, ptr %q) {
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %p, ptr align 8 %q, i64 40, i1 false)
  ret void
}

; Code generation expands few memmoves: up to 64 bytes are a vector, which is loaded as a whole first.
; CHECK-LABEL: define void @move(
; CHECK: %[[ALL:.*]] = phi <64 x i8>
; CHECK: store <64 x i8> %[[ALL]], ptr %spill.pointer{{.*}}, align 8
; CHECK: call ptr @__spill_memmove(ptr %p, ptr %q, i64 65)
define void @move(ptr %p, ptr %q) {
  call void @llvm.memmove.p0.p0.i64(ptr align 8 %p, ptr align 8 %q, i64 64, i1 false)
  call void @llvm.memmove.p0.p0.i64(ptr align 8 %p, ptr align 8 %q, i64 65, i1 false)
  call void @llvm.memmove.p0.p0.i64(ptr align 8 %p, ptr align 8 %q, i64 0, i1 false)
  ret void
}

; What is volatile stays so.
; CHECK-LABEL: define void @volatile_copy(
; CHECK: call void @llvm.memcpy.inline.p0.p0.i64(ptr align 8 %spill.pointer{{.*}}, ptr align 8 %spill.pointer{{.*}}, i64 40, i1 true)
; CHECK: call void @llvm.memset.inline.p0.i64(ptr align 8 %spill.pointer{{.*}}, i8 0, i64 40, i1 true)
define void @volatile_copy(ptr %p, ptr %q) {
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %p, ptr align 8 %q, i64 40, i1 true)
  call void @llvm.memset.p0.i64(ptr align 8 %p, i8 0, i64 40, i1 true)
  ret void
}

; What is to be expanded already stays as it is.
; CHECK-LABEL: define void @in_line(
; CHECK: call void @llvm.memcpy.inline.p0.p0.i64(ptr align 8 %spill.pointer{{.*}}, ptr align 8 %spill.pointer{{.*}}, i64 64
; CHECK: call void @llvm.memset.inline.p0.i64(ptr align 8 %spill.pointer{{.*}}, i8 1, i64 64
define void @in_line(ptr %p, ptr %q) {
  call void @llvm.memcpy.inline.p0.p0.i64(ptr align 8 %p, ptr align 8 %q, i64 64, i1 false)
  call void @llvm.memset.inline.p0.i64(ptr align 8 %p, i8 1, i64 64, i1 false)
  ret void
}

; The same where one side is on the stack.
; CHECK-LABEL: define void @from_stack(
; CHECK: [[STACK:%.*]] = ptrtoint ptr %a to i64
; CHECK: (i64 {{.*}}, ptr @__spillway_copy40_live0_stub, i64 [[STACK]])
define void @from_stack(ptr %p) {
  %a = alloca [40 x i8]
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %p, ptr align 8 %a, i64 40, i1 false)
  ret void
}

; Larger ones, or of unknown size, are the runtime's; between plain memory nobody's.
; CHECK-LABEL: define void @large(
; CHECK: call ptr @__spill_memmove(ptr %p, ptr %q, i64 1000)
; CHECK: call ptr @__spill_memset(ptr %p, i32 %{{.*}}, i64 %n)
; CHECK: call void @llvm.memcpy.p0.p0.i64(ptr %a, ptr %b, i64 %n
define void @large(ptr %p, ptr %q, i64 %n, i8 %c) {
  %a = alloca [4000 x i8]
  %b = alloca [4000 x i8]
  call void @llvm.memmove.p0.p0.i64(ptr %p, ptr %q, i64 1000, i1 false)
  call void @llvm.memset.p0.i64(ptr %p, i8 %c, i64 %n, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %a, ptr %b, i64 %n, i1 false)
  ret void
}

; Sixteen bytes are atomic if aligned.
; CHECK-LABEL: define { i128, i1 } @wide(
; CHECK-NOT: cross_map
; CHECK: cmpxchg ptr %spill.pointer, i128 0, i128 1 seq_cst seq_cst, align 16
define { i128, i1 } @wide(ptr %p) {
  %v = cmpxchg ptr %p, i128 0, i128 1 seq_cst seq_cst, align 16
  ret { i128, i1 } %v
}

; "m" operands of assembly, one slot each.
; CHECK-LABEL: define void @operands(
; CHECK: call preserve_allcc i64 @__spillway_cross_map_stub(i64 {{.*}}, i64 8, i64 0)
; CHECK: call { i64, i64 } asm sideeffect "callq ${3:P}", "{{.*}}"(i64 {{.*}}, ptr @__spillway_translate_live1_stub)
; CHECK: call preserve_allcc i64 @__spillway_cross_map_stub(i64 {{.*}}, i64 4, i64 1)
; CHECK: call { i64, i64 } asm sideeffect "callq ${3:P}", "{{.*}}"(i64 {{.*}}, ptr @__spillway_translate_live3_stub)
; CHECK: call void asm "nop", "=*m,*m"(ptr elementtype(i64) %spill.pointer{{.*}}, ptr elementtype(i32) %spill.pointer{{.*}})
define void @operands(ptr %p, ptr %q) {
  call void asm "nop", "=*m,*m"(ptr elementtype(i64) %p, ptr elementtype(i32) %q)
  ret void
}

; Those at constant distances from each other, and those that are named twice, share a slot and a register.
; CHECK-LABEL: define void @together(
; CHECK: icmp ugt i32 {{.*}}, -16777216
; CHECK: call preserve_allcc i64 @__spillway_cross_map_stub(i64 {{.*}}, i64 16, i64 0)
; CHECK: @__spillway_translate_live1_stub
; CHECK-NOT: @__spillway_translate
; CHECK: [[FIRST:%.*]] = call ptr asm "", "=r,0"(ptr %spill.pointer)
; CHECK-NEXT: [[SECOND:%.*]] = getelementptr i8, ptr [[FIRST]], i64 8
; CHECK-NEXT: call void asm "nop", "=*m,=*m,*m,*m"(ptr elementtype(i64) [[FIRST]], ptr elementtype(i64) [[SECOND]], ptr elementtype(i64) [[FIRST]], ptr elementtype(i64) [[SECOND]])
define void @together(ptr %p) {
  %q = getelementptr i8, ptr %p, i64 8
  call void asm "nop", "=*m,=*m,*m,*m"(ptr elementtype(i64) %p, ptr elementtype(i64) %q, ptr elementtype(i64) %p, ptr elementtype(i64) %q)
  ret void
}
; CHECK-LABEL: define void @apart(
; CHECK: call preserve_allcc i64 @__spillway_cross_map_stub(i64 {{.*}}, i64 8, i64 0)
; CHECK: @__spillway_translate_live1_stub
; CHECK: call preserve_allcc i64 @__spillway_cross_map_stub(i64 {{.*}}, i64 8, i64 1)
; CHECK: @__spillway_translate_live3_stub
; CHECK: ret
define void @apart(ptr %p) {
  %q = getelementptr i8, ptr %p, i64 300
  call void asm "nop", "=*m,*m"(ptr elementtype(i64) %p, ptr elementtype(i64) %q)
  ret void
}

; Operands for which there may be too few registers are left where they are, all of them.
; CHECK-LABEL: define void @all_registers(
; CHECK: getelementptr inbounds i64, ptr %spill.slots, i64 12
; CHECK: call void asm "nop", "{{[*m,]*}}"(ptr elementtype(i64) %spill.pointer
; CHECK: ret
define void @all_registers(ptr %p0, ptr %p1, ptr %p2, ptr %p3, ptr %p4, ptr %p5, ptr %p6, ptr %p7, ptr %p8, ptr %p9, ptr %p10, ptr %p11, ptr %p12) {
  call void asm "nop", "*m,*m,*m,*m,*m,*m,*m,*m,*m,*m,*m,*m,*m"(ptr elementtype(i64) %p0, ptr elementtype(i64) %p1, ptr elementtype(i64) %p2, ptr elementtype(i64) %p3, ptr elementtype(i64) %p4, ptr elementtype(i64) %p5, ptr elementtype(i64) %p6, ptr elementtype(i64) %p7, ptr elementtype(i64) %p8, ptr elementtype(i64) %p9, ptr elementtype(i64) %p10, ptr elementtype(i64) %p11, ptr elementtype(i64) %p12)
  ret void
}
; CHECK-LABEL: define void @too_many(
; CHECK-NOT: spill
; CHECK: call void asm "nop", "{{[*m,]*}},r,~{rax}"(ptr elementtype(i64) %p0, {{.*}}%p11, i64 %n)
; CHECK-NOT: spill
; CHECK: ret
define void @too_many(ptr %p0, ptr %p1, ptr %p2, ptr %p3, ptr %p4, ptr %p5, ptr %p6, ptr %p7, ptr %p8, ptr %p9, ptr %p10, ptr %p11, i64 %n) {
  call void asm "nop", "*m,*m,*m,*m,*m,*m,*m,*m,*m,*m,*m,*m,r,~{rax}"(ptr elementtype(i64) %p0, ptr elementtype(i64) %p1, ptr elementtype(i64) %p2, ptr elementtype(i64) %p3, ptr elementtype(i64) %p4, ptr elementtype(i64) %p5, ptr elementtype(i64) %p6, ptr elementtype(i64) %p7, ptr elementtype(i64) %p8, ptr elementtype(i64) %p9, ptr elementtype(i64) %p10, ptr elementtype(i64) %p11, i64 %n)
  ret void
}

; Assembly that may take an operand's address, or go on from it, has it where it is; a bit of the operand is in it.
; CHECK-LABEL: define ptr @address(
; CHECK-NOT: spill
; CHECK: call ptr asm "leaq $1, $0", "=r,*m"(ptr elementtype(i64) %p)
define ptr @address(ptr %p) {
  %v = call ptr asm "leaq $1, $0", "=r,*m"(ptr elementtype(i64) %p)
  ret ptr %v
}
; CHECK-LABEL: define void @bits(
; CHECK-NOT: spill
; CHECK: call void asm "lock; btsq $1, $0", "=*m,r,*m"(ptr elementtype(i64) %p, i64 %n, ptr elementtype(i64) %p)
define void @bits(ptr %p, i64 %n) {
  call void asm "lock; btsq $1, $0", "=*m,r,*m"(ptr elementtype(i64) %p, i64 %n, ptr elementtype(i64) %p)
  ret void
}
; CHECK-LABEL: define void @bits_in_either_dialect(
; CHECK-NOT: spill
; CHECK: call void asm "bts$(q $1, $0$|$0, $1$)", "=*m,r,*m"(ptr elementtype(i64) %p, i64 %n, ptr elementtype(i64) %p)
define void @bits_in_either_dialect(ptr %p, i64 %n) {
  call void asm "bts$(q $1, $0$|$0, $1$)", "=*m,r,*m"(ptr elementtype(i64) %p, i64 %n, ptr elementtype(i64) %p)
  ret void
}
; What assembly calls uses the slots.
; CHECK-LABEL: define void @behind_a_call(
; CHECK-NOT: spill
; CHECK: call void asm sideeffect "callq *$1\0A\09incq $0", "=*m,r,*m,~{memory}"(ptr elementtype(i64) %p, ptr %f, ptr elementtype(i64) %p)
; CHECK: call void asm sideeffect "call*$1; incq $0", "=*m,r,*m,~{memory}"(ptr elementtype(i64) %p, ptr %f, ptr elementtype(i64) %p)
define void @behind_a_call(ptr %p, ptr %f) {
  call void asm sideeffect "callq *$1\0A\09incq $0", "=*m,r,*m,~{memory}"(ptr elementtype(i64) %p, ptr %f, ptr elementtype(i64) %p)
  call void asm sideeffect "call*$1; incq $0", "=*m,r,*m,~{memory}"(ptr elementtype(i64) %p, ptr %f, ptr elementtype(i64) %p)
  ret void
}
; A prefetch accesses nothing, and takes any address.
; CHECK-LABEL: define void @hint(
; CHECK-NOT: spill
; CHECK: call void asm sideeffect "prefetcht0 $0", "*m"(ptr elementtype(i8) %p)
; CHECK: call void asm sideeffect "prefetchw $0", "*m"(ptr elementtype(i8) %p)
define void @hint(ptr %p) {
  call void asm sideeffect "prefetcht0 $0", "*m"(ptr elementtype(i8) %p)
  call void asm sideeffect "prefetchw $0", "*m"(ptr elementtype(i8) %p)
  ret void
}
; CHECK-LABEL: define void @bit(
; CHECK: call void asm "btrl $1, $0", "=*m,i,*m"(ptr elementtype(i32) %spill.pointer{{.*}}, i32 7, ptr elementtype(i32) %spill.pointer{{.*}})
define void @bit(ptr %p) {
  call void asm "btrl $1, $0", "=*m,i,*m"(ptr elementtype(i32) %p, i32 7, ptr elementtype(i32) %p)
  ret void
}

; CHECK-LABEL: define i64 @second(
; CHECK-NOT: spill
; CHECK: call i64 asm "movq 8+$1, $0", "=r,*m"(ptr elementtype(i64) %p)
define i64 @second(ptr %p) {
  %v = call i64 asm "movq 8+$1, $0", "=r,*m"(ptr elementtype(i64) %p)
  ret i64 %v
}

; CHECK-LABEL: define i64 @second_with_blanks(
; CHECK-NOT: spill
; CHECK: call i64 asm "movq 8 + $1, $0", "=r,*m"(ptr elementtype(i64) %p)
define i64 @second_with_blanks(ptr %p) {
  %v = call i64 asm "movq 8 + $1, $0", "=r,*m"(ptr elementtype(i64) %p)
  ret i64 %v
}

; A number may end in a letter, an expression in a parenthesis, and a constant may be an operand itself. Labels of the assembly are no distances.
; CHECK-LABEL: define i32 @third_of_four(
; CHECK-NOT: spill
; CHECK: call i32 asm "movl 0xc$1, $0", "=r,*m"(ptr elementtype(i64) %p)
define i32 @third_of_four(ptr %p) {
  %v = call i32 asm "movl 0xc$1, $0", "=r,*m"(ptr elementtype(i64) %p)
  ret i32 %v
}
; CHECK-LABEL: define i64 @computed(
; CHECK-NOT: spill
; CHECK: call i64 asm "movq (2*8)$1, $0", "=r,*m"(ptr elementtype(i64) %p)
define i64 @computed(ptr %p) {
  %v = call i64 asm "movq (2*8)$1, $0", "=r,*m"(ptr elementtype(i64) %p)
  ret i64 %v
}
; CHECK-LABEL: define i64 @given(
; CHECK-NOT: spill
; CHECK: call i64 asm "movq ${2:c}$1, $0", "=r,*m,i"(ptr elementtype(i64) %p, i32 16)
define i64 @given(ptr %p) {
  %v = call i64 asm "movq ${2:c}$1, $0", "=r,*m,i"(ptr elementtype(i64) %p, i32 16)
  ret i64 %v
}
; CHECK-LABEL: define i64 @labelled(
; CHECK: call i64 asm "jmp .Lon${:uid}\0A.Lon${:uid}: movq $1, $0", "=r,*m"(ptr elementtype(i64) %spill.pointer{{.*}})
define i64 @labelled(ptr %p) {
  %v = call i64 asm "jmp .Lon${:uid}\0A.Lon${:uid}: movq $1, $0", "=r,*m"(ptr elementtype(i64) %p)
  ret i64 %v
}

; In Intel's dialect the distance may stand behind; a constant or another operand that follows is none.
; CHECK-LABEL: define i64 @second_of_intel(
; CHECK-NOT: spill
; CHECK: call i64 asm inteldialect "mov $0, $1 + 8", "=r,*m"(ptr elementtype(i64) %p)
define i64 @second_of_intel(ptr %p) {
  %v = call i64 asm inteldialect "mov $0, $1 + 8", "=r,*m"(ptr elementtype(i64) %p)
  ret i64 %v
}
; CHECK-LABEL: define i64 @second_by_index(
; CHECK-NOT: spill
; CHECK: call i64 asm inteldialect "mov $0, ${1:q}[8]", "=r,*m"(ptr elementtype(i64) %p)
define i64 @second_by_index(ptr %p) {
  %v = call i64 asm inteldialect "mov $0, ${1:q}[8]", "=r,*m"(ptr elementtype(i64) %p)
  ret i64 %v
}
; CHECK-LABEL: define void @no_distance(
; CHECK: call void asm "addl $$4+4, $0\0A\09subl $1, $0", "=*m,r"(ptr elementtype(i32) %spill.pointer{{.*}}, i32 7)
define void @no_distance(ptr %p) {
  call void asm "addl $$4+4, $0\0A\09subl $1, $0", "=*m,r"(ptr elementtype(i32) %p, i32 7)
  ret void
}

; Instructions may take more than the type of their operand says: as much as a register has, or a vector's, or more.
; CHECK-LABEL: define i64 @wider(
; CHECK: call preserve_allcc i64 @__spillway_cross_map_stub(i64 {{.*}}, i64 64, i64 0)
; CHECK: call void asm sideeffect "movdqu $0, %xmm0"
; CHECK: call preserve_allcc i64 @__spillway_cross_map_stub(i64 {{.*}}, i64 512, i64 0)
; CHECK: call void asm sideeffect "fxrstor $0"
; CHECK: call preserve_allcc i64 @__spillway_cross_map_stub(i64 {{.*}}, i64 8, i64 0)
; CHECK: call i64 asm "movq $1, $0"
; CHECK: call preserve_allcc i64 @__spillway_cross_map_stub(i64 {{.*}}, i64 16, i64 0)
; CHECK: call i64 asm "movq ${1:H}, $0"
define i64 @wider(ptr %p, ptr %q) {
  call void asm sideeffect "movdqu $0, %xmm0", "*m,~{xmm0},~{memory}"(ptr elementtype(i8) %p)
  call void asm sideeffect "fxrstor $0", "*m,~{memory}"(ptr elementtype(i8) %p)
  %v = call i64 asm "movq $1, $0", "=r,*m"(ptr elementtype(i8) %q)
  %w = call i64 asm "movq ${1:H}, $0", "=r,*m"(ptr elementtype(i64) %q)
  ret i64 %v
}

; What assembly stores past the caches is in its frame before the slot is another's.
; CHECK-LABEL: define void @past_caches(
; CHECK: call void asm "movnti $1, $0", "=*m,r"(ptr elementtype(i64) %spill.pointer{{.*}}, i64 1)
; CHECK-NEXT: call void asm sideeffect "sfence", "~{memory}"()
define void @past_caches(ptr %p) {
  call void asm "movnti $1, $0", "=*m,r"(ptr elementtype(i64) %p, i64 1)
  ret void
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memcpy.inline.p0.p0.i64(ptr, ptr, i64 immarg, i1 immarg)
declare void @llvm.memset.inline.p0.i64(ptr, i8, i64 immarg, i1 immarg)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
