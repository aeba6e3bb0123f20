# What end-to-end tests need in a build whose runtime is instrumented by a sanitizer: spillcc compiles the
# program as ever, without one, and links the sanitizer's own runtime into it, which must come first.
#
#   e2e_environment   for every test
#   e2e_timeout       seconds for one program's test
#   e2e_left_out      programs that such a process cannot run, and why
set(e2e_environment "")
set(e2e_left_out "")
set(e2e_timeout 900)
if(NOT SPILLWAY_SANITIZE)
  return()
endif()
set(e2e_timeout 2700)

# The sanitizer interposes malloc and its kin, pthread_cond_wait, read and sigaction for libraries that spillcc
# did not compile, instead of the runtime: libstdc++ then allocates, waits and reads without it.
list(APPEND e2e_left_out programs/cxx_containers.cc programs/cxx_lines.cc
  programs/cxx_loops.cc programs/cxx_loops_beside.cc programs/cxx_loops_signals.cc
  programs/cxx_streams.cc programs/cxx_strings.cc programs/cxx_threads.cc programs/cxx_waiting.cc)
# So it does with calls by such libraries on sockets, semaphores and the like.
list(APPEND e2e_left_out programs/foreign_calls.c programs/foreign_waits.c)
# What others have is not counted there.
list(APPEND e2e_left_out programs/small_heap_others.c)
# eventfd_read, of the C library, reads there too.
list(APPEND e2e_left_out programs/kernel_calls.c)
# It has interceptors of its own for most of them.
list(APPEND e2e_left_out programs/clocks_and_waits.c programs/formats.c programs/fortified.c programs/kernel_rare.c programs/paths_at.c)
# A cancelled thread is unwound over frames that the address sanitizer has marked; the thread sanitizer's runtime
# is ended between any two instructions.
list(APPEND e2e_left_out programs/cancel.c programs/left_calls.c programs/signal_reserved.c)
# Its malloc reports a size that no malloc could give, and does not return null.
list(APPEND e2e_left_out programs/invoke_new.cc programs/cxx_corners.cc)
# It calls the program's memset before memory can be translated, and warns of conversions that it does not know.
list(APPEND e2e_left_out programs/own_memory.c programs/libc_corners.c)
# What it knows of memory is resident too.
list(APPEND e2e_left_out programs/protect_arena.c)
# Frames of its functions do not fit on the smallest stacks.
list(APPEND e2e_left_out programs/thread_limits.c)
# The thread sanitizer needs larger stacks than these, the address sanitizer warns of makecontext.
list(APPEND e2e_left_out programs/own_stacks.c programs/fork_stacks.c programs/contexts.c programs/contexts_handlers.c programs/protect_stacks.c
  programs/globals_stacks.c)
# Nobody tells the sanitizers of a jump in line.
list(APPEND e2e_left_out programs/signal_builtin_jump.c)
# OpenMP's library is not told to the sanitizers, and allocates by their malloc.
list(APPEND e2e_left_out programs/openmp.c)
# What it translates is not told to the sanitizers, and its counters are read while their threads count.
list(APPEND e2e_left_out programs/satc_threads.c)
if(SPILLWAY_SANITIZE STREQUAL "thread")
  # It has most of the address space itself.
  list(APPEND e2e_left_out programs/mmap_refused.c programs/mmap_reserve.c)
  # It looks up what its own setjmp kept of an environment: a spilled one is stored by the runtime.
  list(APPEND e2e_left_out programs/calls.c)
  # Its runtime locks, and these signals come from the kernel between any two instructions of it.
  list(APPEND e2e_left_out programs/signal_handler.c programs/signal_count.c programs/signal_nesting.c
    programs/signal_steps.c programs/process_ends.c programs/thread_ids.c)
  # It makes a fork of vfork, and of clone.
  list(APPEND e2e_left_out programs/spawn_arguments.c programs/spawn_handler.c programs/spawn_number.c programs/spawn_threads.c
    programs/signal_vfork.c programs/vfork_first_miss.c programs/clone_stacks.c)
  # The C library makes the thread of its timers without telling it.
  list(APPEND e2e_left_out programs/lookups.c programs/timer_last.c)
  # In a child it does not know that the parent's other threads are gone, and makes no threads there.
  list(APPEND e2e_left_out programs/fork_own.c programs/fork_child_stores.c programs/fork_daemon.c
    programs/fork_threads.c programs/fork_handler.c programs/fork_foreign.c programs/fork_corners.c
    programs/fork_child_threads.c programs/fork_streams.c programs/daemon_output.c programs/file_maps.c
    programs/prefetch_handler.c programs/signal_first_process.c)
  # Threads of it pass their results on by atomics, which spillcc does not show the sanitizer.
  list(APPEND e2e_left_out programs/aio.c)
endif()

execute_process(COMMAND ${CMAKE_C_COMPILER} -print-resource-dir
  OUTPUT_VARIABLE resources OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
set(archive ${resources}/lib/linux/libclang_rt)
if(SPILLWAY_SANITIZE STREQUAL "thread")
  set(map TSAN)
  set(archives ${archive}.tsan-x86_64.a)
  set(names ${archive}.tsan-x86_64.a.syms)
else()
  set(map ASAN)
  set(archives ${archive}.asan_static-x86_64.a,${archive}.asan-x86_64.a)
  set(names ${archive}.asan-x86_64.a.syms)
endif()

# Faults are the runtime's to serve. Leaks: blocks in spilled memory hold pointers that nobody finds. Mutexes
# that the program misuses on purpose are its own affair.
set(options handle_segv=0 handle_sigbus=0 handle_abort=0 handle_sigill=0 handle_sigfpe=0 use_sigaltstack=0)
list(JOIN options " " options)
list(APPEND e2e_environment
  "SPILLWAY_TEST_FLAGS=-DSPILLWAY_ADDRESS_MAP_${map} -Wl,--whole-archive,${archives},--no-whole-archive,--dynamic-list=${names} -lresolv -lm"
  "TSAN_OPTIONS=${options} report_mutex_bugs=0 die_after_fork=0"
  "ASAN_OPTIONS=${options} detect_leaks=0"
  SPILLWAY_TEST_LEVELS=O2
  SPILLWAY_TEST_SEEDS=1
  SPILLWAY_TEST_SLOWER=3)
