; Loops that exist twice: where their pointers are multiples of what is accessed, nobody asks for a page's edge.

; CHECK-LABEL: define i64 @random(
; CHECK: [[P:%.*]] = ptrtoint ptr {{.*}} to i64
; CHECK: [[LOW:%.*]] = and i64 [[P]], 7
; CHECK: icmp eq i64 {{.*}}, 0
; CHECK: br i1 {{.*}}, label %spill.aligned, label %spill.aligned.any
; CHECK: loop.any:
; CHECK: %spill.crosses
; CHECK: load i64, ptr
; CHECK: loop:
; CHECK-NOT: spill.crosses
; CHECK: load i64, ptr %spill.pointer{{.*}}, align 8, !spill.aligned
; CHECK: ret
define i64 @random(ptr %p, i64 %mask, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ %n, %entry ], [ %i.next, %loop ]
  %s = phi i64 [ 0, %entry ], [ %s.next, %loop ]
  %r = mul i64 %i, 6364136223846793005
  %x = lshr i64 %r, 24
  %k = and i64 %x, %mask
  %e = getelementptr inbounds i64, ptr %p, i64 %k
  %v = load i64, ptr %e, align 8
  %s.next = add i64 %s, %v
  %i.next = add i64 %i, -1
  %done = icmp eq i64 %i.next, 0
  br i1 %done, label %out, label %loop
out:
  ret i64 %s.next
}

