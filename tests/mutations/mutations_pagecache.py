"""Breakages of src/pagecache: ways, sets, and what sessions do with them."""

PARTITION = "src/pagecache/partition.cc"
PARTITION_H = "src/pagecache/partition.h"
RESIZE = "src/pagecache/session_resize.cc"
QUEUE = "src/pagecache/request_queue.cc"
SERVERS = "src/pagecache/servers.cc"
SESSION = "src/pagecache/session.cc"
SET = "src/pagecache/page_set.h"
SYNC = "src/pagecache/session_sync.cc"
WAY = "src/pagecache/way.h"


def mutation(name, *patches, test="pagecache_test", gtest_filter="SessionTest.*"):
    return {"name": name, "test": (test, gtest_filter), "patches": list(patches)}


MUTATIONS = [
    # Ways
    mutation("who looks for another page holds this one", (WAY, "if ((before & (kResident | kExclusive)) == kResident && this->key() == key) return true;", "if ((before & (kResident | kExclusive)) == kResident) return true;"), gtest_filter="WayTest.*"),
    mutation("who writes does not keep others from reading", (WAY, "if ((before & (kResident | kExclusive)) == kResident && this->key() == key) return true;", "if ((before & kResident) != 0 && this->key() == key) return true;"), gtest_filter="WayTest.*"),
    mutation("a page that somebody reads leaves", (WAY, "    uint64_t clean = (get() & kFrame) | kResident;", "    uint64_t clean = (get() & (kFrame | kReaders)) | kResident;"), gtest_filter="WayTest.*"),
    mutation("a page that is dirty leaves", (WAY, "    uint64_t clean = (get() & kFrame) | kResident;", "    uint64_t clean = (get() & (kFrame | kDirty)) | kResident;"), gtest_filter="WayTest.*"),
    mutation("two write to a page", (WAY, "(word & (kResident | kExclusive)) == kResident;) {", "(word & kResident) != 0;) {"), gtest_filter="WayTest.*"),
    mutation("a page is clean that was written meanwhile", (WAY, "  void cleaned() { CHECK((word_.fetch_and(~kIo) & kIo) != 0); }", "  void cleaned() { CHECK((word_.fetch_and(~(kIo | kDirty)) & kIo) != 0); }"), gtest_filter="WayTest.*"),
    mutation("a page is copied that is being written", (WAY, "(word & (kDirty | kExclusive | kIo)) == kDirty;) {", "(word & (kDirty | kIo)) == kDirty;) {"), gtest_filter="WayTest.*"),
    mutation("a page that could not be written is clean", (WAY, "(word | kDirty) & ~kIo)) {", "word & ~kIo)) {")),

    # Sets
    mutation("the last ways of a set are not looked at", (SET, "    for (uint32_t i = 0; i < kWaysMost / 4; ++i) {", "    for (uint32_t i = 0; i < kWaysMost / 4 - 1; ++i) {"), gtest_filter="PageSetTest.*"),
    mutation("the tag of a free way is looked for", (SET, "    return tag != 0 ? tag : 1;", "    return tag;"), gtest_filter="PageSetTest.*"),
    mutation("who waits is not told", (SET, "    if (waits_.load() != 0) wake_all(layout);", "    static_cast<void>(layout);"), gtest_filter="SessionTasksTest.*"),
    mutation("who gives up stays in the list", (SET, "      return waiters_.remove(*this);", "      return true;"), gtest_filter="PageSetTest.*"),
    mutation("two ways have one frame", (PARTITION, "      frame = next_frame_++;", "      frame = 1 + next_frame_++ / 2;"), gtest_filter="*PolicyTest.*"),

    # What comes
    mutation("a page that is written in part is not read", (SESSION, "    const bool is_whole = part.bytes == page_bytes_in(file, part.page);", "    const bool is_whole = true;"), gtest_filter="*PolicyTest.*"),
    mutation("a page that is written as a whole is read", (SESSION, "    const bool is_whole = part.bytes == page_bytes_in(file, part.page);", "    const bool is_whole = false;")),
    mutation("who writes does not wait for readers", (SESSION, "      if (use != Use::kShare)\n", "      if (false)\n")),
    mutation("a page counts that could not be read", (SESSION, "  if (!io.whole()) {\n    end_failed_load(place);", "  if (false) {\n    end_failed_load(place);")),
    mutation("a page of many counts that could not be read", (SESSION, "    if (!io.whole()) {\n      end_failed_load(claimed", "    if (false) {\n      end_failed_load(claimed")),
    mutation("pages that have to wait are left out", (SESSION, "  for (size_t i = 0; result && i < later.size(); ++i) result = read_part(file, later[i], to);\n", "")),
    mutation("a session keeps files that it has left", (SESSION, "  file.session_count_.fetch_sub(1, std::memory_order_relaxed);\n", "")),
    mutation("a page is read past the file's end", (SESSION, "  return std::min(page_bytes, file.bytes() - page * page_bytes);", "  return page_bytes;")),

    # What leaves
    mutation("pages that follow each other are written one by one", (SYNC, "places[end].page == places[end - 1].page + 1", "false")),
    mutation("pages that do not follow each other are written as if", (SYNC, "places[end].page == places[end - 1].page + 1", "true"), gtest_filter="*PolicyTest.*"),
    mutation("sync does not flush", (SYNC, "  (*channel)->run(io);\n  if (io.error == 0) return {};", "  if (io.error == 0) return {};")),
    mutation("a flush that failed is forgotten", (SYNC, "  file.flush_error_.store(io.error, std::memory_order_relaxed);\n", "")),
    mutation("pages of other files leave with one", (SYNC, "      if (!file.has(way.key())) continue;\n", "      if (way.key() == PageKey::kNone) continue;\n")),
    mutation("a file leaves that others use", (SYNC, "others != 0)", "false)")),
    mutation("an error of a write is not told", (SYNC, "    if (channel && !io.whole() && result)", "    if (false)")),

    # Resizing
    mutation("a page that moves is clean", (WAY, "word & (kFrame | kDirty | kResident)", "word & (kFrame | kResident)"), gtest_filter="WayTest.*"),
    mutation("a page is in two ways after it has moved", (WAY, "    const uint64_t word = word_.fetch_and(kReaders);", "    const uint64_t word = word_.fetch_and(~kExclusive);"), gtest_filter="WayTest.*"),
    mutation("whether a set is a page's home is not looked at again", (PARTITION, "    if (&home_of(key).set == &home.set) return home;", "    return home;"), gtest_filter="*PartitionTest.TheHome*"),
    mutation("whether a set is a page's home is not looked at again, by many threads", (PARTITION, "    if (&home_of(key).set == &home.set) return home;", "    return home;"), test="pagecache_threads_test", gtest_filter="*"),
    mutation("a page moves that somebody reads", (PARTITION, "  if (!way.has_readers() && !way.is_io()) return true;", "  if (!way.is_io()) return true;"), gtest_filter="*PartitionTest.*"),
    mutation("a page moves that is being cleaned", (PARTITION, "  if (!way.has_readers() && !way.is_io()) return true;", "  if (!way.has_readers()) return true;"), gtest_filter="*PartitionTest.*"),
    mutation("a page moves that is being written or loaded", (PARTITION, "  if (!way.try_exclude(way.key())) return false;", "  static_cast<void>(way.try_exclude(way.key()));"), gtest_filter="*PartitionTest.*"),
    mutation("who cannot move all pages keeps others from the rest", (PARTITION, "      way(from, static_cast<uint32_t>(std::countr_zero(moving))).unexclude();\n", "      static_cast<void>(moving);\n"), gtest_filter="*PartitionTest.*"),
    mutation("a split is published before its pages can move", (PARTITION, "&to = set_at(then.count - 1);\n", "&to = set_at(then.count - 1);\n  sets_.store(then, std::memory_order_relaxed);\n"), gtest_filter="*PartitionTest.*"),
    mutation("a merge is published before its pages can move", (PARTITION, "&to = set_at(parent_of(then.count));\n", "&to = set_at(parent_of(then.count));\n  sets_.store(then, std::memory_order_relaxed);\n"), gtest_filter="*PartitionTest.*"),
    mutation("pages do not move with their homes", (PARTITION, "    move_page(from, static_cast<uint32_t>(std::countr_zero(moving)), to);", "    way(from, static_cast<uint32_t>(std::countr_zero(moving))).unexclude();"), gtest_filter="*PartitionTest.*"),
    mutation("frames of a set that is merged are lost", (PARTITION, "free.is_free())\n", "false)\n"), gtest_filter="*PartitionTest.*"),
    mutation("who waits is not told that its page has another home", (PARTITION, "  from.changed(layout_);\n", ""), gtest_filter="*ResizeTest.*lsewhere/lru"),
    mutation("who waits is not told that another set was merged", (PARTITION, "  to.changed(layout_);\n", ""), gtest_filter="*ResizeTest.*OfAnotherSet*/lru"),
    mutation("who waits is not told of new frames", (PARTITION, "    give(set, count);\n  }\n  set.changed(layout_);\n", "    give(set, count);\n  }\n"), gtest_filter="*ResizeTest.WhoWaitsIsToldOfNew*/lru"),
    mutation("a policy does not know of pages that came from another set", (PARTITION, "  to.on_insert(layout_, target);\n", ""), gtest_filter="*PartitionTest.*"),
    mutation("a policy does not know of pages that went to another set", (PARTITION, "  forget(from, index);\n", ""), gtest_filter="*PartitionTest.*"),
    mutation("a sync goes from set to set", (PARTITION_H, "    const uint32_t index = sets().index_of(hash);", "    const uint32_t index = hash;"), (PARTITION_H, "      if (sets().index_of(hash) != index) continue;\n", ""), (PARTITION_H, "    uint32_t bit = mask", "    if (++hash >= sets().count) return;\n    if (hash != 0) continue;\n    uint32_t bit = mask"), gtest_filter="*PartitionTest.AWalk*"),
    mutation("a sync goes from set to set, while sets are merged", (PARTITION_H, "    const uint32_t index = sets().index_of(hash);", "    const uint32_t index = hash;"), (PARTITION_H, "      if (sets().index_of(hash) != index) continue;\n", ""), (PARTITION_H, "    uint32_t bit = mask", "    if (++hash >= sets().count) return;\n    if (hash != 0) continue;\n    uint32_t bit = mask"), test="pagecache_threads_test", gtest_filter="ResizeThreadsTest.*"),
    mutation("a sync takes all sets for whole ones", (PARTITION_H, "      mask = sets().mask_of(index);", "      mask = sets().mask >> 1;"), gtest_filter="*PartitionTest.AWalk*"),
    mutation("a sync looks into a set that is merged by now", (PARTITION_H, "      if (sets().index_of(hash) != index) continue;\n", ""), gtest_filter="*PartitionTest.AWalkLooks*"),
    mutation("frames that leave keep their memory", (PARTITION, "    sys::release(frame_at(spare_frames_[end - 1]), (end - begin) << page_shift_);\n", ""), gtest_filter="*ResizeTest.*"),
    mutation("frames that are used give their memory back", (PARTITION, "spare_frames_[end] == spare_frames_[end - 1] - 1", "spare_frames_[end] != 0"), gtest_filter="*ResizeTest.*:*PartitionTest.*"),
    mutation("frames at the end are not replaced", (RESIZE, "  partition().compact();\n", ""), gtest_filter="*ResizeTest.*"),
    mutation("a page does not come along to another frame", (PARTITION, "  memcpy(frame_at(other), frame(way), uint64_t{1} << page_shift_);\n", ""), gtest_filter="*PartitionTest.*"),
    mutation("a page goes to another frame while it is held", (PARTITION, "  if (!hold(way)) return false;", "  static_cast<void>(way.try_exclude(way.key()));"), gtest_filter="*PartitionTest.*"),
    mutation("two change the size at a time", (RESIZE, "  if (!partition().begin_resize())", "  static_cast<void>(partition().begin_resize());\n  if (false)"), gtest_filter="*ResizeTest.OneAtATime/lru"),
    mutation("who fails to change the size keeps others from it", (RESIZE, "  partition().end_resize();\n", "  if (done) partition().end_resize();\n"), gtest_filter="*ResizeTest.*"),
    mutation("a set gives its frames before it is known whether it can", (RESIZE, "is_held() ? Partition::Claim::kHeld : ", ""), gtest_filter="*ResizeTest.*"),
    mutation("sets are merged that have too many frames", (RESIZE, "kWaysMost / 2); !taken)", "kWaysMost); !taken)"), gtest_filter="*ResizeTest.*"),
    mutation("a page that cannot be written does not stop a shrink", (RESIZE, "      if (auto cleaned = clean(set, index); !cleaned) return cleaned;", "      static_cast<void>(clean(set, index));"), gtest_filter="*ResizeTest.*"),
    # Requests
    mutation("more requests are under way than may be", (QUEUE, "taken < requests.size() && in_flight_count_ < most_;", "taken < requests.size();"), gtest_filter="RequestQueueTest.*"),
    mutation("a message that is full waits", (QUEUE, "    if (outgoing_.count() == kMessageRequests) send();\n", ""), gtest_filter="RequestQueueTest.*"),
    mutation("a message that is not full waits for as long as others end", (QUEUE, "  if (count == 0 || ++poll_count_ >= kPollsMost) send();", "  if (count == 0) send();"), gtest_filter="RequestQueueTest.*"),
    mutation("a request that is used again keeps its error", (QUEUE, "      request.result = {};\n", ""), gtest_filter="RequestQueueTest.*"),
    mutation("a callback runs in submit", (QUEUE, "      ended_here_.append(request);\n", "      ended_here_.append(request);\n      deliver();\n"), gtest_filter="RequestQueueTest.*"),
    mutation("a queue is closed under its requests", (QUEUE, "  while (in_flight_count_ != 0) wait();\n", ""), gtest_filter="RequestQueueTest.CloseWaitsForWhatIsUnderWay"),
    mutation("who writes at once does not wait for readers", (SESSION, "  if (!is_drained_soon(held)) {", "  if (false) {"), gtest_filter="RequestQueueTest.*"),
    mutation("servers keep files that they are to leave", (SERVERS, "    lane.session.leave(*request.file);\n", ""), gtest_filter="RequestQueueTest.*"),
]
