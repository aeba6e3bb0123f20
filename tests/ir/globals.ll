; Globals that are spilled where they lie get whole OS pages of their own and a record each; accesses to them, and to
; those that another object may spill, are translated. Others are left alone.
; OPTIONS: -spill-globals=4096

; CHECK-DAG: @large = global <{ [5000 x i8], [3192 x i8] }> zeroinitializer, align 4096 #[[DONE:[0-9]+]]
; CHECK-DAG: @exact = internal global <{ { i32, [1023 x i32] }, [0 x i8] }> <{ { i32, [1023 x i32] } { i32 7, [1023 x i32] zeroinitializer }, [0 x i8] zeroinitializer }>, align 4096 #[[DONE]]
; CHECK-DAG: @wide = hidden global <{ [9000 x i8], [3288 x i8] }> zeroinitializer, align 65536 #[[DONE]]
; CHECK-DAG: @once = linkonce_odr global <{ [4096 x i8], [0 x i8] }> zeroinitializer, comdat, align 4096 #[[DONE]]
; CHECK-DAG: @fixed = global ptr getelementptr (i8, ptr @large, i64 4999)
$once = comdat any
@large = global [5000 x i8] zeroinitializer, align 16
@exact = internal global { i32, [1023 x i32] } { i32 7, [1023 x i32] zeroinitializer }, align 4
@wide = hidden global [9000 x i8] undef, align 65536
@once = linkonce_odr global [4096 x i8] zeroinitializer, comdat
@fixed = global ptr getelementptr (i8, ptr @large, i64 4999)
@other_name = alias [5000 x i8], ptr @large

; CHECK-DAG: @small = global [4095 x i8] zeroinitializer{{$}}
; CHECK-DAG: @constant = constant [5000 x i8] zeroinitializer{{$}}
; CHECK-DAG: @thread = thread_local global [5000 x i8] zeroinitializer{{$}}
; CHECK-DAG: @placed = global [5000 x i8] zeroinitializer, section "chosen"{{$}}
; CHECK-DAG: @common = common global [5000 x i8] zeroinitializer{{$}}
; CHECK-DAG: @kept = internal global [5000 x i8] zeroinitializer{{$}}
@small = global [4095 x i8] zeroinitializer
@constant = constant [5000 x i8] zeroinitializer
@thread = thread_local global [5000 x i8] zeroinitializer
@placed = global [5000 x i8] zeroinitializer, section "chosen"
@common = common global [5000 x i8] zeroinitializer
@kept = internal global [5000 x i8] zeroinitializer
@.text = private constant [11 x i8] c"spill_none\00", section "llvm.metadata"
@llvm.global.annotations = appending global [1 x { ptr, ptr, ptr, i32, ptr }] [{ ptr, ptr, ptr, i32, ptr } { ptr @kept, ptr @.text, ptr @.text, i32 1, ptr null }], section "llvm.metadata"

@extern_large = external global [5000 x i8]
@extern_unknown = external global [0 x i8]
@extern_small = external global i64
@extern_constant = external constant [5000 x i8]

; The record is the object's own global's, follows it, and is called for before and after everything else.
; CHECK-DAG: @[[LARGE:__spillway_global[.0-9]*]] = private global { ptr, i64 } { ptr @__spillway_large, i64 8192 }, section "spillway_globals", align 16, !associated ![[OF_LARGE:[0-9]+]]
; CHECK-DAG: { ptr @exact, i64 4096 }, section "spillway_globals"
; CHECK-DAG: { ptr @__spillway_wide, i64 12288 }, section "spillway_globals"
; CHECK-DAG: { ptr @__spillway_once, i64 4096 }, section "spillway_globals", comdat($once), align 16
; CHECK-DAG: @__spillway_large = private alias <{ [5000 x i8], [3192 x i8] }>, ptr @large
; CHECK-DAG: @llvm.compiler.used = {{.*}} ptr @[[LARGE]]
; CHECK-DAG: @llvm.global_ctors = {{.*}} { i32 0, ptr @__spillway_register_globals_call, ptr @__spillway_register_globals_call }
; CHECK-DAG: @llvm.global_dtors = {{.*}} { i32 0, ptr @__spillway_unregister_globals_call, ptr @__spillway_unregister_globals_call }

; CHECK-LABEL: define i8 @spilled(
; CHECK: store atomic i64 %{{.*}}, ptr %{{.*}} release
; CHECK-NOT: load i8, ptr %p
; CHECK: ret
define i8 @spilled(i64 %i) {
  %p = getelementptr inbounds i8, ptr @large, i64 %i
  %v = load i8, ptr %p
  ret i8 %v
}

; A constant address too.
; CHECK-LABEL: define void @at_constant(
; CHECK: store atomic i64 ptrtoint (ptr {{.*}}@exact{{.*}} to i64), ptr %{{.*}} release
; CHECK-NOT: store i8 1, ptr getelementptr
; CHECK: ret
define void @at_constant() {
  store i8 1, ptr getelementptr (i8, ptr @exact, i64 40)
  ret void
}

; CHECK-LABEL: define i8 @by_alias(
; CHECK: store atomic i64 {{.*}} release
; CHECK: ret
define i8 @by_alias() {
  %v = load i8, ptr @other_name
  ret i8 %v
}

; CHECK-LABEL: define i8 @elsewhere(
; CHECK: store atomic i64 {{.*}}@extern_large{{.*}} release
; CHECK: store atomic i64 {{.*}}@extern_unknown{{.*}} release
; CHECK: ret
define i8 @elsewhere() {
  %v = load i8, ptr @extern_large
  %w = load i8, ptr @extern_unknown
  %r = add i8 %v, %w
  ret i8 %r
}

; CHECK-LABEL: define i8 @plain(
; CHECK-NOT: spill
; CHECK: load i8, ptr @small
; CHECK: load i8, ptr @constant
; CHECK: load i8, ptr @placed
; CHECK: load i8, ptr @common
; CHECK: load i8, ptr @kept
; CHECK: load i8, ptr @extern_small
; CHECK: load i8, ptr @extern_constant
; CHECK: ret
define i8 @plain() {
  %a = load i8, ptr @small
  %b = load i8, ptr @constant
  %c = load i8, ptr @placed
  %d = load i8, ptr @common
  %e = load i8, ptr @kept
  %f = load i8, ptr @extern_small
  %g = load i8, ptr @extern_constant
  ret i8 %a
}

; CHECK-LABEL: define linkonce_odr hidden void @__spillway_register_globals_call() #{{[0-9]+}} comdat {
; CHECK-NEXT: call void @__spillway_register_globals(ptr @__start_spillway_globals, ptr @__stop_spillway_globals)
; CHECK-DAG: attributes #[[DONE]] = { "spillway" }
; CHECK-DAG: ![[OF_LARGE]] = !{ptr @large}
