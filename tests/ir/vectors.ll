; Vector intrinsics: a lane that the mask switches off is never translated.

declare <4 x i32> @llvm.masked.load.v4i32.p0(ptr, i32, <4 x i1>, <4 x i32>)
declare void @llvm.masked.store.v4i32.p0(<4 x i32>, ptr, i32, <4 x i1>)
declare <4 x i32> @llvm.masked.gather.v4i32.v4p0(<4 x ptr>, i32, <4 x i1>, <4 x i32>)
declare <4 x i32> @llvm.masked.gather.v4i32.v4p257(<4 x ptr addrspace(257)>, i32, <4 x i1>, <4 x i32>)
declare <64 x i8> @llvm.masked.gather.v64i8.v64p0(<64 x ptr>, i32, <64 x i1>, <64 x i8>)
declare void @llvm.masked.scatter.v4p0.v4p0(<4 x ptr>, <4 x ptr>, i32, <4 x i1>)
declare void @llvm.masked.scatter.v2f64.v2p0(<2 x double>, <2 x ptr>, i32, <2 x i1>)
declare <4 x i32> @llvm.masked.expandload.v4i32(ptr, <4 x i1>, <4 x i32>)
declare void @llvm.masked.compressstore.v4i32(<4 x i32>, ptr, <4 x i1>)
declare <16 x i8> @llvm.x86.sse3.ldu.dq(ptr)
declare <32 x i8> @llvm.x86.avx.ldu.dq.256(ptr)

