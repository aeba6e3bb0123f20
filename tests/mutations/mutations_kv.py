"""Breakages of src/kv: an entry that is lost or found wrongly, while tables grow and shrink."""

CHECK = "src/kv/recovery/check.cc"
CHECK_SEGMENTS = "src/kv/recovery/check_segments.cc"
ENTRY = "src/kv/index/entry.h"
CHECKPOINT = "src/kv/media/checkpoint_format.cc"
COLLECTOR = "src/kv/collection/collector.cc"
FLUSH_GROUP = "src/task/flush_group.h"
FORMAT = "src/kv/media/format.cc"
INDEX = "src/kv/index/index.cc"
INDEX_CHANGE = "src/kv/index/index_change.cc"
INDEX_IMAGE = "src/kv/index/index_image.cc"
INDEX_INSIDE = "src/kv/index/index_inside.h"
INDEX_RESTORE = "src/kv/index/index_restore.cc"
INDEX_SCAN = "src/kv/index/index_scan.cc"
LOG = "src/kv/log/log.cc"
LOG_KEEPER = "src/kv/log/log_keeper.cc"
RECOVERY = "src/kv/recovery/recovery.cc"
RECOVERY_APPLY = "src/kv/recovery/recovery_apply.cc"
RECOVERY_CHECKPOINT = "src/kv/recovery/recovery_checkpoint.cc"
RECOVERY_COPIES = "src/kv/recovery/recovery_copies.cc"
RECOVERY_READER = "src/kv/recovery/recovery_reader.cc"
SESSION = "src/kv/session.cc"
SESSION_CHANGE = "src/kv/session_change.cc"
SNAPSHOT = "src/kv/snapshot.cc"
SNAPSHOTS = "src/kv/collection/snapshots.cc"
TABLE = "src/kv/index/table.cc"
TABLE_H = "src/kv/index/table.h"


def mutation(name, *patches, gtest_filter="IndexTest.*"):
    return {"name": name, "test": ("kv_test", gtest_filter), "patches": list(patches)}


