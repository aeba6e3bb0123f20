; A program's own operators of C++ are found by its other modules, where their uses are renamed (Rename.h). So are those that it does not
; have: the C++ library's call the program's. Operators for what is aligned further than by default are others.

; CHECK: define {{.*}}ptr @_Znwm(i64 %bytes)
define ptr @_Znwm(i64 %bytes) {
  ret ptr null
}
declare void @_ZdlPvm(ptr, i64)
declare ptr @_ZnwmSt11align_val_t(i64, i64)
; CHECK: define {{.*}}ptr @uses(
define ptr @uses() {
; CHECK: call ptr @_Znwm(i64 8)
  %block = call ptr @_Znwm(i64 8)
; CHECK: call void @_ZdlPvm(ptr %block, i64 8)
  call void @_ZdlPvm(ptr %block, i64 8)
; CHECK: call ptr @__spill__ZnwmSt11align_val_t(i64 64, i64 64)
  %aligned = call ptr @_ZnwmSt11align_val_t(i64 64, i64 64)
  ret ptr %aligned
}

; CHECK: define weak hidden {{.*}}ptr @__spill__Znwm(i64 %0)
; CHECK-NEXT: [[BLOCK:%.*]] = musttail call ptr @_Znwm(i64 %0)
; CHECK-NEXT: ret ptr [[BLOCK]]
; Nothing may ask for the library's, or for the library at all.
; CHECK: define weak hidden {{.*}}ptr @__spill__ZnamRKSt9nothrow_t(i64 %0, ptr %1)
; CHECK: br i1
; CHECK: [[BLOCK:%.*]] = musttail call ptr @_ZnamRKSt9nothrow_t(i64 %0, ptr %1)
; CHECK-NEXT: ret ptr [[BLOCK]]
; CHECK: [[BLOCK:%.*]] = call ptr @_Znwm(i64 %0)
; CHECK-NEXT: ret ptr [[BLOCK]]
; CHECK: declare extern_weak ptr @_ZnamRKSt9nothrow_t(i64, ptr)
; CHECK: define weak hidden {{.*}}void @__spill__ZdlPvm(ptr %0, i64 %1)
; CHECK-NEXT: musttail call void @_ZdlPvm(ptr %0, i64 %1)
; CHECK-NEXT: ret void
; CHECK-NOT: align_val_t{{.*}} {
