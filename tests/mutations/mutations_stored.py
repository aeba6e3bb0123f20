"""Breakages of src/batch/stored: changes that are lost, made twice or not found, slots that are written over, logs that say more than they have."""

CAPI = "src/capi/batch"
LOG = "src/batch/stored/change_log.cc"
MAKE = "src/batch/stored/stored_make.cc"
MERGE = "src/batch/stored/merge.cc"
OPEN = "src/batch/stored/stored_open.cc"
SESSION = "src/batch/stored/stored_session.cc"
SLOTS = "src/batch/stored/slots.cc"
STAGED = "src/batch/stored/staged.cc"
STAGED_H = "src/batch/stored/staged.h"
TABLE = "src/batch/stored/stored_table.cc"


def mutation(name, *patches, test="batch_stored_test", gtest_filter="*"):
    return {"name": name, "test": (test, gtest_filter), "patches": list(patches)}


MODEL = "*StoredModelTest*"
CUT = "StoredPowerCutTest.*"
MUTATIONS = [
    # What waits
    mutation("changes of another key are made in a record", (STAGED_H, "          if (load_key(at_record, shape_.key_bytes) == key) visit", "          visit"), gtest_filter=MODEL),
    mutation("changes behind the first group of tags are not found", (STAGED_H, "for (uint32_t begin = 0; begin < count; begin += kTagsAtOnce) {", "for (uint32_t begin = 0; begin < std::min(count, kTagsAtOnce); begin += kTagsAtOnce) {"), gtest_filter=MODEL),
    mutation("a chunk is used by two lists", (STAGED, "    first_free_ = head(taken).next;\n", "    first_free_ = taken;\n"), gtest_filter=MODEL),
    mutation("reads do not see what is being made", (SESSION, "  table.staged_.for_each_of(region.making, key, make);\n", ""), gtest_filter="StoredTest.Threads*"),
    mutation("reads do not see what waits", (SESSION, "  table.staged_.for_each_of(region.staged, key, make);\n", ""), gtest_filter=MODEL),
    mutation("a page that is another region's by now is taken for its own", (SESSION, "if (table.regions_[wanted.region].version != wanted.version) break;", ""), gtest_filter="StoredTest.Threads*"),
    mutation("readers wait for room", (SESSION, "    if (job.code.action != Action::kRead) {\n", "    {\n"), gtest_filter="StoredFailingTest.*Full*:StoredFailingTest.WhatCannot*"),

    # Regions
    mutation("changes of a record are made out of their order", (MERGE, "return std::tuple(change.position, change.order);", "return std::tuple(change.position, ~change.order);"), gtest_filter=MODEL),
    mutation("what is removed stays", (MERGE, "        out -= record_bytes;\n", ""), gtest_filter=MODEL),
    mutation("an update makes a record", (MERGE, "  if (!is_there && !may_insert(code.action)) {", "  if (false) {"), gtest_filter=MODEL),
    mutation("what comes while a region is made is left with its first half", (MAKE, "    Region& region = regions_[find(positions_.of(key))];\n    region.staged_from", "    Region& region = regions_[index];\n    region.staged_from"), gtest_filter=MODEL + ":StoredTest.Threads*"),
    mutation("records are cut a bit too far up", (MAKE, "prefix | uint64_t{1} << (63 - depth)", "prefix | uint64_t{1} << (62 - depth)"), gtest_filter=MODEL),
    mutation("a damaged page is read", (SESSION, "    if (!read_page(shape, page, wanted.made, count)) {", "    if (read_page(shape, page, wanted.made, count), false) {"), gtest_filter="StoredFailingTest.ADamaged*"),
    mutation("what could not be written is gone", (MAKE, "  region.staged = region.making;\n", ""), gtest_filter="StoredFailingTest.WhatCannot*"),

    mutation("a table of another format is opened", (OPEN, "  if (it.version != Superblock::kVersion)\n", "  if (false)\n"), gtest_filter="StoredRefusedTest.ATableOfAnother*"),

    mutation("a map may lack the last regions", ("src/batch/stored/format.cc", "  if (rest_.empty()) return prefix_ == kAll ? Next::kEnd : Next::kDamaged;", "  if (rest_.empty()) return Next::kEnd;"), gtest_filter="MapReader.*"),
    mutation("what a map says of two regions may overlap", ("src/batch/stored/format.cc", " || prefix_ % span != 0 ||", " ||"), gtest_filter="MapReader.*"),

    mutation("more parts than chunks are waited for in vain", (MAKE, "    if (!region.staged.is_empty())\n      return base::failure(EAGAIN", "      return base::failure(EAGAIN"), gtest_filter="StoredTest.ARegionBecomes*"),

    # Slots and checkpoints
    mutation("a slot is written over that the last checkpoint has", (SLOTS, "  if (slot != 0) given_up_.push_back(slot);", "  give_back(slot);"), gtest_filter=CUT + ":Slots.ThatAreGivenUp*"),
    mutation("a superblock is written before what it tells of is there", (MAKE, "    if (done) done = access.sync();\n", ""), gtest_filter=CUT),
    mutation("a superblock is not there for good when its slots are used again", (MAKE, "  return access.sync();\n", "  return {};\n"), gtest_filter=CUT),
    mutation("a checkpoint has what the log has not", (MAKE, "!is_replaying_) done = sync_log();", "!is_replaying_) done = {};"), gtest_filter=CUT),
    mutation("nothing says that a table is being made", (OPEN, "  if (opened && is_new) opened = write_superblock(**access, superblock_);\n", ""), gtest_filter=CUT),
    mutation("a map that could not be written keeps its slots", (MAKE, "may_be_there ? slots_.give_up(slot) : slots_.give_back(slot);", "slots_.give_up(slot);"), gtest_filter="StoredFailingTest.Checkpoints*"),
    mutation("records that have no room keep their region from being made", (MERGE, "      if (!is_there && !has_room && may_insert", "      if (false && may_insert"), gtest_filter="StoredTest.KeysThat*"),
    mutation("slots are never free again", (MAKE, "    for (const uint64_t slot : given_up) slots_.give_back(slot);\n", ""), gtest_filter=MODEL + ":StoredTest.*:StoredFailingTest.*"),

    mutation("a limit of slots rises although many are given up", (SLOTS, "  if (given_up_.size() >= std::max(kMinSpare, used_count_ / (2 * kSpareShare))) return false;\n", ""), gtest_filter="Slots.TheLimitRises*"),

    # The log
    mutation("a sync does not flush", (TABLE, "    if (auto written = write_log(true); !written) return written;", "    if (auto written = write_log(false); !written) return written;\n    else return {};"), gtest_filter=CUT),
    mutation("records after one that is lost are found", (LOG, "  if (!reader.is_first && header.previous_end != reader.position) return false;\n", ""), gtest_filter=CUT),
    mutation("records of the time before a crash are found", (LOG, "header.incarnation != reader.incarnation || ", ""), gtest_filter="ChangeLogTest.*"),
    mutation("records that another table has left are found", (OPEN, "    superblock_.incarnation = static_cast<uint32_t>(id >> 32);\n", ""), gtest_filter="StoredRefusedTest.ALogThat*"),
    mutation("a region that is made while the log is made again has all of it", (MAKE, "is_replaying_ ? replayed_ : sequence_", "sequence_"), gtest_filter="StoredFailingTest.ALogIsMade*"),
    mutation("what is in a slot is made again", (OPEN, "      if (sequence > regions_[find(positions_.of(key))].entry.made) {", "      {"), gtest_filter=CUT),
    mutation("the log is written over while it is needed", (MAKE, "  for (const Region& region : regions_) tail = std::min(tail, region.oldest());\n", ""), gtest_filter=CUT),
    mutation("answers are not in the log", (SESSION, "changes > 0) {", "false && changes > 0) {"), gtest_filter=CUT),
    mutation("another table's log is taken", (OPEN, "  if (!is_needed && header.id != 0 && header.table != superblock_.id)", "  if (false)"), gtest_filter="StoredRefusedTest.ATable*"),

    # The C API
    mutation("a table in a file is in memory", (CAPI + "/table.cc", "  if (given.file == nullptr) {", "  if (true) {"), test="capi_batch_test"),
]
