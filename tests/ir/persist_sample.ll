; OPTIONS: -spill-persist=sample -spill-translate=0 -spill-persist-direct=0
; Stores are counted down; the runtime is told of the one with which the count gets negative.

; CHECK: @__spillway_persist_countdown = external thread_local(initialexec) global i32
; CHECK-LABEL: define void @store(
; CHECK-NEXT: store i64 1, ptr %p
; CHECK-NEXT: [[C:%.*]] = call ptr @llvm.threadlocal.address.p0(ptr @__spillway_persist_countdown)
; CHECK-NEXT: [[OLD:%.*]] = load i32, ptr [[C]], align 4, !nosanitize
; CHECK-NEXT: [[NEW:%.*]] = sub i32 [[OLD]], 1
; CHECK-NEXT: store i32 [[NEW]], ptr [[C]], align 4, !nosanitize
; CHECK-NEXT: [[OUT:%.*]] = icmp slt i32 [[NEW]], 0
; CHECK-NEXT: br i1 [[OUT]], label %[[TELL:.*]], label %[[GO:.*]], !prof
; CHECK: [[TELL]]:
; CHECK-NEXT: call void @__spillway_persist_sampled(ptr %p)
; CHECK-NEXT: br label %[[GO]]
; CHECK: [[GO]]:
; CHECK-NEXT: ret
define void @store(ptr %p) {
  store i64 1, ptr %p
  ret void
}

; Each counts once, whatever it stores; lengths are not asked for.
; CHECK-LABEL: define void @many(
; CHECK: call ptr @strcat(ptr %p, ptr %p)
; CHECK-NOT: strlen
; CHECK: call void @__spillway_persist_sampled(ptr %p)
; CHECK: call void @llvm.masked.store
; CHECK: call void @__spillway_persist_sampled(ptr %p)
; CHECK: call void @llvm.masked.scatter
; CHECK: [[P:%.*]] = extractelement <2 x ptr> %ps, i64 0
; CHECK-NEXT: call void @__spillway_persist_sampled(ptr [[P]])
; CHECK-NOT: __spillway_persist_sampled
; CHECK: ret
define void @many(ptr %p, <2 x ptr> %ps, <2 x i64> %v, <2 x i1> %m) {
  %1 = call ptr @strcat(ptr %p, ptr %p)
  call void @llvm.masked.store.v2i64.p0(<2 x i64> %v, ptr %p, i32 8, <2 x i1> %m)
  call void @llvm.masked.scatter.v2i64.v2p0(<2 x i64> %v, <2 x ptr> %ps, i32 8, <2 x i1> %m)
  ret void
}

; CHECK-LABEL: define void @elsewhere(
; CHECK-NOT: __spillway_persist
; CHECK: ret
define void @elsewhere() {
  %a = alloca i64
  store volatile i64 1, ptr %a
  ret void
}

; Flushes and fences as ever.
; CHECK-LABEL: define void @flush(
; CHECK-NEXT: call void @__spillway_persist_flush(ptr %p)
; CHECK-NEXT: ret
define void @flush(ptr %p) {
  call void @llvm.x86.clwb(ptr %p)
  ret void
}

declare ptr @strcat(ptr, ptr)
declare void @llvm.masked.store.v2i64.p0(<2 x i64>, ptr, i32, <2 x i1>)
declare void @llvm.masked.scatter.v2i64.v2p0(<2 x i64>, <2 x ptr>, i32, <2 x i1>)
declare void @llvm.x86.clwb(ptr)