MUTATIONS = [
    mutation("who waits at the limit is forgotten", ("src/kv/log/log_room.cc", "    if (!is_over) limited = take_limited();\n", ""), gtest_filter="LargeValuesTest.AreRefused*"),
    # Entries
    mutation("size of a record rounded down", (ENTRY, "(grains + (uint64_t{1} << shift) - 1) >> shift", "grains >> shift"), gtest_filter="SizeCode*"),
    mutation("tag compared by one bit more than it has", (ENTRY, "(std::bit_floor(own) - 1)) == 0", "(2 * std::bit_floor(own) - 1)) == 0"), gtest_filter="*Entry*"),
    mutation("tag compared by one bit less than it has", (ENTRY, "(std::bit_floor(own) - 1)) == 0", "(std::bit_floor(own) / 2 - 1)) == 0"), gtest_filter="*Entry*"),
    mutation("a whole tag that is given a bit loses its end", (ENTRY, "longer >> tag_bits() == 0 ? longer : whole_tag(longer)", "longer"), gtest_filter="*Entry*"),

    # What is on the medium
    mutation("damaged superblock read", (FORMAT, "  if (block.check != base::checksum(&block, offsetof(Superblock, check)))", "  if (false)"), gtest_filter="FormatTest.*"),
    {"name": "store of a newer format opened", "test": ("ctest", "^cli_kv_formats$"), "patches": [(FORMAT, "block.version > kFormatVersion || ", "")]},
    {"name": "pieces are looked for elsewhere, in the same format", "test": ("ctest", "^cli_kv_formats$"), "patches": [(FORMAT, "KeyHash{~hash.low, ~hash.high}", "KeyHash{~hash.low, hash.high}")]},
    mutation("store larger than its device opened", (FORMAT, "  if (device_bytes < end)", "  if (false)"), gtest_filter="FormatTest.*"),
    mutation("header of another store read", (FORMAT, "         is_whole(identity.secret, header) && header.state >=", "         header.state >="), gtest_filter="FormatTest.*"),
    mutation("footer of an earlier life of the segment read", (FORMAT, "      footer.generation != generation || !is_whole", "      !is_whole"), gtest_filter="SummaryTest.*"),
    mutation("damaged entries of a summary read", (FORMAT, "  if (from.size() < bytes || footer.entries_check != check_of(identity.secret, from.data(), bytes)) return {};\n", "  if (from.size() < bytes) return {};\n"), gtest_filter="SummaryTest.*"),
    mutation("records over each other in a summary", (FORMAT, "    if (entry.grain < end || entry.grains == 0 ||", "    if (entry.grain < 1 || entry.grains == 0 ||"), gtest_filter="SummaryTest.*"),
    mutation("damaged record read", (FORMAT, "  return check == record.header.check ? Reading::kWhole : Reading::kDamaged;", "  return check != 0 ? Reading::kWhole : Reading::kDamaged;"), gtest_filter="RecordTest.*"),
    mutation("record of an earlier life of the segment read", (FORMAT, " || record.header.generation != generation) return", ") return"), gtest_filter="RecordTest.*"),
    mutation("memory behind a record written with it", (FORMAT, "key.data(), key.size());\n  std::ranges::fill(to.subspan(bytes), std::byte{0});\n", "key.data(), key.size());\n"), gtest_filter="RecordTest.*"),

    # Tables
    mutation("each chunk of tables is a mapping of its own", (INDEX, "    if (*beside == last - kChunkBytes) return *beside;\n", ""), gtest_filter="IndexTest.AMappingHas*"),
    mutation("entry too far from home", (TABLE, "  while (free >= kNeighbourhood) {", "  while (free > kNeighbourhood) {"), gtest_filter="TableTest.*"),
    mutation("moved entry too far from home", (TABLE, "      if (offset >= kNeighbourhood) continue;\n", ""), gtest_filter="TableTest.*"),
    mutation("moved entry beyond what its home reaches", (TABLE, "      reach(slot_at(home, free + kSlots - offset), offset);\n", ""), gtest_filter="TableTest.*"),
    mutation("reach one group too short", (TABLE, "offset / kGroup + 1)", "offset / kGroup)"), gtest_filter="TableTest.*"),
    mutation("one lock, two regions", (TABLE, "+ (both ? kRegionSlots : 0)", "+ kRegionSlots"), gtest_filter="TableTest.*"),
    mutation("neighbourhood that crosses taken for one that does not", (TABLE_H, "home % kRegionSlots > kRegionSlots - kNeighbourhood", "home % kRegionSlots > kRegionSlots - kNeighbourhood + 8"), gtest_filter="TableTest.*"),
    mutation("who looks does not see that something changed", (TABLE_H, " + RegionWord::kVersion, std::memory_order_release", ", std::memory_order_release"), gtest_filter="TableTest.*"),
    mutation("ring of slots looked at beyond its end", (TABLE_H, "  if (begin > kSlots - kGroup) {", "  if (begin > kSlots) {"), gtest_filter="TableTest.*"),

    # Lookups beside changes
    mutation("lookups do not look again", (INDEX, "    if (table->words[region].load(std::memory_order_relaxed) == word.bits &&\n        (!both || table->words[next].load(std::memory_order_relaxed) == other.bits))\n      return;", "    return;"), gtest_filter="IndexTest.Threads*"),
    mutation("lookups do not wait for who holds the lock", (INDEX, "    if (word.is_locked() || other.is_locked()) {", "    if (false) {"), gtest_filter="IndexTest.Threads*"),
    mutation("known candidates are not told from others", (INDEX, "      if (other) return Outcome::kOther;\n", "")),

    # Growth and shrinking
    mutation("the child's entries keep the bit that chose it", (INDEX_CHANGE, "    fits = child.place(home, format_.without_bit(entry), true);", "    fits = child.place(home, entry, true);")),
    mutation("entries that stay keep the bit that chose them", (INDEX_CHANGE, "format_.bit(entry) ? 0 : format_.without_bit(entry));\n  });\n  table.measure", "format_.bit(entry) ? 0 : entry);\n  });\n  table.measure")),
    mutation("entries of the region after are moved too", (INDEX_INSIDE, "    if (region_of(home) == region) visit(slot, home, entry);", "    visit(slot, home, entry);")),
    mutation("entries beyond the region's end stay behind", (INDEX_INSIDE, "i < kRegionSlots + kNeighbourhood - 1; ++i", "i < kRegionSlots; ++i")),
    mutation("a merge takes what it merges for the wrong half", (INDEX_CHANGE, "table.place(home, format_.with_bit(entry, true), true);", "table.place(home, format_.with_bit(entry, false), true);")),
    mutation("a merge leaves its own tags as they are", (INDEX_CHANGE, "    table.set(slot, format_.with_bit(entry, false));", "    table.set(slot, entry);")),
    mutation("memory of a merged table kept", (INDEX_CHANGE, "    sys::release(child.slots.load(std::memory_order_relaxed), kTableBytes);\n", ""), gtest_filter="IndexTest.GivesBack*"),
    mutation("a table grows for hashes that growth cannot part", (INDEX, "both && locks.count() < kRegionSlots ? Outcome::kCannotGrow : Outcome::kNoRoom;", "Outcome::kNoRoom;")),
    mutation("splits of a table that is being merged", (INDEX_CHANGE, "    if (parent->change.load(std::memory_order_relaxed) != Table::Change::kNone &&\n        parent->children", "    if (false &&\n        parent->children"), gtest_filter="IndexTest.*"),

    mutation("a merge that has moved nothing keeps growth waiting", (INDEX_CHANGE, "    end_change(table, *table.children[table.depth].load(std::memory_order_relaxed));\n  return true;", "    return true;\n  return true;"), gtest_filter="IndexTest.AMerge*"),

    # Images, and what is made of them
    mutation("image of a table that somebody changes meanwhile", (INDEX_IMAGE, "    if (copy_as_it_was(own, to)) break;", "    if (copy_as_it_was(own, to) || true) break;"), gtest_filter="IndexImageTest.*"),
    mutation("merges begin while images are taken", (INDEX_CHANGE, "    if (!is_imaged_.load(std::memory_order_relaxed) &&\n", "    if (\n"), gtest_filter="IndexImageTest.*"),
    mutation("an index begins with one table, however short its tags are", (INDEX_CHANGE, "std::max(0, depth_most - bits)", "0 * std::max(0, depth_most - bits)"), gtest_filter="IndexTest.BeginsWith*"),
    mutation("tables that an index began with are merged", (INDEX_CHANGE, "  if (child.birth_depth <= least_depth_) return;\n", ""), gtest_filter="IndexTest.TablesThatItBegan*"),
    mutation("a store's index begins with one table", (RECOVERY, "  index_->begin_wide();\n  if (auto done", "  if (auto done"), gtest_filter="StoreMake.TheIndex*"),
    mutation("merges go on while images are taken", (INDEX_IMAGE, "    own.change.store(Table::Change::kSplit, std::memory_order_relaxed);\n", "    continue;\n"), gtest_filter="IndexImageTest.*"),
    mutation("merges that were put off are forgotten", (INDEX_IMAGE, "    try_merge(parent, child);\n", ""), gtest_filter="IndexImageTest.*"),
    mutation("entry in two images is there twice", (INDEX_RESTORE, "!holds(*to, home, entry)) fits", "true) fits"), gtest_filter="IndexImageTest.*"),
    mutation("image of a table as it was before a split taken for what it is after it", (INDEX_RESTORE, "        goal = static_cast<uint8_t>(own.birth_depth);\n    }", "        static_cast<void>(goal);\n    }"), gtest_filter="IndexImageTest.*"),
    mutation("parents before their children", (INDEX_RESTORE, "  for (uint32_t number = table_count(); number-- > 0;)\n    for (uint32_t region", "  for (uint32_t number = 0; number < table_count(); ++number)\n    for (uint32_t region"), gtest_filter="IndexImageTest.*"),
    mutation("split that is restored goes on from its beginning", (INDEX_RESTORE, "    table.moved_count += table.goals[region] == table.depth + 1;\n", ""), gtest_filter="IndexImageTest.*"),
    mutation("split of a child whose parent's is not over", (INDEX_RESTORE, "    if (!is_parted(*last, last->birth_depth)) raise(table, depth);\n", ""), gtest_filter="*Image*"),
    mutation("entry of a region that is not there restored", (INDEX_RESTORE, " && (present >> region_of(home) & 1) != 0", ""), gtest_filter="*Image*"),
    mutation("two images of one table restored", (INDEX_RESTORE, "    if (own->goals[region] != kAbsent) return", "    if (false) return"), gtest_filter="*Image*"),
    mutation("images bring as many tables as they like", (INDEX_RESTORE, "  if (table_count() >= uint64_t{kTablesForImage} * image_count_ + kTablesBeside) return nullptr;\n", ""), gtest_filter="*Image*"),
    mutation("damaged piece of a checkpoint read", (CHECKPOINT, "         header.body_check == body_check_of(identity.secret, from, header.bytes);", "         header.body_check != 0;"), gtest_filter="Checkpoint*"),
    mutation("damaged header of a piece read", (CHECKPOINT, "      header.check != check_of(identity.secret, &header, offsetof(PieceHeader, check)))", "      header.check == 0)"), gtest_filter="Checkpoint*"),
    mutation("address beyond the store in a checkpoint", (CHECKPOINT, "entry == 0 || format.address(entry) >= address_end", "entry == 0"), gtest_filter="Checkpoint*"),

    # Scans
    mutation("scan without the entries that lie in the next region", (INDEX_INSIDE, "i < kRegionSlots + kNeighbourhood - 1; ++i", "i < kRegionSlots; ++i"), gtest_filter="IndexScan*"),
    mutation("cursor moved when the region is free again", (INDEX_SCAN, "    hook(step);\n    return step;\n  });", "    return step;\n  });"), (INDEX_SCAN, "  return locked(hash, true,", "  const ScanStep taken = locked(hash, true,"), (INDEX_SCAN, "  });\n}\n\n}  // namespace kv", "  });\n  hook(taken);\n  return taken;\n}\n\n}  // namespace kv"), gtest_filter="IndexScan*"),
    mutation("a merge does not say what it brings back", (INDEX_SCAN, "    step.begin = position(region, table.prefix);", "    step.begin = at;"), gtest_filter="IndexScan*"),
    mutation("removed without a word", (INDEX, "      hook(location(entry));\n      table.set(slot, 0);", "      table.set(slot, 0);"), gtest_filter="IndexScan*"),

    # Promises
    mutation("acknowledged before it is flushed", (SESSION_CHANGE, "  if (store_->options_.durability == Durability::kSync) {", "  if (false) {"), gtest_filter="*CrashTest*Sync"),
    mutation("summary before its records are there for good", (LOG_KEEPER, "  did = true;\n  if (const int error = flush(channel); error != 0) return error;\n", "  did = true;\n"), gtest_filter="*CrashTest*"),
    mutation("records before their segment's header is there for good", (LOG_KEEPER, "const int error = headers.empty() ? 0 : flush(channel);", "const int error = 0;"), gtest_filter="*CrashTest*"),

    mutation("batch is never flushed", ("src/kv/store.cc", "  wrote_.exchange(false, std::memory_order_acquire);\n  if (const int", "  wrote_.exchange(false, std::memory_order_acquire);\n  if (false)\n  if (const int"), gtest_filter="Batch.*"),
    mutation("batch is not flushed while a segment is given room", ("src/kv/log/log_keeper.cc", "    error = channel.write(at, zeros.first(std::min(kZeroBytes, end - at)));\n    meanwhile();\n", "    error = channel.write(at, zeros.first(std::min(kZeroBytes, end - at)));\n"), gtest_filter="Batch.*"),
    mutation("batch is not flushed while segments are sealed", ("src/kv/log/log_keeper.cc", "      first_error = error;\n    }\n    meanwhile();\n", "      first_error = error;\n    }\n"), gtest_filter="LogTest.WhatIsToBeDone*"),
    mutation("nobody tells the keeper of a batch", (SESSION_CHANGE, "    store_->log_.keeper_wanted.notify_all();\n", "    static_cast<void>(0);\n"), gtest_filter="Batch.*"),

    # Recovery
    mutation("a key that a checkpoint knows twice stays twice", (RECOVERY_APPLY, "    if (other.entry == nullptr) continue;\n    if (!index_->remove", "    if (other.entry != nullptr || other.entry == nullptr) continue;\n    if (!index_->remove"), gtest_filter="CheckpointSplitTest.*"),
    mutation("a flush succeeds after one that failed", (FLUSH_GROUP, "error() != 0 ? error() : flush()", "flush()"), gtest_filter="CollectorLateTest.*"),
    mutation("a sync put is told of its own flush alone", (FLUSH_GROUP, "error() != 0 ? error() : flush()", "flush()"), gtest_filter="*CrashTest.NothingIsLost*/Sync"),
    mutation("older of two records counts", (RECOVERY_APPLY, "known.entry->sequence() >= entry.sequence()", "known.entry->sequence() <= entry.sequence()"), gtest_filter="StoreTest.*"),
    mutation("what was removed comes back", (RECOVERY_APPLY, "    if (entry.kind() == RecordKind::kTombstone)\n      index_->remove(", "    if (false)\n      index_->remove("), gtest_filter="StoreTest.*"),
    mutation("hole ends a segment", (RECOVERY_READER, "      ++grain;\n      continue;", "      break;"), gtest_filter="*CrashTest*"),
    mutation("torn record counts", (FORMAT, "  return check == record.header.check ? Reading::kWhole : Reading::kDamaged;", "  return check != 0 ? Reading::kWhole : Reading::kDamaged;"), gtest_filter="*CrashTest*"),
    mutation("sequences begin anew", (RECOVERY_APPLY, "  log_.recovered_sequence(last_sequence);\n", ""), gtest_filter="*CrashTest*"),
    mutation("generations begin anew", (LOG, "  generation_ = std::max(generation_, generation);\n", ""), gtest_filter="StoreTest.*"),
    mutation("what was found after a crash is not flushed", (RECOVERY, "const int error = workers_[0].reader.channel.flush(); error != 0", "const int error = 0; error != 0"), gtest_filter="*CrashTest*"),
    mutation("what is left of a piece at the end of what was read is lost", (RECOVERY_CHECKPOINT, "  rest_.assign(rest.begin(), rest.end());\n", ""), gtest_filter="CheckpointRead*"),
    mutation("a piece beyond what was read ends a segment", (RECOVERY_CHECKPOINT, "bytes <= left.size() + (end - at_)", "bytes <= left.size()"), gtest_filter="CheckpointRead*"),
    mutation("segment that holds only copies is sealed", (RECOVERY, "if (auto done = drop_copies(); !done) return std::unexpected(done.error());", "{\n    }"), gtest_filter="*TakeNoRoom*"),
    mutation("segment with copies is given back with what is only there", (RECOVERY_COPIES, "std::ranges::all_of(is_found", "std::ranges::any_of(is_found"), gtest_filter="RecoveryCopiesTest.*"),
    mutation("what was not written is a copy", (RECOVERY_COPIES, " || entry.kind() == RecordKind::kVoid", ""), gtest_filter="RecoveryCopiesTest.*"),
    mutation("two segments with the same copies are both given back", (RECOVERY_COPIES, "    if (!*are_elsewhere) continue;\n", "    dropped.push_back(*are_elsewhere ? i : kNone);\n  }\n  for (const uint32_t i : dropped) {\n    if (i == kNone) continue;\n"), (RECOVERY_COPIES, "  std::vector<uint32_t> unsealed;", "  constexpr uint32_t kNone = ~0u;\n  std::vector<uint32_t> unsealed, dropped;"), gtest_filter="RecoveryCopiesTest.*"),
    mutation("record of the same change of another key is a copy", (RECOVERY_COPIES, "if (at->hash == entry.hash) is_found", "is_found"), gtest_filter="RecoveryCopiesTest.*"),
    mutation("segment that is damaged at both ends is a free one", (RECOVERY, "  if (!segment.is_known) return Segment::State::kSealed;\n", "  if (!segment.is_known) return Segment::State::kFree;\n"), gtest_filter="*DamageTest.BothEnds*"),
    mutation("checkpoint forgets what is in a damaged segment", (RECOVERY, "is_old[i] = !segments_[i].is_known || ", "is_old[i] = segments_[i].is_unreadable || "), gtest_filter="*DamageTest.BothEnds*"),
    mutation("checkpoint stays though the collector has no segment", (RECOVERY, " && !has_free_segment())", " && false)"), gtest_filter="RecoveryCopiesTest.*"),
    mutation("what a checkpoint that is left knew is counted twice", (RECOVERY, "  for (uint32_t i = 0; i < worker_count_; ++i) std::ranges::fill(workers_[i].live, Live{});\n", ""), gtest_filter="RecoveryCopiesTest.*"),
    mutation("tombstones of a segment that was given back are held", (CHECK, "!is_value(record) && recovered_.is_kept(geometry_.segment_of(record.address))", "!is_value(record)"), gtest_filter="*TakeNoRoom*"),
    mutation("a checkpoint without one of its pieces counts", (RECOVERY_CHECKPOINT, " || header.number != expected) return", ") return"), gtest_filter="CheckpointRead*"),
    mutation("a checkpoint without its end counts", (RECOVERY_CHECKPOINT, "  return std::unexpected(not_whole().error());", "  has_end_ = true;\n  return Pieces{};"), gtest_filter="CheckpointRead*"),
    mutation("records of the last part are not replayed", (RECOVERY_APPLY, "  return for_all(part_count_, 1,", "  return for_all(part_count_ - 1, 1,"), gtest_filter="StoreTest.*"),
    mutation("the first part of what is staged begins too late", (RECOVERY_APPLY, "part == 0 ? 0 : part_ends_[part - 1]", "part == 0 ? 1 : part_ends_[part - 1]"), gtest_filter="StoreTest.*"),
    mutation("what is staged after the first segments is not applied", (RECOVERY_APPLY, "begin < segments_.size(); begin = end)", "begin == 0; begin = end)"), gtest_filter="RecoveryApplyTest.*"),
    mutation("records of a part are staged over each other", (RECOVERY_APPLY, "staged[parts[part_of(entry.hash)]++]", "staged[parts[part_of(entry.hash)]]"), gtest_filter="RecoveryApplyTest.*"),
    mutation("a start makes the index as large as the log", (RECOVERY_APPLY, "(sample.size() - repeated.size()) * part_count_", "sample.size() * part_count_"), gtest_filter="RecoveryApplyTest.*"),
    mutation("the child of a region without entries does not get its homes", (INDEX_CHANGE, "    its.word() = its.word().with(table.depth + 1, 0);\n", ""), gtest_filter="IndexTest.*:RecoveryApplyTest.*"),

    # Check
    mutation("check writes", ("src/kv/media/forgetful_device.cc", "    if (io.operation == storage::Operation::kRead) {\n", "    if (true) {\n"), gtest_filter="CheckTest.*"),
    mutation("second superblock is not looked at", (CHECK, "  if (!second) is_wrong", "  if (false) is_wrong"), gtest_filter="CheckTest.*"),
    mutation("superblocks of two stores are taken for one's", (CHECK, "first && second && *first != *second", "first && second && false"), gtest_filter="CheckTest.*"),
    mutation("damaged footer taken for none", (CHECK_SEGMENTS, "if (!known.has_footer && !has_second)", "if (false)"), gtest_filter="CheckTest.*"),
    mutation("second header is not believed", (CHECK_SEGMENTS, "    if (is_younger || (!has_header && has_second)) {", "    if (is_younger) {"), gtest_filter="CheckLifeTest.Either*"),
    mutation("younger second header is not believed by a check", (CHECK_SEGMENTS, "    if (is_younger || (!has_header && has_second)) {", "    if (!has_header && has_second) {"), gtest_filter="CheckLifeTest.Either*"),
    mutation("younger second header is not believed by a start", (RECOVERY_READER, "      last.generation > found.header.generation) {\n", "      false) {\n"), gtest_filter="SealedCopyTest.*"),
    mutation("pieces of a checkpoint taken for records", (CHECK_SEGMENTS, "  if (has_header && header.state == SegmentState::kCheckpoint) return {};\n", ""), gtest_filter="CheckLifeTest.ACheckpoint*"),
    mutation("first expiry of a footer is not compared", (CHECK_SEGMENTS, "  if (first_expiry != 0 && (", "  if (false && ("), gtest_filter="CheckTest.*"),
    mutation("key of a record is not compared with its entry", (CHECK_SEGMENTS, "  if (hash_record(identity_.secret, record) != entry.hash)", "  if (false)"), gtest_filter="CheckTest.*"),
    mutation("sequence of a record is not compared with its entry", (CHECK_SEGMENTS, "  if (record.header.sequence_and_kind != entry.sequence_and_kind)", "  if (false)"), gtest_filter="CheckTest.*"),
    mutation("hole between records is nothing", (CHECK_SEGMENTS, "    if (was_one || begun != kNone)", "    if (begun != kNone)"), gtest_filter="CheckTest.*"),
    mutation("torn record at the end is nothing", (CHECK_SEGMENTS, "  if (gap != kNone) end_gap(false);", ""), gtest_filter="CheckLifeTest.ADamagedRecord*"),
    mutation("window of the segment before", (CHECK_SEGMENTS, "segment != window_segment_ || grain", "grain"), gtest_filter="CheckTest.*"),
    mutation("what cannot be read makes what is near it unreadable", (CHECK_SEGMENTS, "      error = read(segment, grain, memory_.first(count * grain_bytes));\n", ""), gtest_filter="CheckTest.*"),
    mutation("counters of a lost segment are judged", (CHECK, " || recovered_.is_unknown(i)", ""), gtest_filter="CheckLifeTest.EitherHeader*"),
    mutation("damaged checkpoint is not told", (CHECK, "        one.error == EBADMSG && !one.has_gaps && segments.has_end(", "        false && segments.has_end("), gtest_filter="CheckpointCheckTest.*"),
    mutation("checkpoint that never counted is damage", (CHECK, "!one.has_gaps && segments.has_end(one.segments.back(), one.number)", "!one.has_gaps"), gtest_filter="CheckpointCheckTest.*"),
    mutation("checkpoint that is being given back is damage", (CHECK, "!one.has_gaps && ", ""), gtest_filter="CheckpointCheckTest.*"),
    mutation("want of memory is a finding", (CHECK, "    if (is_of_process(opened.error().number)) return not_done(opened.error());\n", ""), gtest_filter="CheckTest.Want*"),
    mutation("missing entry is not told", (CHECK, "    } else if (life == Life::kLive) {", "    } else if (false) {"), gtest_filter="CheckTest.*"),
    mutation("entry of a removed key is right", (CHECK, "is_newest && is_value(*own) && life != Life::kGone && found", "is_newest && found"), gtest_filter="CheckTest.*"),
    mutation("entry of an older record is right", (CHECK, "is_newest && is_value(*own)", "own != key.end() && is_value(*own)"), gtest_filter="CheckTest.*"),
    mutation("counters are not compared", (CHECK, "      if (recovered_.live_grains(i) == live_grains_[i] || recovered_.is_unknown(i)) continue;", "      continue;"), gtest_filter="CheckTest.*"),
    mutation("tombstones are not held", (CHECK, "      if (!is_value(record) && recovered_.is_kept(geometry_.segment_of(record.address))) hold(record);", "      static_cast<void>(record);"), gtest_filter="CheckTest.*"),
    mutation("piece of no value is right", (CHECK, "      return is_known ? Life::kGone : Life::kEither;", "      return is_known ? Life::kEither : Life::kEither;"), gtest_filter="CheckLifeTest.PiecesThat*"),
    mutation("value that lacks a piece is whole", (CHECK, "      if (missing == 0 || life == Life::kEither) continue;", "      if (missing < head->of.count() || life == Life::kEither) continue;"), gtest_filter="CheckLifeTest.AValueThat*"),
    mutation("pieces near a damaged one are of no value", (CHECK, "          !has_damaged_head_ && !std::ranges::binary_search(damaged_pieces_, key[0].sequence());", "          !has_damaged_head_;"), gtest_filter="CheckLifeTest.DamagedHeads*"),
    mutation("pieces of a damaged head are of no value", (CHECK, "          !has_damaged_head_ && !std::ranges", "          !std::ranges"), gtest_filter="CheckLifeTest.DamagedHeads*"),
    mutation("what has expired must be in the index", (CHECK, "? Life::kGone : Life::kEither;\n  }\n\n  bool is_in_index", "? Life::kGone : Life::kLive;\n  }\n\n  bool is_in_index"), gtest_filter="CheckLifeTest.WhatHasExpired*"),

    # Calls beside each other
    mutation("two puts of a key at once", ("src/kv/collection/key_locks.cc", "holder != nullptr && holder->hash_ != hash_", "holder != nullptr"), gtest_filter="StoreTest.Threads*"),
    mutation("put that could not be made takes others with it", ("src/kv/collection/key_locks.cc", "    if (has_succeeded_) {", "    if (true) {"), gtest_filter="KeyLocks.*"),
    mutation("call that depends on what is there is superseded", ("src/kv/collection/key_locks.h", "return replaces_ && next.replaces_ &&", "return next.replaces_ &&"), gtest_filter="KeyLocks.*"),
    mutation("put of one key supersedes another's of the same hash", ("src/kv/collection/key_locks.h", " && hash_ == next.hash_ && key_ == next.key_", " && hash_ == next.hash_"), gtest_filter="KeyLocks.*"),
    mutation("put of one key waits for each before it", ("src/kv/collection/key_locks.cc", "while (!rest.empty() && heir->is_replaced_by", "while (false && heir->is_replaced_by"), gtest_filter="KeyLocks.*"),
    mutation("key read is not compared", (SESSION, "  return record.key == key && is_piece", "  return is_piece"), gtest_filter="LargeStore.*"),
    mutation("another key's damage is the key's", (SESSION_CHANGE, "    current.is_damaged = false;  // the damaged one was another key's, with the same tag\n", ""), gtest_filter="LargeStore.*"),
    mutation("who cannot read another key's record does not find the key's", (SESSION, "  if (!is_there) {\n    // Other keys", "  if (!is_there && unread) {\n    // Other keys"), gtest_filter="LargeStore.*"),
    mutation("the keeper waits as the task that opened the store", ("src/kv/store.cc", "keeper_channel_.open_for_threads(device_)", "keeper_channel_.open(device_, 1)"), gtest_filter="StoreTest.ATask*"),

    # Snapshots
    mutation("put that was under way is part of a snapshot", (SNAPSHOTS, "    if (version <= member->sequence) member->late.push_back(version);\n", ""), gtest_filter="LateSnapshotTest.*"),
    mutation("what is newer than a snapshot is part of it", (SNAPSHOTS, "  if (version > sequence) return std::ranges::binary_search(renewed, version);\n", ""), gtest_filter="SnapshotTest.*"),
    mutation("segment of what a snapshot keeps not kept", (SNAPSHOTS, ".keeps.fetch_add(1, std::memory_order_relaxed);", ".keeps.fetch_add(0, std::memory_order_relaxed);"), gtest_filter="SnapshotTest.*"),
    mutation("change of what a scan has found not handed over", (SNAPSHOTS, "      if (position < member->asked) continue;\n", "      continue;\n"), gtest_filter="SnapshotTest.*"),
    mutation("change of what is being read not noticed", (SNAPSHOTS, "        at->found = false;\n      else\n        continue;", "        continue;\n      else\n        continue;"), gtest_filter="BetweenTest.*"),
    mutation("snapshot does not follow the collector", (SNAPSHOTS, "      *at = to;\n      if (!to.found) erase(member->pending, at);", "      if (!to.found) erase(member->pending, at);"), gtest_filter="SnapshotTest.*"),
    mutation("snapshot does not follow the collector while it reads", (SNAPSHOTS, "    } else if (at = find(member->reading, address); at != member->reading.end()) {\n      *at = to;\n", "    } else if (false) {\n"), gtest_filter="BetweenTest.*"),
    mutation("what a merge has brought back is given out again", (SNAPSHOT, "  if (!item.is_kept && Index::position_of(hash.low) < member_.asked) return;\n", ""), gtest_filter="LargerSnapshotTest.*"),
    mutation("large value of a group not held", (SNAPSHOT, "    store_->snapshots_.hold(member_, item.pieces);\n", ""), gtest_filter="LargerSnapshotTest.*"),
    mutation("victim emptied that has been kept meanwhile", (COLLECTOR, "  if (keeps() == 0) return false;\n", "  return false;\n"), gtest_filter="BetweenTest.*"),
    mutation("writers refused for a snapshot", (COLLECTOR, "why != Log::Room::kDone && snapshots_->cancel_oldest(why)", "false && snapshots_->cancel_oldest(why)"), gtest_filter="SnapshotTest.*"),
]
