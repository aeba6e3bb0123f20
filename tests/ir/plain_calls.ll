; Plain pointers that are passed to functions and returned by them need no translation there.

declare void @other()
declare ptr @malloc(i64)
@number = global i32 0

; All calls are known, and all pass plain pointers.
; CHECK-LABEL: define internal void @stored(
; CHECK-NOT: store atomic
; CHECK: ret
define internal void @stored(ptr %p) noinline {
  store i32 1, ptr %p, align 4
  ret void
}

; One passes what may be spilled: it is not the function's, the others get a copy.
; CHECK-LABEL: define internal void @mixed(
; CHECK: store atomic
; CHECK: ret
define internal void @mixed(ptr %p) noinline {
  store i32 1, ptr %p, align 4
  ret void
}

; The same of one that defines a symbol, of which there can be no copy, and of one whose label is any number of times.
; CHECK-LABEL: define internal void @marked(
; CHECK: store atomic
; CHECK: ret
define internal void @marked(ptr %p) noinline {
  call void asm sideeffect "nop\0A\09mark: nop", ""()
  store i32 1, ptr %p, align 4
  ret void
}
define internal void @numbered(ptr %p) noinline {
  call void asm sideeffect "1: nop\0A\09mark${:uid}: nop", ""()
  store i32 1, ptr %p, align 4
  ret void
}

; Passed on, and around in a recursion.
; CHECK-LABEL: define internal i32 @around(
; CHECK-NOT: store atomic
; CHECK: ret
define internal i32 @around(ptr %p, i32 %n) noinline {
  %v = load i32, ptr %p, align 4
  %done = icmp eq i32 %n, %v
  br i1 %done, label %out, label %on
on:
  %q = getelementptr inbounds i32, ptr %p, i64 1
  %r = call i32 @around(ptr %q, i32 %v)
  ret i32 %r
out:
  ret i32 %v
}

; In a recursion where one comes out of memory.
; CHECK-LABEL: define internal i32 @linked(
; CHECK: store atomic
; CHECK: ret
define internal i32 @linked(ptr %p) noinline {
  %next = load ptr, ptr %p, align 8
  %v = call i32 @linked(ptr %next)
  ret i32 %v
}

; Its address is taken.
; CHECK-LABEL: define internal void @escapes(
; CHECK: store atomic
; CHECK: ret
define internal void @escapes(ptr %p) noinline {
  store i32 1, ptr %p, align 4
  ret void
}
@pointer = global ptr @escapes

; Passed as an argument to itself, that is taken too.
; CHECK-LABEL: define internal void @itself(
; CHECK: store atomic
; CHECK: ret
define internal void @itself(ptr %p, ptr %function) noinline {
  store i32 1, ptr %p, align 4
  ret void
}

; Others may call it.
; CHECK-LABEL: define void @exported(
; CHECK: store atomic
; CHECK: ret
define void @exported(ptr %p) noinline {
  store i32 1, ptr %p, align 4
  ret void
}

; Of functions with variable arguments nothing is said.
; CHECK-LABEL: define internal void @variable(
; CHECK: store atomic
; CHECK: ret
define internal void @variable(ptr %p, ...) noinline {
  store i32 1, ptr %p, align 4
  ret void
}

; Called by another type than its own.
; CHECK-LABEL: define internal void @mistaken(
; CHECK: store atomic
; CHECK: ret
define internal void @mistaken(ptr %p) noinline {
  store i32 1, ptr %p, align 4
  ret void
}

define internal ptr @found() noinline {
  ret ptr @number
}

define internal ptr @made(i1 %c) noinline {
  %m = call ptr @malloc(i64 4)
  %either = select i1 %c, ptr %m, ptr @number
  ret ptr %either
}

; Another definition may take its place.
define weak ptr @replaceable() noinline {
  ret ptr @number
}

; Assembly returns what no instruction shows.
define internal ptr @bare() noinline naked {
  call void asm sideeffect "movq number(%rip), %rax\0A\09ret", ""()
  unreachable
}

; CHECK-LABEL: define i32 @returned(
; CHECK-NOT: store atomic
; CHECK: store i32 1
; CHECK: store atomic
; CHECK: store i32 2
; CHECK: store atomic
; CHECK: store i32 3
; CHECK: store atomic
; CHECK: store i32 4
; CHECK: ret
define i32 @returned(i1 %c) {
  %p = call ptr @found()
  store i32 1, ptr %p, align 4
  %q = call ptr @made(i1 %c)
  store i32 2, ptr %q, align 4
  %r = call ptr @replaceable()
  store i32 3, ptr %r, align 4
  %s = call ptr @bare()
  store i32 4, ptr %s, align 4
  ret i32 0
}

; CHECK-LABEL: define void @calls(
; CHECK: call void @mixed.plain(ptr %a)
; CHECK: call void @mixed(ptr %heap)
; CHECK: call void @marked(ptr %a)
; CHECK: call void @marked(ptr %heap)
; CHECK: call void @numbered.plain(ptr %a)
; CHECK: call void @numbered(ptr %heap)
define void @calls(ptr %heap) {
  %a = alloca [4 x i32]
  call void @stored(ptr %a)
  call void @stored(ptr @number)
  call void @stored(ptr null)
  call void @mixed(ptr %a)
  call void @mixed(ptr %heap)
  call void @marked(ptr %a)
  call void @marked(ptr %heap)
  call void @numbered(ptr %a)
  call void @numbered(ptr %heap)
  call i32 @around(ptr %a, i32 3)
  call i32 @linked(ptr %a)
  call void @escapes(ptr %a)
  call void @itself(ptr %a, ptr @itself)
  call void @exported(ptr %a)
  call void (ptr, ...) @variable(ptr %a)
  call void @mistaken(ptr %a, i32 1)
  ret void
}

; What others are handed as OpenMP's runtime hands it on to the threads: of a variable of the stack nothing is to be
; translated, of the heap everything, and of what comes from that runtime itself.
; CHECK-LABEL: define internal void @outlined(
; CHECK: [[OWN:%.*]] = load i32, ptr %number, align 4
; CHECK: store atomic
; CHECK: store i32 [[OWN]]
; CHECK: store i32 {{.*}}, ptr %variable, align 4
; CHECK: store atomic
; CHECK: store i32
; CHECK-NOT: store atomic
; CHECK: ret
define internal void @outlined(ptr %thread, ptr %number, ptr %variable, ptr %heap) noinline {
  %own = load i32, ptr %number, align 4
  store i32 %own, ptr %thread, align 4
  store i32 %own, ptr %variable, align 4
  store i32 2, ptr %heap, align 4
  ret void
}

; One that gets more than is passed on, a number where it wants a pointer.
; CHECK-LABEL: define internal void @misled(
; CHECK: store atomic
; CHECK: store i32 1
; CHECK: store atomic
; CHECK: store i32 2
; CHECK: ret
define internal void @misled(ptr %thread, ptr %number, ptr %address, ptr %more) noinline {
  store i32 1, ptr %address, align 4
  store i32 2, ptr %more, align 4
  ret void
}

; CHECK-LABEL: define void @forks(
define void @forks(ptr %heap, i64 %address) {
  %variable = alloca i32
  %number = alloca i32
  call void (ptr, ptr, ...) @hands_on(ptr %number, ptr @outlined, ptr %variable, ptr %heap)
  call void (ptr, ptr, ...) @hands_on(ptr %number, ptr @misled, i64 %address)
  ret void
}
declare !callback !0 void @hands_on(ptr, ptr, ...)

; CHECK-LABEL: define internal void @mixed.plain(
; CHECK-NOT: store atomic
; CHECK: ret

; The second argument is called with something unknown, the first, and all behind the second.
!0 = !{!1}
!1 = !{i64 1, i64 -1, i64 0, i1 true}
