; A program's own operators of C++ are found by its other modules, where their uses are renamed (Rename.h). So are those that it does not
; have: the C++ library's call the program's. Operators for what is aligned further than by default are others, and so is delete where the
; module has only a new, and the plain operator where it has only a form of that: another module may have these.

; CHECK: define {{.*}}ptr @_Znwm(i64 %bytes)
define ptr @_Znwm(i64 %bytes) {
  ret ptr null
}
; CHECK: define {{.*}}void @_ZdaPvSt11align_val_t(ptr %block, i64 %alignment)
define void @_ZdaPvSt11align_val_t(ptr %block, i64 %alignment) {
  ret void
}
declare ptr @_Znam(i64)
declare void @_ZdlPv(ptr)
declare ptr @_ZnwmSt11align_val_t(i64, i64)
declare void @_ZdlPvSt11align_val_t(ptr, i64)
; CHECK: define {{.*}}void @uses(
define void @uses() {
; CHECK: call ptr @_Znwm(i64 8)
  %block = call ptr @_Znwm(i64 8)
; CHECK: call ptr @_Znam(i64 8)
  %array = call ptr @_Znam(i64 8)
; CHECK: call void @__spill__ZdlPv(ptr %block)
  call void @_ZdlPv(ptr %block)
; CHECK: call ptr @__spill__ZnwmSt11align_val_t(i64 64, i64 64)
  %aligned = call ptr @_ZnwmSt11align_val_t(i64 64, i64 64)
; CHECK: call void @__spill__ZdlPvSt11align_val_t(ptr %aligned, i64 64)
  call void @_ZdlPvSt11align_val_t(ptr %aligned, i64 64)
; CHECK: call void @_ZdaPvSt11align_val_t(ptr %array, i64 64)
  call void @_ZdaPvSt11align_val_t(ptr %array, i64 64)
  ret void
}

; CHECK: define weak hidden {{.*}}ptr @__spill__Znwm(i64 %0)
; CHECK-NEXT: [[BLOCK:%.*]] = musttail call ptr @_Znwm(i64 %0)
; CHECK-NEXT: ret ptr [[BLOCK]]
; CHECK: define weak hidden {{.*}}ptr @__spill__Znam(i64 %0)
; CHECK-NEXT: [[BLOCK:%.*]] = musttail call ptr @_Znam(i64 %0)
; CHECK-NEXT: ret ptr [[BLOCK]]
; Nothing may ask for the library's, or for the library at all.
; CHECK: define weak hidden {{.*}}ptr @__spill__ZnamRKSt9nothrow_t(i64 %0, ptr %1)
; CHECK-NEXT: [[THERE:%.*]] = icmp ne ptr @_ZnamRKSt9nothrow_t, null
; CHECK-NEXT: br i1 [[THERE]]
; CHECK: [[BLOCK:%.*]] = musttail call ptr @_ZnamRKSt9nothrow_t(i64 %0, ptr %1)
; CHECK-NEXT: ret ptr [[BLOCK]]
; CHECK: [[BLOCK:%.*]] = call ptr @__spill__Znam(i64 %0)
; CHECK-NEXT: ret ptr [[BLOCK]]
; CHECK: declare extern_weak ptr @_ZnamRKSt9nothrow_t(i64, ptr)
; CHECK-NOT: define{{.*}} @__spill__Zn
; CHECK-NOT: define{{.*}} @__spill__Zdl
; CHECK: define weak hidden {{.*}}void @__spill__ZdaPvSt11align_val_t(ptr %0, i64 %1)
; CHECK-NEXT: musttail call void @_ZdaPvSt11align_val_t(ptr %0, i64 %1)
; CHECK-NEXT: ret void
; CHECK: define weak hidden {{.*}}void @__spill__ZdaPvmSt11align_val_t(ptr %0, i64 %1, i64 %2)
; CHECK: musttail call void @_ZdaPvmSt11align_val_t(ptr %0, i64 %1, i64 %2)
; CHECK-NEXT: ret void
; CHECK: call void @__spill__ZdaPvSt11align_val_t(ptr %0, i64 %2)
; CHECK-NEXT: ret void
; CHECK-NOT: define{{.*}} @__spill_
