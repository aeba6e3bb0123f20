"""Breakages of src/capi, and of what the kv layer does for it: values that are lost, given back twice or too early, requests that end wrongly."""

CHANNEL = "src/task/channel.cc"
COMMON = "src/capi/common.cc"
IO_QUEUE = "src/task/io_queue.cc"
MAKE_AT = "src/kv/make_at.cc"
MULTI_GET = "src/kv/multi_get.cc"
QUEUE = "src/capi/kv/queue.cc"
REQUEST = "src/capi/kv/request.cc"
SESSION = "src/capi/kv/session.cc"
STORE = "src/capi/kv/store.cc"
STORE_FILES = "src/storage/opening/store_files.cc"
WORKERS = "src/capi/kv/workers.cc"


def mutation(name, *patches, test="capi_test", gtest_filter="*"):
    return {"name": name, "test": (test, gtest_filter), "patches": list(patches)}


MUTATIONS = [
    # Many keys at a time
    mutation("reads of many keys one after the other", (CHANNEL, "  if (batch_queue_ == nullptr && batch.size() > 1) {", "  if (false) {"), test="kv_test", gtest_filter="MultiGetTest.*"),
    mutation("a task goes on after the first of its Ios", (IO_QUEUE, "    if (--wait.left_count_ == 0) wake", "    if (wait.left_count_ > 0 && (wait.left_count_ = 0, true)) wake"), test="task_test", gtest_filter="*IoQueueTest.ATaskWaits*"),
    mutation("many keys are read however long their records are", (MULTI_GET, "    if (bytes > bytes_most && count > 0) break;\n", ""), test="kv_test", gtest_filter="MultiGetTest.OnlyAsMany*"),
    mutation("a damaged record of many is the value", (MULTI_GET, "record, result->record_) != Reading::kWhole ||", "record, result->record_) == Reading::kPart ||"), test="kv_test", gtest_filter="MultiGetTest.*"),
    mutation("an expired value of many is found", (MULTI_GET, "  if (store.lifetimes_.has_ended(result->record_))\n", "  if (false)\n"), test="kv_test", gtest_filter="MultiGetTest.*"),
    mutation("an error of a read of many is not told", (MULTI_GET, "  if (!io.whole()) {", "  if (false) {"), test="kv_test", gtest_filter="MultiGetTest.*"),

    mutation("the head of a large value is the value", (MULTI_GET, "result->record_.header.kind() != RecordKind::kValue", "false")),

    # Values
    mutation("a value's memory given back at once", (SESSION, "      holder->found = std::move(*found);", "      { const kv::Found gone = std::move(*found); }")),
    mutation("a session closed under values", (SESSION, "  if (session->held_count > 0)", "  if (false)")),
    mutation("a value given back twice", (SESSION, "    value->holder = nullptr;\n", "")),
    mutation("a value copied beyond the buffer", (REQUEST, "  if (bytes > request.buffer_bytes) {", "  if (bytes > request.buffer_bytes + 1) {")),
    mutation("the first piece of a value only", (REQUEST, "    to += part.size();\n", "")),
    mutation("the last error of many is told", (SESSION, "    if (result == SPILLWAY_KV_OK) result = refuse(&session, found.error());", "    result = refuse(&session, found.error());\n    result = SPILLWAY_KV_OK;")),

    mutation("changes that were not begun keep what their caller had as a version", (SESSION, "        change->version = 0;\n", "")),

    mutation("a writer goes on after it has failed", ("src/capi/kv/large.cc", "  if (writer->has_failed)\n", "  if (false)\n")),
    mutation("a session closed under a writer", ("src/capi/kv/large.cc", "  ++session->held_count;\n", "  session->held_count += 0;\n")),

    # Structs of other versions
    mutation("members past a struct's end read", (COMMON, "  memcpy(own, from, std::min(bytes, own_bytes));", "  memcpy(own, from, own_bytes);")),
    mutation("what is not known is not refused", (COMMON, "    if (from[at] != 0)", "    if (false)")),

    # Devices
    mutation("two openers of one store", (STORE, "{.store = true, .read_only = own->read_only}", "{.read_only = own->read_only}")),
    mutation("a store made over another", (MAKE_AT, "    if (!path->empty()) return has_content(*path, options);\n", ""), (MAKE_AT, "    if (*content) return has_content(device.name(), options);\n", "")),
    mutation("a store made without a lock", (STORE_FILES, "auto locked = lock_for_store(path, opened.get());", "auto locked = base::Expected<void>();"), (MAKE_AT, "{.store = true, .is_locked = true}", "{.store = true}")),
    mutation("a file that somebody else has made is removed", (STORE_FILES, "    files_[count_++].was_made = is_missing && facts.stx_size == 0;", "    files_[count_++].was_made = true;")),
    mutation("a store made in a file that has gone", (STORE_FILES, "    if (!is_at(path, facts)) continue;\n", ""), test="storage_test", gtest_filter="StoreFilesTest.*"),
    mutation("the name of a new store's file is left to the kernel", (STORE_FILES, "is_missing ? sys::sync_name(path.text.view()) : 0;", "0;"), test="storage_test", gtest_filter="StoreFilesTest.*"),
    mutation("a store's files as they are found", (MAKE_AT, "  if (auto set = files.set_sizes(capacity_bytes); !set) return std::unexpected(set.error());\n", "")),
    mutation("a store that is made is undone", (MAKE_AT, "  if (made) files.keep();\n", "")),
    mutation("a refused store's file stays", (STORE_FILES, "    if (file.was_made && is_at", "    if (false && is_at")),
    mutation("a new file that cannot be locked stays", (STORE_FILES, "      if (is_missing && !is_others", "      if (false && !is_others"), test="storage_test", gtest_filter="StoreFilesTest.*"),
    mutation("what was moved there meanwhile is removed", (STORE_FILES, "    if (file.was_made && is_at(path, facts))", "    if (file.was_made)"), test="storage_test", gtest_filter="StoreFilesTest.*"),
    mutation("a capacity wraps around", (STORE_FILES, "  if (capacity_bytes > kMax)\n", "  if (false)\n"), test="storage_test", gtest_filter="StoreFilesTest.*"),
    mutation("a member's part is all of the stripe", (STORE_FILES, "(bytes + node.child_count - 1) / node.child_count", "bytes")),
    mutation("a store closed under sessions", (STORE, "    if (store->user_count > 0)", "    if (false)")),

    # Queues
    mutation("requests of a key in any order", (WORKERS, ".high % executors_.count())", ".high * 0 + (reinterpret_cast<uintptr_t>(&request) / sizeof(Request)) % executors_.count())"), test="capi_threads_test"),
    mutation("what is left after a poll is not told", (QUEUE, "  if (!queue->done.empty()) queue->tell_done();\n", "")),
    mutation("a poll leaves the event set", (QUEUE, "    event.clear();\n", "")),
    mutation("a poll that waits is not told that nothing is under way any more", (QUEUE, "  if (--pending_count == 0) changed.notify_all();\n", "  --pending_count;\n"), test="capi_threads_test", gtest_filter="ThreadsTest.PollsEnd*"),
    mutation("a queue closed under requests", (QUEUE, "    if (queue->unfinished_count > 0)", "    if (false)")),
    mutation("the list of pieces is not copied", (QUEUE, "  slot->pieces = {slot->own_pieces, piece_count};", "  slot->pieces = {pieces, piece_count};")),
]
