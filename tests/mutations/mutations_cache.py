"""Breakages of src/cache: what a mistake in the protocols of partition.h would look like."""

PARTITION = "src/cache/partition.cc"
EVICT = "src/cache/partition_evict.cc"
CLEAN = "src/cache/partition_clean.cc"
DISCARD = "src/cache/partition_discard.cc"
TABLE = "src/cache/table.cc"


def mutation(name, test, *patches):
    """test: a gtest filter of cache_test, or (program, filter)."""
    return {"name": name, "test": test if isinstance(test, tuple) else ("cache_test", test), "patches": list(patches)}


TAKE_ALL_FINGERPRINTS = """
      for (uint64_t piece = 0; piece < pieces_; ++piece)
        frames_.fingerprints(victim.frame)[piece] =
            base::take_fingerprint(frames_.bytes(victim.frame) + piece * base::kOsPageBytes);
"""

MUTATIONS = [
    # Fingerprints
    mutation("fingerprint taken before the load completed", "ProtocolTest.ReadingNeverWrites*:ProtocolTest.TheFingerprintIsOf*",
             (PARTITION, "  lane.queue().run(io);\n  if (lane.victim_count > 1",
              "  for (uint32_t i = 0; i < lane.victim_count; ++i)\n"
              "    for (uint64_t piece = 0; piece < pieces_; ++piece)\n"
              "      frames_.fingerprints(lane.victims[i].frame)[piece] = base::take_fingerprint(\n"
              "          frames_.bytes(lane.victims[i].frame) + piece * base::kOsPageBytes);\n"
              "  lane.queue().run(io);\n  if (lane.victim_count > 1"),
             (PARTITION, "      frames_.fingerprints(frame)[piece] =\n"
              "          base::take_fingerprint(frames_.bytes(frame) + piece * base::kOsPageBytes);",
              "      (void)frame;")),
    mutation("fingerprint known although the write failed", "ProtocolTest.AFailedWriteKeeps*",
             (EVICT, "      frame.write_failed();", TAKE_ALL_FINGERPRINTS + "      frame.write_failed();")),
    mutation("old fingerprint kept over a rescue during a write", "ProtocolTest.ARescueDuringTheWriteLeaves*",
             (EVICT, "  forget_fingerprints(victim.frame, changed);\n", "")),
    mutation("fingerprint of a reopened frame known after its write", "ProtocolTest.ARescueDuringTheWriteKeeps*",
             (EVICT, "      frame.done();", TAKE_ALL_FINGERPRINTS + "      frame.done();")),
    mutation("fingerprint of zeros not set by zero-fill", "ProtocolTest.ReadingNeverWrites*",
             (PARTITION, "frames_.fingerprints(lane.victims[0].frame)[i] = base::zero_fingerprint();",
              "frames_.fingerprints(lane.victims[0].frame)[i] = base::Fingerprint::unknown();")),
    mutation("fingerprint of a page zeroed in place is the old one", "DiscardTest.*Held*",
             (DISCARD, "frames_.fingerprints(id)[piece] = base::zero_fingerprint();", "(void)piece;")),
    mutation("last OS page of a page is not compared", "ProtocolTest.OnlyTheOsPages*",
             (EVICT, "    for (uint64_t piece = 0; piece < pieces_; ++piece) {\n      const base::Fingerprint before",
              "    for (uint64_t piece = 0; piece + 1 < pieces_ || piece == 0; ++piece) {\n      const base::Fingerprint before")),

    # Holders
    mutation("barrier skipped by evict", "ProtocolTest.*",
             (EVICT, "  shared_->holders->barrier();\n", "")),
    mutation("barrier skipped by discard", "DiscardTest.*",
             (DISCARD, "      shared_->holders->barrier();\n", "")),
    mutation("barrier before the entries are locked", "ProtocolTest.EntriesAreLocked*",
             (EVICT, "  lock_victims(wanted, lane);\n", "  shared_->holders->barrier();\n  lock_victims(wanted, lane);\n"),
             (EVICT, "  if (lane.victim_count == 0) return 0;\n  shared_->holders->barrier();\n", "  if (lane.victim_count == 0) return 0;\n")),
    mutation("hazard check removed from evict", "ProtocolTest.AHeldPage*:ProtocolTest.AHoldThat*",
             (EVICT, "victims[i].page == page) visited", "victims[i].page == page + 1) visited")),
    mutation("hazard check removed from evict, under threads", ("cache_threads_test", "*"),
             (EVICT, "victims[i].page == page) visited", "victims[i].page == page + 1) visited")),
    mutation("hazard check removed from discard", "DiscardTest.AHeldPage*",
             (DISCARD, "      mark_held(lane);\n", "")),
    mutation("held victim evicted nevertheless", "ProtocolTest.AHoldThat*",
             (EVICT, "    if (ours && victim.held) {", "    if (ours && victim.held && false) {")),
    mutation("only the first OS page of a page is locked", "TableTest.*:ProtocolTest.AHeldPage*",
             (TABLE, "  for (uint64_t i = 0; i < pieces_; ++i) {\n    int64_t old", "  for (uint64_t i = 0; i < 1; ++i) {\n    int64_t old")),
    mutation("unknown entries are left open by lock", "TableTest.LockClosesUnknown*",
             (TABLE, "    int64_t old = entries_[index(page) * pieces_ + i].exchange",
              "    if (entries_[index(page) * pieces_ + i].load() == 0) continue;\n"
              "    int64_t old = entries_[index(page) * pieces_ + i].exchange")),

    # States and rescue
    mutation("eviction while a write is under way", "ProtocolTest.ARescuedPage*",
             (EVICT, "State::kResident || frame.io() || frame.pins() > 0", "State::kResident || frame.pins() > 0")),
    mutation("eviction while a clean is under way", "CleanTest.APageUnderCleaning*",
             (EVICT, "State::kResident || frame.io() || frame.pins() > 0", "State::kResident || frame.pins() > 0")),
    mutation("eviction of a pinned page", "ProtocolTest.APinnedPage*",
             (EVICT, "State::kResident || frame.io() || frame.pins() > 0", "State::kResident || frame.io()")),
    mutation("rescue forgets the Io under way", "Frame.*",
             ("src/cache/frame.h", "edge(State::kWriting, State::kResident, true, true)",
              "edge(State::kWriting, State::kResident, false, true)")),
    mutation("an edge does not raise the version", "Frame.*",
             ("src/cache/frame.h", "uint64_t version = (old >> kVersionShift) + 1;", "uint64_t version = old >> kVersionShift;")),
    mutation("touch during eviction lost", "ProtocolTest.ATouchAfterTheScan*",
             (PARTITION, "        frame.rescue();\n", "")),
    mutation("evictor does not look whether its victim is still its own", "ProtocolTest.AnEvictorLeaves*",
             (EVICT, "const bool ours = frame.is(State::kEvicting, victim.version);",
              "const bool ours = frame.state() == State::kEvicting;")),
    mutation("entry published before the content", "ProtocolTest.NoEntryIsOpen*",
             (PARTITION, "  const auto good_count", "  const auto unused_count"),
             (PARTITION, "  lane.queue().run(io);\n  if (lane.victim_count > 1",
              "  shared_->table->reopen(lane.victims[0].page, frames_.bytes(lane.victims[0].frame));\n"
              "  lane.queue().run(io);\n  const auto good_count = static_cast<uint32_t>(io.transferred_bytes / shared_->page_bytes);\n"
              "  if (lane.victim_count > 1")),
    mutation("entry published before the state word", "ProtocolTest.StatesAndEntries*",
             (PARTITION, "    finish_load(lane, false, 1);\n",
              "    shared_->table->publish(first.page, bytes, Table::Heat::kHot);\n"
              "    for (int i = 0; i < 1000; ++i) __builtin_ia32_pause();\n    finish_load(lane, false, 1);\n")),
    mutation("entries not reopened after a rescue", "*EveryByte*",
             (EVICT, "      frame.rescue();\n      reopen(victim.frame);\n      base::statistics.cache_rescues.add();",
              "      frame.rescue();\n      base::statistics.cache_rescues.add();")),
    mutation("stale entry after an unchanged page is freed", "ProtocolTest.ReadingNeverWrites*:*EveryByte*",
             (EVICT, "      shared_->table->clear(victim.page);\n      frame.unchanged();", "      frame.unchanged();")),
    mutation("stale entry after a written page is freed", "ProtocolTest.APageIsZeros*:*EveryByte*",
             (EVICT, "      shared_->table->clear(victim.page);\n      frame.written();", "      frame.written();")),
    mutation("stale entry after a discard", "DiscardTest.*",
             (DISCARD, "        shared_->table->clear(victim.page);\n", "")),
    mutation("waiters for a load are not woken", "ProtocolTest.TwoThreads*",
             (PARTITION, "  }\n  changed_.notify_all();\n}", "  }\n}")),
    mutation("waiters for a write are not woken", "DiscardTest.WaitsForAWrite*",
             (EVICT, "  changed_.notify_all();\n  return freed;", "  return freed;")),
    mutation("frame freed twice", "ProtocolTest.*",
             (EVICT, "      frame.unchanged();\n      free_frame(victim.frame);",
              "      frame.unchanged();\n      free_frame(victim.frame);\n      free_frame(victim.frame);")),
    mutation("poison of free frames is not verified", "ProtocolTest.ChaosFinds*",
             (PARTITION, "CHECK_EQ(bytes[i], kPoison);", "(void)bytes[i];")),

    # Storage
    mutation("zero-fill skipped", "*EveryByte*",
             (PARTITION, "    if (!lane.victims[0].fresh) spillway_plain_memset(bytes, 0, shared_->page_bytes);\n", "    (void)bytes;\n")),
    mutation("short read taken as whole", "ProtocolTest.AReadThatFails*",
             (PARTITION, "const auto good_count = static_cast<uint32_t>(io.transferred_bytes / shared_->page_bytes);",
              "const uint32_t good_count = lane.victim_count;")),
    mutation("what a short read-ahead did not bring is published", "ProtocolTest.ReadAhead*",
             (PARTITION, "    if (failed || i >= good_count) {", "    if (failed) {")),
    mutation("read-ahead that fails takes the wanted page along", "ProtocolTest.ReadAhead*",
             (PARTITION, "  if (lane.victim_count > 1 && (io.error", "  if (lane.victim_count > 100 && (io.error")),
    mutation("page lost when its load fails", "ProtocolTest.AReadThatFails*",
             (PARTITION, "      map_.set_place(frame.page, frame.place);\n", "      map_.erase(frame.page);\n")),
    mutation("write error lost", "ProtocolTest.AFailedWrite*",
             (EVICT, "      if (!lane.ios[i].whole()) failed", "      if (!lane.ios[i].whole() && false) failed")),
    mutation("short write taken as whole", "ProtocolTest.AFailedWrite*",
             (EVICT, "      if (!lane.ios[i].whole()) failed", "      if (lane.ios[i].error != 0) failed")),
    mutation("error of all but the last Io of a page lost", "*EveryByte*:ProtocolTest.*",
             (EVICT, "for (uint32_t i = victim.first_io; i <= victim.last_io; ++i)", "for (uint32_t i = victim.last_io; i <= victim.last_io; ++i)")),
    mutation("new place not written whole", "*EveryByte*:ProtocolTest.ARetry*",
             (EVICT, "  if (victim.whole_page || (crowded", "  if ((crowded")),
    mutation("Ios joined although they do not follow each other", "*EveryByte*:ProtocolTest.*",
             (EVICT, "io == nullptr || io->offset_bytes + io->length_bytes != offset || io->", "io == nullptr || io->")),
    mutation("Ios without bound", "ProtocolTest.ManyScattered*",
             (EVICT, "lane.io_count + victim.changed_count + victims_left > Lane::kMaxIos", "false"),
             (EVICT, "lane.segment_count + victim.changed_count + victims_left > Lane::kMaxSegments", "false")),
    mutation("evict goes on before its writes ended", "ProtocolTest.*:*EveryByte*",
             (EVICT, "  while (lane.queue().in_flight_count() > 0) lane.queue().wait();\n", "  lane.queue().wait();\n")),
    mutation("place forgotten when the page leaves", "ProtocolTest.APageIsZeros*",
             (EVICT, "      map_.set_place(victim.page, frame.place);\n      shared_", "      map_.erase(victim.page);\n      shared_")),
    mutation("storage is given up after a few failed writes", "CacheTest.FullStorageIsNoError*",
             (PARTITION, "failed_writes_ >= frames_.frame_count() + kFailedWriteReserve", "failed_writes_ >= kFailedWriteReserve")),
    mutation("storage is never given up", "CacheTest.FullStorageIsReported*",
             (PARTITION, "failed_writes_ >= frames_.frame_count() + kFailedWriteReserve", "failed_writes_ == ~0u")),

    # Discard
    mutation("discard under a hazard does not zero", "DiscardTest.AHeldPage*",
             (DISCARD, "          zero_in_place(victim.frame);\n", "")),
    mutation("discard of a pinned page does not zero", "DiscardTest.APinnedPage*",
             (DISCARD, "    zero_in_place(where.frame);\n    return true;", "    return true;")),
    mutation("discard overtakes a write", "DiscardTest.WaitsForAWrite*",
             (DISCARD, "  if (frame.state() != State::kResident || frame.io()) return false;\n  if (frame.pins() > 0) {",
              "  if (frame.state() == State::kWriting) frame.rescue(), reopen(where.frame);\n"
              "  if (frame.state() != State::kResident) return false;\n  if (frame.pins() > 0 || frame.io()) {")),
    mutation("discard does not look where the page went meanwhile", "DiscardTest.APageThatMovedOn*",
             (DISCARD, "            page = PageId{index(victim.page) < index(page) ? index(victim.page) : index(page)};\n", "")),
    mutation("discard ends one page early", "DiscardTest.ExactlyTheRange*",
             (DISCARD, "  const PageId end = first + count;", "  const PageId end = first + (count - 1);")),
    mutation("discard ends one page late", "DiscardTest.ExactlyTheRange*",
             (DISCARD, "  const PageId end = first + count;", "  const PageId end = first + (count + 1);")),
    mutation("discard skips the rest of a group", "DiscardTest.AnUnmappedGroup*",
             (DISCARD, "base::round_down(index(page), kGroupPages) + kGroupPages", "index(page) + kGroupPages")),
    mutation("discarded place never used again", "DiscardTest.StorageIsUsedAgain",
             (DISCARD, "    shared_->places.give_back(where.place);\n", "")),
    mutation("page zeroed in place keeps its place", "DiscardTest.*:*EveryByte*",
             (DISCARD, "  if (frame.place != base::kNoPlace) shared_->places.give_back(frame.place);\n  frame.place = base::kNoPlace;\n", "")),

    # Cleaning
    mutation("barrier skipped by the cleaner", "CleanTest.*",
             (CLEAN, "  shared_->holders->barrier();\n", "")),
    mutation("cleaner takes a held page for verified", "CleanTest.AHeldPage*",
             (CLEAN, "    frame.verified = !victim.held && !shared_", "    frame.verified = !shared_")),
    mutation("cleaner takes the fingerprint of the frame, not of the copy", "CleanTest.AChangeDuring*:*EveryByte*",
             (CLEAN, "base::take_fingerprint(copy + piece * base::kOsPageBytes);\n        base",
              "base::take_fingerprint(frames_.bytes(victim.frame) + piece * base::kOsPageBytes);\n        (void)copy;\n        base")),
    mutation("fingerprint kept although cleaning failed", "CleanTest.AFailed*:*EveryByte*",
             (CLEAN, "      frames_.fingerprints(victim.frame)[piece] = base::Fingerprint::unknown();\n", "      (void)piece;\n"),
             (CLEAN, "        victim.held = true;\n        if", "        if")),
    mutation("cleaning that failed counts as verified", "CleanTest.AFailed*",
             (CLEAN, "        victim.held = true;\n        if", "        if")),
    mutation("place of a failed cleaning kept as if written", "CleanTest.AFailed*:*EveryByte*",
             (CLEAN, "        if (victim.whole_page) {\n          shared_->places.give_back(frame.place);", "        if (victim.whole_page) {")),
    mutation("cooling forgets that a page was touched after cleaning", "CleanTest.AChangeThatCooled*",
             (EVICT, "    frame.verified = false;\n    return false;", "    return false;")),
    mutation("eviction forgets that a page was touched after cleaning", "CleanTest.AChangeAfter*:*EveryByte*",
             (EVICT, "  if (hot) frame.verified = false;\n", ""),
             (EVICT, "    frame.verified = false;\n    return false;", "    return false;"),
             (PARTITION, "  frames_[id].verified = false;\n", "")),
    mutation("cleaner goes round for ever", "CleanTest.HotPages*",
             (CLEAN, "  for (; ahead < reach && lane.victim_count < most; ++ahead) {", "  for (; ahead < reach && lane.victim_count < most; ++ahead, ahead %= count) {")),
    mutation("discarded storage is used while its Io is under way", "Places.Garbage*",
             ("src/cache/places.cc", "    for (uint32_t i = 0; i < kRunPlaces; ++i) taken(first + i);\n", "")),
    mutation("storage in use is discarded", "CleanTest.FreedStorage*:Places.Garbage*",
             ("src/cache/places.cc", "whole = is_garbage(first + i);", "whole = first + i < 2000;")),

    # Index, pool, places, budget
    mutation("group freed while a page of it is mapped", "PageMapTest.*",
             ("src/cache/page_map.cc", "    if (word != 0) return;\n", "    (void)word;\n")),
    mutation("place handed out twice", "Places.*",
             ("src/cache/places.cc", "index(wish) < end_ && !is_used(index(wish))", "index(wish) < end_")),
    mutation("frame handed out twice", "FramePoolTest.*",
             ("src/cache/frame_pool.cc", "  free_bits_[frame / 64] &= ~(uint64_t{1} << (frame % 64));\n", "")),
    mutation("table page given back although a page of it is resident", "TableTest.*",
             (TABLE, "  if (!region_residents_[oldest].compare_exchange_strong(expected, 0, std::memory_order_acq_rel)) return;\n",
              "  (void)expected;\n")),
    mutation("table page not given back", "TableTest.*",
             (TABLE, "  sys::release(&entries_[oldest * kRegionOsPages], base::kOsPageBytes);\n", "")),
    mutation("released memory is not counted", "FramePoolTest.*",
             ("src/cache/frame_pool.cc", "  budget_->subtract(page_bytes_);\n", "")),
    mutation("frames are taken beyond the budget", "CacheTest.SparsePages*",
             (PARTITION, "bool Partition::may_take_fresh(bool desperate) {\n", "bool Partition::may_take_fresh(bool desperate) {\n  if (frame_count() > 0) return true;\n")),
    mutation("no memory is taken from the largest partition", "CacheTest.OnePartition*",
             (PARTITION, "    if (largest != nullptr && largest != this", "    if (largest == nullptr && largest != nullptr")),
]
