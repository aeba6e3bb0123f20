; OPTIONS: -spill-persist=record -spill-translate=0 -spill-persist-direct=0
; Of vectors with a mask only the lanes that are on are stored: others are reported with no bytes.

; CHECK-LABEL: define void @masked(
; CHECK-NEXT: call void @llvm.masked.store
; CHECK-NEXT: [[M0:%.*]] = extractelement <2 x i1> %m, i64 0
; CHECK-NEXT: [[B0:%.*]] = select i1 [[M0]], i64 8, i64 0
; CHECK-NEXT: [[P0:%.*]] = getelementptr i8, ptr %p, i64 0
; CHECK-NEXT: call void @__spillway_persist_store(ptr [[P0]], i64 [[B0]])
; CHECK-NEXT: [[M1:%.*]] = extractelement <2 x i1> %m, i64 1
; CHECK-NEXT: [[B1:%.*]] = select i1 [[M1]], i64 8, i64 0
; CHECK-NEXT: [[P1:%.*]] = getelementptr i8, ptr %p, i64 8
; CHECK-NEXT: call void @__spillway_persist_store(ptr [[P1]], i64 [[B1]])
; CHECK-NEXT: ret
define void @masked(ptr %p, <2 x i64> %v, <2 x i1> %m) {
  call void @llvm.masked.store.v2i64.p0(<2 x i64> %v, ptr %p, i32 8, <2 x i1> %m)
  ret void
}

; CHECK-LABEL: define void @scatter(
; CHECK: [[B0:%.*]] = select i1 %{{.*}}, i64 4, i64 0
; CHECK-NEXT: [[P0:%.*]] = extractelement <2 x ptr> %p, i64 0
; CHECK-NEXT: call void @__spillway_persist_store(ptr [[P0]], i64 [[B0]])
; CHECK: [[P1:%.*]] = extractelement <2 x ptr> %p, i64 1
; CHECK-NEXT: call void @__spillway_persist_store(ptr [[P1]], i64 %{{.*}})
define void @scatter(<2 x ptr> %p, <2 x i32> %v, <2 x i1> %m) {
  call void @llvm.masked.scatter.v2i32.v2p0(<2 x i32> %v, <2 x ptr> %p, i32 4, <2 x i1> %m)
  ret void
}

; CHECK-LABEL: define void @compress(
; CHECK: [[B0:%.*]] = select i1 %{{.*}}, i64 2, i64 0
; CHECK-NEXT: [[S0:%.*]] = add i64 0, [[B0]]
; CHECK: [[B1:%.*]] = select i1 %{{.*}}, i64 2, i64 0
; CHECK-NEXT: [[S1:%.*]] = add i64 [[S0]], [[B1]]
; CHECK-NEXT: call void @__spillway_persist_store(ptr %p, i64 [[S1]])
; CHECK-NEXT: ret
define void @compress(ptr %p, <2 x i16> %v, <2 x i1> %m) {
  call void @llvm.masked.compressstore.v2i16(<2 x i16> %v, ptr %p, <2 x i1> %m)
  ret void
}

; The sign of a lane's mask.
; CHECK-LABEL: define void @signs(
; CHECK: [[M0:%.*]] = extractelement <4 x i32> %m, i64 0
; CHECK-NEXT: [[ON:%.*]] = icmp slt i32 [[M0]], 0
; CHECK-NEXT: select i1 [[ON]], i64 4, i64 0
; CHECK: call void @llvm.x86.sse2.maskmov.dqu
; CHECK-COUNT-16: call void @__spillway_persist_store_past_caches
; CHECK: ret
define void @signs(ptr %p, <4 x float> %v, <4 x i32> %m, <16 x i8> %b) {
  call void @llvm.x86.avx.maskstore.ps(ptr %p, <4 x i32> %m, <4 x float> %v)
  call void @llvm.x86.sse2.maskmov.dqu(<16 x i8> %b, <16 x i8> %b, ptr %p)
  ret void
}

; Straight to memory.
; CHECK-LABEL: define void @direct(
; CHECK: call void @__spillway_persist_store_past_caches(ptr %p, i64 4)
; CHECK: call void @__spillway_persist_store_past_caches(ptr %p, i64 8)
; CHECK: call void @__spillway_persist_store_past_caches(ptr %p, i64 64)
define void @direct(ptr %p, ptr %q) {
  call void @llvm.x86.directstore32(ptr %p, i32 1)
  call void @llvm.x86.directstore64(ptr %p, i64 1)
  call void @llvm.x86.movdir64b(ptr %p, ptr %q)
  ret void
}

declare void @llvm.masked.store.v2i64.p0(<2 x i64>, ptr, i32, <2 x i1>)
declare void @llvm.masked.scatter.v2i32.v2p0(<2 x i32>, <2 x ptr>, i32, <2 x i1>)
declare void @llvm.masked.compressstore.v2i16(<2 x i16>, ptr, <2 x i1>)
declare void @llvm.x86.avx.maskstore.ps(ptr, <4 x i32>, <4 x float>)
declare void @llvm.x86.sse2.maskmov.dqu(<16 x i8>, <16 x i8>, ptr)
declare void @llvm.x86.directstore32(ptr, i32)
declare void @llvm.x86.directstore64(ptr, i64)
declare void @llvm.x86.movdir64b(ptr, ptr)
