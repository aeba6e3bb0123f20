"""Breakages of src/persist and its C API: lines that are not durable when their fence returns, memory that is touched after it is gone, handlers and forks that hang."""

CALLS = "src/capi/persist/calls.cc"
COPIES = "src/persist/copy.h"
COPY = "src/persist/own/copy.cc"
DIRECT = "src/persist/direct.h"
DOMAINS = "src/persist/domains.cc"
FIFO = "src/persist/fifo.h"
FLUSHERS = "src/persist/flushers.cc"
FLUSHERS_HEAD = "src/persist/flushers.h"
FOUND = "src/sys/mappings.cc"
LAYOUT = "src/persist/layout.cc"
LINE_SET = "src/persist/line_set.h"
MAPPINGS = "src/capi/persist/mappings.cc"
OPTIONS = "src/persist/own/options.cc"
OWN = "src/persist/own/own.cc"
POLICY = "src/persist/policy.cc"
RANGES = "src/persist/file_ranges.cc"
RUNTIME = "src/persist/runtime.cc"
FENCE = "src/persist/thread_fence.cc"
THREAD = "src/persist/thread.cc"

CAPI = ("capi_persist_test", "*")


def mutation(name, *patches, gtest_filter="*", test=None):
    return {"name": name, "test": test or ("persist_test", gtest_filter), "patches": list(patches)}


def own(name, *patches, gtest_filter="*"):
    return mutation(name, *patches, test=("persist_own_test", gtest_filter))