; Only with an active lane, and whole only inside a page.
; CHECK-LABEL: define <4 x i32> @load(
; CHECK: [[ANY:%.*]] = call i1 @llvm.vector.reduce.or.v4i1(<4 x i1> %m)
; CHECK: br i1 [[ANY]]
; CHECK: %spill.crosses = icmp ugt i32 {{.*}}, -16777216
; CHECK: bitcast <4 x i1> %m to i4
; CHECK: asm sideeffect "callq ${3:P}"
; CHECK: asm sideeffect "callq ${3:P}"
; CHECK: call <4 x i32> @llvm.masked.load.v4i32.p0(ptr %spill.pointer{{.*}}, i32 4, <4 x i1> %m, <4 x i32> %t)
define <4 x i32> @load(ptr %p, <4 x i1> %m, <4 x i32> %t) {
  %v = call <4 x i32> @llvm.masked.load.v4i32.p0(ptr %p, i32 4, <4 x i1> %m, <4 x i32> %t)
  ret <4 x i32> %v
}

; CHECK-LABEL: define void @store(
; CHECK: br i1
; CHECK: call void @llvm.masked.store.v4i32.p0(<4 x i32> %v, ptr %spill.pointer{{.*}}, i32 4, <4 x i1> %m)
define void @store(ptr %p, <4 x i1> %m, <4 x i32> %v) {
  call void @llvm.masked.store.v4i32.p0(<4 x i32> %v, ptr %p, i32 4, <4 x i1> %m)
  ret void
}

; Only with an active lane, whose page is looked for, and whole only if all others
; lie there too: whatever the others' addresses are.
; CHECK-LABEL: define <4 x i32> @gather(
; CHECK: [[ANY:%.*]] = call i1 @llvm.vector.reduce.or.v4i1(<4 x i1> %m)
; CHECK: br i1 [[ANY]], label %{{.*}}, label %[[NONE:.*]]
; CHECK: [[BITS:%.*]] = bitcast <4 x i1> %m to i4
; CHECK: [[I:%.*]] = call i4 @llvm.cttz.i4(i4 [[BITS]], i1 true)
; CHECK: [[FIRST:%.*]] = zext i4 [[I]] to i64
; CHECK: [[A:%.*]] = extractelement <4 x ptr> %p, i64 [[FIRST]]
; CHECK: [[PAGE:%.*]] = call ptr @llvm.ptrmask.p0.i64(ptr [[A]], i64 -4096)
; CHECK: [[D:%.*]] = sub <4 x i64>
; CHECK: [[OUT:%.*]] = icmp ugt <4 x i64> [[D]], <i64 4092, i64 4092, i64 4092, i64 4092>
; CHECK: [[ON:%.*]] = select <4 x i1> %m, <4 x i1> [[OUT]], <4 x i1> zeroinitializer
; CHECK: [[APART:%.*]] = call i1 @llvm.vector.reduce.or.v4i1(<4 x i1> [[ON]])
; CHECK: br i1 [[APART]]
; Lane by lane, those that are on, each translated.
; CHECK: store <4 x i32> %t, ptr %spill.lanes
; CHECK: store <4 x ptr> %p, ptr %spill.addresses
; CHECK: bitcast <4 x i1> %m to i4
; CHECK: [[BIT:%spill.lane[0-9]*]] = phi i4
; CHECK: call i4 @llvm.cttz.i4(i4 [[BIT]]
; CHECK: asm sideeffect "callq ${3:P}"
; CHECK: load i32, ptr %spill.pointer
; CHECK: [[LESS:%.*]] = sub i4 [[BIT]], 1
; CHECK: [[LEFT:%.*]] = and i4 [[BIT]], [[LESS]]
; CHECK: icmp eq i4 [[LEFT]], 0
; Or the page once. Nothing takes its slot before the last lane.
; CHECK: [[ADDRESS:%.*]] = ptrtoint ptr [[PAGE]] to i64
; CHECK: store atomic i64 [[ADDRESS]]
; CHECK: asm sideeffect "callq ${3:P}"
; CHECK: [[FRAME:%.*]] = getelementptr i8, ptr [[PAGE]]
; CHECK: [[BASE:%.*]] = getelementptr i8, ptr [[FRAME]], i64 0
; CHECK: store <4 x i32> %t, ptr %spill.lanes
; CHECK: store <4 x i64> [[D]], ptr [[DS:%spill.addresses[0-9]*]]
; CHECK-NOT: atomic
; CHECK: [[BIT:%spill.lane[0-9]*]] = phi i4
; CHECK: [[N:%.*]] = call i4 @llvm.cttz.i4(i4 [[BIT]]
; CHECK-NOT: atomic
; CHECK: [[DP:%.*]] = getelementptr i64, ptr [[DS]]
; CHECK: [[DN:%.*]] = load i64, ptr [[DP]]
; CHECK: [[P:%.*]] = getelementptr i8, ptr [[BASE]], i64 [[DN]]
; CHECK: load i32, ptr [[P]], align 4
; CHECK-NOT: atomic
; CHECK: and i4 [[BIT]]
; CHECK: load volatile i32
; CHECK: [[NONE]]:
; CHECK: phi <4 x i32> [ {{.*}} ], [ %t, %0 ]
define <4 x i32> @gather(<4 x ptr> %p, <4 x i1> %m, <4 x i32> %t) {
  %v = call <4 x i32> @llvm.masked.gather.v4i32.v4p0(<4 x ptr> %p, i32 4, <4 x i1> %m, <4 x i32> %t)
  ret <4 x i32> %v
}

; What is stored may be the addresses themselves.
; CHECK-LABEL: define void @scatter(
; CHECK: %spill.slots = load ptr
; CHECK: br i1
; CHECK: [[P:%.*]] = load ptr, ptr
; CHECK: [[V:%.*]] = load ptr, ptr
; CHECK: store ptr [[V]], ptr %spill.pointer
; CHECK: store <4 x ptr> %p, ptr [[VS:%spill.stored[0-9]*]]
; CHECK: [[V:%.*]] = getelementptr ptr, ptr [[VS]]
; CHECK: [[N:%.*]] = load ptr, ptr [[V]]
; CHECK: store ptr [[N]], ptr
; CHECK: ret
define void @scatter(<4 x ptr> %p, <4 x i1> %m) {
  call void @llvm.masked.scatter.v4p0.v4p0(<4 x ptr> %p, <4 x ptr> %p, i32 8, <4 x i1> %m)
  ret void
}

; All lanes are on: the first one's page, and no questions.
; CHECK-LABEL: define <64 x i8> @gather_all(
; CHECK-NOT: br
; CHECK: extractelement <64 x ptr> %p, i64 0
; CHECK: icmp ugt <64 x i64> {{.*}}, <i64 4095,
; CHECK-NOT: select
; CHECK: br i1
; CHECK: phi i64 [ 0,
; CHECK: asm sideeffect
; CHECK: icmp eq i64 {{.*}}, 64
; CHECK: asm sideeffect
; CHECK: phi i64 [ 0,
; CHECK: load i8
; CHECK: icmp eq i64 {{.*}}, 64
; CHECK-NOT: phi <64 x i8> {{.*}}poison
; CHECK: ret
define <64 x i8> @gather_all(<64 x ptr> %p) {
  %v = call <64 x i8> @llvm.masked.gather.v64i8.v64p0(<64 x ptr> %p, i32 1, <64 x i1> splat (i1 true), <64 x i8> poison)
  ret <64 x i8> %v
}

; At any alignment, the last byte of a lane inside the page too.
; CHECK-LABEL: define void @scatter_all(
; CHECK: icmp ugt <2 x i64> {{.*}}, <i64 4088, i64 4088>
; CHECK: store double {{.*}}, ptr %spill.pointer{{.*}}, align 1
; CHECK: store double {{.*}}, ptr %{{[0-9]+}}, align 1
; CHECK: ret
define void @scatter_all(<2 x ptr> %p, <2 x double> %v) {
  call void @llvm.masked.scatter.v2f64.v2p0(<2 x double> %v, <2 x ptr> %p, i32 1, <2 x i1> splat (i1 true))
  ret void
}

; Addresses computed from one that provably is plain, and other address spaces.
; CHECK-LABEL: define <4 x i32> @gather_plain(
; CHECK-NOT: spill
; CHECK: ret
define <4 x i32> @gather_plain(<4 x i64> %i, <4 x ptr addrspace(257)> %g, <4 x i1> %m) {
  %a = alloca [64 x { i32, i32 }]
  %p = getelementptr { i32, i32 }, ptr %a, <4 x i64> %i
  %q = getelementptr i8, <4 x ptr> %p, i64 4
  %v = call <4 x i32> @llvm.masked.gather.v4i32.v4p0(<4 x ptr> %q, i32 4, <4 x i1> %m, <4 x i32> undef)
  %w = call <4 x i32> @llvm.masked.gather.v4i32.v4p257(<4 x ptr addrspace(257)> %g, i32 4, <4 x i1> %m, <4 x i32> %v)
  ret <4 x i32> %w
}

; No lane may be on.
; CHECK-LABEL: define <4 x i32> @expand(
; CHECK-NOT: expandload
; CHECK: [[BITS:%.*]] = bitcast <4 x i1> %m to i4
; CHECK: [[ANY:%.*]] = icmp ne i4 [[BITS]], 0
; CHECK: br i1 [[ANY]]
; CHECK: phi i4
; CHECK: ret
define <4 x i32> @expand(ptr %p, <4 x i1> %m, <4 x i32> %t) {
  %v = call <4 x i32> @llvm.masked.expandload.v4i32(ptr align 4 %p, <4 x i1> %m, <4 x i32> %t)
  ret <4 x i32> %v
}

; CHECK-LABEL: define void @compress(
; CHECK-NOT: compressstore
; CHECK: [[LANE:%.*]] = load ptr, ptr %spill.next
; CHECK: [[NEXT:%.*]] = getelementptr i32, ptr [[LANE]], i64 1
; CHECK: store ptr [[NEXT]], ptr %spill.next
; CHECK: ret
define void @compress(ptr %p, <4 x i1> %m, <4 x i32> %v) {
  call void @llvm.masked.compressstore.v4i32(<4 x i32> %v, ptr align 4 %p, <4 x i1> %m)
  ret void
}

; On the stack they stay.
; CHECK-LABEL: define <4 x i32> @plain(
; CHECK: call <4 x i32> @llvm.masked.load.v4i32.p0(ptr %a,
; CHECK: ret
define <4 x i32> @plain(<4 x i1> %m) {
  %a = alloca [4 x i32]
  %v = call <4 x i32> @llvm.masked.load.v4i32.p0(ptr %a, i32 4, <4 x i1> %m, <4 x i32> undef)
  ret <4 x i32> %v
}

; An instruction for unaligned vectors loads what any other would.
; CHECK-LABEL: define <16 x i8> @unaligned(
; CHECK-NOT: ldu
; CHECK: load <16 x i8>, ptr %spill.pointer{{.*}}, align 1
; CHECK: ret
define <16 x i8> @unaligned(ptr %p) {
  %v = call <16 x i8> @llvm.x86.sse3.ldu.dq(ptr %p)
  ret <16 x i8> %v
}

; CHECK-LABEL: define <32 x i8> @unaligned_wide(
; CHECK-NOT: ldu
; CHECK: load <32 x i8>, ptr %spill.pointer{{.*}}, align 1
; CHECK: ret
define <32 x i8> @unaligned_wide(ptr %p) {
  %v = call <32 x i8> @llvm.x86.avx.ldu.dq.256(ptr %p)
  ret <32 x i8> %v
}

; Code that never runs may compute an address from itself.
; CHECK-LABEL: define void @never(
; CHECK: {{^}}dead:
; CHECK: br label %dead
define void @never() {
  ret void
dead:
  %p = getelementptr i32, <4 x ptr> %p, i64 1
  %v = call <4 x i32> @llvm.masked.gather.v4i32.v4p0(<4 x ptr> %p, i32 4, <4 x i1> <i1 true, i1 true, i1 true, i1 true>, <4 x i32> poison)
  br label %dead
}
