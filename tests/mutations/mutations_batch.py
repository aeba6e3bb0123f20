"""Breakages of src/batch: keys that are not found where they are, locks that do not hold, changes that are lost, made twice or out of their order."""

BUCKETS = "src/batch/buckets.h"
CACHE_BUCKETS = "src/batch/cache_buckets.cc"
CHOICE = "src/batch/choice.cc"
DECOUPLED = "src/batch/decoupled.cc"
KEY = "src/batch/key.h"
KERNELS = "src/batch/kernels_inside.h"
PARTITIONED = "src/batch/partitioned.cc"
SPREAD = "src/batch/spread.h"
SESSION = "src/batch/session.cc"
TABLE = "src/batch/table.cc"
VECTORS = "src/batch/kernels_avx2.cc"


def mutation(name, *patches, gtest_filter="*"):
    return {"name": name, "test": ("batch_test", gtest_filter), "patches": list(patches)}


MUTATIONS = [
    # Keys and homes
    mutation("the last bytes of a short key are counted twice", (KEY, "uint64_t{load_word<uint32_t>(at + bytes - 4)} >> 8 * (8 - bytes) << 32", "uint64_t{load_word<uint32_t>(at + bytes - 4)} << 32"), gtest_filter="SpreadTest.*"),
    mutation("a long key is its first bytes", (KEY, "bytes == 8 ? 0 : load_word<uint64_t>(at + bytes - 8)", "0"), gtest_filter="SpreadTest.*"),
    mutation("the multiplier of a division is too small", (SPREAD, "(Wide{1} << spread.shift_) / spread.span_) + 1;", "(Wide{1} << spread.shift_) / spread.span_);"), gtest_filter="SpreadTest.*"),
    mutation("numbers outside the space are keys", ("src/batch/job.h", "key_bytes).low >= key_space)", "key_bytes).low > key_space)"), gtest_filter="TableTest.*"),

    # Searches
    mutation("vectors tell records in the order of lanes", (VECTORS, "_mm256_permute4x64_epi64(keys, _MM_SHUFFLE(3, 1, 2, 0))", "keys"), gtest_filter="*TableModelTest.AnyKeys*"),
    mutation("half of a long key is enough", (VECTORS, "kKeyBytes == 16 ? 0xffff", "kKeyBytes == 16 ? 0xff"), gtest_filter="*"),
    mutation("records that were removed are found", (KERNELS, "layout_.matches(buckets_.bucket(bucket), key) & below(head.count)", "layout_.matches(buckets_.bucket(bucket), key)"), gtest_filter="*TableModelTest.AnyKeys*"),
    mutation("a tag is enough", (KERNELS, "        if (load_key(record(bucket, slot), layout_.key_bytes()) == key) return slot;", "        return slot;"), gtest_filter="*TableModelTest.AnyKeys*"),
    mutation("a record that is moved keeps its tag behind", (KERNELS, "    tags[found.slot] = tags[last];\n", ""), gtest_filter="*TableModelTest.AnyKeys*"),
    mutation("a record's tag is not set", (KERNELS, "    if (buckets_.has_tags()) buckets_.tags(bucket)[head.count] = Buckets::tag_of(key);\n", ""), gtest_filter="*TableModelTest.AnyKeys*"),
    mutation("buckets behind the home are not looked at", (KERNELS, "      home_head.reach = std::max(home_head.reach, distance);\n", ""), gtest_filter="*TableModelTest.ATableThatGrows*"),
    mutation("a record is put behind a home that has room", (KERNELS, "    if (home_head.count < buckets_.shape().slots()) return insert", "    if (false) return insert"), gtest_filter="*TableModelTest.AnyKeys*:TableTest.*"),

    # Locks, sessions and growth
    mutation("a bucket has several owners", (BUCKETS, "    if (word != Head::kLocked) [[likely]]\n      return Head::of(word);\n    return lock_slow(index);", "    return Head::of(word);"), gtest_filter="*Threads*"),
    mutation("growth leaves records behind", (TABLE, "for (uint64_t i = 0; i < buckets_.count(); ++i) {\n    const Head head", "for (uint64_t i = 0; i + 1 < buckets_.count(); ++i) {\n    const Head head"), gtest_filter="*ATableThatGrows*"),
    mutation("calls go on while the table grows", (TABLE, "session = session->next_) session->gate_.end_shut();", "session = session->next_) {}"), gtest_filter="*Threads*"),
    mutation("keys that are not spread take all memory", (TABLE, "  if (records * 100 < slots * kSpreadPercent) return Grown::kNo;\n", ""), gtest_filter="TableTest.*"),
    mutation("what sessions that are gone have inserted is forgotten", (SESSION, "  table_.gone_ += counts();\n", ""), gtest_filter="TableTest.*:*Threads*"),

    # Cache-buckets
    mutation("reads do not see what a cache-bucket has", (CACHE_BUCKETS, "    if (cells_.has(region, heads_[region].count.load(std::memory_order_relaxed), key) &&\n        !empty(session, region))\n", "    if (false)\n"), gtest_filter="*AnyKeys*cache_buckets*"),
    mutation("what a table has no room for is lost", (CACHE_BUCKETS, "  const uint64_t left = count - job.done_count;", "  const uint64_t left = 0;"), gtest_filter="*ATableThatGrows*cache_buckets*"),
    mutation("what was made is made again", ("src/batch/staged_cells.h", "    memmove(records(cell), records(cell) + made * record_bytes, left * record_bytes);\n", ""), gtest_filter="*ATableThatGrows*cache_buckets*"),
    mutation("a cache-bucket is anybody's", (CACHE_BUCKETS, "    Head& head = heads_[region];\n    sys::LockGuard scope(head.lock);\n", "    Head& head = heads_[region];\n"), gtest_filter="*Threads*cache_buckets*"),
    mutation("all cache-buckets are of one size", (TABLE, "CacheBuckets::make(options_.shape, options_.cache_bucket_bytes,", "CacheBuckets::make(options_.shape, kCacheBucketBytes,"), gtest_filter="StagingTest.ACacheBucket*"),

    mutation("a table that several use locks no buckets", (TABLE, "sessions_ == nullptr || sessions_->next_ == nullptr;", "true;"), gtest_filter="*Threads*"),
    mutation("what is staged is lost with its engine", (TABLE, "  if (!flush_all(session))\n    used = base::failure(ENOSPC", "  if (false)\n    used = base::failure(ENOSPC"), gtest_filter="*Threads*"),

    # Partitions
    mutation("what one session staged without stamps is younger than all", (PARTITIONED, "return at < first_stamped ? 0 :", "return at < first_stamped ? ~uint64_t{0} :"), gtest_filter="*Threads*partitioned*"),
    mutation("sessions' changes are not in the order of their calls", (PARTITIONED, "part.next_stamp < oldest->next_stamp ?", "oldest->next_stamp == kNoStamp ?"), gtest_filter="*Threads*partitioned*"),
    mutation("a region is emptied while others have not made all of it", (PARTITIONED, "  own->regions[number].made = 0;\n", ""), gtest_filter="*partitioned*"),
    mutation("codes of the first changes are not written down", (PARTITIONED, "  if (known != kMixed) memset(codes, static_cast<int>(known), count);\n", ""), gtest_filter="*AnyKeys*partitioned*"),
    mutation("changes that differ are all alike", (PARTITIONED, "  if (known != kMixed) region.code.store(kMixed, std::memory_order_release);\n", ""), gtest_filter="*AnyKeys*partitioned*"),
    mutation("a record that goes over the end of a line is cut", (PARTITIONED, "      copy_open(area.line(number, at + first), record + first, sizes.record_bytes() - first);\n", ""), gtest_filter="*AnyKeys*partitioned*"),
    mutation("what of others' is in a line is not looked at", (PARTITIONED, "    copy_open(part.line, area.line(number, part.line_begin), base::kLineBytes);\n", ""), gtest_filter="*partitioned*"),
    mutation("reads do not see what sessions have staged", (PARTITIONED, "    if (may_have(number, key,", "    if (false && may_have(number, key,"), gtest_filter="*partitioned*"),
    mutation("changes of a merge that found no room are gone", (PARTITIONED, "      for (size_t i = 0; i < job.done_count; ++i) ++from[i]->region->made;\n", "      for (size_t i = 0; i < count; ++i) ++from[i]->region->made;\n"), gtest_filter="*Threads*partitioned*"),

    # Decoupled
    mutation("reads do not wait for a flusher", (DECOUPLED, "        ticket = std::max(ticket, asked != 0 ? asked : ask(region));\n", "        ticket = 0;\n"), gtest_filter="*AnyKeys*decoupled*"),
    mutation("a half is filled before it has been emptied", (DECOUPLED, "      if (const Staged waited = wait(session, flusher_of(region), head.tickets[active]);\n          waited != Staged::kDone)\n        return waited;\n", ""), gtest_filter="*decoupled*:StagingTest.*"),
    mutation("a flusher begins a half anew that it has made in part", (DECOUPLED, "is_empty ? 0 : static_cast<uint32_t>(job.done_count);", "0;"), gtest_filter="*ATableThatGrows*decoupled*"),
    mutation("a flush leaves what is not full", (DECOUPLED, "    if (head.tickets[head.active] == 0 && head.counts[head.active] != 0) ask(region);\n", "    static_cast<void>(head);\n"), gtest_filter="*AnyKeys*decoupled*:StagingTest.*"),

    # No room
    mutation("what is staged and has no room holds up its region", (SESSION, "job.done_count < job.count && drops_; apply(job))", "job.done_count < job.count && false; apply(job))"), gtest_filter="StagingTest.What*"),
    mutation("nobody is told of what is dropped", (SESSION, "  return ran == Ran::kAll && has_dropped ? Ran::kFull : ran;", "  return ran;"), gtest_filter="StagingTest.WhatHasNoRoom*"),
    mutation("what is dropped is not counted", (SESSION, "    base::increase(dropped_, uint64_t{1});\n", ""), gtest_filter="StagingTest.WhatHasNoRoom*"),
    mutation("a function of a job's own is staged", ("src/batch/job.h", " || own_function != nullptr;", ";"), gtest_filter="StagingTest.AFunction*"),
    mutation("nothing is made after a while", ("src/batch/sweeper.cc", "    if (is_staging(self.table_.engine())) static_cast<void>(session.flush());\n", ""), gtest_filter="StagingTest.WhatIsStagedIsMadeAfterAWhile"),
    mutation("a merge of a record that is there replaces it", (KERNELS, "      case Action::kUpdate:\n", "      case Action::kUpdate:\n      case Action::kMerge:\n"), (KERNELS, "      case Action::kChange:\n      case Action::kMerge: {", "      case Action::kChange: {"), gtest_filter="*AnyKeys*"),

    # Models and choice
    mutation("equation 3.1 without its power", ("src/batch/model.cc", "std::pow((m - n) / m, c)", "(m - n) / m"), gtest_filter="ThesisModelTest.*"),
    mutation("what comes first is timed", (CHOICE, "  if (warms_) return begin_phase(false);\n", ""), gtest_filter="ChoiceTest.*"),
    mutation("the last one that is tried stays", (CHOICE, "    if (cost >= best) continue;\n", ""), gtest_filter="ChoiceTest.*"),
    mutation("a table stages without a budget", (CHOICE, "load.staging_bytes != 0 || !is_staging(kCandidates[i])", "true"), gtest_filter="ChoiceTest.*"),
    mutation("staging for nothing is chosen", ("src/batch/choice.h", "kStagingGain = 1.01", "kStagingGain = 1"), gtest_filter="ChoiceTest.*"),
    mutation("growth changes no choice", (TABLE, "    want_choice(Choice::Why::kGrown);\n", ""), gtest_filter="ChoiceTest.ATable*"),
    mutation("reads change no choice", (TABLE, "want_choice(Choice::Why::kAnswers);", "static_cast<void>(0);"), gtest_filter="ChoiceTest.ATable*"),
    mutation("what is staged does not make a table grow", (TABLE, "staging_ == nullptr ? 0 : staging_->staged_count()", "0"), gtest_filter="StagingTest.ATable*"),
    mutation("whoever looks at answers finds that they have changed", (TABLE, "choice_.is_trying() || !choice_.has_other_answers(share)", "choice_.is_trying()"), gtest_filter="ChoiceTest.Readers*"),
]
