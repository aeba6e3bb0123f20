"""Breakages of src/sys: locks and events, descriptors, rings, memory, threads."""

FILES = "src/sys/files.cc"
WATCH = "src/sys/write_watch.cc"
MEMORY = "src/sys/memory.cc"
RING = "src/sys/io_ring.cc"
AIO = "src/sys/aio_ring.cc"


def mutation(name, gtest_filter, *patches):
    return {"name": name, "test": ("sys_test", gtest_filter), "patches": list(patches)}


MUTATIONS = [
    mutation("child's lifeline is its parent's too", "Lifeline.*",
             ("src/sys/lifeline.cc", "  if (mapping_ != nullptr) syscall(SYS_munmap, mapping_, base::kOsPageBytes);\n", "")),
    mutation("lifeline is not in the child", "Lifeline.*",
             ("src/sys/lifeline.cc", "PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_", "PROT_READ | PROT_WRITE, MAP_PRIVATE, descriptor_")),
    {"name": "barrier reaches no other CPU", "test": ("ctest", "^e2e_barrier$"), "patches": [
             ("src/sys/barrier.cc", "CHECK_EQ(syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0), 0);", "")]},
    mutation("completion of Linux AIO read twice", "Aio*",
             (AIO, "    head.store((at + 1) % ring_->event_count, std::memory_order_release);\n", "")),
    mutation("ring of Linux AIO never wraps around", "Aio*",
             (AIO, "head.store((at + 1) % ring_->event_count,", "head.store(at + 1,")),
    mutation("submissions of Linux AIO do not wrap around", "Aio*",
             (AIO, "    first_ = (first_ + taken) % entry_count_;", "    first_ += taken;")),
    mutation("submission of Linux AIO that was refused is lost", "Aio*",
             (AIO, "    if (failed(result)) return taken_count > 0 ? taken_count : result;", "    if (failed(result)) {\n      take_first();\n      return taken_count > 0 ? taken_count : result;\n    }")),
    mutation("child of fork destroys its own context of Linux AIO", "Aio*",
             (AIO, "  if (process_ == syscall(SYS_getpid)) syscall(SYS_io_destroy, context_);", "  syscall(SYS_io_destroy, context_);")),
    mutation("ring of Linux AIO that is not known is not asked by calls", "Aio*",
             (AIO, "    fetch(0, &now);\n", "")),
    mutation("lock that is waited for looks free of waiters", "Mutex.*",
             ("src/sys/lock.cc", "while (word_.exchange(2, std::memory_order_acquire) != 0) futex_wait(word_, 2);",
              "uint32_t expected = 0;\n"
              "  while (!word_.compare_exchange_strong(expected, 1)) {\n"
              "    expected = 1;\n    word_.compare_exchange_strong(expected, 2);\n    futex_wait(word_, 2);\n    expected = 0;\n  }")),
    mutation("sleepers are not woken", "Mutex.WakesEvery*",
             ("src/sys/lock.h", "if (word_.exchange(0, std::memory_order_release) == 2) futex_wake(word_, 1);",
              "if (word_.exchange(0, std::memory_order_release) == 3) futex_wake(word_, 1);")),
    mutation("wait sleeps although the word differs", "Futex.*",
             ("src/sys/lock.cc", "FUTEX_WAIT_PRIVATE, expected, timeout", "FUTEX_WAIT_PRIVATE, word.load(), timeout")),
    mutation("timeout ignored", "EventCount.WaitEndsAtItsTimeout",
             ("src/sys/lock.cc", "timeout_ns != 0 ? &timeout : nullptr", "timeout_ns == 0 ? &timeout : nullptr")),
    mutation("runtime's descriptors survive exec", "OwnDescriptor.IsHigh*",
             (FILES, "syscall(SYS_fcntl, descriptor, F_DUPFD_CLOEXEC, first)", "syscall(SYS_fcntl, descriptor, F_DUPFD, first)")),
    mutation("descriptor closed that is not the runtime's", "OwnDescriptor.OthersAreNot*",
             (FILES, "      syscall(SYS_close, descriptor);\n      return;\n    }\n  }\n}", "      syscall(SYS_close, descriptor);\n      return;\n    }\n  }\n  syscall(SYS_close, descriptor);\n}")),
    mutation("runtime's descriptors not in order", "OwnDescriptor.List*",
             (FILES, "while (at > 0 && to[at - 1] > value - 1) {", "while (at > 0 && to[at - 1] > value + 100000) {")),
    mutation("original closed although there was no room", "OwnDescriptor.Full*",
             (FILES, "  syscall(SYS_close, moved);\n  return base", "  syscall(SYS_close, moved);\n  syscall(SYS_close, descriptor);\n  return base")),
    mutation("error output is the program's to close", "ErrorOutput.*",
             (FILES, "    kept_error_output.store(*moved, std::memory_order_relaxed);", "    (void)*moved;")),
    mutation("message goes to what took the place of the error output", "ErrorOutput.*",
             (FILES, "is_first_error_output(2) ? 2 : -1", "is_first_error_output(2) ? 2 : 2")),
    mutation("error output given up though nobody waits for its end", "ErrorOutput.*",
             (FILES, "  if (first_error_output.has_reader && !is", "  if (!is")),
    mutation("completion delivered twice", "IoRingTest.*",
             (RING, "store_release(completions_head_, ++completion_head_);", "store_release(completions_head_, completion_head_ + 1);")),
    mutation("ring's slot used while the kernel has it", "IoRingTest.FullIsNull",
             (RING, "  if (pending_count() == submission_count_) return nullptr;\n", "")),
    mutation("what was taken back is submitted", "IoRingTest.WhatIsTakenBack*",
             (RING, "  --tail_;\n", "")),
    mutation("reservation replaces what is mapped", "ReserveAt.ReservesExactly*",
             (MEMORY, "MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);", "MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);")),
    mutation("released piece of a memory file keeps its content", "MemoryFile.TwoMappings*",
             (MEMORY, "  return !failed(syscall(SYS_fallocate, descriptor, kKeepSize | kPunchHole, offset, bytes));", "  (void)(descriptor + kKeepSize + kPunchHole);\n  return offset + bytes > 0;")),
    mutation("mapping of the file's beginning instead of the place asked for", "MemoryFile.TwoMappings*",
             (MEMORY, "MAP_SHARED | fixed, descriptor, offset);", "MAP_SHARED | fixed, descriptor, offset * 0);")),
    mutation("memory file left open after an error", "MemoryFile.ErrorsLeave*",
             (MEMORY, "    syscall(SYS_close, descriptor);\n    int number = static_cast<int>(-result);\n    return base::failure(number, \"cannot size",
              "    (void)own_descriptor(static_cast<int>(descriptor));\n    int number = static_cast<int>(-result);\n    return base::failure(number, \"cannot size")),
    mutation("program's signals reach the runtime's threads", "Threads.*",
             ("src/sys/threads.cc", "  syscall(SYS_rt_sigprocmask, SIG_BLOCK, &kBlockedSignals, &old_mask, sizeof old_mask);\n", "  (void)kBlockedSignals;\n")),
    mutation("starter keeps all signals blocked", "Threads.*",
             ("src/sys/threads.cc", "  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old_mask, nullptr, sizeof old_mask);\n", "")),
    mutation("page that is not in memory taken for untouched", "WriteWatchTest.APageThatIsNotInMemory*",
             (WATCH, "  scan.category_mask = kPageWritten | kPagePresent;", "  scan.category_mask = kPageWritten;"),
             (WATCH, "  scan.return_mask = kPagePresent;\n  while", "  scan.return_mask = kPagePresent | kPageWritten;\n  while")),
    mutation("only as many regions as one call returns", "WriteWatchTest.EveryPage*",
             (WATCH, "    scan.begin = scan.walk_end;", "    return;")),
    mutation("private memory is taken out", "ResidentFilesTest.TakingOutHarms*",
             ("src/sys/resident.cc", " && (query.map_flags & kIsShared) != 0", "")),
    mutation("only the first mapping is taken out", "ResidentFilesTest.TakingOutHarms*",
             ("src/sys/resident.cc", "    begin = query.map_end;\n", "    return;\n")),
    mutation("descriptor of a memory file left behind", "MemoryFile.LeavesNo*",
             (FILES, "  if (!owned) syscall(SYS_close, descriptor);\n", "")),
    mutation("pages that were stored to taken for untouched", "WriteWatchTest.APageIsUntouched*",
             (WATCH, "  scan.category_inverted = kPageWritten;", "  scan.category_mask = 0;"),
             (WATCH, "  scan.category_mask = kPageWritten | kPagePresent;", "  scan.category_mask = kPagePresent;")),
]
