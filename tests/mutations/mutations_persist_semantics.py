"""Breakages of what the persistence runtime promises: what a crash leaves that it could not leave without it (tests/persist_semantics)."""

FIFO = "src/persist/fifo.h"
FLUSHERS = "src/persist/flushers.cc"
LINE_SET = "src/persist/line_set.h"
RANGES = "src/persist/file_ranges.cc"
RUNTIME = "src/persist/runtime.cc"
SHARED_SYNC = "src/persist/shared_sync.h"
FENCE = "src/persist/thread_fence.cc"
THREAD = "src/persist/thread.cc"


def mutation(name, *patches, gtest_filter="*SemanticsTest.*"):
    return {"name": name, "test": ("persist_semantics_test", gtest_filter), "patches": list(patches)}


def of_files(name, *patches):
    return mutation(name, *patches, gtest_filter="*FileDomainsTest*")


MUTATIONS = [
    mutation("a line that is put off is not in the list", (LINE_SET, "    count_.store(count + 1, std::memory_order_relaxed);\n", "    count_.store(line % 4096 == 64 ? count : count + 1, std::memory_order_relaxed);\n")),
    mutation("a line stays put off in the next epoch", (LINE_SET, "    if (difference >> kFlagBits == 0) {  // of this epoch\n", "    if ((entry & kPutOff) != 0) return Flush::kPutOff;\n    if (difference >> kFlagBits == 0) {  // of this epoch\n")),
    mutation("a line that takes the entry of one that is put off is taken for it", (LINE_SET, "    if (difference >> kNumberShift != 0) {\n      entry = now;\n      return Flush::kNow;\n    }\n", "    if (difference >> kNumberShift != 0) {\n      const Flush other = (entry & kPutOff) != 0 ? Flush::kPutOff : Flush::kNow;\n      entry = now;\n      return other;\n    }\n")),
    mutation("a full list is emptied without its lines", (THREAD, "  if (set_.is_full()) execute_put_off();\n", "  if (set_.is_full()) set_.clear();\n")),
    mutation("the first flush of a line is put off for ever", (THREAD, "    case LineSet::Flush::kNow: return flush_to_device(device, line);\n", "    case LineSet::Flush::kNow: return;\n")),
    mutation("a fence returns before flushers are done", (FENCE, "  if (waits) pushed->wait();\n", "")),
    mutation("a fence leaves what is put off where it is", (FENCE, "  execute_put_off();\n  if (waits)", "  if (waits)")),
    mutation("a fence fences no device", (FENCE, "  for (size_t i = 0; i < device_count_; ++i) devices_[i]->fence();\n", "")),
    mutation("devices are fenced before what is put off", (FENCE, "  execute_put_off();\n  if (waits)", "  for (size_t i = 0; i < device_count_; ++i) devices_[i]->fence();\n  execute_put_off();\n  if (waits)"), (FENCE, "  for (size_t i = 0; i < device_count_; ++i) devices_[i]->fence();\n  device_count_ = 0;\n  sys::fence_stores();\n", "  device_count_ = 0;\n  sys::fence_stores();\n")),
    mutation("clflush is put off", (THREAD, "    flush_alone(place, line);\n  }\n}\n\nvoid Thread::sample", "    flush(line);\n  }\n}\n\nvoid Thread::sample")),
    mutation("a way that changes forgets what was put off", (THREAD, "  policy_.ask(way);\n", "  policy_.ask(way);\n  set_.clear();\n")),
    mutation("a flusher is done before its fence", (FLUSHERS, "      found.domain.device->fence();\n", "")),
    mutation("a queue is done when its last line is", (FIFO, " &&\n           (state & (kClaimed - 1)) == (kTaken + kHeld) * (state & kMaxHeld);", ";")),
    mutation("what is put off of a removed domain is dropped", (FENCE, "  set_.visit(flush);\n", "")),
    mutation("what waits for flushers of a removed domain is dropped", (FENCE, "  if (const Fifo* const pushed = fifo(); pushed != nullptr) pushed->visit(flush);\n", "")),
    mutation("a removed domain's device is not fenced", (RUNTIME, "  if (removed.kind == DomainKind::kDevice) removed.device->fence();\n", "")),
    mutation("a thread that leaves does not fence", (RUNTIME, "  auto fenced = thread->fence();\n", "  base::Expected<void> fenced;\n")),
    of_files("the end of a range is cut by a line", (RANGES, "  end = base::round_up(end, base::kOsPageBytes);\n", "  end = base::round_up(end - base::kLineBytes, base::kOsPageBytes);\n")),
    of_files("the last page of what is written is left out", (RANGES, "base::round_up(end, base::kOsPageBytes) - begin, MS_SYNC", "base::round_up(end, base::kOsPageBytes) - base::kOsPageBytes - begin, MS_SYNC")),
    of_files("a range that joins another is forgotten", (RANGES, "    last->end = std::max(last->end, end);\n", "")),
    of_files("a range is forgotten when there is room for no other", (RANGES, "    last->begin = std::min(last->begin, begin);\n    last->end = std::max(last->end, end);\n", "    if (last->begin > end || begin > last->end) return;\n    last->begin = std::min(last->begin, begin);\n    last->end = std::max(last->end, end);\n")),
    of_files("the last range is forgotten", (RANGES, "  for (size_t i = 0; i < count_; ++i) {\n    const int result", "  for (size_t i = 0; i + (count_ > 1) < count_; ++i) {\n    const int result")),
    of_files("ranges that wait are forgotten when there is no room", (RANGES, "  const int error = write_all(domains, nullptr);\n", "  const int error = 0;\n  count_ = 0;\n")),
    of_files("files of one descriptor and of none are taken for one", (RANGES, "  return true;\n}\n\nvoid FileRanges::skip_others", "  return false;\n}\n\nvoid FileRanges::skip_others"), (RANGES, "    if (ranges_[i].is_of(range.domain_begin, range.descriptor)) ranges_[i].end = ranges_[i].begin;\n", "    ranges_[i].end = ranges_[i].begin;\n")),
    of_files("a range goes on behind its domain as if it were written", (RANGES, "    address = piece_end;\n", "    address = range.end;\n")),
    of_files("a fence leaves files' ranges", (FENCE, "  if (!ranges_.is_empty()) {\n", "  if (false) {\n")),
    of_files("clflush is noted of files", (THREAD, "      if (write_range(runtime_.file_failures(), place.domain, line, line + base::kLineBytes)) return;\n", "      return ranges_.add(place.domain, line, line + base::kLineBytes);\n")),
    of_files("lines behind those whose caches are saved are not flushed", (THREAD, "    case Action::kNothing: base::increase<uint64_t>(counts_.away_lines, 1); break;\n", "    case Action::kNothing: base::increase<uint64_t>(counts_.away_lines, 1); next = end; break;\n")),
    of_files("lines behind those of a file are not flushed", (THREAD, "      next = std::min(base::round_up(end, base::kLineBytes), place.domain.end);\n      note(place.domain, line, next);\n", "      next = base::round_up(end, base::kLineBytes);\n      note(place.domain, line, std::min(next, place.domain.end));\n")),
    of_files("who comes while a file is synced shares that", (SHARED_SYNC, "    const uint64_t own = begun_ + 1;\n", "    const uint64_t own = is_running_ ? begun_ : begun_ + 1;\n")),
    of_files("who comes while a file is synced does not wait", (SHARED_SYNC, "      if (is_running_) {\n", "      if (is_running_) {\n        break;\n")),
    of_files("lines whose caches are saved are flushed", (THREAD, "    case DomainKind::kFlushOnFail: return Action::kNothing;\n", "    case DomainKind::kFlushOnFail: return Action::kExecute;\n")),
    of_files("files are not written when they are removed", (RUNTIME, "    return write_range(file_failures_, removed, removed.begin, removed.end);\n", "    return {};\n")),
]
