"""Breakages of src/spill: translation, hazards, native bodies, threads, signal handlers, faults, the process' end, and what is seen from outside."""

ACCESS = "src/spill/access.cc"
DESCRIPTOR = "src/spill/intercept/descriptor.cc"
FAULT = "src/spill/fault.cc"
MAPPED = "src/spill/mapped_pages.cc"
NATIVE = "src/spill/native.cc"
OPTIONS = "src/base/options.cc"
FORK = "src/spill/fork.cc"
MEMORY = "src/spill/intercept/memory.cc"
PROTECTION = "src/spill/protection.cc"
SIGNALS = "src/spill/signals.cc"
SITES = "src/base/site_table.cc"
THREAD = "src/spill/thread.cc"
TRANSLATE = "src/spill/translate.cc"
LOOP = "src/spill/loop.cc"


def mutation(name, program, gtest_filter, *patches):
    return {"name": name, "test": (program, gtest_filter), "patches": list(patches)}


def product(name, pattern, *patches):
    return {"name": name, "test": ("ctest", pattern), "patches": list(patches)}


MUTATIONS = [
    # Translation by caches of each thread
    mutation("page in Direct replaced in Private", "satc_levels_test", "SatcLevels.*",
             ("src/spill/satc_levels.h", "    may_go[way] =\n        !satc_is_in_line(s, set->begins[way]) ||", "    may_go[way] = true ||")),
    mutation("page that leaves Private stays in Direct", "satc_levels_test", "SatcLevels.*",
             ("src/spill/satc_levels.h", "  if (satc_is_in_line(s, set->begins[way])) satc_empty_line(satc_line(s, set->begins[way]));\n", "")),
    mutation("handler of a signal replaces what its thread is using", "satc_levels_test", "SatcQuick.*",
             ("src/spill/satc_quick.c", " || __spillway_slots != s->slots) return 0;", ") return 0;")),
    mutation("invalidated page found in Private", "satc_levels_test", "SatcQuick.*",
             ("src/spill/satc_quick.c", "  if (__atomic_load_n(&spillway_satc_epoch, __ATOMIC_ACQUIRE) != s->epoch) return 0;\n", "")),
    product("page unpinned while Direct has it", "^e2e_satc_threads$",
            ("src/spill/satc.cc", "  satc_fill_way(&satc, &set, way, begin, entry);\n", "  satc_fill_way(&satc, &set, way, begin, entry);\n  runtime.cache->unpin(page);\n  beside.fetch_sub(1);\n  set.begins[way] = 0;\n")),
    product("protected memory stays in the caches of threads", "^e2e_satc_protect_threads$",
            (PROTECTION, "  if (closes) satc_invalidate(address, bytes);\n", "")),
    product("what a thread had stays pinned when it has ended", "^e2e_satc$",
            ("src/spill/thread.cc", "    satc_leave(*thread);\n", ""),
            ("src/spill/thread.cc", "  satc_reuse(thread);\n", "")),

    # Native bodies
    product("regions stay mapped over fork", "^e2e_native_fork$",
            (MAPPED, "  runtime.cache->unmap_all_regions();\n", "")),
    product("protected memory stays mapped for native code", "^e2e_native_mappings$",
            (MAPPED, "  cache.cut(address, bytes);\n", ""),
            (NATIVE, "if (is_allocated(begin) && is_open(begin)) {", "if (is_allocated(begin)) {")),
    product("native bodies run on when memory is full", "^e2e_native_growth$",
            (NATIVE, "    byte().store(0, std::memory_order_release);\n", "")),
    product("region is unmapped under the kernel's mapping", "^e2e_native_mappings$",
            (PROTECTION, "  end_native(cache::RegionsEnd::kKernelMapping);\n  runtime.cache->unmap_regions(address, bytes);\n", "")),

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
    product("banks are not looked at", "^e2e_cxx_loops$",
            ("src/spill/holders.cc", "  for (Bank* bank = first_bank(); bank != nullptr; bank = bank->next()) bank->for_each(f);\n", "")),
    mutation("bank emptied while its slots are brought back", "banks_test", "Banks.*",
             ("src/spill/banks.h", "      slots[i].store(slots_[i].load(std::memory_order_relaxed), std::memory_order_release);",
              "      slots[i].store(const_cast<Slot&>(slots_[i]).exchange(0), std::memory_order_release);")),
    mutation("bank holds less than is live", "banks_test", "Banks.WhatIsHeld*",
             ("src/spill/banks.h", "    live_.store(live, std::memory_order_release);\n  }\n  // They", "    live_.store(live & 1, std::memory_order_release);\n  }\n  // They")),
    product("suspended task does not get its slots back", "^e2e_cxx_loops$",
            (LOOP, "  task.bank->bring_back(__spillway_slots);\n", "  task.bank->clear();\n")),
    product("x87 registers of a suspended task lost", "^e2e_cxx_loops$",
            (LOOP, "    const X87State kept;\n", "    asm volatile(\"fninit\");\n")),
    product("task suspended with a mutex", "^e2e_cxx_loops",
            ("src/spill/intercept/mutex.h", "  if (result == 0 || result == EOWNERDEAD) begin_busy();\n", "")),
    product("task suspended in an initialiser", "^e2e_cxx_loops_beside$",
            ("compiler/module/Once.cpp", "    if (Call->getType()->isIntegerTy(32))", "    if (false)")),
    product("task suspended in a thread's initialiser", "^e2e_cxx_loops_beside$",
            ("compiler/module/Once.cpp", "    if (!First->getSinglePredecessor())", "    if (true)")),
    product("task suspended with a mask of its own", "^e2e_cxx_loops_signals$",
            (LOOP, " && !thread.has_other_mask", "")),
    product("handlers wait until the loop ends", "^e2e_cxx_loops_signals$",
            (LOOP, "  InRuntime::leave(*thread);\n  end_in_child();\n  InRuntime::enter(*thread);\n", "")),
    product("task suspended on a stack of the program's own", "^e2e_cxx_loops_signals$",
            (LOOP, " &&\n         task.worker->worker->scheduler().is_on_its_stack(*task.task)", "")),
    product("a child that returns from a body goes on with the next", "^e2e_cxx_loops_beside$",
            (LOOP, "  thread.task->last = 0;\n", "")),
    product("a loop takes away the alternate stack of a body", "^e2e_cxx_loops_signals$",
            ("src/task/overflow.cc", "  if (now.ss_sp == memory_) ", "  ")),
    product("live slots released by a crossing", "^e2e_hazards$",
            (TRANSLATE, "translate_blocking(address, live | uint64_t{1} << slot, true)", "translate_blocking(address, uint64_t{1} << slot, true)")),
    product("entry of a page that is not allocated is opened", "^e2e_null_access$",
            (TRANSLATE, "  if (!is_allocated(address)) {", "  if (address == 0) {")),
    mutation("crossing access begins in the page before", "cross_quick_test", "*",
            ("src/spill/cross_quick.c", "    copy(buffer, raw, length);", "    copy(buffer, raw - 1, length);")),
    mutation("crossing access is over where a page is not there", "cross_quick_test", "*",
            ("src/spill/cross_quick.c", "    length = hold_run(address, size, kHoldTo, &raw);\n    if (length == 0) return finish(0);",
             "    length = hold_run(address, size, kHoldTo, &raw);\n    if (length == 0) return finish(1);")),
    mutation("page that was crossed to stays protected", "cross_quick_test", "*CountsAndLetsGo*",
            ("src/spill/cross_quick.c", "    __atomic_store_n(&__spillway_slots[kHoldTo + i], 0, __ATOMIC_RELEASE);\n", "    ;\n")),
    mutation("pages that lie apart are crossed as if they lay side by side", "cross_quick_test", "*",
            ("src/spill/cross_quick.c", "hold(address + length, slot + 1) == entry)", "hold(address + length, slot + 1) > 0)")),
    mutation("copy goes on behind the end of its source's page", "cross_quick_test", "*CopiesBetween*",
            ("src/spill/cross_quick.c", "length = hold_run(from, length, kHoldFrom, &raw_from)",
             "hold_run(from, length, kHoldFrom, &raw_from)")),
    mutation("bytes behind the last whole word are not copied", "cross_quick_test", "*",
            ("src/spill/cross_quick.c", "    MOVE(uint64_t, last);\n", "")),
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
    product("signals of the C library's own may be set", "^e2e_signal_reserved$",
            (SIGNALS, "  if (!is_signal(number) ||", "  if (number < 1 || number >= kSignalCount ||")),
    product("actions that a child of vfork sets are its parent's", "^e2e_signal_vfork$",
            (SIGNALS, "  if (!is_sharing_child()) return program_actions;", "  if (!is_sharing_child() || true) return program_actions;")),
    product("handler that a child of vfork set is looked up among its parent's", "^e2e_signal_vfork$",
            (SIGNALS, "  return child != 0 && child == sys::syscall(SYS_getpid) ? child_actions : program_actions;",
             "  return child == -1 ? child_actions : program_actions;")),
    product("daemon holds the standard error that it began with", "^e2e_daemon_output$",
            (FORK, "  sys::leave_error_output();  // it may be a daemon\n", "")),
    product("standard error that the program closed stays open", "^e2e_daemon_output$",
            (DESCRIPTOR, "  if (!is_sharing_child()) sys::error_output_replaced();", "  if (is_sharing_child()) sys::error_output_replaced();")),
    product("child of vfork gives its parent's standard error up", "^e2e_daemon_output$",
            (DESCRIPTOR, "  if (!is_sharing_child()) sys::error_output_replaced();", "  sys::error_output_replaced();")),
    product("action set by number replaces the runtime's", "^e2e_signal_by_number$",
            ("src/spill/intercept/by_number.cc", "      if (given != nullptr) action = from_kernel(load(given));\n",
             "      const KernelAction plain = given != nullptr ? load(given) : KernelAction{};\n"
             "      if (given != nullptr) return syscall(number, a[0], &plain, nullptr, 8);\n")),
    product("__builtin_longjmp out of a handler does not leave its level", "^e2e_signal_builtin_jump$",
            ("src/spill/intercept/signal.cc", "  leave_handlers(reinterpret_cast<uint64_t>(load(&buffer[2])), false);\n",
             "  static_cast<void>(buffer);\n")),
    product("SA_RESETHAND forgotten", "^e2e_segv_handler$",
            (SIGNALS, "    set_program_action(number, &reset, nullptr);\n", "")),

    # Settings
    mutation("a server's password keeps programs from starting", "base_test", "Environment.*",
             (OPTIONS, "    if (is_others(upper)) continue;\n", "    if (false && is_others(upper)) continue;\n")),
    mutation("what begins as another's variable is let pass", "base_test", "Environment.*",
             (OPTIONS, "upper == others.name;", "upper.starts_with(others.name);")),
    product("--encrypt encrypts nothing", "^e2e_encrypt$",
            ("src/spill/settings.cc", "  if (runtime.options.encrypt == 0) return", "  return")),

    # Faults
    mutation("site that takes another's place begins at one", "base_test", "SiteTable.*",
             (SITES, "  least->count.store(count + 1, std::memory_order_relaxed);", "  least->count.store(1, std::memory_order_relaxed);")),
    mutation("any site is given up for a new one", "base_test", "SiteTable.*",
             (SITES, "    if (count < least->count.load(std::memory_order_relaxed)) least = &slot;\n", "")),
    product("misses told as evictions", "^e2e_seeing$",
            ("src/spill/report.cc", '", evictions ", s.cache_evictions.get()', '", evictions ", s.cache_misses.get()')),
    product("memory that was full is no end of native bodies", "^e2e_seeing$",
            ("src/spill/report.cc", 'return "memory was full";', "return nullptr;")),
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
            (MAPPED, "  map_page(page, pinned);\n  mapped_pages[element] = index(page) + 1;",
             "  map_page(page, pinned);\n  runtime.cache->unpin(page);\n  (void)element;")),
    product("page mapped for foreign code stays watched", "^e2e_foreign_store$",
            (MAPPED, "  runtime.cache->stop_watching(page);\n", "")),
    product("page stays mapped after its pin is gone", "^e2e_foreign_code$",
            (MAPPED, "  if (!is_kept(page)) make_page_inaccessible(page);\n  runtime", "  runtime")),
    product("freed memory stays mapped for foreign code", "^e2e_foreign_code$",
            ("src/spill/discard.cc", "  unmap_range(address, bytes);\n", "")),
    product("freed memory stays reachable through a slot", "^e2e_null_access$",
            ("src/spill/discard.cc", "  clear_slots();\n", "")),

    # Ends of the process
    product("main thread's end is the program's", "^e2e_exit_status$",
            ("src/spill/intercept/thread.cc", "  count_thread();\n", "")),
    product("the program ends although a timer is to call it", "^e2e_timer_last$",
            ("src/spill/intercept/callback.cc", "  if (result == 0) count_endless_thread();\n", "")),
    product("a read error ends the program with status 0", "^e2e_refusals$",
            (TRANSLATE, "end_process(error, kFatalStatus);", "end_process(error, 0);")),
    product("the C library may come before the runtime", "^e2e_refusals$",
            ("src/spill/runtime.cc", "  require(check_search_order(heap_serves_others));\n", "")),

    # Seen from outside
    product("runtime of another version believed", "^e2e_seeing$",
            ("tools/spillway/process.cc", "  if (head[1] != spill::kLayoutVersion)", "  if (head[1] == 0)")),
    product("memory of a fork's child dumped", "^e2e_seeing$",
            ("tools/spillway/dump.cc", "  if (process.is_fork_child())", "  if (false)")),
    product("less than no bytes told", "^e2e_seeing$",
            ("tools/spillway/top_programs.cc", "  return static_cast<int64_t>(value) < 0 ? 0 : value;\n", "  return value;\n")),
    product("freed memory dumped", "^e2e_seeing$",
            ("tools/spillway/process.cc", "  return spill::is_allocated_by(", "  return true || spill::is_allocated_by(")),
    product("length beyond all addresses dumped as nothing", "^e2e_seeing$",
            ("tools/spillway/dump.cc", "at < address || at - address < length;", "at < address + length;")),
    product("what a core file left out taken for zeros", "^e2e_seeing$",
            ("tools/spillway/core_file.cc", "    if (within >= piece->p_filesz) {", "    if (within >= piece->p_filesz && std::memset(next, 0, bytes)) return true;\n    if (within >= piece->p_filesz) {")),
    product("core file that was cut short taken for whole", "^e2e_seeing$",
            ("tools/spillway/core_file.cc", "    if (!content) {", "    if (!content) return true;\n    if (!content) {")),
]
