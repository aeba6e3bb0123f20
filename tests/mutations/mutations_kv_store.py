"""Breakages of src/kv: collection, values in pieces, what is made of a medium, what is said of its failures, and what is counted."""

CALLS = "src/kv/calls.cc"
CHANNEL = "src/kv/media/channel.cc"
COLLECTOR = "src/kv/collection/collector.cc"
COLLECTOR_MOVE = "src/kv/collection/collector_move.cc"
FORMAT = "src/kv/media/format.cc"
HISTOGRAM = "src/base/histogram.h"
LARGE_VALUES = "src/kv/collection/large_values.cc"
LIFETIMES = "src/kv/media/lifetimes.h"
LOG = "src/kv/log/log.cc"
LOG_COLLECTOR = "src/kv/log/log_collector.cc"
LOG_KEEPER = "src/kv/log/log_keeper.cc"
PACE = "src/kv/log/pace.cc"
PACE_H = "src/kv/log/pace.h"
LOG_ROOM = "src/kv/log/log_room.cc"
READERS = "src/kv/collection/readers.cc"
RECOVERY = "src/kv/recovery/recovery.cc"
RECOVERY_PIECES = "src/kv/recovery/recovery_pieces.cc"
RECOVERY_READER = "src/kv/recovery/recovery_reader.cc"
SESSION = "src/kv/session.cc"
SESSION_CHANGE = "src/kv/session_change.cc"
STORE = "src/kv/store.cc"
TIER = "src/kv/tier/memory_tier.cc"
TIER_H = "src/kv/tier/memory_tier.h"
SUPERBLOCKS = "src/kv/media/superblocks.cc"
VALUE_WRITER = "src/kv/value_writer.cc"


def mutation(name, *patches, test="kv_test", gtest_filter="CollectorTest.*"):
    return {"name": name, "test": (test, gtest_filter), "patches": list(patches)}


