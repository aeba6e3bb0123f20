"""Breakages of src/spill: hazards, threads, signal handlers, the heap, mappings, fork, interceptors, parking."""

ACCESS = "src/spill/access.cc"
FAULT = "src/spill/fault.cc"
FORK = "src/spill/fork.cc"
GLOBALS = "src/spill/globals.cc"
HEAP = "src/spill/heap.cc"
IO = "src/spill/intercept/io.cc"
MEMORY = "src/spill/intercept/memory.cc"
MMAP = "src/spill/intercept/mmap.cc"
PARKING = "src/spill/intercept/parking.cc"
SIGNALS = "src/spill/signals.cc"
SITES = "src/base/site_table.cc"
SPACE = "src/spill/address_space.cc"
STDIO = "src/spill/intercept/stdio.cc"
THREAD = "src/spill/thread.cc"
TRANSLATE = "src/spill/translate.cc"
TREE = "src/spill/cxx/tree.cc"


def mutation(name, program, gtest_filter, *patches):
    return {"name": name, "test": (program, gtest_filter), "patches": list(patches)}


def product(name, pattern, *patches):
    return {"name": name, "test": ("ctest", pattern), "patches": list(patches)}


MUTATIONS = [
    # Hazards
    mutation("hazard store removed from hold()", "intercept_memory_test", "Memory.*",
             ("src/spill/access.h", "  slots[slot].store(a, std::memory_order_release);\n", "")),
    mutation("both sides of a pair held in one slot", "intercept_memory_test", "Memory.*",
             (MEMORY, "    char* raw_y = raw(y, kHoldB);", "    char* raw_y = raw(y, kHoldA);")),
    mutation("both sides of a copy held in one slot", "intercept_memory_test", "Memory.CopyHolds*",
             (ACCESS, "raw_from = hold(f, kHoldD);", "raw_from = hold(f, kHoldC);")),
    mutation("slot still held when an interceptor returns", "intercept_string_test", "Strings.NothingIsHeld*",
             (ACCESS, "    if (found < piece) break;\n  }\n  release(kHoldC);", "    if (found < piece) break;\n  }")),
    product("membarrier skipped", "^e2e_barrier$",
            ("src/spill/holders.cc", "sys::process_barrier();", "")),
    product("hazard compared on the first 4 KiB of a page only", "^e2e_hazards$",
            ("src/spill/holders.cc", "if (in_range(address)) visit",
             "if (in_range(address) && (address & (runtime.cache->page_bytes() - 1)) < base::kOsPageBytes) visit")),
    product("hazards of other threads are not looked at", "^e2e_hazards$",
            ("src/spill/holders.cc", "thread != nullptr; thread = thread->next) {\n    // A level",
             "thread != nullptr; thread = thread->next) {\n    if (thread != this_thread_if_registered()) continue;\n    // A level")),
    product("hazards of the interrupted code are not looked at", "^e2e_signal_handler$",
            ("src/spill/holders.cc", "for (uint32_t level = 0; level <= top; ++level)", "for (uint32_t level = top; level <= top; ++level)")),
    product("live slots released by the slow path", "^e2e_hazards$",
            (TRANSLATE, "    if ((live >> i & 1) == 0) slots[i].store(0, std::memory_order_release);",
             "    slots[i].store((live >> i & 1) != 0 && i == __builtin_ctzll(live) ? slots[i].load() : 0);")),
    product("live slots released by a crossing", "^e2e_hazards$",
            (TRANSLATE, "spillway_translate(address, live | kRuntimeSlotMask)", "spillway_translate(address, kRuntimeSlotMask)")),
    product("entry of a page that is not allocated is opened", "^e2e_null_access$",
            (TRANSLATE, "  if (!is_allocated(address)) {", "  if (address == 0) {")),
    mutation("cooling entry taken back without compare-and-swap", "translate_quick_test", "*",
            ("src/spill/translate_quick.c",
             "    if (__atomic_compare_exchange_n(entry, &value, -value, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {",
             "    __atomic_store_n(entry, -value, __ATOMIC_RELEASE);\n    {")),

    # Threads and signal handlers
    product("thread record used again while its thread lives", "^e2e_thread_records$",
            (THREAD, "    if (!candidate || !is_dead(*thread)) continue;",
             "    if (!candidate || (ask_about_all && !is_dead(*thread))) continue;")),
    product("slots not banked for a handler", "^e2e_signal_handler$",
            (SIGNALS, "  __spillway_slots = thread.levels[next].slots;\n", "")),
    product("handler's level not left", "^e2e_signal_count$",
            (SIGNALS, "  __spillway_slots = slots;\n  thread.top_level.store(level, std::memory_order_release);\n", "")),
    product("longjmp out of a handler does not leave its level", "^e2e_segv_handler$",
            (SIGNALS, "    if (!left) break;", "    break;")),
    product("handlers run inside the runtime", "^e2e_signal_handler$",
            (SIGNALS, "  if (thread != nullptr && thread->runtime_depth > 0) {", "  if (thread != nullptr && thread->runtime_depth > 1000) {")),
    product("deferred signal lost", "^e2e_signal_count$",
            (SIGNALS, "  sys::syscall(SYS_rt_tgsigqueueinfo, sys::syscall(SYS_getpid), sys::syscall(SYS_gettid), info->si_signo,\n"
             "               info);\n", "")),
    product("signal mask not restored after deferring", "^e2e_signal_count$",
            (THREAD, "  sys::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, nullptr, sizeof mask);\n  set_blocked", "  (void)mask;\n  set_blocked")),
    product("SA_RESETHAND forgotten", "^e2e_segv_handler$",
            (SIGNALS, "    set_program_action(number, &reset, nullptr);\n", "")),

    # Faults
    mutation("site that takes another's place begins at one", "base_test", "SiteTable.*",
             (SITES, "  least->count.store(count + 1, std::memory_order_relaxed);", "  least->count.store(1, std::memory_order_relaxed);")),
    mutation("any site is given up for a new one", "base_test", "SiteTable.*",
             (SITES, "    if (count < least->count.load(std::memory_order_relaxed)) least = &slot;\n", "")),
    product("fault counted at the address that it was about", "^e2e_seeing$",
            (FAULT, "map_at_own_address(address, static_cast<uint64_t>(registers[REG_RIP]));",
             "map_at_own_address(address, ((void)registers, address));")),
    product("crossing atomic counted in the runtime", "^e2e_seeing$",
            ("src/spill/thunk.S", "  movq 8(%rbp), \\caller\n", "  leaq 1f(%rip), \\caller\n1:\n")),
    product("fault on spilled memory that is not allocated swallowed", "^e2e_null_access$",
            (FAULT, "in_range(address) && is_allocated(address)", "in_range(address)")),
    product("null dereference swallowed", "^e2e_null_access$",
            (SIGNALS, "    handle_fault(number, info, context);\n    return;",
             "    if (reinterpret_cast<uint64_t>(info->si_addr) < 65536)\n      sys::syscall(SYS_exit_group, 0);\n"
             "    handle_fault(number, info, context);\n    return;")),
    product("page mapped for foreign code stays evictable", "^e2e_foreign_code$",
            (FAULT, "  map_page(page, *pinned);\n  mapped_pages[element] = index(page) + 1;",
             "  map_page(page, *pinned);\n  cache.unpin(page);\n  (void)element;")),
    product("page mapped for foreign code stays watched", "^e2e_foreign_store$",
            (FAULT, "  runtime.cache->stop_watching(page);\n", "")),
    product("page stays mapped after its pin is gone", "^e2e_foreign_code$",
            (FAULT, "  if (!is_kept(page)) make_page_inaccessible(page);\n  runtime", "  runtime")),
    product("freed memory stays mapped for foreign code", "^e2e_foreign_code$",
            ("src/spill/discard.cc", "  unmap_range(address, bytes);\n", "")),
    product("freed memory stays reachable through a slot", "^e2e_null_access$",
            ("src/spill/discard.cc", "  clear_slots();\n", "")),

    # Heap and mappings
    product("realloc copies too little", "^e2e_realloc_content$",
            (HEAP, "copy(moved, block, bytes < old_usable ? bytes : old_usable);",
             "copy(moved, block, std::min<size_t>(bytes < old_usable ? bytes : old_usable, 65536));")),
    product("realloc frees the old block before it is copied", "^e2e_realloc_content$",
            (HEAP, "  copy(moved, block, bytes < old_usable ? bytes : old_usable);\n  heap_free(block, caller);",
             "  heap_free(block, caller);\n  copy(moved, block, bytes < old_usable ? bytes : old_usable);")),
    product("calloc does not zero small blocks", "^e2e_mmap_zero$",
            (HEAP, "if (block != nullptr && zeroed) zero_block(block, bytes);",
             "if (block != nullptr && zeroed && bytes >= kZeroByDiscardBytes) zero_block(block, bytes);")),
    product("calloc does not zero large blocks", "^e2e_mmap_zero$",
            (HEAP, "if (block != nullptr && zeroed) zero_block(block, bytes);",
             "if (block != nullptr && zeroed && bytes < kZeroByDiscardBytes) zero_block(block, bytes);")),
    product("alignment forgotten", "^e2e_aligned$",
            (HEAP, "alignment > 16 ? MALLOCX_ALIGN(alignment) : 0", "alignment > 4096 ? MALLOCX_ALIGN(alignment) : 0")),
    product("mremap loses the last page", "^e2e_mmap_zero$",
            (MMAP, "copy(moved, old_address, old_length);", "copy(moved, old_address, old_length - base::kOsPageBytes);")),
    product("unmapped memory keeps its content", "^e2e_mmap_zero$",
            ("src/spill/discard.cc", "  discard_memory(address, bytes);\n  free", "  free")),
    product("first part of a discarded range keeps its content", "^e2e_mmap_zero$",
            ("src/spill/discard.cc", "  if (address < first) zero(address, first - address);\n  if (last < end) zero(last, end - last);\n  InRuntime",
             "  if (last < end) zero(last, end - last);\n  InRuntime")),
    product("last part of a discarded range keeps its content", "^e2e_mmap_zero$",
            ("src/spill/discard.cc", "  if (last < end) zero(last, end - last);\n  InRuntime", "  InRuntime")),
    product("discard reaches into the page before", "^e2e_mmap_zero$",
            ("src/spill/discard.cc", "base::round_up(address, cache.page_bytes())",
             "base::round_down(address, cache.page_bytes())")),
    mutation("address range handed out although it is too small", "address_space_test", "*",
             (SPACE, "(*link)->end - begin < bytes) continue;", "begin >= (*link)->end) continue;")),
    mutation("rest of a cut address range lost", "address_space_test", "*",
             (SPACE, "    range->begin = end;\n", "    range->begin = end + base::kOsPageBytes;\n")),
    mutation("address range grows into what is in use", "address_space_test", "*",
             (SPACE, "if ((*link)->end - address < bytes || !cut", "if (!cut")),
    mutation("chunk of which some is freed counts as free", "address_space_test", "*",
             (SPACE, "if (use != ChunkUse::kSome) set_page_bits(chunk, 0, kPagesPerChunk, use == ChunkUse::kEverything);",
              "if (use != ChunkUse::kSome) set_page_bits(chunk, 0, kPagesPerChunk, false);")),

    product("a program maps over the runtime's table", "^e2e_own_addresses$",
            (MMAP, "if ((flags & MAP_FIXED) != 0 && touches_runtime(address, bytes)) return no_map();", "")),
    product("a program maps where new threads have their slots", "^e2e_own_addresses$",
            ("src/spill/runtime.cc", "  require(sys::reserve_at(kUnregisteredSlots, base::kOsPageBytes, sys::Access::kNone,\n"
             "                          \"the slots of new threads\"));\n", "")),

    # fork
    product("child of fork runs on its parent's stack", "^e2e_fork_stacks$",
            (FORK, "  own_kept_pages();\n", "")),
    product("child of fork has its parent's mappings for foreign code", "^e2e_fork_child_stores$",
            (FAULT, "  mapped_mutex.lock();\n  for (uint32_t i = 0; i < mapped_limit; ++i) unmap_element(i);\n", "  mapped_mutex.lock();\n")),
    product("foreign code is given memory that only looks like the page's", "^e2e_fork_child_stores$",
            (FAULT, "  auto pinned = cache.pin_shared(page, lane_of(inside.thread()));", "  auto pinned = cache.pin(page, lane_of(inside.thread()));")),
    product("child of fork uses its parent's queues", "^e2e_fork_child_stores$",
            (THREAD, "    thread->lane = nullptr;\n    if (thread == &self) continue;", "    if (thread == &self) continue;\n    thread->lane = nullptr;"),
            (THREAD, "    if (thread->lane != nullptr && thread->lane->queue().in_flight_count() == 0) thread->lane->destroy();\n", "")),
    product("fork is not told to the cache", "^e2e_fork_child_stores$",
            (FORK, "CHECK_EQ(pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child), 0);", "")),

    # Ends of the process
    product("main thread's end is the program's", "^e2e_exit_status$",
            ("src/spill/intercept/thread.cc", "  count_thread();\n", "")),
    product("a read error ends the program with status 0", "^e2e_refusals$",
            (TRANSLATE, "end_process(error, kFatalStatus);", "end_process(error, 0);")),

    # Interceptors
    mutation("string ends at the page's edge", "intercept_string_test", "Strings.*",
             (ACCESS, "    if (found < piece) break;", "    if (found <= piece) break;")),
    mutation("limit of a string forgotten at the page's edge", "intercept_string_test", "Strings.*",
             (ACCESS, "const size_t piece = std::min(bytes_to_page_end(text + length), limit - length);",
              "const size_t piece = bytes_to_page_end(text + length);")),
    mutation("comparison ends at the page's edge", "intercept_memory_test", "Memory.Compare*",
             (MEMORY, "(result = memcmp(x, y, length)) == 0;", "(result = memcmp(x, y, length)) == 1;")),
    mutation("comparison of strings reads behind their end", "intercept_string_test", "Strings.Compare*",
             ("src/spill/intercept/string.cc", "if (result != 0 || strnlen(raw_a, length) < length) break;", "if (result != 0) break;")),
    mutation("backward move begins a byte off at a page's edge", "intercept_memory_test", "Memory.Move*",
             (MEMORY, "return ((reinterpret_cast<uint64_t>(end) - 1) & (base::kOsPageBytes - 1)) + 1;",
              "return (reinterpret_cast<uint64_t>(end) & (base::kOsPageBytes - 1)) + 1;")),
    mutation("overlapping move goes the wrong way", "intercept_memory_test", "Memory.Move*",
             (MEMORY, "  if (reinterpret_cast<uint64_t>(to) - reinterpret_cast<uint64_t>(from) < n)\n", "  if (to < from)\n")),
    mutation("found byte's address is off by the pages before", "intercept_memory_test", "Memory.Find",
             (MEMORY, "    before += length;\n", "")),
    mutation("search misses what lies across two windows", "intercept_memory_test", "Memory.Search*",
             (MEMORY, "    at += length - m + 1;\n", "    at += length;\n")),
    mutation("last character of a path lost", "intercept_io_test", "Io.Paths",
             (ACCESS, "scratch_(in_range(text) ? string_length(text) + 1 : 0)", "scratch_(in_range(text) ? string_length(text) : 0)")),
    mutation("read() delivers a byte too few", "intercept_io_test", "Io.Files*",
             (IO, "memory.scatter(0, buffer.data(), static_cast<size_t>(moved));",
              "memory.scatter(0, buffer.data(), static_cast<size_t>(moved > 0 ? moved - 1 : 0));")),
    mutation("a large write goes on although the call wrote less", "intercept_io_test", "Io.Vectors*",
             (IO, "    if (static_cast<size_t>(moved) < part.iov_len) break;\n", "    done += part.iov_len - static_cast<size_t>(moved);\n")),
    mutation("bytes moved before an error are not reported", "intercept_io_test", "Io.Pipes*",
             (IO, "    if (moved < 0) return done > 0 ? static_cast<ssize_t>(done) : -1;\n    if constexpr", "    if (moved < 0) return -1;\n    if constexpr")),
    mutation("writev skips the rest of a buffer", "intercept_io_test", "Io.Vectors*",
             (IO, "    done += length;\n    at = 0;\n", "    done += length;\n")),
    mutation("pins released before the system call", "intercept_io_test", "Io.Files*",
             (ACCESS, "    char* raw = pin_page_piece(at);\n", "    char* raw = pin_page_piece(at);\n    unpin_page_piece(at);\n"),
             (ACCESS, "    unpin_page_piece(at);\n}", "    (void)at;\n}")),
    mutation("pin of the last page kept", "intercept_io_test", "Io.Files*",
             (ACCESS, "at < begin_ + size_;\n", "at + base::kOsPageBytes < begin_ + size_;\n")),
    mutation("fread delivers only its first block", "intercept_stdio_test", "Stdio.*",
             (STDIO, "    copy(static_cast<char*>(to) + at, plain_bytes, moved);", "    copy(to, plain_bytes, moved);\n    (void)at;")),
    mutation("fgets takes a byte too many", "intercept_stdio_test", "Stdio.*",
             (STDIO, "static_cast<size_t>(n) - 1, [to](size_t)", "static_cast<size_t>(n), [to](size_t)")),
    mutation("the program can close the runtime's descriptors", "intercept_process_test", "Process.TheRuntimes*",
             ("src/spill/intercept/descriptor.cc", "  if (sys::is_own_descriptor(descriptor)) return spill::refuse();\n", "")),
    mutation("close_range() stops at the runtime's first descriptor", "intercept_process_test", "Process.TheRuntimes*",
             ("src/spill/intercept/descriptor.cc", "    first = keep + 1;\n", "    return 0;\n")),
    mutation("arguments of exec lose their last character", "intercept_process_test", "Process.Executes*",
             ("src/spill/intercept/process.cc", "      copy(content, vector[i], length);\n", "      copy(content, vector[i], length - 1);\n      content[length > 1 ? length - 2 : 0] = 0;\n")),

    # Globals
    product("content of globals lost", "^globals$",
            (GLOBALS, "    if (!is_zero(aside + at)) copy(", "    if (is_zero(aside + at)) copy(")),
    product("entries from before a library was loaded", "^globals$",
            (GLOBALS, "  forget_entries(begin, begin + bytes);\n", "")),
    product("hazard slots of a library that goes", "^globals$", (GLOBALS, "  clear_slots_of_all(begin, end);\n", "")),
    product("library's globals outlive it", "^globals$",
            (GLOBALS, "ClosingLibraries::ClosingLibraries() { ++this_thread().closing_depth; }",
             "ClosingLibraries::ClosingLibraries() { this_thread().closing_depth += 0; }"),
            (GLOBALS, "ClosingLibraries::~ClosingLibraries() { --this_thread().closing_depth; }",
             "ClosingLibraries::~ClosingLibraries() { this_thread().closing_depth += 0; }")),
    product("globals above the frames", "^globals$",
            (GLOBALS, "  if (!lies_below_frames(end)) {", "  if (!lies_below_frames(end) && begin > end) {")),

    product("resident blocks are spilled", "^e2e_resident$",
            (HEAP, "  return allocate_plain(bytes, alignment, zeroed, Caller::kInstrumented);\n",
             "  return allocate_spilled(bytes, alignment);\n")),

    # Parking
    mutation("wake-up between the last look and the queue lost", "intercept_pthread_test", "Pthread.AWakeUp*",
             (PARKING, "  sys::LockGuard guard(bucket.mutex);\n  if (!must_wait(context)) return false;\n",
              "  if (!must_wait(context)) return false;\n  sys::LockGuard guard(bucket.mutex);\n")),
    mutation("waiter of another object woken", "intercept_pthread_test", "Pthread.OnlyWhoWaits*",
             (PARKING, "if ((*link)->object != object || ((*link)->mask & mask) == 0) {", "if (((*link)->mask & mask) == 0) {")),
    mutation("waiter that timed out stays queued", "intercept_pthread_test", "Pthread.OnlyWhoWaits*",
             (PARKING, "      bucket.take(link);\n      return true;", "      return true;")),
    mutation("mutex freed without waking who waits", "intercept_pthread_test", "Pthread.EverySleeper*",
             ("src/spill/intercept/mutex.cc", "  if (before == kContended) unpark(mutex, 1);", "  if (before > kContended) unpark(mutex, 1);")),
    mutation("waiter takes a mutex as if nobody else waited", "intercept_pthread_test", "Pthread.EverySleeper*",
             ("src/spill/intercept/mutex.cc", "std::memory_order_acquire) != kFree) return false;",
              "std::memory_order_acquire) != kFree) return false;\n  words[kLock].store(kLocked, std::memory_order_relaxed);")),
    product("thread waits for a plain mutex with pages in hand", "^e2e_waiting_threads$",
            ("src/spill/intercept/intercept.h", "  if (taken != EBUSY) return taken;\n  clear_slots();\n", "  if (taken != EBUSY) return taken;\n")),
    product("thread waits for a plain read-write lock with pages in hand", "^e2e_waiting_threads$",
            ("src/spill/intercept/rwlock.cc", "    return lock_or_wait(LIBC_VERSION(pthread_rwlock_try##kind,",
             "    return LIBC_VERSION(pthread_rwlock_##kind, \"GLIBC_2.34\")(lock); return lock_or_wait(LIBC_VERSION(pthread_rwlock_try##kind,")),
    product("record in a child keeps what its thread in the parent deferred", "^e2e_fork_child_threads$",
            ("src/spill/thread.cc", "    thread->thread_id.store(0, std::memory_order_relaxed);\n    empty_record(*thread);\n", "    thread->thread_id.store(0, std::memory_order_relaxed);\n    thread->top_level.store(0);\n")),
    mutation("second thread takes itself for the only one", "intercept_pthread_test", "Pthread.ThreadsThat*",
             ("src/spill/intercept/mutex.cc", "  if (!is_only_thread()) {\n    note_threads();\n    return false;\n  }\n", "")),
    mutation("call that makes threads goes unnoticed", "intercept_pthread_test", "Pthread.CallsThat*",
             ("src/spill/intercept/callback.cc", "int __spill_mq_notify(mqd_t queue, const sigevent* event) {\n  note_threads();",
              "int __spill_mq_notify(mqd_t queue, const sigevent* event) {")),

    # The C++ library
    mutation("red uncle of an inserted node taken for black", "cxx_test", "*TreeTest*", (TREE, "if (is_red(uncle)) {", "if (false) {")),
    mutation("sibling's outer child not looked at", "cxx_test", "*TreeTest*",
             (TREE, "    if (!is_red(sibling->child[other(side)])) {", "    if (false) {")),
    mutation("first node of a tree not followed", "cxx_test", "*TreeTest*",
             (TREE, "    if (header.child[end] == erased)", "    if (end == kRight && header.child[end] == erased)")),
    product("trees are the C++ library's", "^e2e_cxx_tree$",
            ("include/spillway/interceptors.inc", "SPILLWAY_INTERCEPT(_ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base)\n", "")),
    product("strings are the C++ library's", "^e2e_cxx_strings$",
            ("tools/spillcc/instantiated.tcc.in", "#define _GLIBCXX_EXTERN_TEMPLATE 0", "#define _GLIBCXX_EXTERN_TEMPLATE 1")),
    product("other libraries get the program's strings", "^ir_hide$",
            ("compiler/Hide.cpp", "    G.setVisibility(GlobalValue::HiddenVisibility);\n", "")),
    product("other libraries start before the runtime", "^e2e_cxx$",
            ("src/spill/CMakeLists.txt", " -Wl,-z,initfirst", "")),

    # Seen from outside
    product("runtime of another version believed", "^e2e_seeing$",
            ("tools/spillway/process.cc", "  if (head[1] != spill::kLayoutVersion)", "  if (head[1] == 0)")),
    product("memory of a fork's child dumped", "^e2e_seeing$",
            ("tools/spillway/dump.cc", "  if (process.is_fork_child())", "  if (process.pid() == 0)")),
    product("freed memory dumped", "^e2e_seeing$",
            ("tools/spillway/process.cc", "  return spill::is_allocated_by(", "  return true || spill::is_allocated_by(")),
]