; A pointer that was loaded in the loop, a scale that does not divide, an odd offset: not known, whatever the type says.
; CHECK-LABEL: define i64 @unknown(
; CHECK-NOT: spill.aligned
; CHECK: ret
define i64 @unknown(ptr %p, i64 %n) {
entry:
  br label %loop
loop:
  %q = phi ptr [ %p, %entry ], [ %q.next, %loop ]
  %i = phi i64 [ %n, %entry ], [ %i.next, %loop ]
  %s = phi i64 [ 0, %entry ], [ %s.next, %loop ]
  %q.next = load ptr, ptr %q, align 8
  %r = mul i64 %i, 6364136223846793005
  %x = lshr i64 %r, 24
  %e = getelementptr inbounds i32, ptr %p, i64 %x
  %v = load i64, ptr %e, align 8
  %f = getelementptr inbounds i64, ptr %p, i64 %x
  %g = getelementptr inbounds i8, ptr %f, i64 4
  %w = load i64, ptr %g, align 8
  %sum = add i64 %v, %w
  %s.next = add i64 %s, %sum
  %i.next = add i64 %i, -1
  %done = icmp eq i64 %i.next, 0
  br i1 %done, label %out, label %loop
out:
  ret i64 %s.next
}

; The outer loop loads what the inner one would have to be asked for: the inner one is copied, not both.
; CHECK-LABEL: define i64 @nested(
; CHECK: outer:
; CHECK: [[BASE:%.*]] = load ptr
; CHECK: [[FROZEN:%.*]] = freeze ptr
; CHECK: [[P:%.*]] = ptrtoint ptr [[FROZEN]] to i64
; CHECK: and i64 [[P]], 7
; CHECK: br i1 {{.*}}, label %spill.aligned, label %spill.aligned.any
; CHECK-NOT: outer.any
; CHECK: inner.any:
; CHECK: inner:
; CHECK: load i64, ptr %spill.pointer{{.*}}, align 8, !spill.aligned
; CHECK: ret
define i64 @nested(ptr %bases, i64 %mask, i64 %n) {
entry:
  br label %outer
outer:
  %j = phi i64 [ %n, %entry ], [ %j.next, %next ]
  %t = phi i64 [ 0, %entry ], [ %s.next, %next ]
  %x0 = mul i64 %j, 6364136223846793005
  %k0 = and i64 %x0, %mask
  %at = getelementptr inbounds ptr, ptr %bases, i64 %k0
  %p = load ptr, ptr %at, align 8
  br label %inner
inner:
  %i = phi i64 [ %n, %outer ], [ %i.next, %inner ]
  %s = phi i64 [ %t, %outer ], [ %s.next, %inner ]
  %r = mul i64 %i, 6364136223846793005
  %x = lshr i64 %r, 24
  %k = and i64 %x, %mask
  %e = getelementptr inbounds i64, ptr %p, i64 %k
  %v = load i64, ptr %e, align 8
  %s.next = add i64 %s, %v
  %i.next = add i64 %i, -1
  %done = icmp eq i64 %i.next, 0
  br i1 %done, label %next, label %inner
next:
  %j.next = add i64 %j, -1
  %over = icmp eq i64 %j.next, 0
  br i1 %over, label %out, label %outer
out:
  ret i64 %s.next
}

; Vectors of which some lanes are off are translated in both.
; CHECK-LABEL: define i64 @lanes(
; CHECK: br i1 {{.*}}, label %spill.aligned, label %spill.aligned.any
; CHECK: loop.any:
; CHECK: call <4 x i32> @llvm.masked.load.v4i32.p0(ptr %spill.pointer
; CHECK: loop:
; CHECK: call <4 x i32> @llvm.masked.load.v4i32.p0(ptr %spill.pointer
; CHECK: ret
define i64 @lanes(ptr %p, ptr %q, <4 x i1> %m, i64 %mask, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ %n, %entry ], [ %i.next, %loop ]
  %s = phi i64 [ 0, %entry ], [ %s.next, %loop ]
  %r = mul i64 %i, 6364136223846793005
  %x = lshr i64 %r, 24
  %k = and i64 %x, %mask
  %e = getelementptr inbounds i64, ptr %p, i64 %k
  %v = load i64, ptr %e, align 8
  %w = call <4 x i32> @llvm.masked.load.v4i32.p0(ptr %q, i32 4, <4 x i1> %m, <4 x i32> zeroinitializer)
  %first = extractelement <4 x i32> %w, i64 0
  %wide = zext i32 %first to i64
  %sum = add i64 %v, %wide
  %s.next = add i64 %s, %sum
  %i.next = add i64 %i, -1
  %done = icmp eq i64 %i.next, 0
  br i1 %done, label %out, label %loop
out:
  ret i64 %s.next
}

; A loop that is split at page edges anyway stays one.
; CHECK-LABEL: define void @split(
; CHECK-NOT: spill.aligned
; CHECK: spill.fast
; CHECK: ret
define void @split(ptr %p, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %e = getelementptr inbounds i64, ptr %p, i64 %i
  store i64 0, ptr %e, align 8
  %i.next = add nuw i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %out, label %loop
out:
  ret void
}

; Atomics say that they are aligned, which need not be true: they are asked too, and keep what they say in the copy.
; CHECK-LABEL: define void @lower(
; CHECK: br i1 {{.*}}, label %spill.aligned, label %spill.aligned.any
; CHECK: loop.any:
; CHECK: cross_map
; CHECK: load atomic i32, ptr {{.*}} monotonic, align 4
; CHECK: loop:
; CHECK-NOT: cross_map
; CHECK: load atomic i32, ptr {{.*}} monotonic, align 4, !spill.aligned
; CHECK-NOT: store atomic
; CHECK: cmpxchg weak ptr {{.*}} monotonic monotonic, align 4, !spill.aligned
; CHECK: ret
define void @lower(ptr %words, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ %n, %entry ], [ %i.next, %latch ]
  %r = mul i64 %i, 6364136223846793005
  %x = lshr i64 %r, 24
  %k = and i64 %x, %n
  %word = getelementptr inbounds i32, ptr %words, i64 %k
  %old = load atomic i32, ptr %word monotonic, align 4
  %low = trunc i64 %i to i32
  %less = icmp ult i32 %low, %old
  br i1 %less, label %change, label %latch
change:
  %pair = cmpxchg weak ptr %word, i32 %old, i32 %low monotonic monotonic, align 4
  br label %latch
latch:
  %i.next = add i64 %i, -1
  %done = icmp eq i64 %i.next, 0
  br i1 %done, label %out, label %loop
out:
  ret void
}

; A type may align an atomic to more than its size, which nobody has asked: what lies beside it may lie on another page.
; CHECK-LABEL: define i32 @aligned_to_more(
; CHECK: br i1 {{.*}}, label %spill.aligned, label %spill.aligned.any
; CHECK: {{^}}loop:
; CHECK: %spill.odd
; CHECK: load atomic i32, ptr {{.*}} monotonic, align 64, !spill.aligned
; CHECK: ret
define i32 @aligned_to_more(ptr %words, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ %n, %entry ], [ %i.next, %loop ]
  %s = phi i32 [ 0, %entry ], [ %s.next, %loop ]
  %r = mul i64 %i, 6364136223846793005
  %x = lshr i64 %r, 24
  %k = and i64 %x, %n
  %word = getelementptr inbounds [64 x i8], ptr %words, i64 %k
  %old = load atomic i32, ptr %word monotonic, align 64
  %beside.at = getelementptr inbounds i8, ptr %word, i64 32
  %beside = load i32, ptr %beside.at, align 4
  %sum = add i32 %old, %beside
  %s.next = add i32 %s, %sum
  %i.next = add i64 %i, -1
  %done = icmp eq i64 %i.next, 0
  br i1 %done, label %out, label %loop
out:
  ret i32 %s.next
}

; What calls is copied only while it is small; nothing is for programs that are to be small.
; CHECK-LABEL: define i64 @calls(
; CHECK: br i1 {{.*}}, label %spill.aligned, label %spill.aligned.any
; CHECK: ret
define i64 @calls(ptr %p, i64 %mask, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ %n, %entry ], [ %i.next, %loop ]
  %s = phi i64 [ 0, %entry ], [ %s.next, %loop ]
  %r = mul i64 %i, 6364136223846793005
  %x0 = lshr i64 %r, 24
  %k = and i64 %x0, %mask
  %e = getelementptr inbounds i64, ptr %p, i64 %k
  %v = load i64, ptr %e, align 8
  %s.next = add i64 %s, %v
  call void @outside()
  %i.next = add i64 %i, -1
  %done = icmp eq i64 %i.next, 0
  br i1 %done, label %out, label %loop
out:
  ret i64 %s.next
}

; Nor is assembly that defines a symbol.
; CHECK-LABEL: define i64 @marked(
; CHECK-NOT: spill.aligned
; CHECK: ret
define i64 @marked(ptr %p, i64 %mask, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ %n, %entry ], [ %i.next, %loop ]
  %s = phi i64 [ 0, %entry ], [ %s.next, %loop ]
  %r = mul i64 %i, 6364136223846793005
  %x0 = lshr i64 %r, 24
  %k = and i64 %x0, %mask
  %e = getelementptr inbounds i64, ptr %p, i64 %k
  %v = load i64, ptr %e, align 8
  %s.next = add i64 %s, %v
  call void asm sideeffect "mark: nop", ""()
  %i.next = add i64 %i, -1
  %done = icmp eq i64 %i.next, 0
  br i1 %done, label %out, label %loop
out:
  ret i64 %s.next
}

; CHECK-LABEL: define i64 @calls_and_is_large(
; CHECK-NOT: spill.aligned
; CHECK: ret
define i64 @calls_and_is_large(ptr %p, i64 %mask, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ %n, %entry ], [ %i.next, %loop ]
  %s = phi i64 [ 0, %entry ], [ %s.next, %loop ]
  %r = mul i64 %i, 6364136223846793005
  %x0 = lshr i64 %r, 24
  %x1 = xor i64 %x0, %r
  %x2 = mul i64 %x1, %r
  %x3 = xor i64 %x2, %r
  %x4 = mul i64 %x3, %r
  %x5 = xor i64 %x4, %r
  %x6 = mul i64 %x5, %r
  %x7 = xor i64 %x6, %r
  %x8 = mul i64 %x7, %r
  %x9 = xor i64 %x8, %r
  %x10 = mul i64 %x9, %r
  %x11 = xor i64 %x10, %r
  %x12 = mul i64 %x11, %r
  %x13 = xor i64 %x12, %r
  %x14 = mul i64 %x13, %r
  %x15 = xor i64 %x14, %r
  %x16 = mul i64 %x15, %r
  %x17 = xor i64 %x16, %r
  %x18 = mul i64 %x17, %r
  %x19 = xor i64 %x18, %r
  %x20 = mul i64 %x19, %r
  %x21 = xor i64 %x20, %r
  %x22 = mul i64 %x21, %r
  %x23 = xor i64 %x22, %r
  %x24 = mul i64 %x23, %r
  %x25 = xor i64 %x24, %r
  %x26 = mul i64 %x25, %r
  %x27 = xor i64 %x26, %r
  %x28 = mul i64 %x27, %r
  %x29 = xor i64 %x28, %r
  %x30 = mul i64 %x29, %r
  %x31 = xor i64 %x30, %r
  %x32 = mul i64 %x31, %r
  %x33 = xor i64 %x32, %r
  %x34 = mul i64 %x33, %r
  %x35 = xor i64 %x34, %r
  %x36 = mul i64 %x35, %r
  %x37 = xor i64 %x36, %r
  %x38 = mul i64 %x37, %r
  %x39 = xor i64 %x38, %r
  %x40 = mul i64 %x39, %r
  %k = and i64 %x40, %mask
  %e = getelementptr inbounds i64, ptr %p, i64 %k
  %v = load i64, ptr %e, align 8
  %s.next = add i64 %s, %v
  call void @outside()
  %i.next = add i64 %i, -1
  %done = icmp eq i64 %i.next, 0
  br i1 %done, label %out, label %loop
out:
  ret i64 %s.next
}

; CHECK-LABEL: define i64 @is_large(
; CHECK: label %spill.aligned.any
; CHECK: ret
define i64 @is_large(ptr %p, i64 %mask, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ %n, %entry ], [ %i.next, %loop ]
  %s = phi i64 [ 0, %entry ], [ %s.next, %loop ]
  %r = mul i64 %i, 6364136223846793005
  %x0 = lshr i64 %r, 24
  %x1 = xor i64 %x0, %r
  %x2 = mul i64 %x1, %r
  %x3 = xor i64 %x2, %r
  %x4 = mul i64 %x3, %r
  %x5 = xor i64 %x4, %r
  %x6 = mul i64 %x5, %r
  %x7 = xor i64 %x6, %r
  %x8 = mul i64 %x7, %r
  %x9 = xor i64 %x8, %r
  %x10 = mul i64 %x9, %r
  %x11 = xor i64 %x10, %r
  %x12 = mul i64 %x11, %r
  %x13 = xor i64 %x12, %r
  %x14 = mul i64 %x13, %r
  %x15 = xor i64 %x14, %r
  %x16 = mul i64 %x15, %r
  %x17 = xor i64 %x16, %r
  %x18 = mul i64 %x17, %r
  %x19 = xor i64 %x18, %r
  %x20 = mul i64 %x19, %r
  %x21 = xor i64 %x20, %r
  %x22 = mul i64 %x21, %r
  %x23 = xor i64 %x22, %r
  %x24 = mul i64 %x23, %r
  %x25 = xor i64 %x24, %r
  %x26 = mul i64 %x25, %r
  %x27 = xor i64 %x26, %r
  %x28 = mul i64 %x27, %r
  %x29 = xor i64 %x28, %r
  %x30 = mul i64 %x29, %r
  %x31 = xor i64 %x30, %r
  %x32 = mul i64 %x31, %r
  %x33 = xor i64 %x32, %r
  %x34 = mul i64 %x33, %r
  %x35 = xor i64 %x34, %r
  %x36 = mul i64 %x35, %r
  %x37 = xor i64 %x36, %r
  %x38 = mul i64 %x37, %r
  %x39 = xor i64 %x38, %r
  %x40 = mul i64 %x39, %r
  %k = and i64 %x40, %mask
  %e = getelementptr inbounds i64, ptr %p, i64 %k
  %v = load i64, ptr %e, align 8
  %s.next = add i64 %s, %v
  %i.next = add i64 %i, -1
  %done = icmp eq i64 %i.next, 0
  br i1 %done, label %out, label %loop
out:
  ret i64 %s.next
}

; CHECK-LABEL: define i64 @to_be_small(
; CHECK-NOT: spill.aligned
; CHECK: ret
define i64 @to_be_small(ptr %p, i64 %mask, i64 %n) optsize {
entry:
  br label %loop
loop:
  %i = phi i64 [ %n, %entry ], [ %i.next, %loop ]
  %s = phi i64 [ 0, %entry ], [ %s.next, %loop ]
  %r = mul i64 %i, 6364136223846793005
  %x0 = lshr i64 %r, 24
  %k = and i64 %x0, %mask
  %e = getelementptr inbounds i64, ptr %p, i64 %k
  %v = load i64, ptr %e, align 8
  %s.next = add i64 %s, %v
  %i.next = add i64 %i, -1
  %done = icmp eq i64 %i.next, 0
  br i1 %done, label %out, label %loop
out:
  ret i64 %s.next
}

declare void @outside()
declare <4 x i32> @llvm.masked.load.v4i32.p0(ptr, i32, <4 x i1>, <4 x i32>)