MUTATIONS = [
    # What is live is elsewhere for good before its segment is given back
    mutation("segment given back before its copies are there for good", (COLLECTOR, "  int error = log_->flush(channel_);\n", "  int error = 0;\n"), gtest_filter="*CrashTest*"),
    mutation("segment discarded before its header is there for good", (LOG_KEEPER, "    write_headers(channel, headers, SegmentState::kFree, kFirst | kLast);\n  }\n  if (const int error = flush(channel); error != 0) return error;\n", "    write_headers(channel, headers, SegmentState::kFree, kFirst | kLast);\n  }\n"), gtest_filter="*CrashLifeTest*/Sync"),
    mutation("segment given back under its readers", (COLLECTOR, "  readers_->wait();\n", ""), gtest_filter="ReadersTest.*"),
    mutation("readers of one phase are waited for", (READERS, "std::memory_order_seq_cst);\n  wait_for(phase);\n", "std::memory_order_seq_cst);\n"), gtest_filter="ReadersTest.*"),
    mutation("a summary's records are as long as it says", (FORMAT, " || entry.grains > grains_max ||", " ||"), gtest_filter="SummaryTest.*"),
    mutation("a checkpoint's records are as long as it says", ("src/kv/media/checkpoint_format.cc", " || EntryFormat::size(entry) > size_max;", ";"), gtest_filter="CheckpointFormatTest.*"),
    mutation("a value has more pieces than there is room for", ("src/kv/media/format.h", " &&\n           count() <= geometry.segment_count * geometry.segment_grains();", ";"), gtest_filter="FormatTest.AHead*"),
    mutation("damaged record moved", (COLLECTOR_MOVE, "bytes, record) == Reading::kWhole &&", "bytes, record) != Reading::kPart &&")),
    mutation("memory behind a record moved with it", (FORMAT, "  put(header, to);\n  std::ranges::fill(to.subspan(bytes), std::byte{0});\n", "  put(header, to);\n"), gtest_filter="RecordTest.*"),

    # A place that the medium does not take, or that now and then is not read
    mutation("summary that cannot be written holds up the others", (LOG_KEEPER, "    } else if (is_of_segment(error)) {\n      sys::LockGuard scope(lock_);\n      put_off(segment);\n      has_new_victims_ = true;\n      segment.state.store(Segment::State::kUnsealed, std::memory_order_release);\n    } else if (first_error == 0) {\n      first_error = error;\n", "    } else {\n      return error;\n"), gtest_filter="UnwritableTest.ASummary"),
    mutation("header that cannot be written keeps others from being given back", (LOG_KEEPER, "  int error = 0;\n  for (const NextHeader& header : headers) {", "  int error = 0;\n  for (const NextHeader& header : headers)\n    if (header.error != 0) return header.error;\n  for (const NextHeader& header : headers) {"), gtest_filter="UnwritableTest.TheHeaderOfAnEmptied*"),
    mutation("header of the only free segment that cannot be written ends the log", (LOG_KEEPER, "has_written() || has_only_others()", "has_written()"), gtest_filter="LogTest.TheOneFreeSegment*"),
    mutation("header that cannot be written keeps others from being prepared", (LOG_KEEPER, "  const bool goes_on = has_written() || has_only_others();\n", "  const bool goes_on = std::ranges::all_of(std::span(headers, count), [](const NextHeader& of) { return of.error == 0; });\n"), gtest_filter="UnwritableTest.TheHeaderOfAFree*"),
    mutation("segment that is put off is tried again at once", (LOG_KEEPER, "  return !is_put_off(segment) || sys::monotonic_ns() >= segment.put_off_until_ns;", "  return true;"), gtest_filter="UnwritableTest.*"),
    mutation("segment that is put off is never tried again", (LOG_KEEPER, "  return !is_put_off(segment) || sys::monotonic_ns() >= segment.put_off_until_ns;", "  return !is_put_off(segment);"), gtest_filter="UnwritableTest.WhatIsPutOff*"),
    mutation("emptied segment that is put off counts as room to come", (LOG_KEEPER, "relaxed) == Segment::State::kEmptied) --emptied_count_;", "relaxed) == Segment::State::kEmptied) emptied_count_ += 0;"), gtest_filter="UnwritableTest.TheHeaderOf*"),
    mutation("segment that cannot be sealed is not collected", (LOG_COLLECTOR, "state != Segment::State::kSealed && state != Segment::State::kUnsealed", "state != Segment::State::kSealed"), gtest_filter="UnwritableTest.ASummary*"),
    mutation("segment that a start cannot seal is not collected", ("src/kv/recovery/recovery.cc", "  return log_.recovered_unsealed(index, entries);", "  return log_.recovered_unreadable(index), base::Expected<void>();"), gtest_filter="UnwritableTest.ASummary*"),
    mutation("a start that cannot seal a segment goes by its damaged summary's count", (LOG, "  segment.entry_count = static_cast<uint32_t>(entries.size());\n  segment.state", "  segment.state"), gtest_filter="*DamageTest.ASummaryWhose*"),
    mutation("what a damaged summary had as void is taken from the log's counts", (RECOVERY, "  if (listed && has_told_log_ && !segment.has_summary)\n", "  if (false)\n"), gtest_filter="LateSummaryTest.*"),
    mutation("a start seals a segment without a damaged record that the checkpoint knows", (RECOVERY, "  if (is_left_damaged(index, entries) || entries.empty()) return {};\n", "  if (entries.empty()) return {};\n"), gtest_filter="OpenSegmentTest.*"),
    mutation("a segment of nothing but a damaged record that the checkpoint knows is given back", (RECOVERY, "segment.unreadable_grains > 0 || known_records(index) > 0))", "segment.unreadable_grains > 0))"), gtest_filter="OpenSegmentTest.*"),
    mutation("segment that cannot be sealed is not tried again", (COLLECTOR, "  log_->retry_seals();\n", ""), gtest_filter="UnwritableTest.ASummaryIsTriedAgain"),
    mutation("void segment keeps tombstones from ending", (LOG_KEEPER, "      if (header.is_there) segment.is_void.store(true, std::memory_order_relaxed);\n", ""), gtest_filter="UnwritableTest.KeysComeAndGo"),
    mutation("segment whose header was refused keeps tombstones from ending", (LOG_KEEPER, "      segment.is_void.store(true, std::memory_order_relaxed);\n      segment.state", "      segment.state"), gtest_filter="UnwritableTest.KeysComeAndGo"),
    mutation("one header alone has a cache's floor", (LOG_KEEPER, "kFloorCopies = 2;", "kFloorCopies = 1;"), gtest_filter="LogTest.TheFloorIs*"),
    mutation("open segment keeps tombstones from ending", (COLLECTOR, "  if (victim == Log::kNone && collects) log_->fill_oldest();\n", ""), gtest_filter="IdleStreamTest.*"),
    mutation("each checkpoint is tried at the same place", (LOG_COLLECTOR, "    const uint32_t index = next_free_;\n    next_free_ = (next_free_ + 1) % segment_count_;\n", "    const uint32_t index = looked;\n"), gtest_filter="UnwritableCheckpointTest.*"),
    mutation("what cannot be read keeps what is read with it", (COLLECTOR_MOVE, "    if (const int error = read_singly(piece, moves); error != 0) return error;\n  } else {", "    for (const Move& move : moves) std::ranges::fill(piece.memory.subspan(move.read_offset, identity_->geometry.grain_bytes), std::byte{0});\n  } else {"), gtest_filter="UnreadableGrainTest.*"),
    mutation("the collector's last room is spent on what is damaged", ("src/kv/collection/collector.h", "return !log_->has_more_than(has_failed_reads_ ? Log::kReserve : Log::kReserve - 1);", "return false;"), gtest_filter="CollectorDamageTest.*"),
    mutation("the collector's last room is spent on what does not look damaged", (COLLECTOR_MOVE, "  return damaged == 0 ? 0 : EBADMSG;", "  return 0;"), gtest_filter="CollectorDamageTest.*"),
    mutation("what was left is never looked at again", (LOG_COLLECTOR, "  if (!has_room && live != 0 && live == segment.left_grains) return false;\n", "  if (live != 0 && segment.left_grains != 0) return false;\n"), gtest_filter="CollectorDamageTest.*"),
    mutation("what takes no room does not come first", (LOG_COLLECTOR, "  if (!has_free_segment())\n    for (uint32_t i", "  if (false)\n    for (uint32_t i"), gtest_filter="LastSegmentTest.*"),
    mutation("both headers of a segment are written at once", (LOG_KEEPER, "  if (geometry.grain_bytes > kMinBlockBytes) {", "  if (false) {"), gtest_filter="TornCopyTest.*"),
    mutation("younger header is not believed beside a footer", ("src/kv/recovery/recovery_reader.cc", "  if (is_first_right && read_segment_header(", "  if (is_first_right && !found.has_summary && read_segment_header("), gtest_filter="TornCopyTest.*"),
    mutation("reads that failed count though they work later", (COLLECTOR, "segment.failed_address <= last)\n    segment.failed_reads = 0;\n", "segment.failed_address <= last)\n    segment.failed_reads += 0;\n"), gtest_filter="UnwritableTest.Reads*"),
    mutation("errors that are not the medium's make a record a damaged one", (COLLECTOR, "  if (!is_of_medium(error)) return false;\n", ""), gtest_filter="FaultTest.ReadsThatFailForTheProcess"),
    mutation("header that nothing has checked decides a condition", (SESSION_CHANGE, "  if (need == Need::kAll) return read_as(true);\n", ""), gtest_filter="*DamageTest.AHeaderThat*"),
    mutation("header that nothing has checked decides a removal", (SESSION_CHANGE, "  return is_checked || !decides ? match : read_as(true);", "  return match;"), gtest_filter="*DamageTest.AHeaderThat*"),

    # A superblock
    mutation("store opened on another stripe than it was made on", (SUPERBLOCKS, "read && read->layout != device.layout()", "false"), gtest_filter="StoreMake.*"),
    mutation("a superblock that cannot be read is none", (SUPERBLOCKS, "return error.number == EINVAL;", "return error.number == EINVAL || error.number == EIO;"), gtest_filter="*SuperblocksTest*"),
    mutation("damaged superblock stays so", (SUPERBLOCKS, "channel.write(offset, (is_first ? second : first).block)", "0"), gtest_filter="*SuperblocksTest*"),
    mutation("superblock is written over the good one", (SUPERBLOCKS, "kSuperblockOffsets[is_first ? 0 : 1]", "kSuperblockOffsets[is_first ? 1 : 0]"), gtest_filter="*SuperblocksTest*"),
    mutation("superblock that is written anew is not flushed", (SUPERBLOCKS, "write_error == 0 ? channel.flush() : 0", "write_error == 0 ? 0 : 0"), gtest_filter="*SuperblocksTest.AFlush*"),
    mutation("a stripe with a device of another store is opened", (STORE, "  if (superblocks.are_of_two_stores())\n", "  if (false)\n"), gtest_filter="*SuperblocksTest.ThoseOf*"),

    # What was removed, or has expired, stays so
    mutation("piece that could not be read is moved all the same", (COLLECTOR_MOVE, "  if (piece.error != 0) {\n    if (!is_given_up(log_->segment(victim), moves.front().old_address, piece.error)) return piece.error;\n    if (const int error = read_singly(piece, moves); error != 0) return error;\n  } else {", "  if (piece.error == 0) {"), gtest_filter="*Unreadable*:Fault*:Collector*"),
    mutation("summary that could not be read is taken for none", (RECOVERY_READER, "      if (error != 0 && which == 1) found[i].is_summary_unread = true;\n", ""), gtest_filter="SealedCopyTest.ASummary*"),
    mutation("version that a power cut has taken is given out again", (RECOVERY, "  if (was_open())\n    if (auto skipped", "  if (!has_read_all())\n    if (auto skipped"), gtest_filter="PowerCut.*"),
    mutation("start that ends early leaves nothing of what it has skipped", (RECOVERY, "    const int error = log_.write_header_again(workers_[0].reader.channel, i);\n", "    const int error = 0;\n"), gtest_filter="RecoveryApplyTest.TheNextStart*"),
    mutation("segment of which nothing could be read is given back", (RECOVERY, "segment.unreadable_grains > 0 || known_records(index) > 0))\n", "known_records(index) > 0))\n"), gtest_filter="*UnreadableTest.AllOfASegment*"),
    mutation("what was changed since the checkpoint comes back with a segment that can be read again", ("src/kv/recovery/recovery_apply.cc", "    if (*found == nullptr) unknown = &worker.candidates[i];\n", "    if (*found == nullptr && !segments_[segment_of(candidate.address)].is_known) unknown = &worker.candidates[i];\n"), gtest_filter="*UnreadableTest.ASegmentWhoseKeys*"),
    mutation("a full file system makes a store one to be opened again", (STORE, "error_.load(std::memory_order_relaxed) == 0;\n  return goes_on", "false;\n  return goes_on"), gtest_filter="FaultTest.WhatToDo*"),
    mutation("pieces that could not be read are forgotten", (COLLECTOR, "  if (is_left) large_values_->leave(pieces);\n", ""), gtest_filter="*UnreadableTest.PiecesThatCan*"),
    mutation("what lies behind a record has to be read with it", (SESSION, "  if (error != 0) error = read_alone(location, error, purpose, to);\n", ""), gtest_filter="*UnreadableTest.AGrainBehind*"),
    mutation("what lies behind a record of many has to be read with it", ("src/kv/multi_get.cc", "!size_code::is_exact(location.size) || ", ""), gtest_filter="*UnreadableTest.AGrainBehind*"),
    mutation("what lies behind a record of a snapshot has to be read with it", ("src/kv/snapshot.cc", "  if (error != 0) error = session_->read_alone(item.location, error, IoFor::kSnapshots, bytes);\n", ""), gtest_filter="*UnreadableTest.AGrainBehind*"),
    mutation("what is only peeked at counts as read", (SESSION, "  if (marks_read) store_->used_records_.mark", "  store_->used_records_.mark"), gtest_filter="*CacheStoreTest.WhatIsPeeked*"),
    mutation("pieces whose head could not be read are forgotten", (SESSION_CHANGE, "    store_->large_values_.lose();\n", ""), gtest_filter="*UnreadableTest.PiecesWhose*"),
    mutation("segment that could not be read is never tried again", (COLLECTOR, "(log_->hurry_put_offs() || retry_unread())", "log_->hurry_put_offs()"), gtest_filter="*UnreadableTest.AllOfTheDevice*"),
    mutation("only the first piece of a victim is read", (COLLECTOR_MOVE, "  for (const Run& run : reads.runs) add(", "  for (const Run& run : reads.runs)\n    if (writes.empty()) add("), gtest_filter="Collector*:Store*"),
    mutation("tombstone ends while it hides something", (COLLECTOR_MOVE, "    ends = move.expiry < oldest;", "    ends = move.expiry < oldest || true;"), gtest_filter="CollectorTest.*:*CrashTest*"),
    mutation("tombstone never ends", (COLLECTOR_MOVE, "    ends = move.expiry < oldest;", "    ends = move.expiry < oldest && false;")),
    mutation("what has expired leaves no tombstone", (COLLECTOR_MOVE, "with_kind(move.from.sequence(), move.kind)},", "with_kind(move.from.sequence(), move.kind == RecordKind::kTombstone && move.from.kind() != RecordKind::kTombstone ? RecordKind::kVoid : move.kind)},"), gtest_filter="CollectorTest.WhatHasExpired*"),
    mutation("what has expired is moved as it is", (COLLECTOR_MOVE, "  } else if (move.kind != RecordKind::kPiece && lifetimes_->has_ended(record)) {", "  } else if (false) {"), gtest_filter="CollectorTest.WhatHasExpired*"),

    # Room
    mutation("a full store takes more", (LOG, "  if (!is_relocation && !is_tombstone && !request.is_kept && is_full()) return Room::kWaitForLimit;\n", ""), gtest_filter="LogTest.AStoreWithoutASegment*"),
    mutation("a full store takes no removal", (LOG, "  if (!is_relocation && !is_tombstone && !request.is_kept", "  if (!is_relocation && !request.is_kept"), gtest_filter="CollectorTest.*"),
    mutation("the end of one compaction ends the others", ("src/kv/collection/collector.h", "~AllWanted() { collector_.all_wanted_.fetch_sub(1); }", "~AllWanted() { collector_.all_wanted_.store(0); }"), gtest_filter="AllWantedTest.*"),
    mutation("handlers of signals end a compaction", (STORE, "  while (idle_steps_.load() < end && !log_.has_failed()) {\n", "  for (uint64_t at = end - 2; at < end && !log_.has_failed(); ++at) {\n"), gtest_filter="CompactTest.*"),
    mutation("what is emptied is never given back", (COLLECTOR, "    error = log_->give_back(channel_);", "    error = 0;"), gtest_filter="CollectorTest.AStore*"),
    mutation("who waits is not told that the store is full", (COLLECTOR, "      log_->tell_waiting();\n", ""), gtest_filter="CollectorTest.AFull*"),

    mutation("writers take what is kept for the collector", (LOG, "is_tombstone ? kReserve - 1 : kReserve);", "is_tombstone ? kReserve - 1 : 0u);"), gtest_filter="LogTest.WritersLeave*"),
    mutation("collector takes no more than writers", (LOG, "take_ready(is_relocation ? 0 :", "take_ready("), gtest_filter="LogTest.WritersLeave*"),
    mutation("victim is left though its room is needed", (LOG_ROOM, "  return available() + emptied_count_ > segments;\n", "  return true;\n"), gtest_filter="LogTest.AVictimMayBeLeft*"),
    mutation("victim is never left", (LOG_ROOM, "  return available() + emptied_count_ > segments;\n", "  return false;\n"), gtest_filter="LogTest.AVictimMayBeLeft*"),
    mutation("emptied victims make up for nothing", (LOG_ROOM, "  return available() + emptied_count_ > segments;\n", "  return available() > segments;\n"), gtest_filter="LogTest.AVictimMayBeLeft*"),
    mutation("a victim is begun without room for it", (LOG_ROOM, "  return emptied_count_ == 0 || free > kReserve;\n", "  return true;\n"), gtest_filter="LogTest.AVictimMayBeLeft*"),
    mutation("who waits for its turn is overtaken by calls of its key", (SESSION_CHANGE, "  Log::Request request = request_for(next);\n", "  Log::Request request = request_for(next);\n  if (!is_remove && when == When::kAlways && !store_->log_.wait_for_turn(request))\n    return std::unexpected(store_->tell_failure());\n"), test="capi_threads_test", gtest_filter="*Paced*"),
    mutation("pieces stay of a head that was never written", ("src/kv/value_writer.cc", "  if (is_done || (!done && has_room)) {", "  if (is_done || !done) {"), gtest_filter="FaultTest.PiecesOf*"),
    mutation("writers are refused for a segment that was sealed since the collector chose", (LOG_ROOM, "  if (has_new_victims_) return true;\n", ""), gtest_filter="LogTest.NobodyIsRefused*"),
    mutation("what was sealed counts as new for good", (LOG_ROOM, "    has_new_victims_ = false;\n", ""), gtest_filter="LogTest.NobodyIsRefused*"),
    mutation("turns are not waited for", (LOG_ROOM, "  if (at <= now) return !has_failed();\n", "  static_cast<void>(at);\n  return !has_failed();\n"), gtest_filter="LogPaceTest.WritersHave*"),
    mutation("who waits for its turn is not told of a failure", (LOG_ROOM, "    failed_.store(true, std::memory_order_release);\n    paced = end_pace();", "    failed_.store(true, std::memory_order_release);"), gtest_filter="LogPaceTest.WhoWaits*"),
    mutation("turns wait although nobody is paced", (LOG_ROOM, "  if (!is_paced_.load(std::memory_order_relaxed)) return !has_failed();\n", ""), (LOG_ROOM, "    if (has_failed() || !is_paced_.load(std::memory_order_relaxed)) return !has_failed();\n", ""), gtest_filter="LogPaceTest.Nobody*"),
    mutation("gains are not told to the pace", (LOG_ROOM, "  pace_.gained(grains, free_level(), now_ns());", "  static_cast<void>(grains);"), gtest_filter="LogPaceTest.WritersAreAsFast*"),
    mutation("what is left of open segments is not free", (LOG_ROOM, "    free += 1 - Filling::of(filling).used_grains / segment_grains;\n", "    static_cast<void>(filling);\n"), gtest_filter="LogPaceTest.WhatIsFree*"),
    mutation("what is emptied is not free for the pace", (LOG_ROOM, "static_cast<double>(available() + emptied_count_) - kReserve", "static_cast<double>(available()) - kReserve"), gtest_filter="LogPaceTest.WhatIsFree*"),
    mutation("nobody settles although writers are short", (LOG_ROOM, "  return available() <= kReserve;\n}", "  return false;\n}"), gtest_filter="LogPaceTest.WhatIsFree*"),
    mutation("pace heeds no level", (PACE, "gain_ns / level_, kMaxGrainNs", "gain_ns / (0 * level_ + 1), kMaxGrainNs"), gtest_filter="Pace.ItIsFaster*"),
    mutation("who begins does not know how much is free", (PACE, "  level_ = std::clamp(level, kMinLevel, kMaxLevel);\n  set_rate();", "  static_cast<void>(level);\n  set_rate();"), gtest_filter="Pace.WhoBegins*"),
    mutation("pace jumps with each level", (PACE, "  level_ += (std::clamp(level, kMinLevel, kMaxLevel) - level_) * kLevelShare;", "  level_ = std::clamp(level, kMinLevel, kMaxLevel);"), gtest_filter="Pace.OneLevel*"),
    mutation("pace forgets at once", (PACE, "  const double kept = kMemoryNs / (kMemoryNs + took_ns);", "  const double kept = 0.5;"), gtest_filter="Pace.GainsThat*"),
    mutation("pace never forgets", (PACE, "  const double kept = kMemoryNs / (kMemoryNs + took_ns);", "  const double kept = 1;"), gtest_filter="Pace.ANewSpeed*"),
    mutation("time at rest counts for the pace", (PACE_H, "  void rest() { gained_at_ns_ = 0; }", "  void rest() {}"), gtest_filter="Pace.TimeAtRest*"),
    mutation("a moment says how fast a collector is", (PACE, "worked_ns_ < kKnownNs ?", "worked_ns_ <= 0 ?"), gtest_filter="Pace.BeforeAnything*"),
    mutation("what no writer uses is kept", (PACE, "std::min(now_ns, kSlackNs)", "std::min(now_ns, 1000 * kSlackNs)"), gtest_filter="Pace.WhatNobody*"),
    mutation("a turn may be hours away", (PACE, "now_ns + kMaxAheadNs)", "now_ns + 100'000 * kMaxAheadNs)"), gtest_filter="Pace.Nobody*"),
    mutation("turns are taken twice", (PACE, "  } while (!next_ns_.compare_exchange_weak(next_ns, at_ns + takes_ns, std::memory_order_relaxed));", "    next_ns_.store(at_ns + takes_ns, std::memory_order_relaxed);\n  } while (false);"), gtest_filter="Pace.Threads*"),
    mutation("pace has no end", (LOG_ROOM, "    if (free >= free_high_) paced = end_pace();\n", ""), gtest_filter="LogPaceTest.PaceEndsWhenEnough*"),
    mutation("the collector waits for what only it gives", (LOG_ROOM, "    if (request.stream == relocation_stream() && available() == 0) return false;\n", ""), gtest_filter="LogTest.TheCollectorDoesNotWait*"),
    mutation("pace ends for a failed log only", (LOG_ROOM, "    paced = end_pace();\n    const bool has_room", "    const bool has_room"), gtest_filter="LogPaceTest.PaceEndsWhenNothing*"),

    # Which segment is next
    mutation("the oldest segment is next", (LOG_COLLECTOR, "      benefit = gain;\n", ""), (LOG_COLLECTOR, "      cost = live + grains / kVictimCostParts;\n", ""), gtest_filter="LogTest.ASegmentWithMore*"),
    mutation("the youngest segment is next", (LOG_COLLECTOR, "      benefit = gain;\n", ""), (LOG_COLLECTOR, "      cost = live + grains / kVictimCostParts;\n", ""), (LOG_COLLECTOR, "    const uint64_t age = newest - std::min(newest, segment.generation.load(std::memory_order_relaxed)) + 1;\n", "    const uint64_t age = segment.generation.load(std::memory_order_relaxed) + 1;\n"), gtest_filter="LogTest.ASegmentWithMore*"),
    mutation("the segment with least alive is next, whatever its age", (LOG_COLLECTOR, "    const uint64_t age = newest - std::min(newest, segment.generation.load(std::memory_order_relaxed)) + 1;\n", "    const uint64_t age = 1;\n"), gtest_filter="LogTest.ASegmentWithMore*"),
    mutation("victim that gains nothing", (LOG_COLLECTOR, "      if (gain < std::max<uint64_t>(1, grains / kGainParts)) continue;\n", ""), gtest_filter="LogTest.WhatGainsNothing*"),
    mutation("what a snapshot keeps is next", (LOG_COLLECTOR, "  if (segment.keeps.load(std::memory_order_relaxed) != 0) return false;\n", ""), gtest_filter="LogTest.WhatGainsNothing*"),
    mutation("tombstones do not make the oldest segment next", (LOG_COLLECTOR, "  if (expired_ms == 0 && has_many_tombstones()", "  if (false"), gtest_filter="LogTest.TheOldest*"),
    mutation("what has not expired is looked for", (LOG_COLLECTOR, "(first_expiry == 0 || first_expiry > expired_ms)", "first_expiry == 0"), gtest_filter="LogTest.WhatHasExpired*"),
    mutation("old copies hold no tombstone", (LOG_COLLECTOR, "    const bool is_oldest = segment.has_old_copies.load(std::memory_order_relaxed);", "    const bool is_oldest = false;"), gtest_filter="CollectorLateTest.*"),
    mutation("copies of a write that failed are not told of", (COLLECTOR_MOVE, "    for (const Move& move : moves) finish_unused(move);\n    return error;\n", "    for (const Move& move : moves) log_->finish(move.to, false);\n    return error;\n"), gtest_filter="CollectorLateTest.*"),
    mutation("a start seals what the index does not know as if it did", ("src/kv/recovery/recovery.cc", "      entry.sequence_and_kind = with_kind(entry.sequence(), RecordKind::kVoid);\n", "      static_cast<void>(entry);\n"), gtest_filter="CollectorLateTest.*"),
    mutation("a collector goes on after a failure", ("src/kv/collection/collector.cc", "  if (log_->has_failed()) return flush_failure();\n", ""), gtest_filter="CollectorLateTest.*"),
    mutation("what segments lose at their ends is not minded", (LOG, "  limit_bytes_.store(limit, std::memory_order_relaxed);\n", "  static_cast<void>(limit);\n"), gtest_filter="LogTest.WhatSegmentsLose*"),
    mutation("tombstones leave the collector all of the reserve", (LOG, "is_tombstone ? kReserve - 1 : kReserve);", "kReserve);"), gtest_filter="LogTest.*"),
    mutation("a tombstone does not use what another stream has", (LOG, "    is_done = append(streams_[i], request, extent);\n", "    static_cast<void>(i);\n"), gtest_filter="LogTest.*"),
    mutation("puts take the room of removes", (LOG_ROOM, "      if (!has_room && !waiting_.empty()) has_no_room_.store(true, std::memory_order_relaxed);\n", ""), gtest_filter="LogTest.*"),
    mutation("a store without room never has any again", (LOG_ROOM, "    if (available() > kReserve) has_no_room_.store(false, std::memory_order_relaxed);\n", ""), gtest_filter="LogTest.*"),
    mutation("copy that came too late is not told of", (COLLECTOR_MOVE, "  log_->segment(move.to.segment).has_old_copies.store(true, std::memory_order_relaxed);\n", ""), gtest_filter="CollectorLateTest.*"),
    mutation("old copies in a sealed segment hold tombstones", (LOG_KEEPER, "  segment.has_old_copies.store(false, std::memory_order_relaxed);\n", ""), gtest_filter="LogTest.OldCopies*"),

    # Segments that many fill
    mutation("full segment not closed", (LOG, "segment.filling.fetch_or(Filling::kClosed, std::memory_order_acquire)", "segment.filling.load(std::memory_order_acquire)"), gtest_filter="LogTest.WhoComesLate*"),
    mutation("what of two errors is worse does not count", ("src/kv/recovery/recovery_reader.cc", "  return rank(error) > rank(other);\n", "  return rank(error) != 0 && rank(other) <= 1;\n"), gtest_filter="RecoveryReaderTest.*"),
    mutation("closed segment appended to", (LOG, "    fits = (word & Filling::kClosed) == 0 && uint64_t", "    fits = uint64_t"), gtest_filter="LogTest.AClosedSegment*"),
    mutation("two appends get one place", (LOG, "    if (fits && segment.filling.compare_exchange_weak(word, next.word(), std::memory_order_release,\n                                                      std::memory_order_relaxed))\n      break;", "    if (fits) {\n      segment.filling.store(next.word(), std::memory_order_release);\n      break;\n    }"), gtest_filter="LogTest.WhatManyAppend*"),
    mutation("a start ends at a summary that cannot be written", (RECOVERY, "  if (error == 0) return {};\n  if (error == ENOMEM)\n", "  if (error == 0) return {};\n  if (error != 0)\n"), gtest_filter="UnwritableTest.*"),
    mutation("segment sealed before its writers have ended", (LOG_KEEPER, " &&\n        segments_[i].writers.load(std::memory_order_seq_cst) == 0)", ")"), gtest_filter="LogTest.ASegmentIsNot*"),
    mutation("record where the summary will be", (LOG, "usable_grains(filling.entry_count + 1);", "usable_grains(0);"), gtest_filter="LogTest.RecordsLeave*"),
    mutation("record that was not written is listed", (LOG, "    entry.sequence_and_kind = with_kind(entry.sequence(), RecordKind::kVoid);\n", ""), gtest_filter="LogTest.ASegmentIsNot*"),

    # Values in pieces
    mutation("pieces of what was replaced stay", (COLLECTOR, "    if (const int error = release_pieces(pieces); error != 0) {", "    if (const int error = 0; error != 0) {"), gtest_filter="LargeValuesTest.*"),
    mutation("pieces go under their reader", (LARGE_VALUES, "  if (use != uses_.end()) {\n    use->is_removed = true;\n    return false;\n  }\n", ""), gtest_filter="LargeValuesTest.*"),
    mutation("the last reader leaves the pieces", (LARGE_VALUES, "  if (is_removed) removed_.push_back(pieces);\n", ""), gtest_filter="LargeValuesTest.*"),
    mutation("head that was replaced meanwhile is read", (SESSION, "  if (is_current(hash, location.address)) return true;\n", "  return true;\n"), gtest_filter="ReadersTest.*"),
    mutation("head before its pieces are there for good", (VALUE_WRITER, "  if (auto flushed = session.flush(); !flushed) return std::unexpected(flushed.error());\n", ""), gtest_filter="*CrashTest*"),
    mutation("pieces of a writer that gave up stay", (VALUE_WRITER, "  if (session_ != nullptr && pieces_.of.sequence != 0) session_->store_->abandon_pieces(pieces_);\n", ""), gtest_filter="LargeValuesTest.*"),
    mutation("pieces that are given up belong to nobody for a moment", (LARGE_VALUES, "  sys::LockGuard scope(lock_);\n  forget_write(pieces);\n  removed_.push_back(pieces);\n", "  end_write(pieces);\n  static_cast<void>(remove(pieces));\n"), gtest_filter="HeadlessCountTest.*"),
    mutation("a piece is a key", (SESSION, "record.key == key && is_piece == (about == About::kPiece) ?", "record.key == key ?"), (FORMAT, "  return {~hash.low, ~hash.high};", "  return hash;"), (FORMAT, "kPiece ? KeyHash{~hash.low, ~hash.high} : hash;", "kPiece ? hash : hash;"), gtest_filter="LargeValuesTest.*"),
    mutation("pieces without a head stay", (RECOVERY_PIECES, "  if (*is_there) return {};\n", "  if (*is_there || true) return {};\n"), gtest_filter="LargeValuesTest.*"),
    mutation("pieces that a checkpoint knew are not looked at", (RECOVERY_PIECES, "  if (!segment.is_used() || segment.footer.piece_count == 0) return {};\n", "  if (true) return {};\n"), gtest_filter="CheckpointTest.PiecesOfIt*"),
    mutation("footer does not count pieces", ("src/kv/media/format.cc", "    if (entry.kind() == RecordKind::kPiece) ++footer.piece_count;\n", ""), gtest_filter="CheckpointTest.PiecesOfIt*"),
    mutation("a piece whose beginning is damaged stays when its value is removed", (COLLECTOR, "      if (own == nullptr || !is_damaged) own = &all[i];\n", "      if (!is_damaged) own = &all[i];\n"), gtest_filter="CheckpointTest.ADamagedPiece*"),
    mutation("a piece whose key is damaged is taken for another record", (COLLECTOR, "    if (is_piece || reading != Reading::kPart) return 0;\n", "    return 0;\n"), gtest_filter="LargeValuesTest.PiecesThatSay*"),
    mutation("a damaged piece that nothing lists stays when its value has ended", (RECOVERY_PIECES, "  return end_unlisted(worker, key, pieces.size());\n", "  return {};\n"), gtest_filter="CheckpointTest.ADamagedPiece*"),
    mutation("damaged pieces that do not say whose they are stay", (RECOVERY_PIECES, "  return ended ? end_nameless(values) : ended;\n", "  return ended;\n"), gtest_filter="LargeValuesTest.PiecesThatSay*"),
    mutation("damaged pieces that do not say whose they are end though a head names them", (RECOVERY_PIECES, " && !std::ranges::binary_search(named, sequence)", ""), gtest_filter="LargeValuesTest.PiecesThatSay*"),
    mutation("pieces of another value of the key stay", (RECOVERY_PIECES, "pieces->sequence == sequence || pieces->sequence == 0;", "pieces->sequence == sequence || true;"), gtest_filter="CheckLifeTest.LargeValues*"),

    # Media
    mutation("recovery does not know the second header", ("src/kv/recovery/recovery_reader.cc", "  if (!found.is_known) found.is_known = read_segment_header(*identity_, tail, found.header);\n", ""), gtest_filter="CheckLifeTest.Either*"),
    mutation("a store has grains without addresses", (STORE, "  if (geometry.segment_count > kMaxGrains / geometry.segment_grains())\n", "  if (false)\n"), gtest_filter="StoreMake.ADeviceThatIsTooLarge*"),
    mutation("a store begins where another did", (STORE, "  generation >>= 64 - kFirstGenerationBits;\n", "  generation = 0;\n"), gtest_filter="StoreMake.*"),
    mutation("second headers are not written", (STORE, "    for (uint64_t offset : geometry.header_offsets(i))\n      if (error == 0)", "    for (uint64_t offset : {geometry.segment_offset(i)})\n      if (error == 0)"), gtest_filter="StoreMake.*:CheckLifeTest.Either*"),
    mutation("failure that a call tells is logged", (STORE, "  if (is_told) note_told();\n", ""), (STORE, "  if (at_ns == 0 || now_ns < at_ns) return;", "  if (at_ns == 0) return;"), gtest_filter="StoreFailure.*"),
    mutation("failure that a server's clients are told is not logged", (STORE, "  if (!options_.logs_told_failures) is_told_", "  is_told_"), gtest_filter="StoreFailure.*"),
    mutation("failure that nobody is told is not logged", (STORE, "  if (is_told_.exchange(true, std::memory_order_relaxed)) return;\n", "  is_told_.exchange(true, std::memory_order_relaxed);\n  if (is_told_.load(std::memory_order_relaxed)) return;\n"), gtest_filter="StoreFailure.*"),
    mutation("what is only to be read is opened for writing", ("src/storage/opening/open_medium.cc", "  long result = open_path(path, 0, parameters.read_only);", "  long result = open_path(path, 0, false);"), test="storage_test", gtest_filter="OpenTest.*"),

    # What is counted
    mutation("buckets of times leave a gap", (HISTOGRAM, "    return ((index - kParts * shift + 1) << shift) - 1;", "    return ((index - kParts * shift + 1) << shift);"), test="base_test", gtest_filter="Histogram.*"),
    mutation("times out of range are in a bucket that is not there", (HISTOGRAM, "    return std::min<size_t>(kParts * shift + (time >> shift), kCount - 1);", "    return kParts * shift + (time >> shift);"), test="base_test", gtest_filter="Histogram.*"),
    mutation("the longest time of a histogram that is added is lost", (HISTOGRAM, "    most_ = std::max(most_, other.most_.load(std::memory_order_relaxed));\n", ""), test="base_test", gtest_filter="Histogram.*"),
    mutation("times that a closed session has counted are lost", (CALLS, "      ended_times_[i].add(place.counts->times(static_cast<CallKind>(i)));\n", "      static_cast<void>(i);\n"), gtest_filter="CallsTest.*"),
    mutation("bytes that a closed session has counted are lost", (CALLS, "    place.counts->add_to(ended_);\n", ""), gtest_filter="CallsTest.*"),
    mutation("I/O that a closed session has counted is lost", (CALLS, "    place.channel->add_io(ended_.io);\n", ""), gtest_filter="CallsTest.*"),
    mutation("a session that is opened again counts what it has counted before", (CHANNEL, "  for (IoCounter& counter : io_) counter.reset();\n", ""), gtest_filter="CallsTest.*"),
    mutation("a call takes as long as its beginning", ("src/kv/calls.h", "    counts_.times(call_).add(took_ns);", "    counts_.times(call_).add(1);"), gtest_filter="Calls*"),
    mutation("a get of many keys is another get", ("src/kv/multi_get.cc", "      results[i] = session.do_get(keys[i]);", "      results[i] = session.get(keys[i]);"), gtest_filter="CallsTest.*"),
    mutation("a put of a large value is two", (SESSION_CHANGE, "    return writer.do_commit(options);", "    return writer.commit(options);"), gtest_filter="CallsTest.*"),
    mutation("a put in parts is two", (VALUE_WRITER, "    auto done = session.do_put(key_,", "    auto done = session.put(key_,"), gtest_filter="CallsTest.*"),
    mutation("what was not put is counted", (SESSION_CHANGE, "  if (done && done->outcome == Changed::Outcome::kDone) {\n    const uint64_t bytes = key.size()", "  if (done) {\n    const uint64_t bytes = key.size()"), gtest_filter="CallsTest.*"),
    mutation("what changes look at is read for gets", (SESSION_CHANGE, "About::kKey, whole, IoFor::kChanges, memory", "About::kKey, whole, IoFor::kGets, memory"), gtest_filter="CallsTest.*"),
    mutation("what snapshots read is read for changes", ("src/kv/snapshot.cc", "  session_->channel_.run(group.ios.all(), IoFor::kSnapshots);", "  session_->channel_.run(group.ios.all());"), gtest_filter="CallsTest.*"),
    mutation("what checkpoints write is the collector's", (COLLECTOR, "  channel_.counts_as(IoFor::kCheckpoints);\n", ""), gtest_filter="CallsTest.*"),
    mutation("Ios of a batch are not counted", (CHANNEL, "  for (const storage::Io* io : batch) io_[static_cast<size_t>(purpose)].count(*io);\n", "  static_cast<void>(purpose);\n"), gtest_filter="CallsTest.*"),
    mutation("flushes of sync puts are not timed", ("src/kv/log/log.h", "      if (times != nullptr) times->add(now_ns() - began_ns);\n", "      static_cast<void>(began_ns);\n"), gtest_filter="CallsTest.*"),
    mutation("what the keeper does is not counted", (STORE, "  keeper_channel_.add_io(use.io);\n", ""), gtest_filter="CallsTest.*"),
    mutation("a ratio is cut to a whole number", ("src/capi/common.cc", "  for (uint64_t digit = 100; digit > 0; digit /= 10) text << thousandths / digit % 10;", "  text << 0;"), test="capi_test", gtest_filter="*"),

    # Stores that are open for reading only
    mutation("a store that is read only writes", (STORE, "  if (options.read_only) {\n    auto forgetful", "  if (false) {\n    auto forgetful"), gtest_filter="*ReadOnlyTest.*"),
    mutation("a store that is read only takes changes", (STORE, "    fail(EROFS, true);\n", ""), gtest_filter="*ReadOnlyTest.*"),
    mutation("a store that is read only says that it has failed", (STORE, "  if (options_.read_only)\n    return base::Error::of(EROFS,", "  if (false)\n    return base::Error::of(EROFS,"), gtest_filter="*ReadOnlyTest.*"),
    mutation("a store that is read only answers changes", (SESSION_CHANGE, "  if (store_->options_.read_only) return std::unexpected(store_->failure());\n", ""), gtest_filter="*ReadOnlyTest.*"),
    mutation("a store that is read only takes large values in", ("src/kv/value_writer.cc", "  if (store.options_.read_only) return std::unexpected(store.failure());\n", ""), gtest_filter="*ReadOnlyTest.*"),
    mutation("a store that is read only by the C API is not", ("src/capi/kv/store.cc", "  own.read_only = given->read_only != 0;\n", ""), test="capi_test", gtest_filter="*"),
    mutation("a store that is read only may lack the last writes", (STORE, "  if (!options_.read_only) {\n    error = error_", "  if (true) {\n    error = error_"), gtest_filter="*ReadOnlyTest.*"),

    mutation("a path of links in a circle is the medium's failure", ("src/capi/common.cc", "    case ELOOP:\n", ""), test="capi_test", gtest_filter="*"),

    # What the command line says of damage
    mutation("a compaction that cannot go on was done", (STORE, "    if (compaction != 0 && failure.error != 0)\n", "    if (false)\n"), test="ctest", gtest_filter="^cli_kv$"),
    mutation("info tells how to lose a store whose first superblock is gone", ("tools/spillway/info_device.cc", "    for (const uint64_t offset : kv::kSuperblockOffsets) {\n", "    for (const uint64_t offset : {uint64_t{0}}) {\n"), test="ctest", gtest_filter="^cli$"),
    mutation("seconds until a key expires taken for milliseconds", ("tools/spillway/kv_keys.cc", "now_ms + 1000 * line", "now_ms + line"), test="ctest", gtest_filter="^cli_kv$"),
    mutation("list and dump are whole without what was lost", ("src/kv/recovery/recovery_reader.h", " && lost_segments == 0;", ";"), test="ctest", gtest_filter="^cli_kv$"),
    mutation("progress goes on in a narrow terminal's next row", ("tools/spillway/progress.cc", "    line = line.substr(0, size.ws_col - 1u);\n", "    line = line.substr(0);\n"), test="ctest", gtest_filter="^cli_kv_many$"),
    mutation("interrupted load goes on", ("tools/spillway/kv_load.cc", "    return polled[1].revents != 0;", "    return false;"), test="ctest", gtest_filter="^cli_kv_many$"),
    mutation("list and dump are whole without a damaged record", ("tools/spillway/kv_list.cc", "count_++ < kSaid", "count_ < kSaid"), test="ctest", gtest_filter="^cli_kv$"),
    mutation("dump keeps a value with a damaged piece", ("tools/spillway/kv_list.cc", "is_whole ? kDumpRecordEnd : kDumpRecordVoid", "kDumpRecordEnd"), test="ctest", gtest_filter="^cli_kv$"),
    mutation("a dump that may become no larger stays", ("tools/spillway/kv_list.cc", "    signal(SIGXFSZ, SIG_IGN);\n", ""), test="ctest", gtest_filter="^cli_kv_many$"),
    mutation("the name of a dump is left to the kernel", ("tools/spillway/kv_list.cc", "const long result = sys::sync_name(path_);", "const long result = 0;"), test="ctest", gtest_filter="^cli_kv_many$"),
    mutation("load puts two records of a key together", ("tools/spillway/kv_load.cc", "return batch.has(key, hash); })) drain();", "return batch.has(key, hash); })) return;"), test="ctest", gtest_filter="^cli_kv_many$"),
    mutation("interrupted load hides that its records may be lost", ("tools/spillway/kv_load.cc", "    ending.failure += concat(", "    if (ending.failure.empty()) ending.failure += concat("), test="ctest", gtest_filter="^cli_kv_many$"),
    mutation("load leaves what is not many enough", ("tools/spillway/kv_load.cc", "    if (filling_ != nullptr) start();\n", ""), test="ctest", gtest_filter="^cli_kv_many$"),
    mutation("load keeps a void large value open", ("tools/spillway/kv_load.cc", "if (is_large_) puts.abandon();", ""), test="ctest", gtest_filter="^cli_kv$"),
    mutation("check takes a free segment for one in use", ("src/kv/recovery/check_segments.cc", "has_header && header.state == SegmentState::kUsed && has_second &&", "has_header && has_second &&"), test="kv_test", gtest_filter="CheckTest.ASegmentOfWhichOnly*"),
    mutation("check takes two segments of one generation", ("src/kv/recovery/check_segments.cc", "; !is_first)", "; false)"), test="kv_test", gtest_filter="CheckTest.ASegmentThatWasWrittenOver*"),

    # What has ended, by the clock or below the floor
    mutation("expiry of a store goes by the machine's clock", (LIFETIMES, "header.expiry() <= clock_.now_ms();", "header.expiry() <= kv::now_ms();"), gtest_filter="LifetimesTest.*"),
    mutation("what is below the floor is there", (LIFETIMES, "    if (header.sequence() < floor_.load(std::memory_order_acquire)) return true;\n", ""), gtest_filter="LifetimesTest.*"),
    mutation("the mark of a flush is flushed with it", (LIFETIMES, "header.sequence() < floor_", "header.sequence() <= floor_"), gtest_filter="LifetimesTest.*"),
    mutation("the floor falls", (LIFETIMES, "    while (floor < sequence && !floor_", "    while (!floor_"), gtest_filter="LifetimesTest.*"),
    mutation("pieces below the floor end before their head", (COLLECTOR_MOVE, "move.kind != RecordKind::kPiece && lifetimes_", "lifetimes_"), gtest_filter="LifetimesTest.Pieces*"),
    mutation("a cache refuses what it has no room for", (COLLECTOR, "identity_->is_cache) victim = drop_oldest();", "false) victim = drop_oldest();"), gtest_filter="CacheStoreTest.TakesEverything*"),
    mutation("a cache keeps nothing that is read", ("src/kv/collection/collector_keep.cc", "  keep_used(oldest);\n", ""), gtest_filter="CacheStoreTest.WhatIsRead*"),
    mutation("a cache keeps nothing behind what has expired", ("src/kv/collection/collector_keep.cc", "  return is_written && has_room;", "  return is_written && moves.size() == piece.end - piece.first;"), gtest_filter="CacheStoreTest.WhatIsReadStaysBeside*"),
    mutation("a cache gives versions above a floor that is to come", (LIFETIMES, "expected_floors_.load(std::memory_order_seq_cst) == 0 && !has_ended(record);", "!has_ended(record);"), gtest_filter="CacheStoreTest.NothingIsKept*"),
    mutation("a snapshot lacks what a cache has kept", ("src/kv/collection/collector_keep.cc", "    snapshots_->renewed(move.from.hash, move.from.sequence(), move.new_sequence);\n", ""), gtest_filter="CacheStoreTest.ASnapshot*"),
    mutation("a cache whose floor one place does not take is full", (LOG_KEEPER, "    if (error != 0 && !is_of_segment(error)) break;\n", "    if (error != 0) return error;\n"), gtest_filter="UnwritableCacheTest.*"),
    mutation("a cache keeps what is not read", ("src/kv/collection/collector_keep.cc", " ||\n        !used_->is_marked(move.old_address))", ")"), gtest_filter="CacheStoreTest.WhatIsRead*"),
    mutation("a cache's floor is durable nowhere while snapshots keep all segments", (LOG_KEEPER, "if (i != 0 && !can_be_collected", "if (!can_be_collected"), gtest_filter="LogTest.TheFloor*"),
    mutation("a cache forgets its floor", ("src/kv/store.cc", "  lifetimes_.drop_below(floor);\n  log_.drop_below(floor);\n", ""), gtest_filter="CacheOfTwoStreamsTest.KnowsAfter*"),
    mutation("a lock that somebody has is had by who tries", ("src/kv/collection/key_locks.cc", "    is_held_ = other->hash_ != hash_;\n", "    is_held_ = true;\n"), gtest_filter="KeyLocks.WhoOnly*"),
    mutation("what is below the floor is no room", (LOG_COLLECTOR, "= is_below ? 0 : segment.live_grains", "= segment.live_grains"), (LOG_COLLECTOR, "if (!is_below && (identity_->is_cache", "if ((identity_->is_cache"), gtest_filter="LifetimesTest.AFull*"),
    # Memory for records
    mutation("what is used does not stay in memory", (TIER_H, "kUsesToStay = 2;", "kUsesToStay = 9;"), gtest_filter="MemoryTierTest.WhatIsUsed*"),
    mutation("what passes takes the room of what is used", (TIER, "shard.main.count == 0 || shard.small.count * kSmallPart > block_count_of(shard);", "shard.main.count == 0;"), gtest_filter="MemoryTierTest.WhatIsUsed*"),
    mutation("what comes back is not known", (TIER, "      ghost_of(shard, hash) = ghost_mark(hash);\n", ""), gtest_filter="MemoryTierTest.WhatComesBack*"),
    mutation("memory is not given back", (TIER, "  for (bool gives = true; gives && is_over();) {", "  for (bool gives = true; false && gives;) {"), gtest_filter="MemoryTierTest.TheBudget*"),
    mutation("an address has two records", (TIER, "    unlink(shard, hash, *old);\n", ""), gtest_filter="MemoryTierTest.AnAddress*"),
    mutation("a successor is as if it were new", (TIER, "box.uses = std::max<uint64_t>(box.uses, uses);", "static_cast<void>(box);"), gtest_filter="MemoryTierTest.ASuccessor*"),
    mutation("what is in memory is read all the same", ("src/kv/multi_get.cc", "  if (session.read_from_memory(", "  if (false && session.read_from_memory("), gtest_filter="TierStoreTest.ManyAtOnce"),
    mutation("what is written is not kept in memory", (SESSION_CHANGE, "  store_->tier_.keep(written.extent.address,", "  if (false) store_->tier_.keep(written.extent.address,"), gtest_filter="TierStoreTest.WhatWasWritten*"),
    # Many puts
    mutation("many puts are acknowledged before they are flushed", ("src/kv/multi_put.cc", "has_written ? session.keep_promise() : 0", "0"), gtest_filter="MultiPutFaultTest.*"),
    mutation("one of many puts that failed is there", ("src/kv/multi_put.cc", "    if (one.error != 0 || flush_error != 0) {", "    if (flush_error != 0) {"), gtest_filter="MultiPutFaultTest.*"),
    mutation("one of many puts takes those with it that are written with it", ("src/kv/multi_put.cc", "!is_of_medium(one.error) || bad_places == kBadPlaces)", "true)"), gtest_filter="MultiPutPlaceTest.*"),
    mutation("records of many puts lie where others do", ("src/kv/multi_put.cc", "ones.size() && ones[end].written.extent.address == address + grains; ++end)", "ones.size(); ++end)"), gtest_filter="MultiPutTest.*"),
    mutation("what many puts replace is not released", (SESSION_CHANGE, "  if (current.is_head) store_->remove_pieces({.head = hash, .of = current.pieces});\n  return Changed{Changed", "  return Changed{Changed"), gtest_filter="MultiPutTest.WhatIsReplaced*"),
    mutation("a segment of a file has no room", (LOG_KEEPER, "  for (const NextHeader& header : headers) find_room(channel, header.segment);\n", ""), gtest_filter="StoreMake.ASegment*"),
    mutation("a segment that gets room loses its headers", (LOG_KEEPER, "kHeaderRoomBytes = 4096;", "kHeaderRoomBytes = 0;"), gtest_filter="LogTest.WhatIsFilled*"),
    mutation("store under another key is damaged", (FORMAT, "  if (memcmp(block.magic, kMagic, sizeof kMagic) != 0)\n", "  if (false)\n"), gtest_filter="Encrypted.*"),
    mutation("kv knows of no key", ("tools/spillway/kv.cc", "  if (line.has(kKeyFile.name)) line.device", "  if (false) line.device"), test="ctest", gtest_filter="^cli_kv_key$"),
]
