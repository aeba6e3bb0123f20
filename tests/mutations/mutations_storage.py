"""Breakages of src/storage: what a transfer did is reported, queues keep their contract, nobody's data is lost."""

AIO = "src/storage/aio.cc"
DECORATOR = "src/storage/decorator.h"
DEVICE = "src/storage/device.cc"
FAULT = "src/storage/fault.cc"
FILE = "src/storage/file.cc"
HELPERS = "src/storage/file_helpers.cc"
MEDIUM = "src/storage/open_medium.cc"
STRIPE = "src/storage/stripe.cc"
STRIPE_MAP = "src/storage/stripe_map.h"
DEVICE_STRING = "src/storage/device_string.cc"
LATENCY = "src/storage/latency.cc"
LATENCY_MODEL = "src/storage/latency_model.cc"
TRACE = "src/storage/trace.cc"
TRACE_READER = "src/storage/trace_reader.cc"
TRACE_REPLAY = "src/storage/trace_replay.cc"
MEMORY = "src/storage/memory.cc"
URING = "src/storage/uring.cc"


def mutation(name, gtest_filter, *patches):
    return {"name": name, "test": ("storage_test", gtest_filter), "patches": list(patches)}


MUTATIONS = [
    # What a transfer did
    mutation("short transfer of a file taken as whole", "*Conformance.PastTheEnd*",
             (FILE, "    io.transferred_bytes = static_cast<uint64_t>(result);", "    io.transferred_bytes = io.length_bytes;")),
    mutation("rest of a short transfer lost", "ResumeTest.*",
             (DEVICE, "    if (!may_go_on || io.error != 0 || io.whole()) return false;\n", "    return false;\n")),
    mutation("rest of a short transfer begins at its segment's front", "ResumeTest.*",
             (DEVICE, "{static_cast<char*>(segment.iov_base) + inside_bytes, segment.iov_len - inside_bytes}", "{segment.iov_base, segment.iov_len - inside_bytes}")),
    mutation("rest of a short transfer goes to the place of its front", "ResumeTest.*",
             (DEVICE, "  io.offset_bytes = resumption.offset_bytes + resumption.moved_bytes;\n", "")),
    mutation("segments after the one that a transfer stopped in are lost", "ResumeTest.*",
             (DEVICE, "  const bool goes_on = io.error == 0 && (may_go_on || io.whole());", "  const bool goes_on = false;")),
    mutation("caller gets back what was left of its request", "ResumeTest.*",
             (DEVICE, "  io.segments = resumption.segments;\n", "")),
    mutation("transfer that brings nothing is resumed for ever", "ResumeTest.NoProgress*",
             (DEVICE, "io.transferred_bytes > 0 && io.transferred_bytes % device_", "io.transferred_bytes % device_")),
    mutation("resumed from inside a block", "ResumeTest.LessThan*",
             (DEVICE, " && io.transferred_bytes % device_.block_bytes() == 0;", ";")),
    mutation("error of a transfer's rest lost", "ResumeTest.ALaterError*",
             (DEVICE, "  resumption.under_way = false;\n  return false;", "  if (io.transferred_bytes > 0) io.error = 0;\n  resumption.under_way = false;\n  return false;")),
    mutation("short transfer made on purpose is resumed", "FaultTest.*",
             (FAULT, "    if (may_go_on)\n      complete(outer);\n    else\n      complete_as_is(outer);", "    (void)may_go_on;\n    complete(outer);")),
    mutation("error of a file lost", "Errors.*",
             (FILE, "    io.error = static_cast<int>(-result);", "    io.error = 0;")),
    mutation("error of a flush or discard lost", "Errors.*",
             (FILE, "  if (result < 0)\n    io.error", "  if (result < 0 && (io.operation == Operation::kRead || io.operation == Operation::kWrite))\n    io.error")),
    mutation("discard that cannot be done reported as an error", "Errors.*",
             (FILE, "  if (io.operation == Operation::kDiscard && means_cannot_discard(result)) result = 0;\n", "")),
    mutation("Ios that the ring did not take are dropped", "Uring.NoIoIsLost*",
             (URING, "      io.error = error;\n      complete(io);", "      io.error = error;")),
    mutation("interrupted submission fails its Ios", "Uring.SignalsInterruptNothing",
             (URING, "bool temporary = result == -EINTR || result == -EAGAIN", "bool temporary = result == -EAGAIN"),
             (URING, "      long result = ring_.enter(wait_count);", "      static int turn = 0;\n      long result = ++turn % 3 == 0 ? -EINTR : ring_.enter(wait_count);")),
    mutation("a request the kernel cancelled is an error", "Uring.SignalsCancel*",
             (URING, "result == -EAGAIN || result == -ECANCELED", "result == -EAGAIN")),
    mutation("write at the offset of the Io before", "*Conformance.Batches*",
             (URING, "    entry->off = io.offset_bytes;", "    static uint64_t before = 0;\n    entry->off = before;\n    before = io.offset_bytes;")),

    # Queues
    mutation("done runs inside submit", "*Conformance.DoneNeverRuns*",
             (DEVICE, "  if (accepted_count > 0) do_flush_submissions();\n", "  if (accepted_count > 0) do_flush_submissions();\n  deliver();\n")),
    mutation("queue takes one Io too many", "*Conformance.Full*",
             (DEVICE, "accepted_count < batch.size() && in_flight_count_ < depth_)", "accepted_count < batch.size() && in_flight_count_ <= depth_)")),
    mutation("poll goes on as long as done submits", "*Conformance.DoneMaySubmit*",
             (DEVICE, "  while (delivered_count < bound && !completed_.empty()) {", "  while (do_poll(false), !completed_.empty()) {")),
    mutation("done runs while the Io still counts as in flight", "*Conformance.DoneMaySubmit*",
             (DEVICE, "    --in_flight_count_;\n    io.in_flight = false;\n    ++delivered_count;\n    if (io.done != nullptr) io.done(io);",
              "    ++delivered_count;\n    if (io.done != nullptr) io.done(io);\n    --in_flight_count_;\n    io.in_flight = false;")),
    mutation("run() returns before its Io is done", "*Conformance.ReadsBack*",
             (DEVICE, "  start(io, true);\n  while (io.in_flight) wait();", "  start(io, false);\n  poll();")),
    mutation("requests are not checked", "*ConformanceDeathTest*",
             (DEVICE, "  check_request(device_, io);\n", "")),
    mutation("failed operations counted as done", "Errors.*",
             (DEVICE, "    statistics.storage_errors.add();\n    return;", "    statistics.storage_errors.add();")),
    mutation("helpers are not woken", "*Conformance.SubmittedIos*",
             (HELPERS, "  if (wake_count > 0) sys::futex_wake(wake_word_, wake_count);\n", "  (void)wake_count;\n")),
    mutation("waiting thread is not told of what a helper did", "*Conformance.*",
             (HELPERS, "    client->finished.notify_all();\n", "")),
    mutation("helper performs a client's Io twice", "*Conformance.*",
             (HELPERS, "    if (!client->wanted.empty()) append_to_round(*client);\n", "    append_to_round(*client);\n")),

    # Media
    mutation("file of another process is used", "OpenTest.AFileOfAnother*",
             (MEDIUM, "sys::syscall(SYS_flock, opened.get(), LOCK_EX | LOCK_NB) == -EWOULDBLOCK", "sys::syscall(SYS_flock, opened.get(), LOCK_UN) == -EWOULDBLOCK")),
    mutation("content of a file overwritten unasked", "OpenTest.ContentIsKept*",
             (MEDIUM, "if (facts.stx_size > 0 && !parameters.overwrite) {", "if (facts.stx_size > (1 << 30) && !parameters.overwrite) {")),
    mutation("file emptied before everything else is known to work", "OpenTest.RefusedOverwrite*",
             (MEDIUM, "  auto medium = finish_file(path, Opened(opened.take()), \"file\", true);\n",
              "  if (parameters.overwrite) sys::syscall(SYS_ftruncate, opened.get(), 0);\n"
              "  auto medium = finish_file(path, Opened(opened.take()), \"file\", true);\n")),
    mutation("spill file keeps its name", "OpenTest.NothingThere*",
             (MEDIUM, "  if (!sys::failed(result)) sys::syscall(SYS_unlinkat, AT_FDCWD, path.c_str(), 0);\n", "")),
    mutation("spill file readable by others", "OpenTest.PrivateFiles*", (MEDIUM, "kPrivateMode = 0600;", "kPrivateMode = 0644;")),
    mutation("limit on the size of files ignored", "OpenTest.Capacity*",
             (MEDIUM, "std::min(kMostFileBytes, sys::file_size_limit())", "kMostFileBytes")),
    mutation("misspelt device becomes a file", "OpenTest.*",
             (MEDIUM, "return path.starts_with(\"/dev/\") && !path.starts_with(\"/dev/shm/\");", "return path.starts_with(\"/device/\");")),
    mutation("no way on where io_uring is forbidden", "Uring.WhereItIsForbidden*",
             (URING, "      log_fallback(probed.error().message, \"Linux AIO\");\n      return {};", "      return std::unexpected(probed.error());")),
    mutation("no way on when there are no more rings", "Uring.QueuesBeyond*",
             (URING, "  return AioDevice::do_open_queue(depth);\n}", "  return std::unexpected(opened.error());\n}")),
    mutation("threads for blocking calls though Linux AIO serves", "Uring.WhereItIsForbidden*",
             (URING, "    if (aio && medium().is_direct) {", "    if (false) {")),
    mutation("Linux AIO serves buffered media where io_uring is forbidden", "Uring.WhereItIsForbidden*",
             (URING, "    if (aio && medium().is_direct) {", "    if (aio) {")),
    mutation("no way on where Linux AIO is forbidden", "Aio.WhereItIsForbidden*",
             (AIO, "  return give_up_aio(helper_count);", "  return std::unexpected(probed.error());")),
    mutation("no way on when the system has no more requests", "Aio.QueuesBeyond*",
             (AIO, "  log_fallback(opened.error().message, \"blocking calls for some threads\");\n  return FileDevice::do_open_queue(depth);", "  return std::unexpected(opened.error());")),

    # Linux AIO
    mutation("Ios that Linux AIO refuses are dropped", "Aio.WhatTheKernelRefuses*",
             (AIO, "    FileDevice::set_result(io, result);\n    complete(io);\n  }\n\n  size_t reap", "    FileDevice::set_result(io, result);\n  }\n\n  size_t reap")),
    mutation("full queue of Linux AIO is an error", "Aio.WithoutRoom*",
             (AIO, "      if (result == -EAGAIN || result == -EINTR) return;\n", "")),
    mutation("what Linux AIO takes none of waits for ever", "Aio.WithoutRoom*",
             (AIO, "    if (ring_.pending_count() > 0 && ring_.in_kernel_count() == 0)", "    if (false)")),
    mutation("flush that Linux AIO does not have is an error", "Aio.WhatTheKernelRefuses*",
             (AIO, "      flushes_ = false;\n      perform(io);\n      return;\n", "")),
    mutation("child's writes by Linux AIO may be under way when it is gone", "Uring.WritesOfAChild*",
             (AIO, "(io.operation != Operation::kRead && is_in_child_)", "false")),
    mutation("Linux AIO reads and writes at the front", "*Conformance.Batches*",
             (AIO, "    entry->aio_offset = static_cast<int64_t>(io.offset_bytes);\n", "")),

    # Stripes
    mutation("unit of a stripe on the wrong member", "Stripe*",
             (STRIPE_MAP, "(member + member_count - first_unit % member_count) % member_count;", "(member + member_count - first_unit % member_count + 1) % member_count;")),
    mutation("last unit of a stripe is always whole", "StripeMap.*",
             (STRIPE_MAP, "(last == last_unit ? last_byte % unit_bytes + 1 : unit_bytes)", "unit_bytes")),
    mutation("stripe reads all units from its first one's memory", "StripeTest.*",
             (STRIPE, "memory.append(map_.offset_of(part.member, at) - outer.offset_bytes,", "memory.append(at - part.io.offset_bytes,")),
    mutation("parts of a stripe with too many segments cut off", "StripeTest.PartsOfMore*",
             (STRIPE, "      if (taken_bytes < piece_bytes) break;\n    }\n    return at;", "      if (taken_bytes < piece_bytes) break;\n    }\n    return end;")),
    mutation("stripe completes with its first part", "StripeTest.*",
             (STRIPE, "    if (whole.parts_under_way > 0 || whole.member_index < map_.member_count) return;", "    if (whole.missing_from_bytes != ~uint64_t{0}) return;")),
    mutation("last error of a stripe instead of the first", "StripeTest.ErrorsInTheOrder*",
             (STRIPE, "      if (io.error != 0 && from < whole.error_at_bytes) {", "      if (io.error != 0) {")),
    mutation("error of a stripe's later part lost", "StripeTest.ShortUpTo*",
             (STRIPE, "      if (io.error != 0 && from < whole.error_at_bytes) {", "      if (io.error != 0 && from <= whole.missing_from_bytes) {")),
    mutation("short part of a stripe taken as whole", "StripeTest.ShortUpTo*",
             (STRIPE, "    if (!io.whole()) {\n      const bool flush", "    if (io.error != 0) {\n      const bool flush")),
    mutation("flush of a stripe goes to its first member only", "StripeTest.AFlush*",
             (STRIPE, "flush ? StripeMap::Range{0, 1} :", "flush ? StripeMap::Range{0, whole.member_index == 0} :")),
    mutation("full member of a stripe is not waited for", "StripeTest.MoreRequests*",
             (STRIPE, "        if (!has_room(member) ||", "        if (")),
    mutation("waiting parts of a stripe are forgotten", "StripeTest.MoreRequests*",
             (STRIPE, "    while (waiting_first_ != nullptr && make_parts_of(*waiting_first_)) waiting_first_ = waiting_first_->next;",
              "    while (waiting_first_ != nullptr) {\n      make_parts_of(*waiting_first_);\n      waiting_first_ = waiting_first_->next;\n    }")),
    mutation("one file twice in a stripe", "StripeTest.Capacity*",
             (STRIPE, "      if (are_one_medium(*members[i], *members[j]))", "      if (false && are_one_medium(*members[i], *members[j]))")),
    mutation("commas of a setting part a stripe's members", "DeviceString.*",
             (DEVICE_STRING, "        if (nesting == 0 && !is_among_settings && !is_before_one) return i;", "        if (nesting == 0 && !is_among_settings) return i;")),

    # Modelled speed
    mutation("modelled completion before its time", "LatencyTest.Nothing*",
             (LATENCY, "timed_[0]->due_ns <= now_ns) {", "timed_[0]->due_ns <= now_ns + 4'000'000) {")),
    mutation("poll waits for the modelled time", "LatencyTest.PollNever*",
             (LATENCY, "      if (!block || has_completed()) return;", "      if (has_completed()) return;")),
    mutation("modelled request completes before it is done", "LatencyTest.*",
             (LATENCY, "      if (slot.inner_done) {", "      if (slot.inner_done || slot.inner.error == 0) {")),
    mutation("request that was late is forgotten", "LatencyTest.WhatTheInner*",
             (LATENCY, "    if (!slot.late) return;", "    if (!slot.late || slot.queue != nullptr) return;")),
    mutation("all modelled requests served at once", "LatencyModel.Channels*",
             (LATENCY_MODEL, "(free_at > now_ns ? free_at : now_ns) + service", "now_ns + service")),
    mutation("modelled channels one after the other", "LatencyModel.Channels*",
             (LATENCY_MODEL, "      if (at < free_at) {", "      if (at > free_at) {")),
    mutation("seed of a modelled device ignored", "LatencyModel.TheSeed*",
             (LATENCY_MODEL, "base::mix(base::mix(parameters.seed) + ordinal)", "base::mix(ordinal)")),

    # Traces
    mutation("trace empties a file that is none", "TraceTest.OtherFiles*",
             (TRACE, "if (found != 0 && (found != sizeof magic ||", "if (false && (found != sizeof magic ||")),
    mutation("two traces in one file", "TraceTest.OtherFiles*",
             (TRACE, "sys::syscall(SYS_flock, file, LOCK_EX | LOCK_NB) == -EWOULDBLOCK", "sys::syscall(SYS_flock, file, LOCK_UN) == -EWOULDBLOCK")),
    mutation("trace that cannot be written is tried again and again", "TraceTest.*",
             (TRACE, "if (stopped_.exchange(true, std::memory_order_relaxed)) return;", "")),
    mutation("limit on the size of files ignored by traces", "TraceTest.Without*",
             (TRACE, "    if (at + bytes <= sys::file_size_limit()) {", "    if (true) {")),
    mutation("rest of a queue's records not written", "TraceTest.Many*",
             (TRACE, "    write_records();\n    DecoratorQueue::do_close();", "    DecoratorQueue::do_close();")),
    mutation("child of fork writes into its parent's trace", "TraceTest.AChild*",
             (TRACE, " && process_ == sys::syscall(SYS_getpid);", ";")),
    mutation("traced error lost", "TraceTest.Records*",
             (TRACE, "static_cast<uint16_t>(inner.error)", "static_cast<uint16_t>(inner.error != EIO ? inner.error : 0)")),
    mutation("records of a trace not in order", "TraceReader.PutsThem*",
             (TRACE_READER, "return one.start_ns < other.start_ns;", "return one.offset_bytes < other.offset_bytes;")),
    mutation("gaps of a trace taken for records", "TraceReader.PutsThem*",
             (TRACE_READER, "    if (is_gap(records[i])) continue;\n", "")),
    mutation("record outside of the traced device accepted", "TraceReader.Refuses*",
             (TRACE_READER, "record.length_bytes > header.capacity_bytes - record.offset_bytes)", "record.offset_bytes + record.length_bytes > header.capacity_bytes)")),
    mutation("replay has two writes of the same bytes under way", "TraceTest.ReplaysTheSame",
             (TRACE_REPLAY, "      if (free != nullptr && !touched) return *free;", "      if (free != nullptr) return *free;")),
    mutation("replay is always as fast as it can be", "TraceTest.ReplaysInTime",
             (TRACE_REPLAY, "      if (timed_) wait_for_time(record);\n", "")),

    # Faults made on purpose
    mutation("forced error lost", "FaultTest.*",
             (FAULT, "      outer.error = forced_error;\n", "")),
    mutation("inner device's error lost", "Errors.*:LatencyTest.Results*",
             (DECORATOR, "    outer.error = slot.inner.error;\n", "")),
    mutation("write that fails reaches the medium", "FaultTest.AFailedWrite*",
             (FAULT, "(fault.error == 0 || fault.torn) && !(cut", "!(cut")),
    mutation("cut inside a segment forgotten", "FaultTest.CutsInside*",
             (FAULT, "      if (segment.iov_len > left) segment.iov_len = left;\n", "")),
    mutation("child's writes may be under way when it is gone", "Uring.WritesOfAChild*",
             ("src/storage/uring.cc", "    if (is_in_child_ && io.operation != Operation::kRead) {", "    if (false) {")),
    mutation("delays forgotten", "FaultTest.DelaysByPolls",
             (FAULT, "      if (slot->polls_left > 0) {", "      if (slot->polls_left > 1'000'000) {")),
]
