"""Breakages of src/capi/pages: files that are lost or kept, views and requests that are forgotten, gates that do not keep calls out."""

CACHE = "src/capi/pages/cache.cc"
FILE = "src/capi/pages/file.cc"
QUEUE = "src/capi/pages/queue.cc"
SESSION = "src/capi/pages/session.cc"


def mutation(name, *patches, test="capi_pagecache_test", gtest_filter="*"):
    return {"name": name, "test": (test, gtest_filter), "patches": list(patches)}


MUTATIONS = [
    # Caches
    mutation("a page cache closed under sessions", (CACHE, "    if (cache->sessions.count() + cache->queues.count() > 0)", "    if (cache->queues.count() > 0)")),
    mutation("a page cache closed under queues", (CACHE, "    if (cache->sessions.count() + cache->queues.count() > 0)", "    if (cache->sessions.count() > 0)")),
    mutation("what a page cache's close finds is not synced", (CACHE, "  const auto synced = sync_all(*cache);", "  const base::Expected<void> synced;")),
    mutation("a policy's name is not looked at", (CACHE, "    if (!policy) return std::unexpected(policy.error());\n    own.policy = *policy;", "    own.policy = policy.value_or(own.policy);")),
    mutation("what sessions that are gone were asked for is forgotten", (SESSION, "    session->cache->closed_counts += session->session.counts();\n", "")),

    # Files
    mutation("a file is one of two caches", (FILE, "{.store = true, .whole = true,", "{.whole = true,")),
    mutation("a file's end is left out", (FILE, "{.store = true, .whole = true,", "{.store = true,")),
    mutation("a file that ends in a page is longer for who reads it", ("src/pagecache/file.h", "                                 : device.end_bytes()),", "                                 : device.capacity_bytes()),")),
    mutation("an end that is short is a failed read", ("src/pagecache/session.cc", "io.offset_bytes + io.transferred_bytes >= end;", "io.whole();")),
    mutation("readers of a file keep each other out", (FILE, "    parameters.is_locked = true;  // readers", "    parameters.is_locked = false;  // readers")),
    mutation("a file that could not be made stays", (FILE, "  if (auto set = files.set_sizes(bytes); !set)", "  files.keep();\n  if (auto set = files.set_sizes(bytes); !set)")),
    mutation("a file that was made does not stay", (FILE, "  files.keep();\n", "")),
    mutation("a descriptor for reading is for writing", (FILE, "  if ((flags & O_ACCMODE) == O_RDONLY) given->read_only = 1;\n", "")),
    mutation("a file is removed under its requests", (FILE, "count += queue->slots[i].used_file.load(std::memory_order_relaxed) == &file;", "count += 0;")),
    mutation("a file is removed under views", (FILE, "index < session->view_counts.size() ? session->view_counts[index] : 0", "index < session->view_counts.size() && false ? session->view_counts[index] : 0")),
    mutation("sessions keep a file that is removed", (FILE, "    if (views == 0) session->session.leave(*file.file);\n", "")),

    mutation("a file with checksums is as large as its bytes", ("src/pagecache/file.h", "    return std::max(bytes, pages * page_bytes);", "    return bytes;")),
    mutation("a file that is to have checksums has none", (FILE, "{.checksums = options.checksums != 0}", "{}")),

    mutation("a file that could not be removed is left alone", (FILE, "    pagecache::Servers::take_up(*file.file);\n", "    static_cast<void>(0);\n")),

    # Sessions
    mutation("a file for reading only is written to", (SESSION, "  if (file->is_read_only) [[unlikely]]", "  if (false)")),
    mutation("a file of another cache is used", (SESSION, "  if (file->cache != session->cache) [[unlikely]]", "  if (false)")),
    mutation("a session of a page cache is closed under its views", (SESSION, "  if (session->view_count > 0)", "  if (false)")),
    mutation("a view is given back twice", (SESSION, "  view->holder = nullptr;\n}\n", "}\n")),
    mutation("a view is not given back", (SESSION, "  holder.view.reset();\n", "")),
    mutation("a view that is refused keeps its old bytes", (SESSION, "  view->holder = nullptr;\n  view->data_bytes = 0;\n", "")),

    # Queues
    mutation("the slot of a request is lost", (QUEUE, "  slot.of->free_slots.append(slot);\n", "")),
    mutation("requests of a later version are taken for this one's", (QUEUE, "(bytes + (at + group_count) * stride)", "(bytes + (at + group_count) * sizeof *requests)")),
    mutation("what was taken before the one at fault is not told", (QUEUE, "    at += group_count;\n", "    if (status == SPILLWAY_PAGECACHE_OK) at += group_count;\n")),
    mutation("a callback polls", (QUEUE, "  if (queue == nullptr || queue->is_polling) return 0;", "  if (queue == nullptr) return 0;")),
    mutation("a queue of a page cache is closed under its requests", (QUEUE, "  if (queue->is_polling || queue->queue.in_flight_count() > 0)", "  if (queue->is_polling)")),
    mutation("a poll leaves what tells of requests set", (QUEUE, "  if (queue->event.descriptor() >= 0) queue->event.clear();\n", "")),
    mutation("requests to write are requests to read", (QUEUE, "  slot.kind = request.kind == SPILLWAY_PAGECACHE_READ ?", "  slot.kind = true ?")),
]
