"""Breakages of src/pagecache: ways, sets, and what sessions do with them."""

BALANCER = "src/pagecache/balancer.cc"
BALANCER_H = "src/pagecache/balancer.h"
CACHE = "src/pagecache/page_cache.cc"
CACHE_H = "src/pagecache/page_cache.h"
FILE = "src/pagecache/file.cc"
FILE_H = "src/pagecache/file.h"
FLUSHES = "src/pagecache/flush_queue.cc"
PARTITION = "src/pagecache/partition.cc"
PARTITION_H = "src/pagecache/partition.h"
RESIZE = "src/pagecache/session_resize.cc"
QUEUE = "src/pagecache/request_queue.cc"
SERVERS = "src/pagecache/servers.cc"
SESSION = "src/pagecache/session.cc"
SESSION_H = "src/pagecache/session.h"
SET = "src/pagecache/page_set.h"
SET_CC = "src/pagecache/page_set.cc"
SYNC = "src/pagecache/session_sync.cc"
WAY = "src/pagecache/way.h"


def mutation(name, *patches, test="pagecache_test", gtest_filter="SessionTest.*"):
    return {"name": name, "test": (test, gtest_filter), "patches": list(patches)}


MUTATIONS = [
    # Ways
    mutation("who looks for another page holds this one", (WAY, "if ((before & (kResident | kExclusive)) == kResident && this->key() == key) return true;", "if ((before & (kResident | kExclusive)) == kResident) return true;"), gtest_filter="WayTest.*"),
    mutation("a page has room for few readers", (WAY, "kReaders = (1 << 26) - 1;", "kReaders = (1 << 16) - 1;"), (WAY, "kExclusive = 1 << 26;", "kExclusive = 1 << 16;"), gtest_filter="WayTest.HasRoom*"),
    mutation("who writes does not keep others from reading", (WAY, "if ((before & (kResident | kExclusive)) == kResident && this->key() == key) return true;", "if ((before & kResident) != 0 && this->key() == key) return true;"), gtest_filter="WayTest.*"),
    mutation("a page that somebody reads leaves", (WAY, "    uint64_t clean = (get() & kFrame) | kResident;", "    uint64_t clean = (get() & (kFrame | kReaders)) | kResident;"), gtest_filter="WayTest.*"),
    mutation("a page that is dirty leaves", (WAY, "    uint64_t clean = (get() & kFrame) | kResident;", "    uint64_t clean = (get() & (kFrame | kDirty)) | kResident;"), gtest_filter="WayTest.*"),
    mutation("two write to a page", (WAY, "(word & (kResident | kExclusive)) == kResident;) {", "(word & kResident) != 0;) {"), gtest_filter="WayTest.*"),
    mutation("a page is clean that was written meanwhile", (WAY, "  void cleaned() { CHECK((word_.fetch_and(~kIo) & kIo) != 0); }", "  void cleaned() { CHECK((word_.fetch_and(~(kIo | kDirty)) & kIo) != 0); }"), gtest_filter="WayTest.*"),
    mutation("a page is copied that is being written", (WAY, "(word & (kDirty | kExclusive | kIo)) == kDirty;) {", "(word & (kDirty | kIo)) == kDirty;) {"), gtest_filter="WayTest.*"),
    mutation("a page that could not be written is clean", (WAY, "(word | kDirty) & ~kIo)) {", "word & ~kIo)) {")),
    mutation("a page whose write has just failed is taken for written", (WAY, "  bool is_unsaved() const { return (get() & (kDirty | kIo)) != 0; }", "  bool is_unsaved() const { return is_dirty() || is_io(); }"), gtest_filter="WayTest.*"),

    # Sets
    mutation("the last ways of a set are not looked at", (SET, "    for (uint32_t i = 0; i < kMaxWays / 4; ++i) {", "    for (uint32_t i = 0; i < kMaxWays / 4 - 1; ++i) {"), gtest_filter="PageSetTest.*"),
    mutation("the tag of a free way is looked for", (SET, "    return tag != 0 ? tag : 1;", "    return tag;"), gtest_filter="PageSetTest.*"),
    mutation("who waits is not told", (SET, "    if (waits_.load() != 0) wake_all(layout);", "    static_cast<void>(layout);"), gtest_filter="SessionTasksTest.*"),
    mutation("who gives up stays in the list", (SET, "      return waiters_.remove(*this);", "      return true;"), gtest_filter="PageSetTest.*"),
    mutation("two ways have one frame", (PARTITION, "      frame = next_frame_++;", "      frame = 1 + next_frame_++ / 2;"), gtest_filter="*PolicyTest.*"),

    # What comes
    mutation("a page that is written in part is not read", (SESSION, "    const bool is_whole = part.bytes == file.data_bytes_of(part.page);", "    const bool is_whole = true;"), gtest_filter="*PolicyTest.*"),
    mutation("a page that is written as a whole is read", (SESSION, "    const bool is_whole = part.bytes == file.data_bytes_of(part.page);", "    const bool is_whole = false;")),
    mutation("who writes does not wait for readers", (SESSION, "      if (use != Use::kShare)\n", "      if (false)\n")),
    mutation("a page counts that could not be read", (SESSION, "  if (is_read && !is_damaged) return {};", "  if (!is_damaged) return {};")),
    mutation("one of many pages that could not be read is not told of", (SESSION, "      else if (result)\n        result = read;\n", "")),
    mutation("pages that have to wait are left out", (SESSION, "    result = read_part(file, later[i].part, later[i].to, false);\n", "    result = {};\n")),
    mutation("neighbours are read one by one", (SESSION, "if (i == 0 || page != claimed[i - 1].part.page + 1) {", "if (true) {"), gtest_filter="SessionTest.*"),
    mutation("what is no neighbour is read with it", (SESSION, "if (i == 0 || page != claimed[i - 1].part.page + 1) {", "if (i == 0) {"), gtest_filter="SessionTest.*"),
    mutation("neighbours of a page that cannot be read are not read either", (SESSION, "io.error != 0 && io.segment_count > 1", "false"), gtest_filter="SessionTest.*"),
    mutation("a session keeps files that it has left", (SESSION, "  file.session_count_.fetch_sub(1, std::memory_order_relaxed);\n", "")),
    mutation("a page is read past the file's end", (FILE_H, "    return std::min(page_bytes(), device_.capacity_bytes() - device_offset_of(page));", "    return page_bytes();")),

    # Pages that are dirty for long
    mutation("pages do not age", (WAY, "  bool age() { return is_dirty() && (word_.fetch_or(kAged) & kAged) != 0; }", "  bool age() { return false; }"), gtest_filter="WayTest.*:AgeTest.*"),
    mutation("a page is old as soon as it is dirty", (WAY, "  bool age() { return is_dirty() && (word_.fetch_or(kAged) & kAged) != 0; }", "  bool age() { return is_dirty(); }"), gtest_filter="WayTest.*"),
    mutation("a page that was written is still old", (WAY, "((word & ~(kDirty | kAged)) | kIo) + 1", "((word & ~kDirty) | kIo) + 1"), gtest_filter="WayTest.*"),
    mutation("nobody cleans a page that is old", (WAY, "(word_ & ~(kFrame | kAged)) == (kResident | kDirty)", "(word_ & ~kFrame) == (kResident | kDirty)"), gtest_filter="WayTest.*"),
    mutation("old pages are not written", (SERVERS, "    count_flushed(executor, executor.session.flush({keys.begin(), keys.end()}));\n", ""), gtest_filter="AgeTest.*"),
    mutation("more files than a worker polls are not written", ("src/task/channel.cc", "  if (!opened && opened.error().number == ENOSPC) return open_for_threads(device);\n", ""), gtest_filter="AgeTest.AnyNumber*"),
    mutation("what moves is old", (WAY, "    other.word_.fetch_add(word & (kFrame | kDirty | kResident));", "    other.word_.fetch_add(word & (kFrame | kDirty | kResident | kAged));"), gtest_filter="WayTest.*"),
    mutation("old pages of a file that was left are written", (SYNC, "  cache_->keep_flushed(keys);\n", ""), gtest_filter="AgeTest.*"),
    mutation("who closes servers waits for the next look", (SERVERS, "    is_to_end_sweeps_.release();\n", ""), gtest_filter="AgeTest.ServersCloseWhileTheyWait"),
    mutation("pages age though nobody asked for it", (SERVERS, "index == 0 && cache_.options().dirty_ns_max != 0;", "index == 0;"), gtest_filter="AgeTest.*"),

    # Checksums
    mutation("a page that is read is not checked", (SESSION, "file.has_checksums() && !file.is_intact(place.page, bytes);", "false;"), gtest_filter="CheckedFileTest.*"),
    mutation("a page is written without its checksum", (SYNC, "  if (file.has_checksums())\n", "  if (false)\n"), gtest_filter="CheckedFileTest.*"),
    mutation("all pages of a write have the checksum of its first place", (SYNC, "      file.seal(places[i].page, ", "      file.seal(places[0].page, "), gtest_filter="CheckedFileTest.*"),
    mutation("a checksum is not its place's", (FILE, "base::checksum(bytes, page_data_bytes()) ^ base::mix(page)", "base::checksum(bytes, page_data_bytes()) ^ base::mix(page * 0)"), gtest_filter="*FileTest.*"),
    mutation("a checksum is not that of a page's last bytes", (FILE, "base::checksum(bytes, page_data_bytes())", "base::checksum(bytes, page_data_bytes() - 8)"), gtest_filter="FileTest.*"),
    mutation("any page without a checksum was never written", (FILE, "  if (checksum != 0) return false;\n", "  return checksum == 0;\n"), gtest_filter="FileTest.*"),
    mutation("all bytes the same are zeros", (FILE, "bytes[0] == std::byte{0} && memcmp", "memcmp"), gtest_filter="FileTest.*"),
    mutation("the bytes of a file with checksums overlap", (FILE_H, "    return {offset / data_bytes(page_shift_), offset % data_bytes(page_shift_)};", "    return {offset / data_bytes(page_shift_), offset % (data_bytes(page_shift_) - 8)};"), gtest_filter="*FileTest.*"),
    mutation("a file with checksums ends where its device does", (FILE_H, "options.checksums ? (device.end_bytes() >> page_shift) * data_bytes(page_shift)\n", "options.checksums ? device.capacity_bytes()\n"), gtest_filter="*FileTest.*"),
    mutation("a page that is written as a whole is read, with checksums", (FILE_H, "    return has_checksums_ ? data_bytes(page_shift_) : std::min(page_bytes(), bytes_ - device_offset_of(page));", "    return device_bytes_of(page);"), gtest_filter="CheckedFileTest.*"),
    mutation("a page that is damaged stays", (SESSION, "  end_failed_load(place);\n  if (!is_damaged)", "  if (!is_damaged) end_failed_load(place);\n  if (!is_damaged)"), gtest_filter="CheckedFileTest.*"),

    # What leaves
    mutation("pages that follow each other are written one by one", (SYNC, "places[end].page == places[end - 1].page + 1", "false")),
    mutation("pages that do not follow each other are written as if", (SYNC, "places[end].page == places[end - 1].page + 1", "true"), gtest_filter="*PolicyTest.*"),
    mutation("sync does not flush", (SYNC, "    (*channel)->run(io);\n    return io.error;", "    return io.error;")),
    mutation("a flush that failed is forgotten", (SYNC, "if (const int error = file.flushes_.error(); error != 0)", "if (const int error = 0; error != 0)"), ("src/task/flush_group.h", "error() != 0 ? error() : flush()", "flush()")),
    mutation("a sync is told of its own flush alone", ("src/task/flush_group.h", "error() != 0 ? error() : flush()", "flush()"), gtest_filter="SessionSyncTest.*"),
    mutation("pages of other files leave with one", (SYNC, "      if (!file.has(way.key())) continue;\n", "      if (way.key() == PageKey::kNone) continue;\n")),
    mutation("a file leaves that others use", (SYNC, "others != 0)", "false)")),
    mutation("an error of a write is not told", (SYNC, "    if (channel && !io.whole() && result)", "    if (false)")),

    # What is flushed
    mutation("to predict what leaves changes it", (SET_CC, "reinterpret_cast<Policy*>(copy)", "reinterpret_cast<Policy*>(bytes)"), gtest_filter="*PredictionTest.*"),
    mutation("the same page is predicted to leave again", (SET_CC, "policy.pick_victim(spared | victims)", "policy.pick_victim(spared)"), gtest_filter="*PredictionTest.*"),
    mutation("pages are flushed though there are free frames", (PARTITION, "choice.spared, misses - choice.free_count)", "choice.spared, misses)"), gtest_filter="*PartitionTest.Dirty*"),
    mutation("pages are flushed that would leave last", (PARTITION, "  return dirty_victims(set, choice, choice.frame_count / 2);", "  return dirty_victims(set, choice, choice.frame_count);"), gtest_filter="*PartitionTest.Dirty*"),
    mutation("clean pages are flushed", (PARTITION, "misses - choice.free_count) & choice.dirty;", "misses - choice.free_count);"), gtest_filter="*PartitionTest.Dirty*"),
    mutation("a set is flushed when its next page is dirty, not before", (PARTITION, "choice.frame_count / 4) != 0", "1) != 0"), gtest_filter="*PartitionTest.Dirty*"),
    mutation("a page that is being cleaned makes the next one leave", (PARTITION, " && !at.is_io())", ")"), gtest_filter="*PartitionTest.Dirty*"),
    mutation("a set is in the queue twice", (FLUSHES, "server_ == nullptr || set.is_queued() ||", "server_ == nullptr ||"), (FLUSHES, "  if (!is_open_for(set)) return;\n", ""), gtest_filter="FlushQueueTest.*"),
    mutation("a set that was flushed is not queued again", (FLUSHES, "  set.set_queued(false);\n", ""), gtest_filter="FlushQueueTest.*"),
    mutation("a full queue takes sets", (FLUSHES, " || count_ == kMaxSets) return;", ") return;"), gtest_filter="FlushQueueTest.*"),
    mutation("one executor flushes what there is for many", (FLUSHES, "count_ <= working_count_ * kBatchSets", "working_count_ != 0"), gtest_filter="FlushQueueTest.*"),
    mutation("an executor that has flushed all is not started again", (FLUSHES, "  idle_executors_ |= uint64_t{1} << executor;\n", ""), gtest_filter="FlushQueueTest.*"),
    mutation("servers are closed while they flush", (FLUSHES, "      if (working_count_ == 0) break;", "      break;"), gtest_filter="FlushQueueTest.*"),
    mutation("servers that are closed flush what there is", (FLUSHES, "    while (count_ != 0) take_first();\n", ""), gtest_filter="FlushQueueTest.*"),
    mutation("an executor flushes once", (SERVERS, "  start_flush(index);\n}", "}"), gtest_filter="SessionFlushTest.PagesThat*"),
    mutation("a file is flushed that servers have left", (CACHE, "file == nullptr || file->is_left_.load(std::memory_order_relaxed)", "file == nullptr"), gtest_filter="SessionFlushTest.AFile*"),
    mutation("a file that servers have come back to is not flushed", (SERVERS, "  if (request.file->is_left_.load(std::memory_order_relaxed)) take_up(*request.file);\n", ""), gtest_filter="SessionFlushTest.AFile*"),
    mutation("a file is left while it is flushed", (SERVERS, "    static_cast<void>(executor.may_flush.acquire({.cancellable = false}));\n    executor.session.leave", "    executor.session.leave"), gtest_filter="SessionFlushTest.AFileIsLeft*"),
    mutation("a miss has no set flushed", (SESSION, "  if (is_to_flush) cache_->flushes_.put(home.set);\n", "  static_cast<void>(is_to_flush);\n"), gtest_filter="SessionFlushTest.PagesThat*"),
    mutation("a write has no set flushed", (SESSION_H, "    if (cache_->has_many_dirty()) cache_->flushes_.put(*held.set);\n", ""), gtest_filter="SessionFlushTest.RunsOf*"),
    mutation("pages are flushed that leave next, however many are dirty", (SYNC, "    if (cache_->has_many_dirty()) ways |=", "    if (false) ways |="), gtest_filter="SessionFlushTest.RunsOf*"),
    mutation("who writes makes any number of pages dirty", (SESSION, "    if (!written(*held)) clean_first(*held->set);", "    static_cast<void>(written(*held));"), gtest_filter="SessionFlushTest.WhoOnly*"),
    mutation("who updates makes any number of pages dirty", (SESSION_H, "    if (!written(*held)) clean_first(*held->set);", "    static_cast<void>(written(*held));"), gtest_filter="SessionFlushTest.WhoOnly*"),
    mutation("who does not wait makes any number of pages dirty", (SESSION, "would_have_to_clean || !is_drained_soon(held)", "!is_drained_soon(held)"), gtest_filter="SessionFlushTest.WhatNeeds*"),
    mutation("without servers who writes cleans", (CACHE_H, "    return flushes_.is_served() && is_dirtier_than(options_.dirty_share_max + kDirtyShareMargin);", "    return is_dirtier_than(options_.dirty_share_max + kDirtyShareMargin);"), gtest_filter="SessionFlushTest.Without*"),
    mutation("a page that is written twice counts as two", (SESSION_H, "    if (!was_clean) return true;\n", ""), gtest_filter="SessionFlushTest.*"),
    mutation("a page that is clean counts as dirty", (SYNC, "cache_->dirty_count_.fetch_sub(1, std::memory_order_relaxed);", "{}"), gtest_filter="SessionFlushTest.*"),
    mutation("a page that could not be written does not count as dirty", (SYNC, "    cache_->dirty_count_.fetch_add(1, std::memory_order_relaxed);", "    {}"), gtest_filter="SessionFlushTest.APage*"),
    mutation("a page that was written while it could not be counts as two", (WAY, "(word | kDirty) & ~kIo)) {\n    }\n    return (word & kDirty) == 0;", "(word | kDirty) & ~kIo)) {\n    }\n    return true;"), gtest_filter="WayTest.*"),
    mutation("pages are written without those that follow them", (SYNC, "count < most && looks_cleanable(end)", "false"), gtest_filter="SessionFlushTest.WhoNeedsAFrameTakes*"),
    mutation("pages are written without those before them", (SYNC, "count < most && looks_cleanable(next_to(first, -1))", "false"), gtest_filter="SessionFlushTest.WhoNeedsAFrameTakes*"),
    mutation("pages of two files are written to one", (SYNC, "File::number_of(key) != File::number_of(last) ||\n        ", ""), gtest_filter="SessionFlushTest.PagesGo*"),
    mutation("more pages are written together than there are copies for", (SYNC, "batch.count + std::min(kRunPages, batch.most) > batch.most)", "false)"), gtest_filter="SessionFlushTest.ManyRuns*"),
    mutation("who needs a frame is told of another page", (SYNC, "  if (done || is_alone) return done;", "  static_cast<void>(is_alone);\n  return done;"), gtest_filter="SessionFlushTest.WhoNeedsAFrameIs*"),
    mutation("who needs a frame is not told of its page", (SYNC, "  if (done || is_alone) return done;", "  return {};"), gtest_filter="SessionTest.*"),

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
    mutation("frames at the end are not replaced", (RESIZE, "  partition.compact();\n", ""), gtest_filter="*ResizeTest.*"),
    mutation("a page does not come along to another frame", (PARTITION, "  memcpy(frame_at(other), frame(way), uint64_t{1} << page_shift_);\n", ""), gtest_filter="*PartitionTest.*"),
    mutation("a page goes to another frame while it is held", (PARTITION, "  if (!hold(way)) return false;", "  static_cast<void>(way.try_exclude(way.key()));"), gtest_filter="*PartitionTest.*"),
    mutation("two change the size at a time", (RESIZE, "  if (cache_->begin_resize()) {", "  static_cast<void>(cache_->begin_resize());\n  if (true) {"), gtest_filter="*ResizeTest.OneAtATime/lru"),
    mutation("who fails to change the size keeps others from it", (RESIZE, "    cache_->end_resize();\n  } else {", "    if (done) cache_->end_resize();\n  } else {"), gtest_filter="*ResizeTest.*"),
    mutation("a set gives its frames before it is known whether it can", (RESIZE, "is_held() ? Partition::Claim::kHeld : ", ""), gtest_filter="*ResizeTest.*"),
    mutation("sets are merged that have too many frames", (RESIZE, "kMaxWays / 2, how); !taken)", "kMaxWays, how); !taken)"), gtest_filter="*ResizeTest.*"),
    mutation("a page that cannot be written does not stop a shrink", (RESIZE, "      if (auto cleaned = clean(set, index); !cleaned) return cleaned;", "      static_cast<void>(clean(set, index));"), gtest_filter="*ResizeTest.*"),

    # Nodes
    mutation("pages that follow each other are on all nodes", (CACHE_H, "kRegionShift = 6;", "kRegionShift = 0;"), gtest_filter="*NodesTest.PagesOfARegion*"),
    mutation("nodes have the same frames", (CACHE, "static_cast<uint32_t>(node * frames_each)", "0 * static_cast<uint32_t>(frames_each)"), gtest_filter="*NodesTest.IsAs*"),
    mutation("pages of other nodes are not synced", (CACHE_H, "    for (uint32_t node = 0; node < node_count_; ++node) partition(node).for_all_sets(each, between...);", "    partition(0).for_all_sets(each, between...);"), gtest_filter="*NodesTest.IsAs*"),
    mutation("a page is locked on another node", (SESSION_H, "return cache_->partition_of(key).lock_home(key);", "return cache_->partition(0).lock_home(key);"), gtest_filter="*NodesTest.IsAs*"),
    mutation("other nodes keep the size that they have", (RESIZE, "node < cache_->node_count(); ++node) {\n    if (cache_", "node < 1; ++node) {\n    if (cache_"), gtest_filter="*NodesTest.EachHas*"),
    mutation("frames of other nodes are all at the end", (PARTITION, "frames_before_ + frame_count();", "frame_count();"), gtest_filter="*NodesTest.Frames*"),
    mutation("frames go to a node that misses as much as others", (BALANCER, "2 * from->misses * to->frames >= to->misses * from->frames", "from == to"), gtest_filter="BalancerTest.*"),
    mutation("a node with many frames takes some for its many misses", (BALANCER, "of_a = a.misses * b.frames, of_b = b.misses * a.frames;", "of_a = a.misses, of_b = b.misses;"), gtest_filter="BalancerTest.*"),
    mutation("misses while frames move count", (BALANCER, "  for (Misses& misses : misses_) misses.value.store(0, std::memory_order_relaxed);\n", ""), gtest_filter="BalancerTest.*"),
    mutation("a second move starts beside the first", (BALANCER, "  if (is_started_ || server_ == nullptr) return;", "  if (server_ == nullptr) return;"), (BALANCER_H, "+ 1 ==\n            period_misses_", "+ 1 >=\n            period_misses_"), gtest_filter="BalancerTest.*"),
    mutation("who holds the balancer does not wait for a move", (BALANCER, "      if (!is_started_) break;", "      break;"), gtest_filter="BalancerTest.*"),
    mutation("frames move while somebody holds the balancer", (BALANCER, "  return !is_to_stop() && std::ranges", "  return std::ranges"), gtest_filter="BalancerTest.*"),
    mutation("the first who lets go of the balancer lets all go", (BALANCER, "  --holder_count_;", "  holder_count_ = 0;"), gtest_filter="BalancerTest.*"),
    mutation("a miss counts for no node", (SESSION, "    if (cache_->node_count() > 1) cache_->balancer_.count_miss(cache_->node_of(key));\n", ""), gtest_filter="*BalanceTest.FramesGo*"),
    mutation("a miss counts for the first node", (SESSION, "count_miss(cache_->node_of(key))", "count_miss(0)"), gtest_filter="*BalanceTest.FramesGo*"),
    mutation("a node gives all of its frames away", (CACHE, "bytes >= part + std::max(each / 2, partition_.least_bytes())", "bytes >= part + partition_.least_bytes()"), gtest_filter="*BalanceTest.FramesGo*"),
    mutation("frames move that are not to", (SERVERS, " && cache.options().balances_nodes", ""), gtest_filter="*BalanceTest.Nothing*"),
    mutation("nodes become larger before others are smaller", (RESIZE, "  std::ranges::partition(changes, &Change::is_smaller);", "  std::ranges::partition(changes, std::not_fn(&Change::is_smaller));"), (RESIZE, "#include <algorithm>", "#include <algorithm>\n#include <functional>"), gtest_filter="*BalanceTest.NothingGrows*"),
    mutation("what a node could not give another gets", (RESIZE, "    from.bytes += bytes;\n    return given;", "    from.bytes += bytes;"), gtest_filter="*BalanceTest.PagesThatAreHeld*"),
    mutation("what a move has left undone stays so", (RESIZE, "    if (cache_->shares_[node].is_settled) continue;", "    if (how.balancer != nullptr && node != 0) continue;"), gtest_filter="*BalanceTest.*"),
    mutation("the halves of sets keep frames until the end", (RESIZE, "    if (partition.set_count() <= size.set_count / 2) continue;  // they will be split again\n", "    continue;\n"), gtest_filter="*ResizeTest.Halves*"),
    mutation("servers use a file that they have left for its frames", (RESIZE, "  if (how.balancer == nullptr) return true;", "  if (how.balancer != &cache_->balancer_ + 1) return true;"), gtest_filter="*BalanceTest.Files*"),
    mutation("a size changes beside a move", (RESIZE, "  cache_->balancer_.hold();\n", ""), (RESIZE, "  cache_->balancer_.release();\n", ""), gtest_filter="*BalanceTest.PagesThatAreHeld*"),
    mutation("requests go to servers of another node", (QUEUE, "    Outgoing& message = outgoing_[node];", "    Outgoing& message = outgoing_[(node + 1) % node_count_];"), gtest_filter="RequestNodesTest.WhatIsThere*"),
    mutation("a message goes to servers of another node", (SERVERS, "  return node + nodes * (next_executor_", "  return nodes * (next_executor_"), gtest_filter="RequestNodesTest.EachGoes*"),
    mutation("some servers of a node get no messages", (SERVERS, "(executors - node + nodes - 1) / nodes;", "(executors - node) / nodes;"), gtest_filter="RequestNodesTest.EachGoes*"),
    mutation("who asks copies from other nodes", (QUEUE, "    if (node == node_ && try_now(request)) {", "    if (try_now(request)) {"), gtest_filter="RequestNodesTest.WhatIsThere*"),
    mutation("each poll sends a message to each node", (QUEUE, "return is_alone || uint64_t{message.requests.count()} * node_count_ >= sent_count;", "return sent_count != ~uint64_t{0};"), gtest_filter="RequestNodesTest.AMessageGrows*"),
    mutation("a message to a node waits for as long as others end", (QUEUE, "  message.waited_count += is_alone ? 1 : ended_count;", "  message.waited_count += is_alone ? 1 : 0;"), gtest_filter="RequestNodesTest.AMessageThat*"),
    mutation("messages wait for what has ended", (QUEUE, "  sent_count_ -= ended.count();\n", ""), gtest_filter="RequestNodesTest.*"),
    mutation("all queues are of one node", (QUEUE, "servers.next_node_.fetch_add(1, std::memory_order_relaxed) % node_count_", "0"), gtest_filter="RequestNodesTest.Queues*"),

    # Requests
    mutation("more requests are under way than may be", (QUEUE, "taken < requests.size() && in_flight_count_ < most_;", "taken < requests.size();"), gtest_filter="RequestQueueTest.*"),
    mutation("a message that is full waits", (QUEUE, "    if (message.requests.count() == kMessageRequests) send(message);\n", ""), gtest_filter="RequestQueueTest.*"),
    mutation("a message that is not full waits for as long as others end", (QUEUE, "  return message.waited_count >= (is_alone", "  return false && message.waited_count >= (is_alone"), gtest_filter="RequestQueueTest.*"),
    mutation("a request that is used again keeps its error", (QUEUE, "      request.result = {};\n", ""), gtest_filter="RequestQueueTest.*"),
    mutation("a callback runs in submit", (QUEUE, "      ended_here_.append(request);\n", "      ended_here_.append(request);\n      deliver();\n"), gtest_filter="RequestQueueTest.*"),
    mutation("a queue is closed under its requests", (QUEUE, "  while (in_flight_count_ != 0) wait();\n", ""), gtest_filter="RequestQueueTest.CloseWaitsForWhatIsUnderWay"),
    mutation("who writes at once does not wait for readers", (SESSION, "would_have_to_clean || !is_drained_soon(held)", "would_have_to_clean"), gtest_filter="RequestQueueTest.*"),
    mutation("servers keep files that they are to leave", (SERVERS, "    executor.session.leave(*request.file);\n", ""), gtest_filter="RequestQueueTest.*"),
    mutation("a wait for requests has no end", (QUEUE, "    if (now_ns >= deadline_ns) {", "    if (false) {"), gtest_filter="RequestQueueTest.*"),
    mutation("an event does not tell that requests have ended", (QUEUE, "  if (event_ != nullptr) event_->set();\n", ""), gtest_filter="RequestQueueTest.*"),
    mutation("an event does not tell of what had ended before", (QUEUE, "  if (!ended_.empty()) event.set();\n", ""), gtest_filter="RequestQueueTest.*"),
    # Statistics
    mutation("a miss is no set's", (PARTITION, "  home.set.count_miss(layout_);\n", ""), gtest_filter="*Statistics*"),
    mutation("what servers were asked for is that of one", (SERVERS, "all += executor_states_[i].session.counts();", "all = executor_states_[i].session.counts();"), gtest_filter="*Statistics*"),
]
