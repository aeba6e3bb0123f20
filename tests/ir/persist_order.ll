; OPTIONS: -spill-persist=flush -spill-translate=0 -spill-persist-direct=0
; What also orders flushes, and stays, has pending ones executed before it.

; CHECK: @__spillway_persist_thread = external thread_local(initialexec) global [5 x i64]
; CHECK-LABEL: define void @orders(
; CHECK: [[P:%.*]] = load i32, ptr %{{.*}}, align 4, !nosanitize
; CHECK-NEXT: [[ANY:%.*]] = icmp ne i32 [[P]], 0
; CHECK-NEXT: br i1 [[ANY]], label %[[FLUSH:.*]], label %[[GO:.*]], !prof ![[COLD:.*]]
; CHECK: [[FLUSH]]:
; CHECK-NEXT: call void @__spillway_persist_fence()
; CHECK-NEXT: br label %[[GO]]
; CHECK: [[GO]]:
; CHECK-NEXT: fence seq_cst
; CHECK: icmp ne
; CHECK: call void @__spillway_persist_fence()
; CHECK: call void @llvm.x86.sse2.mfence()
; CHECK: icmp ne
; CHECK: atomicrmw add ptr %p, i32 1 monotonic
; CHECK: icmp ne
; CHECK: cmpxchg ptr %p, i32 0, i32 1 acquire monotonic
; CHECK: icmp ne
; CHECK: store atomic i32 1, ptr %p seq_cst
; CHECK: icmp ne
; CHECK: store atomic i128 1, ptr %p release
; CHECK: icmp ne
; CHECK: load atomic i128, ptr %p acquire
; CHECK: icmp ne
; CHECK: call i32 @llvm.x86.xbegin()
; CHECK: icmp ne
; CHECK: call i32 @pthread_mutex_unlock(ptr %p)
; CHECK: icmp ne
; CHECK: call i1 @__atomic_compare_exchange(
; CHECK: ret
define void @orders(ptr %p) {
  fence seq_cst
  call void @llvm.x86.sse2.mfence()
  %a = atomicrmw add ptr %p, i32 1 monotonic
  %b = cmpxchg ptr %p, i32 0, i32 1 acquire monotonic
  store atomic i32 1, ptr %p seq_cst, align 4
  store atomic i128 1, ptr %p release, align 16
  %w = load atomic i128, ptr %p acquire, align 16
  %x = call i32 @llvm.x86.xbegin()
  %u = call i32 @pthread_mutex_unlock(ptr %p)
  %e = call i1 @__atomic_compare_exchange(i64 32, ptr %p, ptr %p, ptr %p, i32 5, i32 5)
  ret void
}

; A lock elsewhere than in persistent memory orders all the same.
; CHECK-LABEL: define i32 @local(
; CHECK: icmp ne
; CHECK: atomicrmw
define i32 @local() {
  %a = alloca i32
  %v = atomicrmw xchg ptr %a, i32 1 seq_cst
  ret i32 %v
}

; An atomic access that claims less alignment than its size is a function of a library, which may lock.
; CHECK-LABEL: define i32 @by_library(
; CHECK: icmp ne
; CHECK: %v = load atomic i32, ptr %p acquire, align 1
; CHECK: icmp ne
; CHECK: store atomic i32 1, ptr %p release, align 2
; CHECK: ret
define i32 @by_library(ptr %p) {
  %v = load atomic i32, ptr %p acquire, align 1
  store atomic i32 1, ptr %p release, align 2
  ret i32 %v
}

; No instruction, or one that does not order flushes.
; CHECK-LABEL: define i64 @loose(
; CHECK-NOT: icmp
; CHECK: ret
define i64 @loose(ptr %p) {
  fence acq_rel
  fence syncscope("singlethread") seq_cst
  store atomic i64 1, ptr %p release, align 8
  store volatile i64 1, ptr %p
  %v = load atomic i64, ptr %p seq_cst, align 8
  %i = call i32 @puts(ptr %p)
  %s = call i32 @sem_of_our_own(ptr %p)
  ret i64 %v
}
define i32 @sem_of_our_own(ptr %p) {
  ret i32 0
}

; A function that was said to access no memory calls the runtime now.
; CHECK: define void @said() #[[SAID:[0-9]+]]
define void @said() memory(none) nosync {
  call void asm sideeffect "sfence", ""()
  ret void
}
; CHECK: attributes #[[SAID]] = { "spillway-persist" }
; CHECK: ![[COLD]] = !{!"branch_weights", i32 1, i32 1048576}

declare void @llvm.x86.sse2.mfence()
declare i32 @llvm.x86.xbegin()
declare i32 @pthread_mutex_unlock(ptr)
declare i1 @__atomic_compare_exchange(i64, ptr, ptr, ptr, i32, i32)
declare i32 @puts(ptr)
