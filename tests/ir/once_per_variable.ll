; What only one may be doing at a time is marked (Once.h): initialisers of static and of thread_local variables, and the lock in a bit of
; a std::atomic<shared_ptr>, and constructors, which dlopen may run. What else calls or looks like it is left alone.
target triple = "x86_64-pc-linux-gnu"

@static_guard = internal global i64 0
@_ZGVZ5localvE1b = internal thread_local global i8 0
@__tls_guard = internal thread_local global i8 0
@other_guard = internal thread_local global i8 0

@llvm.global_ctors = appending global [3 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 65535, ptr @constructor, ptr null }, { i32, ptr, ptr } { i32 65535, ptr @jumping, ptr null }, { i32, ptr, ptr } { i32 65535, ptr @naked, ptr null }]

declare i32 @__cxa_guard_acquire(ptr)
declare void @__cxa_guard_release(ptr)
declare void @__cxa_guard_abort(ptr)
declare void @initialise()
declare i32 @__gxx_personality_v0(...)

; CHECK-LABEL: define internal void @constructor(
define internal void @constructor() {
  ; CHECK-NEXT: call void @__spillway_begin_busy()
  ; CHECK-NEXT: call void @initialise()
  ; CHECK-NEXT: call void @__spillway_end_busy()
  ; CHECK-NEXT: ret void
  call void @initialise()
  ret void
}

; A call that must be a jump comes last, and assembly alone has no place for any other.
; CHECK-LABEL: define internal void @jumping(
define internal void @jumping() {
  ; CHECK-NEXT: call void @__spillway_begin_busy()
  ; CHECK-NEXT: call void @__spillway_end_busy()
  ; CHECK-NEXT: musttail call void @initialise()
  ; CHECK-NEXT: ret void
  musttail call void @initialise()
  ret void
}
; CHECK-LABEL: define internal void @naked(
define internal void @naked() naked {
  ; CHECK-NOT: busy
  ; CHECK: unreachable
  call void asm sideeffect "ret", ""()
  unreachable
}

; CHECK-LABEL: define void @static_variable(
define void @static_variable() personality ptr @__gxx_personality_v0 {
  ; CHECK: %mine = call i32 @__cxa_guard_acquire(
  ; CHECK-NEXT: call void @__spillway_begin_busy_if(i32 %mine)
  %mine = call i32 @__cxa_guard_acquire(ptr @static_guard)
  %is_mine = icmp ne i32 %mine, 0
  br i1 %is_mine, label %init, label %end
init:
  invoke void @initialise() to label %done unwind label %failed
done:
  ; CHECK: call void @__cxa_guard_release(
  ; CHECK-NEXT: call void @__spillway_end_busy()
  call void @__cxa_guard_release(ptr @static_guard)
  br label %end
failed:
  %exception = landingpad { ptr, i32 } cleanup
  ; CHECK: call void @__cxa_guard_abort(
  ; CHECK-NEXT: call void @__spillway_end_busy()
  call void @__cxa_guard_abort(ptr @static_guard)
  resume { ptr, i32 } %exception
end:
  ret void
}

; CHECK-LABEL: define void @thread_local_in_function(
define void @thread_local_in_function() {
  ; CHECK-NOT: busy
  %done = load i8, ptr @_ZGVZ5localvE1b
  %is_not = icmp eq i8 %done, 0
  br i1 %is_not, label %init, label %end
  ; CHECK: init:
  ; CHECK-NEXT: call void @__spillway_begin_busy()
  ; CHECK-NEXT: call void @initialise()
init:
  call void @initialise()
  br label %more
  ; CHECK: store i8 1
  ; CHECK-NEXT: call void @__spillway_end_busy()
  ; CHECK-NEXT: br label %end
more:
  store i8 1, ptr @_ZGVZ5localvE1b
  br label %end
  ; CHECK: end:
  ; CHECK-NOT: busy
  ; CHECK: ret
end:
  ret void
}

; CHECK-LABEL: define internal void @__tls_init(
define internal void @__tls_init() {
  %done = load i8, ptr @__tls_guard
  %is_done = icmp ne i8 %done, 0
  br i1 %is_done, label %end, label %init
  ; CHECK: init:
  ; CHECK-NEXT: call void @__spillway_begin_busy()
  ; CHECK: call void @initialise()
  ; CHECK-NEXT: call void @__spillway_end_busy()
init:
  store i8 1, ptr @__tls_guard
  call void @initialise()
  br label %end
end:
  ret void
}

; CHECK-LABEL: define i32 @_ZNKSt10_Sp_atomicISt10shared_ptrIiEE13_Atomic_count4lockESt12memory_order(
; CHECK: call void @__spillway_begin_busy()
; CHECK-NEXT: ret i32 1
define i32 @_ZNKSt10_Sp_atomicISt10shared_ptrIiEE13_Atomic_count4lockESt12memory_order() {
  ret i32 1
}
; CHECK-LABEL: define void @_ZNKSt10_Sp_atomicISt10shared_ptrIiEE13_Atomic_count6unlockESt12memory_order(
; CHECK: call void @__spillway_end_busy()
; CHECK-NEXT: ret void
define void @_ZNKSt10_Sp_atomicISt10shared_ptrIiEE13_Atomic_count6unlockESt12memory_order() {
  ret void
}

; CHECK-LABEL: define void @not_a_guard(
; CHECK-NOT: busy
define void @not_a_guard() {
  %done = load i8, ptr @other_guard
  %is_not = icmp eq i8 %done, 0
  br i1 %is_not, label %init, label %end
init:
  call void @initialise()
  br label %end
end:
  ; CHECK: ret void
  ret void
}
