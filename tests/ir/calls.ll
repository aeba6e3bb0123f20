; What happens at calls: renamed functions, arguments by value, variable arguments.

; The program's own memset stays; what it only declares is renamed wherever it is used.
; CHECK: @table = constant [2 x ptr] [ptr @__spill_malloc, ptr @memset]
@table = constant [2 x ptr] [ptr @malloc, ptr @memset]
; CHECK: @llvm.used = {{.*}}@__spillway_abi_reference
declare noalias ptr @malloc(i64) allockind("alloc,uninitialized") allocsize(0) memory(inaccessiblemem: readwrite) "alloc-family"="malloc"
declare void @"\01free"(ptr)
define ptr @memset(ptr %p, i32 %c, i64 %n) {
  ret ptr %p
}

; CHECK-LABEL: define ptr @allocate(
; CHECK: call ptr @__spill_malloc(i64 %n)
; CHECK: call void @__spill_free(ptr null)
; CHECK: ret
define ptr @allocate(i64 %n) {
  %p = call ptr @malloc(i64 %n)
  call void @"\01free"(ptr null)
  ret ptr %p
}

; A struct by value is copied by code generation, after us: through the stack.
%struct = type { [40 x i64] }
declare void @take(ptr byval(%struct) align 8)
; CHECK-LABEL: define void @by_value(
; CHECK: %spill.byval = alloca i8, i64 320, align 8
; CHECK: call ptr @__spill_memcpy(ptr %spill.byval, ptr %p, i64 320)
; CHECK: call void @take(ptr byval(%struct) align 8 %spill.byval)
define void @by_value(ptr %p) {
  tail call void @take(ptr byval(%struct) align 8 %p)
  ret void
}

; Calls have such places in common, but not the arguments of one.
declare void @take_both(ptr byval([3 x i64]) align 16, ptr byval(i64) align 8)
; CHECK-LABEL: define void @by_value_again(
; CHECK: [[SECOND:%spill.byval.*]] = alloca i8, i64 320, align 8
; CHECK-NEXT: [[FIRST:%spill.byval.*]] = alloca i8, i64 320, align 16
; CHECK-NOT: alloca
; CHECK: call void @take_both(ptr byval([3 x i64]) align 16 [[FIRST]], ptr byval(i64) align 8 [[SECOND]])
; CHECK: call void @take(ptr byval(%struct) align 8 [[FIRST]])
; CHECK: call void @take_two(ptr byval(i64) align 8 [[FIRST]], ptr byval(%struct) align 8 [[SECOND]])
; CHECK: ret
declare void @take_two(ptr byval(i64) align 8, ptr byval(%struct) align 8)
define void @by_value_again(ptr %p) {
  call void @take_both(ptr byval([3 x i64]) align 16 %p, ptr byval(i64) align 8 %p)
  call void @take(ptr byval(%struct) align 8 %p)
  call void @take_two(ptr byval(i64) align 8 %p, ptr byval(%struct) align 8 %p)
  ret void
}

; CHECK-LABEL: define void @variadic(
; CHECK: call void @llvm.va_start.p0(ptr %spill.va)
; CHECK-NOT: va_end
; CHECK: call void @take_list(
; CHECK-NEXT: call void @llvm.va_end.p0(ptr %spill.va{{[0-9]+}})
; CHECK-NEXT: ret
declare void @take_list(ptr)
define void @variadic(ptr %list, ...) {
  call void @llvm.va_start.p0(ptr %list)
  tail call void @take_list(ptr %list)
  call void @llvm.va_end.p0(ptr %list)
  ret void
}

; By Microsoft's convention a list is one pointer.
; CHECK-LABEL: define win64cc void @variadic_ms(
; CHECK: call void @llvm.va_start.p0(ptr %spill.va)
; CHECK: call void @llvm.memcpy.inline.p0.p0.i64(ptr align 8 %spill.pointer{{[0-9]*}}, ptr align 8 %spill.va, i64 8, i1 false)
define win64cc void @variadic_ms(ptr %list, ...) {
  call void @llvm.va_start.p0(ptr %list)
  ret void
}

; A prefetch goes to where the page is, if it is anywhere: whatever the address, it has an entry, and takes no slot.
; CHECK-LABEL: define void @hint(
; CHECK-NOT: store
; CHECK: [[PAGE:%.*]] = lshr i64 %spill.address, 12
; CHECK-NEXT: [[KNOWN:%.*]] = and i64 [[PAGE]], 34359738367
; CHECK-NEXT: [[OFFSET:%.*]] = shl i64 [[KNOWN]], 3
; CHECK-NEXT: [[WHERE:%.*]] = add i64 [[OFFSET]], 1879048192
; CHECK-NEXT: [[POINTER:%.*]] = inttoptr i64 [[WHERE]] to ptr
; CHECK-NEXT: %spill.entry = load atomic i64, ptr [[POINTER]] monotonic, align 8
; CHECK-NEXT: [[DELTA:%.*]] = sub i64 %spill.entry, 1
; CHECK-NEXT: %spill.pointer = getelementptr i8, ptr %p, i64 [[DELTA]]
; CHECK-NEXT: call void @llvm.prefetch.p0(ptr %spill.pointer, i32 0, i32 3, i32 1)
; CHECK-NEXT: ret
define void @hint(ptr %p) {
  call void @llvm.prefetch.p0(ptr %p, i32 0, i32 3, i32 1)
  ret void
}

; CHECK-LABEL: define void @plain_hint(
; CHECK-NEXT: alloca
; CHECK-NEXT: call void @llvm.prefetch.p0(ptr %a,
define void @plain_hint() {
  %a = alloca i32
  call void @llvm.prefetch.p0(ptr %a, i32 0, i32 3, i32 1)
  ret void
}

; A function that accesses memory writes slots: it is no longer what it was said to be. Nor is an argument: what is only read, and by
; this pointer alone, counts as constant to whoever optimises this again, but is to be loaded while its page is in its frame.
; CHECK: define i32 @pure(ptr noalias %p) #[[PURE:[0-9]+]]
; CHECK: call i32 @pure(ptr %p){{$}}
define i32 @pure(ptr noalias readonly %p) memory(read) nosync {
  %v = load i32, ptr %p
  %w = call i32 @pure(ptr %p) memory(read)
  ret i32 %v
}

; Small comparisons are loads. Which is less is that of big-endian numbers.
declare i32 @memcmp(ptr, ptr, i64)
declare i32 @bcmp(ptr, ptr, i64)
; CHECK-LABEL: define i1 @equal(
; CHECK: load i128, ptr %spill.pointer{{.*}}, align 1
; CHECK: [[DIFFER:%.*]] = xor i128
; CHECK: icmp ne i128 [[DIFFER]], 0
; CHECK-NOT: __spill_
; CHECK: ret
define i1 @equal(ptr %p, ptr %q) {
  %r = call i32 @bcmp(ptr %p, ptr %q, i64 16)
  %e = icmp eq i32 %r, 0
  ret i1 %e
}
; CHECK-LABEL: define i32 @order(
; CHECK: call i64 @llvm.bswap.i64(
; CHECK: call i64 @llvm.bswap.i64(
; CHECK: [[MORE:%.*]] = icmp ugt i64
; CHECK: [[LESS:%.*]] = icmp ult i64
; CHECK: ret
define i32 @order(ptr %p, ptr %q) {
  %r = call i32 @memcmp(ptr %p, ptr %q, i64 8)
  ret i32 %r
}
; What is no power of two: the words that it begins with, and where they are equal those that it ends with. Both share a translation.
; CHECK-LABEL: define i1 @less(
; CHECK-COUNT-2: store atomic
; CHECK-NOT: store atomic
; CHECK: [[SAME:%.*]] = icmp eq i64 [[FIRST:%.*]], [[OTHER:%.*]]
; CHECK: br i1 [[SAME]], label %{{.*}}, label %[[DECIDED:.*]]
; CHECK-NOT: store atomic
; CHECK: {{^}}[[DECIDED]]:
; CHECK: [[X:%.*]] = phi i64 [ [[FIRST]], %{{.*}} ], [ {{%.*}}, %{{.*}} ]
; CHECK: [[Y:%.*]] = phi i64 [ [[OTHER]], %{{.*}} ], [ {{%.*}}, %{{.*}} ]
; CHECK: [[A:%.*]] = call i64 @llvm.bswap.i64(i64 [[X]])
; CHECK: [[B:%.*]] = call i64 @llvm.bswap.i64(i64 [[Y]])
; CHECK: icmp ult i64 [[A]], [[B]]
; CHECK-NOT: zext
; CHECK: ret
define i1 @less(ptr %p, ptr %q) {
  %r = call i32 @memcmp(ptr %p, ptr %q, i64 10)
  %l = icmp slt i32 %r, 0
  ret i1 %l
}
; CHECK-LABEL: define i1 @more(
; CHECK: icmp uge i64
; CHECK: ret
define i1 @more(ptr %p, ptr %q) {
  %r = call i32 @memcmp(ptr %p, ptr %q, i64 16)
  %l = icmp sgt i32 %r, -1
  ret i1 %l
}
; CHECK-LABEL: define i1 @word(
; CHECK: load i32, ptr %spill.pointer
; CHECK: load i32, ptr %spill.pointer
; CHECK: xor i32 {{%.*}}, 1751672936
; CHECK: xor i32 {{%.*}}, 1869572200
; CHECK: ret
define i1 @word(ptr %p) {
  %r = call i32 @memcmp(ptr %p, ptr @hello, i64 7)
  %l = icmp eq i32 %r, 0
  ret i1 %l
}
@hello = private constant [8 x i8] c"hhhhhoo\00"
; CHECK-LABEL: define i32 @longer(
; CHECK: call i32 @__spill_memcmp(ptr %p, ptr %q, i64 17)
define i32 @longer(ptr %p, ptr %q) {
  %r = call i32 @memcmp(ptr %p, ptr %q, i64 17)
  ret i32 %r
}

; A jump in line may leave a signal handler: the runtime is told where it goes.
; CHECK-LABEL: define void @jump(
; CHECK: call void @__spillway_leave_handlers(ptr %buffer)
; CHECK-NEXT: call void @llvm.eh.sjlj.longjmp(ptr %buffer)
; CHECK-NEXT: unreachable
define void @jump(ptr %buffer) {
  call void @llvm.eh.sjlj.longjmp(ptr %buffer)
  unreachable
}

declare void @llvm.eh.sjlj.longjmp(ptr)
declare void @llvm.va_start.p0(ptr)
declare void @llvm.va_end.p0(ptr)
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
; CHECK: declare noalias ptr @__spill_malloc(i64){{$}}
; CHECK: attributes #[[PURE]] = { noredzone "no-builtin-memcmp" "spillway" }