MUTATIONS = [
    # Lines that are put off
    mutation("a line that was put off in an epoch before is in the list", (LINE_SET, "kFlagBits + kEpochBits;", "kFlagBits;"), gtest_filter="LineSet.*"),
    mutation("lines whose addresses differ far up are one", (LINE_SET, "kEpochBits = 12", "kEpochBits = 16"), (LINE_SET, "  static_assert(64 - kNumberShift >= 56 - 6);\n", ""), gtest_filter="LineSet.*"),
    mutation("what is put off is forgotten when the list is full", (THREAD, "  if (set_.is_full()) execute_put_off();\n", "  if (set_.is_full()) set_.clear();\n"), gtest_filter="Runtime.*"),
    mutation("epochs begin anew with marks of the first ones", (LINE_SET, "    if (next == 0) [[unlikely]]\n", "    if (false)\n"), gtest_filter="LineSet.*"),
    mutation("lines that are flushed again and again are executed each time", (LINE_SET, "      if (difference == 0) return Flush::kPutIn;\n", "      if (difference == 0) return Flush::kNow;\n"), gtest_filter="Runtime.HotLines*"),
    mutation("a fence executes nothing", (FENCE, "  if (waits) take_or_ask(*pushed);\n  execute_put_off();\n", "  if (waits) take_or_ask(*pushed);\n"), gtest_filter="*WhatWasFlushed*epoch"),

    # What compiled code does without a call
    mutation("a range reaches into the page before it", (DIRECT, "(begin + base::kOsPageBytes - 1) / base::kOsPageBytes", "begin / base::kOsPageBytes"), gtest_filter="Direct.*"),
    mutation("what is put off is left out while it is executed", (FENCE, "  direct_.put_off.store(&kNonePutOff, std::memory_order_relaxed);\n  std::atomic_signal_fence(std::memory_order_seq_cst);\n  gate_.enter();", "  gate_.enter();"), gtest_filter="Signals.*"),
    mutation("what was put off is taken for what is mapped there now", (THREAD, "  if (std::exchange(set_version_, place.version) != place.version) set_.begin_epoch();\n", ""), gtest_filter="Direct.*"),
    mutation("domains come and compiled code goes on", (RUNTIME, "  if (added) close_all();\n", ""), gtest_filter="Direct.*"),
    mutation("domains go and compiled code goes on", (RUNTIME, "    domains_.remove(begin, end);\n    close_all();\n", "    domains_.remove(begin, end);\n"), gtest_filter="Direct.*"),
    mutation("epochs begin anew before their marks are gone", (LINE_SET, "    if (next == 0) [[unlikely]]\n      memset(", "    table_.mark = next | kPutOff | kAgain;\n    std::atomic_signal_fence(std::memory_order_seq_cst);\n    if (next == 0) [[unlikely]]\n      memset("), gtest_filter="Steps.*"),
    mutation("what was opened before domains changed stays open", (DIRECT, "    if (looks()) place.compare_exchange_strong(ticket, value, std::memory_order_relaxed);", "    place.store(value, std::memory_order_relaxed);"), gtest_filter="Direct.WhatIsClosed*"),
    own("domains change and threads that have ended are written to", (RUNTIME, "    if (!sys::has_ended(thread.id())) thread.direct().close();\n", "    thread.direct().close();\n"), gtest_filter="OwnRuntime.AThreadMay*"),
    own("a child of fork is taken for a thread that has ended", (THREAD, "  id_ = sys::thread_id();\n", ""), gtest_filter="OwnRuntime.CompiledCode*"),
    mutation("windows of a trial that come as regularly as the program's work", (POLICY, " + base::mix(++window_count_) % (kMaxWindowFences - kWindowFences + 1)", ""), gtest_filter="Policy.*"),
    mutation("a trial counts nothing", (THREAD, "  if (is_other || policy_.is_measuring() != was_measuring) forget_place();\n", "  if (is_other) forget_place();\n"), gtest_filter="Direct.*"),
    mutation("a way is held until lines are counted that are not", (POLICY, "  if (is_trying_ && !is_first_window_ &&", "  if (!is_first_window_ &&"), gtest_filter="Direct.*"),
    mutation("fences begin no epoch", (FENCE, "  if (policy_.chosen() == Way::kInline && !counts_all())", "  if (!counts_all())"), gtest_filter="Direct.*"),
    mutation("a thread that has left flushes on", (RUNTIME, "  thread->close_direct();\n", ""), gtest_filter="Direct.*"),
    own("who counts misses what compiled code does", (OPTIONS, "  plan.settings.counts_all = !options.stats.empty();\n", ""), gtest_filter="OwnRuntime.CompiledCode*"),

    # FIFOs and flushers
    mutation("a place is written again before it was copied", (FIFO, "== kLines) return false;", "== 2 * kLines) return false;"), gtest_filter="Fifo*:*WayTest*decoupled"),
    mutation("lines are taken twice", (FIFO, "state + (kClaimed + kTaken + held) * count;", "state + kClaimed * ((count + 1) / 2) + (kTaken + held) * count;"), gtest_filter="Fifo*"),
    mutation("a fence does not wait for flushers", (FENCE, "  if (waits) pushed->wait();\n", ""), gtest_filter="*WhatWasFlushed*decoupled"),
    mutation("a line that finds the FIFO full is lost", (THREAD, "  if (device != nullptr)\n    flush_to_device(device, line);\n  else\n    execute_now(line);\n}", "}"), gtest_filter="Flushers.*"),
    mutation("flushers tell of what is not durable yet", (FLUSHERS, "      found.domain.device->flush(lines + i, end - i);\n      found.domain.device->fence();\n", "      found.domain.device->flush(lines + i, end - i);\n"), gtest_filter="*WayTest*decoupled"),
    mutation("a fence is the only one that executes", (FENCE, "  if (flushers.do_fences_execute()) {", "  if (true) {"), gtest_filter="Flushers.NoMoreThreads*"),
    mutation("no fence executes what waits", (FENCE, "  if (flushers.do_fences_execute()) {", "  if (false) {"), gtest_filter="Flushers.AFenceExecutes*"),
    mutation("flushers take what a fence executes", (FLUSHERS, "(member.is_proactive || may_take(*fifo))", "true"), gtest_filter="Flushers.AFenceExecutes*"),
    mutation("nobody is asked for a few lines", (FIFO, "    return waiting() >= kWorthLines || asks_", "    return waiting() >= kWorthLines && asks_"), gtest_filter="Fifo*"),
    mutation("what fences execute is no part of the rate", (FLUSHERS, "    return executed_lines() + counts.fence_lines;", "    return executed_lines() + 0 * counts.fence_lines;"), gtest_filter="Flushers.TheGovernor*"),
    mutation("a thread that has left still counts", (RUNTIME, "  if (thread->fifo() != nullptr) flushers_.count_pusher(-1);\n", ""), gtest_filter="Flushers.NoMoreThreads*"),
    mutation("a fence touches pushed lines beside a removal", (FENCE, "    gate_.enter();\n    base::increase<uint64_t>(counts_.fence_lines, flushers.execute_waiting(pushed));\n    gate_.leave();\n", "    base::increase<uint64_t>(counts_.fence_lines, flushers.execute_waiting(pushed));\n"), gtest_filter="Flushers.AMappingStays*"),
    mutation("flushers touch memory that is gone", (FLUSHERS_HEAD, "    for (uint32_t i = 0; i < member_count_; ++i) members_[i].gate.shut();\n", ""), (FLUSHERS_HEAD, "    for (uint32_t i = 0; i < member_count_; ++i) members_[i].gate.open();\n", ""), gtest_filter="Flushers.AMappingStays*"),
    mutation("a removal shuts one thread's gate after the other", (RUNTIME, "  visit_threads([](Thread& thread) { thread.gate().end_shut(); });\n  flushers_.while_shut([&] {\n    domains_.remove(begin, end);\n", "  domains_.remove(begin, end);\n  visit_threads([](Thread& thread) { thread.gate().open(); });\n  visit_threads([](Thread& thread) {\n    thread.gate().shut();\n    thread.gate().open();\n  });\n  flushers_.while_shut([&] {\n"), gtest_filter="Flushers.AFenceBeside*"),

    # Domains
    mutation("domains stand in the order of their making", (DOMAINS, "    if (other.begin < domain.begin) place = count;\n", "    place = count;\n"), gtest_filter="Domains*"),
    mutation("domains may overlap", (DOMAINS, "other.begin < domain.end && domain.begin < other.end", "other.begin == domain.begin"), gtest_filter="Domains*"),
    mutation("what is no domain keeps one from being added", (DOMAINS, "  if (domain.kind != DomainKind::kNone) make_way(domain);\n", ""), gtest_filter="Domains*"),
    mutation("the middle of a domain takes its end with it", (DOMAINS, "    keep(domain, std::min(domain.end, end), domain.end);\n", ""), gtest_filter="Domains*"),
    mutation("what others have put off is lost with its domain", (RUNTIME, "  visit_threads([&](Thread& thread) { thread.execute_for(removed); });\n", ""), gtest_filter="Runtime.*"),
    mutation("a fence touches lines whose domain is gone", (FENCE, "  if (place.action == Action::kOutside || place.action == Action::kNote || place.action == Action::kNothing)\n    return false;\n", ""), test=CAPI),
    mutation("a thread goes on in a domain that is gone", ("src/persist/thread.h", "line - place_.begin < place_.bytes && place_.version == domains_.version();", "line - place_.begin < place_.bytes;"), test=CAPI),

    mutation("a removal loses another domain", (DOMAINS, "  end = removal_end(begin, end);\n", ""), (DOMAINS, "    if (piece_begin < piece_end) left", "    if (piece_begin < piece_end && count < kMaxDomains) left"), gtest_filter="Domains.*"),
    mutation("what was put off is lost with the rest of a domain", (RUNTIME, "  end = domains_.removal_end(begin, end);\n", ""), gtest_filter="Runtime.ARemoval*"),
    mutation("a child waits for a sync of its parent's", (RUNTIME, "  new (&shared_syncs_) SharedSyncs;", "  "), gtest_filter="Runtime.AChild*"),

    # Files
    mutation("a file's domain is not written when it is removed", (RUNTIME, "    return write_range(file_failures_, removed, removed.begin, removed.end);\n", "    return {};\n"), gtest_filter="FileTest.*"),
    mutation("only the first range of a file is written", (RANGES, "const int error = call(SYS_fdatasync, range.descriptor);", "const int error = 0;"), gtest_filter="FileTest.*"),
    mutation("ranges are written whose mapping is gone", (RANGES, "if (found.is_inside && found.domain.kind == DomainKind::kFile) {", "{"), gtest_filter="FileTest.*"),
    mutation("what was written early and failed is forgotten", (RANGES, "  if (error_ == 0) error_ = error;\n}", "  (void)error;\n}"), gtest_filter="FileTest.*"),
    own("a fork keeps to itself what could not be written", (OWN, "void before_fork() {\n  fence_untold();\n", "void before_fork() {\n  if (thread != nullptr) static_cast<void>(thread->fence());\n"), gtest_filter="OwnFailingFiles.*"),
    own("the end of a mapping keeps to itself what could not be written", (OWN, "  fence_untold();\n  if (auto removed", "  if (thread != nullptr) static_cast<void>(thread->fence());\n  if (auto removed"), gtest_filter="OwnFailingFiles.*"),
    mutation("two files are one, since their domains begin at the same place", ("src/persist/file_ranges.h", "domain_begin == other_begin && descriptor == other_descriptor;", "domain_begin == other_begin && (descriptor < 0) == (other_descriptor < 0);"), gtest_filter="FileTest.*"),
    mutation("ranges without room are forgotten", (THREAD, "    ranges_.write_early(domains_);\n", "    new (&ranges_) FileRanges(runtime_.file_failures());\n"), gtest_filter="FileTest.*"),
    mutation("what the kernel told to another thread is told to nobody else", (RANGES, "error = result != 0 ? result : told;", "error = result, static_cast<void>(told);"), gtest_filter="FileTest.*"),
    mutation("a failure is told again and again", ("src/persist/file_failures.h", "std::exchange(last_[place], last) == last ? 0", "last_[place] == last ? 0"), gtest_filter="FileTest.*"),
    mutation("a thread is told of failures before its time", ("src/persist/file_failures.h", "last_[i] = failures.last(i);", "last_[i] = 0 * failures.last(i);"), gtest_filter="FileTest.*"),
    mutation("a range of a file is counted as what its domain has", (THREAD, "lines_of(begin, end));", "lines_of(begin, domain.end));"), test=("capi_persist_threads_test", "*AllPolicies*")),
    mutation("a note ends with its line", (THREAD, "      note(place.domain, line, next);", "      note(place.domain, line, line + base::kLineBytes);"), test=CAPI),

    # Policies
    mutation("noise is a gain", (POLICY, "    if (middle < 1 - noise && middle < best_ratio) {", "    if (middle < best_ratio) {"), gtest_filter="Policy*"),
    mutation("a way that is far worse stays in the trial", (POLICY, "costs[round_ - 1] > kFarWorse * plain.costs[round_ - 1]", "costs[round_ - 1] > 100 * kFarWorse * plain.costs[round_ - 1]"), gtest_filter="Policy*"),
    mutation("the first window after a change counts", (POLICY, "  if (!is_warm_) {\n    is_warm_ = true;\n    return false;\n  }\n", ""), gtest_filter="Policy*"),
    mutation("a winner holds for ever", (POLICY, "    if (now < held_until_) return false;\n", "    if (trials_ > 0) return false;\n"), gtest_filter="Policy*"),

    # Layouts
    mutation("parts are laid where the most is left", (LAYOUT, "rest.end - rest.begin < best->end - best->begin))", "rest.end - rest.begin > best->end - best->begin))"), gtest_filter="Layout*"),
    mutation("parts are not aligned in the rest of a line", (LAYOUT, "base::round_up(best->begin + part, alignment)", "best->begin + part"), gtest_filter="Layout*"),

    # Handlers of signals
    mutation("a handler finds the runtime's lock held", ("src/sys/lock.h", "blocked_{kSentSignals};", "blocked_{0};"), test=CAPI),
    mutation("what a handler flushes waits for a fence that does not know of it", (THREAD, "      execute(place.domain.device, line);\n      base::increase<uint64_t>(counts_.now_lines, 1);\n", ""), gtest_filter="*Handlers*"),
    mutation("a handler's fence leaves out what its thread has put off", (FENCE, "  set_.visit([&](uintptr_t line) { execute_again(place, line); });\n", ""), gtest_filter="*Handlers*epoch"),
    mutation("a handler's fence leaves out what its thread was executing", (FENCE, "    for (uint32_t i = 0; i < pushed->held_count(); ++i) execute_again(place, pushed->held()[i]);\n", ""), gtest_filter="*Handlers*decoupled"),
    mutation("a handler waits for the thread that it interrupts", (FIFO, "(state & (kClaimed - 1)) == (kTaken + kHeld) * (state & kMaxHeld);", "(state & (kClaimed - 1)) == 0;"), gtest_filter="Fifo*"),
    mutation("a child waits for what its parent's thread held", (FIFO, "head_.load(std::memory_order_relaxed) + (kTaken + kHeld) * held,", "head_.load(std::memory_order_relaxed) + 0 * held,"), gtest_filter="Fifo*"),
    mutation("a handler's flush in a file is nobody's", (THREAD, "      if (write_range(runtime_.file_failures(), place.domain, line, line + base::kLineBytes)) return;\n", "      return;\n"), gtest_filter="FileTest.*"),

    # The process's own runtime
    own("a thread's end fences nothing", (OWN, "  if (thread == nullptr) return;\n", "  thread = nullptr;\n  is_without = true;\n  if (thread == nullptr) return;\n"), gtest_filter="OwnRuntime.*"),
    own("last destructors use a thread that is gone", (OWN, "  thread = nullptr;\n  is_without = true;\n", "  thread = nullptr;\n"), gtest_filter="OwnRuntime.LastDestructors*"),
    own("a child finds its parent's locks held", (OWN, "  process_runtime.after_fork_in_child(thread);\n  unlock_after_fork();", "  process_runtime.after_fork_in_child(thread);"), gtest_filter="OwnRuntime.AChild*"),
    own("a child counts on its parent's flushers", ("src/persist/flushers.cc", "  is_running_.store(false, std::memory_order_relaxed);\n  member_count_ = 0;", "  member_count_ = 0;"), gtest_filter="OwnRuntime.AChild*"),
    own("copies go past the caches into files", (COPIES, "(found.domain.kind != DomainKind::kFile &&", "(found.domain.kind != DomainKind::kNone &&"), gtest_filter="OwnRuntime.*"),
    own("the share of many dirty bytes overflows", ("src/persist/own/dirtiness.cc", "  if (dirty_bytes > ~uint64_t{0} / kMillion) return dirty_bytes / (bytes / kMillion);\n", ""), gtest_filter="Dirtiness.*"),
    own("a copy asks only where it begins", (COPY, "found.domain.end >= end &&", "true &&"), gtest_filter="OwnRuntime.*"),
    own("copies do not find mappings", (COPY, "= find_place(begin);", "= runtime().domains().find(begin);"), gtest_filter="OwnRuntime.*"),
    own("who finds a mapping that another thread has just found flushes outside", (OWN, "    if (added.error().number == EEXIST) continue;\n", ""), gtest_filter="OwnRuntime.ThreadsFind*"),
    own("last destructors do not find mappings", (OWN, "found = find_place(line);", "found = process_runtime.domains().find(line);"), gtest_filter="OwnRuntime.LastDestructorsFind*"),
    own("mappings of nobody's leave no place for what is recorded", (OWN, "Domains::kMaxDomains && observer() == nullptr &&", "Domains::kMaxDomains &&"), gtest_filter="OwnRuntime.AFileIsRecorded*"),
    own("a mapping without a place is looked for each time", (OWN, "  if (process_runtime.domains().size() == Domains::kMaxDomains && observer() == nullptr &&\n", "  if (false &&\n"), gtest_filter="OwnRuntime.NobodyLooks*"),
    own("a domain ends within a line", (OWN, "  begin = base::round_down(begin, base::kLineBytes);  // the call may fail", "  // the call may fail"), gtest_filter="OwnRuntime.AMappingThatIsNot*"),
    own("nobody is told of a file that is not written", (OWN, "    if (added.error().number == ENOSPC && domain.kind == DomainKind::kFile) tell_unwritten(mapping.path);\n", ""), gtest_filter="OwnRuntime.AFoundFile*"),
    own("each flush tells of a file that is not written", (OWN, "has_told_unwritten.exchange(true,", "has_told_unwritten.exchange(false,"), gtest_filter="OwnRuntime.AFoundFile*"),
    own("the line at a copy's end is not flushed", (COPIES, "    sink.flush(whole_end, end - whole_end);\n", ""), gtest_filter="OwnRuntime.*"),
    own("an option changes with the text it was given by", (OWN, "  process_plan.stats = stats.view();\n", ""), gtest_filter="OwnRuntime.*"),
    mutation("private mappings of files are the files", (FOUND, "rights[3] == 's' &&", "rights[3] != '-' &&"), test=("sys_test", "Mappings.*")),
    own("flushers are bounded where nobody has said so", (OPTIONS, "  if (text == \"auto\") return settings;\n", "  if (text == \"auto\") return settings.most = 64, settings;\n"), gtest_filter="*Options*"),
    own("a program without an environment has no options", (OPTIONS, "environment != nullptr && *environment != nullptr;", "*environment != nullptr;"), gtest_filter="*Options*"),
    own("an option that is misspelt is left out", (OPTIONS, "    if (!is_known)\n", "    if (false)\n"), gtest_filter="*Options*"),

    # The C API
    mutation("a setuid program for persistent memory takes settings", ("src/capi/CMakeLists.txt", " -Wl,-init=persist_begin", ""), test=("ctest", "^cli_persist_run$")),
    mutation("a program that configures itself is not observed", (CALLS, "persist::read_environment(environ, persist::own::default_options());", "base::Expected<persist::Options>(persist::own::default_options());"), test=CAPI),
    mutation("a new file that was refused stays", (MAPPINGS, "  if (is_new) unlink(path);\n", ""), test=CAPI),
    mutation("a link to nothing is tried for ever", (MAPPINGS, "if (is_new && lstat(", "if (false && lstat("), test=CAPI),
    mutation("a file is not made as large as its mapping", (MAPPINGS, "posix_fallocate(descriptor, 0, static_cast<off_t>(bytes))", "posix_fallocate(descriptor, 0, 4096)"), test=CAPI),
    mutation("a file that may not become so large is a signal", (MAPPINGS, "bytes > file_bytes && bytes > limit", "bytes < file_bytes && bytes > limit"), test=CAPI),
    mutation("a file that is larger than files may become is refused", (MAPPINGS, "bytes > file_bytes && bytes > limit", "bytes > limit"), test=CAPI),
    mutation("more of a block device is mapped than there is", (MAPPINGS, "S_ISBLK(facts.st_mode) && bytes > file_bytes", "S_ISBLK(facts.st_mode) && bytes > 2 * file_bytes"), test=CAPI),
    mutation("a mapping that went without a word keeps another one from being a domain", (MAPPINGS, "      persist::own::end_mapping(begin, *sized);", "     "), test=CAPI),
    mutation("a domain outlives its mapping", (MAPPINGS, "  const auto removed = persist::own::remove_domain(begin, begin + found->bytes);", "  const base::Expected<void> removed; (void)begin;"), test=CAPI),
    mutation("a fence's failure is the caller's mistake", (CALLS, "  persist::own::flush(capi::persisting::number_of(address), bytes, __builtin_return_address(0));\n  return capi::persisting::answer_written", "  persist::own::flush(capi::persisting::number_of(address), bytes, __builtin_return_address(0));\n  return capi::persisting::answer"), (CALLS, "int spillway_persist_fence(void) {\n  return capi::persisting::answer_written", "int spillway_persist_fence(void) {\n  return capi::persisting::answer"), test=CAPI),
]
