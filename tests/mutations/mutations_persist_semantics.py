"""Breakages of what the persistence runtime promises: what a crash leaves that it could not leave without it (tests/persist_semantics)."""

FIFO = "src/persist/fifo.h"
FLUSHERS = "src/persist/flushers.cc"
LINE_SET = "src/persist/line_set.h"
RUNTIME = "src/persist/runtime.cc"
THREAD = "src/persist/thread.cc"


def mutation(name, *patches, gtest_filter="*SemanticsTest.*"):
    return {"name": name, "test": ("persist_semantics_test", gtest_filter), "patches": list(patches)}


MUTATIONS = [
    mutation("a line that is put off is not in the list", (LINE_SET, "    count_.store(count + 1, std::memory_order_relaxed);\n", "    count_.store(line % 4096 == 64 ? count : count + 1, std::memory_order_relaxed);\n")),
    mutation("a line stays put off in the next epoch", (LINE_SET, "    if (difference >> kFlagBits == 0) {  // of this epoch\n", "    if ((entry & kPutOff) != 0) return Flush::kPutOff;\n    if (difference >> kFlagBits == 0) {  // of this epoch\n")),
    mutation("a line that takes the entry of one that is put off is taken for it", (LINE_SET, "    if (difference >> kNumberShift != 0) {\n      entry = now;\n      return Flush::kNow;\n    }\n", "    if (difference >> kNumberShift != 0) {\n      const Flush other = (entry & kPutOff) != 0 ? Flush::kPutOff : Flush::kNow;\n      entry = now;\n      return other;\n    }\n")),
    mutation("a full list is emptied without its lines", (THREAD, "  if (set_.is_full()) execute_put_off();\n", "  if (set_.is_full()) set_.clear();\n")),
    mutation("the first flush of a line is put off for ever", (THREAD, "    case LineSet::Flush::kNow: return flush_to_device(device, line);\n", "    case LineSet::Flush::kNow: return;\n")),
    mutation("a fence returns before flushers are done", (THREAD, "  if (waits) pushed->wait();\n", "")),
    mutation("a fence leaves what is put off where it is", (THREAD, "  execute_put_off();\n  if (waits)", "  if (waits)")),
    mutation("a fence fences no device", (THREAD, "  for (size_t i = 0; i < device_count_; ++i) devices_[i]->fence();\n", "")),
    mutation("devices are fenced before what is put off", (THREAD, "  execute_put_off();\n  if (waits)", "  for (size_t i = 0; i < device_count_; ++i) devices_[i]->fence();\n  execute_put_off();\n  if (waits)"), (THREAD, "  for (size_t i = 0; i < device_count_; ++i) devices_[i]->fence();\n  device_count_ = 0;\n  sys::fence_stores();\n", "  device_count_ = 0;\n  sys::fence_stores();\n")),
    mutation("clflush is put off", (THREAD, "    flush_in_handler(line);\n  }\n}\n\nvoid Thread::sample", "    flush(line);\n  }\n}\n\nvoid Thread::sample")),
    mutation("a way that changes forgets what was put off", (THREAD, "  policy_.ask(way);\n", "  policy_.ask(way);\n  set_.clear();\n")),
    mutation("a flusher is done before its fence", (FLUSHERS, "      found.domain.device->fence();\n", "      fifo.finish(0);\n")),
    mutation("a queue is done when its last line is", (FIFO, "return done_.load(std::memory_order_acquire) == head_.load(std::memory_order_relaxed);", "return claimed_.load(std::memory_order_acquire) == head_.load(std::memory_order_relaxed);")),
    mutation("what is put off of a removed domain is dropped", (THREAD, "  set_.visit(flush);\n", "")),
    mutation("what waits for flushers of a removed domain is dropped", (THREAD, "  if (const Fifo* const pushed = fifo(); pushed != nullptr) pushed->visit(flush);\n", "")),
    mutation("a removed domain's device is not fenced", (RUNTIME, "    if (removed[i].kind == DomainKind::kDevice) removed[i].device->fence();\n", "")),
    mutation("a thread that leaves does not fence", (RUNTIME, "  auto fenced = thread->fence();\n", "  base::Expected<void> fenced;\n")),
]
