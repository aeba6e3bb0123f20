"""Breakages of src/pagecache: ways, sets, and what sessions do with them."""

CACHE = "src/pagecache/page_cache.cc"
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
    mutation("two ways have one frame", (CACHE, "give_frame(next++);", "give_frame(next++ / 2);"), gtest_filter="*PolicyTest.*"),

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
    mutation("pages of other files leave with one", (SYNC, "      if (!file.has(way.key())) continue;\n", "      if (way.is_free()) continue;\n")),
    mutation("a file leaves that others use", (SYNC, "others != 0)", "false)")),
    mutation("an error of a write is not told", (SYNC, "    if (channel && !io.whole() && result)", "    if (false)")),
]
