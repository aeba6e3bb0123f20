; Vector intrinsics: a lane that the mask switches off is never translated.

declare <4 x i32> @llvm.masked.load.v4i32.p0(ptr, i32, <4 x i1>, <4 x i32>)
declare void @llvm.masked.store.v4i32.p0(<4 x i32>, ptr, i32, <4 x i1>)
declare <4 x i32> @llvm.masked.gather.v4i32.v4p0(<4 x ptr>, i32, <4 x i1>, <4 x i32>)
declare void @llvm.masked.scatter.v4i32.v4p0(<4 x i32>, <4 x ptr>, i32, <4 x i1>)
declare <4 x i32> @llvm.masked.expandload.v4i32(ptr, <4 x i1>, <4 x i32>)
declare void @llvm.masked.compressstore.v4i32(<4 x i32>, ptr, <4 x i1>)

; Only with an active lane, and whole only inside a page.
; CHECK-LABEL: define <4 x i32> @load(
; CHECK: [[ANY:%.*]] = call i1 @llvm.vector.reduce.or.v4i1(<4 x i1> %m)
; CHECK: br i1 [[ANY]]
; CHECK: %spill.crosses = icmp ugt i32 {{.*}}, -16777216
; CHECK: extractelement <4 x i1> %m
; CHECK: asm sideeffect "callq ${4:P}"
; CHECK: asm sideeffect "callq ${4:P}"
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

; CHECK-LABEL: define <4 x i32> @gather(
; CHECK-NOT: masked.gather
; CHECK: store <4 x i32> %t, ptr %spill.lanes
; CHECK: [[BIT:%.*]] = extractelement <4 x i1> %m, i64 [[I:%.*]]
; CHECK: br i1 [[BIT]]
; CHECK: extractelement <4 x ptr> %p, i64 [[I]]
; CHECK: asm sideeffect "callq ${4:P}"
; CHECK: load i32, ptr %spill.pointer
; CHECK: ret
define <4 x i32> @gather(<4 x ptr> %p, <4 x i1> %m, <4 x i32> %t) {
  %v = call <4 x i32> @llvm.masked.gather.v4i32.v4p0(<4 x ptr> %p, i32 4, <4 x i1> %m, <4 x i32> %t)
  ret <4 x i32> %v
}

; CHECK-LABEL: define void @scatter(
; CHECK-NOT: masked.scatter
; CHECK: [[BIT:%.*]] = extractelement <4 x i1> %m
; CHECK: br i1 [[BIT]]
; CHECK: store i32 {{.*}}, ptr %spill.pointer
; CHECK: ret
define void @scatter(<4 x ptr> %p, <4 x i1> %m, <4 x i32> %v) {
  call void @llvm.masked.scatter.v4i32.v4p0(<4 x i32> %v, <4 x ptr> %p, i32 4, <4 x i1> %m)
  ret void
}

; CHECK-LABEL: define <4 x i32> @expand(
; CHECK-NOT: expandload
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
