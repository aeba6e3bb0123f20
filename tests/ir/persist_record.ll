; OPTIONS: -spill-persist=record -spill-translate=0 -spill-persist-direct=0
; Each store that may be to persistent memory is reported after it, with its bytes.

@global = global i64 0
@local = thread_local global i64 0
@other = external global [100 x i64]

; CHECK-LABEL: define void @stores(
; CHECK-NEXT: store i8 1, ptr %p
; CHECK-NEXT: call void @__spillway_persist_store(ptr %p, i64 1)
; CHECK-NEXT: store volatile i64 1, ptr %p
; CHECK-NEXT: call void @__spillway_persist_store(ptr %p, i64 8)
; CHECK-NEXT: store <4 x i32> %v, ptr %p
; CHECK-NEXT: call void @__spillway_persist_store(ptr %p, i64 16)
; CHECK-NEXT: store <8 x i64> zeroinitializer, ptr %p, align 64, !nontemporal
; CHECK-NEXT: call void @__spillway_persist_store_past_caches(ptr %p, i64 64)
; CHECK-NEXT: store atomic i32 1, ptr %p release
; CHECK-NEXT: call void @__spillway_persist_store(ptr %p, i64 4)
; CHECK-NEXT: store i128 1, ptr %p
; CHECK-NEXT: call void @__spillway_persist_store(ptr %p, i64 16)
; CHECK-NEXT: store i1 true, ptr %p
; CHECK-NEXT: call void @__spillway_persist_store(ptr %p, i64 1)
; CHECK-NEXT: store i64 1, ptr %p, align 8, !nontemporal
; CHECK-NEXT: call void @__spillway_persist_store_past_caches(ptr %p, i64 8)
; CHECK-NEXT: store i16 1, ptr %p, align 2, !nontemporal
; CHECK-NEXT: call void @__spillway_persist_store(ptr %p, i64 2)
; CHECK-NEXT: call void asm "movnti $1, $0"
; CHECK-NEXT: call void @__spillway_persist_store_past_caches(ptr %p, i64 8)
; CHECK-NEXT: ret
define void @stores(ptr %p, <4 x i32> %v) {
  store i8 1, ptr %p
  store volatile i64 1, ptr %p
  store <4 x i32> %v, ptr %p
  store <8 x i64> zeroinitializer, ptr %p, align 64, !nontemporal !0
  store atomic i32 1, ptr %p release, align 4
  store i128 1, ptr %p
  store i1 true, ptr %p
  store i64 1, ptr %p, align 8, !nontemporal !0
  store i16 1, ptr %p, align 2, !nontemporal !0
  call void asm "movnti $1, $0", "=*m,r"(ptr elementtype(i64) %p, i64 1)
  ret void
}

; A comparison that fails stores nothing. Pending flushes are executed before.
; CHECK-LABEL: define void @atomics(
; CHECK: call void @__spillway_persist_fence()
; CHECK: atomicrmw add ptr %p, i32 1 monotonic
; CHECK-NEXT: call void @__spillway_persist_store(ptr %p, i64 4)
; CHECK: [[X:%.*]] = cmpxchg ptr %p, i64 0, i64 1
; CHECK-NEXT: [[DONE:%.*]] = extractvalue { i64, i1 } [[X]], 1
; CHECK-NEXT: [[BYTES:%.*]] = select i1 [[DONE]], i64 8, i64 0
; CHECK-NEXT: call void @__spillway_persist_store(ptr %p, i64 [[BYTES]])
define void @atomics(ptr %p) {
  %a = atomicrmw add ptr %p, i32 1 monotonic
  %x = cmpxchg ptr %p, i64 0, i64 1 monotonic monotonic
  ret void
}

; CHECK-LABEL: define void @copies(
; CHECK-NEXT: call void @llvm.memcpy
; CHECK-NEXT: call void @__spillway_persist_store(ptr %p, i64 24)
; CHECK-NEXT: call void @llvm.memmove
; CHECK-NEXT: [[N:%.*]] = zext i32 %m to i64
; CHECK-NEXT: call void @__spillway_persist_store(ptr %p, i64 [[N]])
; CHECK-NEXT: call void @llvm.memset
; CHECK-NEXT: call void @__spillway_persist_store(ptr %p, i64 %n)
; CHECK-NEXT: ret
define void @copies(ptr %p, ptr %q, i64 %n, i32 %m) {
  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %q, i64 24, i1 false)
  call void @llvm.memmove.p0.p0.i32(ptr %p, ptr %q, i32 %m, i1 false)
  call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 %n, i1 false)
  ret void
}

; CHECK-LABEL: define void @library(
; CHECK: call ptr @memcpy(ptr %p, ptr %q, i64 %n)
; CHECK-NEXT: call void @__spillway_persist_store(ptr %p, i64 %n)
; CHECK-NEXT: call ptr @__memset_chk(ptr %p, i32 0, i64 8, i64 100)
; CHECK-NEXT: call void @__spillway_persist_store(ptr %p, i64 8)
; CHECK-NEXT: call void @bcopy(ptr %q, ptr %p, i64 %n)
; CHECK-NEXT: call void @__spillway_persist_store(ptr %p, i64 %n)
; CHECK-NEXT: call ptr @wmemset(ptr %p, i32 0, i64 %n)
; CHECK-NEXT: [[W:%.*]] = mul i64 %n, 4
; CHECK-NEXT: call void @__spillway_persist_store(ptr %p, i64 [[W]])
; CHECK-NEXT: ret
define void @library(ptr %p, ptr %q, i64 %n) {
  %1 = call ptr @memcpy(ptr %p, ptr %q, i64 %n)
  %2 = call ptr @__memset_chk(ptr %p, i32 0, i64 8, i64 100)
  call void @bcopy(ptr %q, ptr %p, i64 %n)
  %3 = call ptr @wmemset(ptr %p, i32 0, i64 %n)
  ret void
}

; Strings: with their ends, and only what was appended.
; CHECK-LABEL: define void @strings(
; CHECK-NEXT: call ptr @strcpy(ptr %p, ptr %q)
; CHECK-NEXT: [[L:%.*]] = call i64 @strlen(ptr %p)
; CHECK-NEXT: [[L1:%.*]] = add i64 [[L]], 1
; CHECK-NEXT: call void @__spillway_persist_store(ptr %p, i64 [[L1]])
; CHECK-NEXT: [[OLD:%.*]] = call i64 @strlen(ptr %p)
; CHECK-NEXT: call ptr @strcat(ptr %p, ptr %q)
; CHECK-NEXT: [[END:%.*]] = getelementptr i8, ptr %p, i64 [[OLD]]
; CHECK-NEXT: [[M:%.*]] = call i64 @strlen(ptr [[END]])
; CHECK-NEXT: [[M1:%.*]] = add i64 [[M]], 1
; CHECK-NEXT: call void @__spillway_persist_store(ptr [[END]], i64 [[M1]])
; CHECK-NEXT: ret
define void @strings(ptr %p, ptr %q) {
  %1 = call ptr @strcpy(ptr %p, ptr %q)
  %2 = call ptr @strcat(ptr %p, ptr %q)
  ret void
}

; What assembly says it writes, unless that is how it flushes.
; CHECK-LABEL: define void @assembly(
; CHECK-NEXT: asm sideeffect "movntiq $2, $1"
; CHECK-NEXT: call void @__spillway_persist_store_past_caches(ptr %q, i64 8)
; CHECK-NEXT: asm sideeffect "clwb $0; nop"
; CHECK-NEXT: ret
define void @assembly(ptr %p, ptr %q) {
  call i32 asm sideeffect "movntiq $2, $1", "=r,=*m,r"(ptr elementtype(i64) %q, i64 1)
  call void asm sideeffect "clwb $0; nop", "=*m"(ptr elementtype(i8) %p)
  ret void
}

; Stored when the call has returned.
; CHECK-LABEL: define ptr @throws(
; CHECK: [[R:%.*]] = invoke ptr @memcpy(ptr %p, ptr %q, i64 8)
; CHECK-NEXT: to label %[[RETURNED:.*]] unwind
; CHECK: [[RETURNED]]:
; CHECK-NEXT: call void @__spillway_persist_store(ptr %p, i64 8)
; CHECK-NEXT: br label %joined
define ptr @throws(ptr %p, ptr %q, i1 %c) personality ptr null {
  br i1 %c, label %copy, label %joined
copy:
  %r = invoke ptr @memcpy(ptr %p, ptr %q, i64 8) to label %joined unwind label %thrown
joined:
  %s = phi ptr [ null, %0 ], [ %r, %copy ]
  ret ptr %s
thrown:
  %l = landingpad { ptr, i32 } cleanup
  resume { ptr, i32 } %l
}

; Stacks and variables are not mapped memory. Nor is what is only read, or compared.
; CHECK-LABEL: define void @elsewhere(
; CHECK-NOT: __spillway_persist_store
; CHECK: ret
define void @elsewhere(ptr byval([4 x i64]) %v, ptr %p, i64 %i, ptr addrspace(256) %gs) {
  %a = alloca [100 x i64]
  %q = getelementptr i64, ptr %a, i64 %i
  store i64 1, ptr %q
  store i64 1, ptr @global
  store i64 1, ptr @local
  %o = getelementptr i64, ptr @other, i64 %i
  store i64 1, ptr %o
  store i64 1, ptr %v
  store i64 1, ptr addrspace(256) %gs
  call void @llvm.memcpy.p0.p0.i64(ptr %a, ptr %p, i64 24, i1 false)
  %l = load i64, ptr %p
  %c = call i32 @memcmp(ptr %p, ptr %a, i64 8)
  %s = call ptr @strcpy(ptr %a, ptr %p)
  ret void
}

; Where Swift's calling convention has an error is a register.
; CHECK-LABEL: define swiftcc void @fail(
; CHECK-NEXT: store ptr %context, ptr %error, align 8
; CHECK-NEXT: ret
define swiftcc void @fail(ptr swiftself %context, ptr swifterror %error) {
  store ptr %context, ptr %error, align 8
  ret void
}

; A function of the program's own reports its stores itself.
; CHECK-LABEL: define ptr @memset(
; CHECK-NEXT: store i8 0, ptr %p
; CHECK-NEXT: call void @__spillway_persist_store(ptr %p, i64 1)
define ptr @memset(ptr %p, i32 %c, i64 %n) {
  store i8 0, ptr %p
  ret ptr %p
}
; CHECK-LABEL: define void @calls_own(
; CHECK-NEXT: call ptr @memset
; CHECK-NEXT: ret
define void @calls_own(ptr %p) {
  %r = call ptr @memset(ptr %p, i32 0, i64 8)
  ret void
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memmove.p0.p0.i32(ptr, ptr, i32, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare ptr @memcpy(ptr, ptr, i64)
declare ptr @__memset_chk(ptr, i32, i64, i64)
declare void @bcopy(ptr, ptr, i64)
declare ptr @wmemset(ptr, i32, i64)
declare ptr @strcpy(ptr, ptr)
declare ptr @strcat(ptr, ptr)
declare i32 @memcmp(ptr, ptr, i64)
!0 = !{i32 1}
