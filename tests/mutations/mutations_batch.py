"""Breakages of src/batch: keys that are not found where they are, locks that do not hold, changes that are lost, made twice or out of their order."""

BUCKETS = "src/batch/buckets.h"
CACHE_BUCKETS = "src/batch/cache_buckets.cc"
KEY = "src/batch/key.h"
KERNELS = "src/batch/kernels_inside.h"
PARTITIONED = "src/batch/partitioned.cc"
SPREAD = "src/batch/spread.h"
TABLE = "src/batch/table.cc"
VECTORS = "src/batch/kernels_avx2.cc"


def mutation(name, *patches, gtest_filter="*"):
    return {"name": name, "test": ("batch_test", gtest_filter), "patches": list(patches)}


MUTATIONS = [
    # Keys and homes
    mutation("the last bytes of a short key are counted twice", (KEY, "uint64_t{load_word<uint32_t>(at + bytes - 4)} >> 8 * (8 - bytes) << 32", "uint64_t{load_word<uint32_t>(at + bytes - 4)} << 32"), gtest_filter="SpreadTest.*"),
    mutation("a long key is its first bytes", (KEY, "bytes == 8 ? 0 : load_word<uint64_t>(at + bytes - 8)", "0"), gtest_filter="SpreadTest.*"),
    mutation("the multiplier of a division is too small", (SPREAD, "(Wide{1} << spread.shift_) / spread.span_) + 1;", "(Wide{1} << spread.shift_) / spread.span_);"), gtest_filter="SpreadTest.*"),
    mutation("numbers outside the space are keys", (TABLE, "key_bytes).low >= key_space)", "key_bytes).low > key_space)"), gtest_filter="TableTest.*"),

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
    mutation("calls go on while the table grows", (TABLE, "session = session->next_) session->gate_.shut();", "session = session->next_) {}"), gtest_filter="*Threads*"),
    mutation("keys that are not spread take all memory", (TABLE, " || records * 100 < slots * kSpreadPercent)", ")"), gtest_filter="TableTest.*"),
    mutation("what sessions that are gone have inserted is forgotten", (TABLE, "  table_.gone_records_ += records_.load(std::memory_order_relaxed);\n", ""), gtest_filter="TableTest.*:*Threads*"),

    # Cache-buckets
    mutation("reads do not see what a cache-bucket has", (CACHE_BUCKETS, "    if (has(region, key) && !empty(session, region)) return false;\n", ""), gtest_filter="*AnyKeys*cache_buckets*"),
    mutation("what a table has no room for is lost", (CACHE_BUCKETS, "  const uint64_t left = count - job.done_count;", "  const uint64_t left = 0;"), gtest_filter="*ATableThatGrows*cache_buckets*"),
    mutation("what was made is made again", (CACHE_BUCKETS, "  memmove(first, first + job.done_count * record_bytes, left * record_bytes);\n", ""), gtest_filter="*ATableThatGrows*cache_buckets*"),
    mutation("a cache-bucket is anybody's", (CACHE_BUCKETS, "    Head& head = heads_[region];\n    sys::LockGuard scope(head.lock);\n", "    Head& head = heads_[region];\n"), gtest_filter="*Threads*cache_buckets*"),

    mutation("a table that several use locks no buckets", (TABLE, "sessions_ == nullptr || sessions_->next_ == nullptr;", "true;"), gtest_filter="*Threads*"),
    mutation("what is staged is lost with its engine", (TABLE, "  if (flush_all(session)) used = set_engine(engine);", "  used = set_engine(engine);"), gtest_filter="*Threads*"),

    # Partitions
    mutation("what one session staged without stamps is younger than all", (PARTITIONED, "return at < first_stamped ? 0 :", "return at < first_stamped ? ~uint64_t{0} :"), gtest_filter="*Threads*partitioned*"),
    mutation("sessions' changes are not in the order of their calls", (PARTITIONED, "part.next_stamp < oldest->next_stamp ?", "oldest->next_stamp == kNoStamp ?"), gtest_filter="*Threads*partitioned*"),
    mutation("a region is emptied while others have not made all of it", (PARTITIONED, "  own->regions[number].made = 0;\n", ""), gtest_filter="*partitioned*"),
    mutation("codes of the first changes are not written down", (PARTITIONED, "  if (known != kMixed) memset(codes, static_cast<int>(known), count);\n", ""), gtest_filter="*AnyKeys*partitioned*"),
    mutation("changes that differ are all alike", (PARTITIONED, "  if (known != kMixed) region.code.store(kMixed, std::memory_order_release);\n", ""), gtest_filter="*AnyKeys*partitioned*"),
    mutation("a record that goes over the end of a line is cut", (PARTITIONED, "      copy_open(lane.line(number, at + first), record + first, sizes.record_bytes() - first);\n", ""), gtest_filter="*AnyKeys*partitioned*"),
    mutation("what of others' is in a line is not looked at", (PARTITIONED, "    copy_open(part.line, lane.line(number, part.line_begin), base::kLineBytes);\n", ""), gtest_filter="*partitioned*"),
    mutation("reads do not see what sessions have staged", (PARTITIONED, "    if (may_have(number, key,", "    if (false && may_have(number, key,"), gtest_filter="*partitioned*"),
    mutation("changes of a merge that found no room are gone", (PARTITIONED, "      for (size_t i = 0; i < job.done_count; ++i) ++from[i]->region->made;\n", "      for (size_t i = 0; i < count; ++i) ++from[i]->region->made;\n"), gtest_filter="*Threads*partitioned*"),
]
