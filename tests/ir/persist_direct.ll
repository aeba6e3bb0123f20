; OPTIONS: -spill-persist=flush -spill-translate=0
; What needs no call is done without one, as far as the thread's variable says so.

; CHECK: @__spillway_persist_thread = external thread_local(initialexec) global [5 x i64]

; In the range of clwb: the instruction. Else, put off: nothing. Else a call.
; CHECK-LABEL: define void @flush(
; CHECK: store i64 1, ptr %p
; CHECK: [[A:%.*]] = call i64 asm sideeffect "", "=r,0,~{memory}"(ptr %p)
; CHECK: [[AT:%.*]] = getelementptr inbounds i8, ptr %{{.*}}, i64 0
; CHECK: [[RANGE:%.*]] = load atomic i64, ptr [[AT]] monotonic, align 8, !nosanitize
; CHECK: [[PAGE:%.*]] = lshr i64 [[A]], 12
; CHECK: [[FIRST:%.*]] = lshr i64 [[RANGE]], 28
; CHECK: [[COUNT:%.*]] = and i64 [[RANGE]], 268435455
; CHECK: [[OFFSET:%.*]] = sub i64 [[PAGE]], [[FIRST]]
; CHECK: [[IN:%.*]] = icmp ult i64 [[OFFSET]], [[COUNT]]
; CHECK: br i1 [[IN]], label %[[HERE:.*]], label %[[ELSE:[^,]*]]
; CHECK: [[HERE]]:
; CHECK-NEXT: call void asm sideeffect "clwb ($0)", "r,~{memory}"(i64 [[A]])
; CHECK-NEXT: br label %[[END:.*]]
; CHECK: [[ELSE]]:
; CHECK: [[AT:%.*]] = getelementptr inbounds i8, ptr %{{.*}}, i64 24
; CHECK: [[TABLE:%.*]] = load atomic ptr, ptr [[AT]] monotonic, align 8, !nosanitize
; CHECK: [[LINE:%.*]] = lshr i64 [[A]], 6
; CHECK: [[HIGH:%.*]] = lshr i64 [[LINE]], 8
; CHECK: [[MIX:%.*]] = xor i64 [[LINE]], [[HIGH]]
; CHECK: [[INDEX:%.*]] = and i64 [[MIX]], 255
; CHECK: [[MARK:%.*]] = load atomic i64, ptr [[TABLE]] acquire, align 8, !nosanitize
; CHECK: [[NEXT:%.*]] = add i64 [[INDEX]], 1
; CHECK: [[PLACE:%.*]] = getelementptr i64, ptr [[TABLE]], i64 [[NEXT]]
; CHECK: [[ENTRY:%.*]] = load atomic i64, ptr [[PLACE]] monotonic, align 8, !nosanitize
; CHECK: [[KEY:%.*]] = shl i64 [[LINE]], 14
; CHECK: [[WANTED:%.*]] = or i64 [[KEY]], [[MARK]]
; CHECK: [[OFF:%.*]] = icmp eq i64 [[ENTRY]], [[WANTED]]
; CHECK: [[NEW:%.*]] = xor i1 [[OFF]], true
; CHECK: br i1 [[NEW]], label %[[CALL:.*]], label %{{.*}}, !prof
; CHECK: [[CALL]]:
; CHECK-NEXT: call void @__spillway_persist_flush(ptr %p)
; CHECK: ret void
define void @flush(ptr %p) {
  store i64 1, ptr %p
  call void @llvm.x86.clwb(ptr %p)
  ret void
}

; A range for each instruction.
; CHECK-LABEL: define void @others(
; CHECK: getelementptr inbounds i8, ptr %{{.*}}, i64 8
; CHECK: call void asm sideeffect "clflushopt ($0)", "r,~{memory}"
; CHECK: call void @__spillway_persist_flush(ptr %p)
; CHECK: getelementptr inbounds i8, ptr %{{.*}}, i64 16
; CHECK: call void asm sideeffect "clflush ($0)", "r,~{memory}"
; CHECK-NOT: icmp eq
; CHECK: call void @__spillway_persist_flush_ordered(ptr %p)
; CHECK: ret void
define void @others(ptr %p) {
  call void @llvm.x86.clflushopt(ptr %p)
  call void asm sideeffect "clflush $0", "=*m,~{memory}"(ptr elementtype(i8) %p)
  ret void
}

; Nothing pending, and some left: the instruction, and then one less.
; CHECK-LABEL: define void @fence(
; CHECK: [[AT:%.*]] = getelementptr inbounds i8, ptr %{{.*}}, i64 32
; CHECK: [[PENDING:%.*]] = load atomic i32, ptr [[AT]] monotonic
; CHECK: [[FENCES:%.*]] = getelementptr inbounds i8, ptr %{{.*}}, i64 36
; CHECK: [[LEFT:%.*]] = load atomic i32, ptr [[FENCES]] monotonic
; CHECK: [[SOME:%.*]] = icmp ne i32 [[PENDING]], 0
; CHECK: [[NONE:%.*]] = icmp sle i32 [[LEFT]], 0
; CHECK: [[CALLS:%.*]] = or i1 [[SOME]], [[NONE]]
; CHECK: br i1 [[CALLS]], label %[[CALL:.*]], label %[[HERE:.*]], !prof
; CHECK: [[CALL]]:
; CHECK-NEXT: call void @__spillway_persist_fence()
; CHECK: [[HERE]]:
; CHECK-NEXT: call void asm sideeffect "sfence", "~{memory}"()
; CHECK-NEXT: [[LESS:%.*]] = sub i32 [[LEFT]], 1
; CHECK-NEXT: store i32 [[LESS]], ptr [[FENCES]], align 4, !nosanitize
; CHECK: ret void
define void @fence() {
  call void @llvm.x86.sse.sfence()
  ret void
}

; Before what orders flushes and is no sfence: a call, if anything is pending.
; CHECK-LABEL: define void @locked(
; CHECK-NOT: asm
; CHECK: call void @__spillway_persist_fence()
; CHECK: fence seq_cst
define void @locked() {
  fence seq_cst
  ret void
}

; As small as can be.
; CHECK-LABEL: define void @small(
; CHECK-NEXT: call void @__spillway_persist_flush(ptr %p)
; CHECK-NEXT: call void @__spillway_persist_fence()
; CHECK-NEXT: ret void
define void @small(ptr %p) minsize {
  call void @llvm.x86.clwb(ptr %p)
  call void @llvm.x86.sse.sfence()
  ret void
}

declare void @llvm.x86.clwb(ptr)
declare void @llvm.x86.clflushopt(ptr)
declare void @llvm.x86.sse.sfence()
