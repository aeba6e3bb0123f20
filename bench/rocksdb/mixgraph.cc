// RocksDB under the load of mix.h, at the pace of the driver.
//   mixgraph make plain|block FOLDER KEYS                       makes the database
//   mixgraph run plain|block FOLDER KEYS CACHE_BYTES THREADS    then on standard input, answered on standard output:
//       (start)          "started"     nothing is opened yet
//       open             "ready BYTES FILES"   of tables
//       run OPERATIONS   "SECONDS CPU_SECONDS FOUND"   FOUND follows from what was read, and is the same wherever it was
//
// plain: plain tables, which are mapped. block: tables of blocks, read past the page cache into a block cache of CACHE_BYTES, to which indexes,
// filters and memtables count. Both have a hash index by prefixes, a Bloom filter of 10 bits, no log and no compression. Values are looked at when they are read.
//
// A thread asks for keys of its own, so that what it finds does not depend on the others. A run ends when flushes and compactions are done, too.
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/table.h>
#include <rocksdb/write_buffer_manager.h>
#include <sys/prctl.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "../measure.h"
#include "../words.h"
#include "mix.h"

namespace {

using load::fail;

constexpr uint64_t kMemtableBytes = 4 << 20, kMemtables = 2, kTableBytes = 32 << 20;

void check(const rocksdb::Status& status) {
  if (!status.ok()) fail(1, status.ToString());
}

rocksdb::Slice slice(std::string_view text) { return {text.data(), text.size()}; }

rocksdb::Options options_of(const std::string& table, uint64_t cache_bytes) {
  rocksdb::Options options;
  options.compression = rocksdb::kNoCompression;
  options.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(mix::kPrefixBytes));
  options.write_buffer_size = kMemtableBytes;
  options.max_write_buffer_number = kMemtables;
  options.target_file_size_base = kTableBytes;
  options.max_background_jobs = 2;
  options.max_file_opening_threads = 1;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  if (table == "plain") {
    rocksdb::PlainTableOptions plain;
    plain.user_key_len = mix::kKeyBytes;
    plain.store_index_in_file = true;
    options.table_factory.reset(rocksdb::NewPlainTableFactory(plain));
    options.allow_mmap_reads = true;
  } else {
    rocksdb::BlockBasedTableOptions block;
    block.index_type = rocksdb::BlockBasedTableOptions::kHashSearch;
    block.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
    block.block_cache = rocksdb::NewLRUCache(cache_bytes);
    block.cache_index_and_filter_blocks = true;
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(block));
    options.write_buffer_manager =
        std::make_shared<rocksdb::WriteBufferManager>(kMemtables * kMemtableBytes, block.block_cache);
    options.use_direct_reads = true;
    options.use_direct_io_for_flush_and_compaction = true;
  }
  return options;
}

class Store {
 public:
  Store(const rocksdb::Options& options, const std::string& folder) {
    rocksdb::DB* database = nullptr;
    check(rocksdb::DB::Open(options, folder, &database));
    database_.reset(database);
    reading_.prefix_same_as_start = true;
    writing_.disableWAL = true;
  }

  void fill(uint64_t key_count) {
    for (uint64_t number = 0; number < key_count; ++number) put(number, 0);
    check(database_->CompactRange({}, nullptr, nullptr));
    check(database_->Close());
  }

  void put(uint64_t number, uint64_t version) {
    check(
        database_->Put(writing_, slice(mix::Key(number).text()), slice(mix::Value(number, version).text())));
  }

  // The version that is there.
  uint64_t get(uint64_t number, rocksdb::PinnableSlice& found) {
    check(database_->Get(reading_, database_->DefaultColumnFamily(), slice(mix::Key(number).text()), &found));
    const uint64_t version = version_of(number, {found.data(), found.size()});
    found.Reset();
    return version;
  }

  // How many keys there were, up to `length`, from this one to the end of its prefix. All are there.
  uint64_t scan(uint64_t number, uint64_t length) {
    const std::unique_ptr<rocksdb::Iterator> iterator(database_->NewIterator(reading_));
    uint64_t count = 0;
    for (iterator->Seek(slice(mix::Key(number).text())); iterator->Valid() && count < length;
         iterator->Next()) {
      const rocksdb::Slice key = iterator->key(), value = iterator->value();
      if (std::string_view(key.data(), key.size()) != mix::Key(number + count).text())
        fail(1, "a scan has found a wrong key");
      version_of(number + count, {value.data(), value.size()});
      ++count;
    }
    check(iterator->status());
    return count;
  }

  // Until flushes and compactions are done.
  void rest() {
    while (has_work()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  void say_tables() {
    std::vector<rocksdb::LiveFileMetaData> files;
    database_->GetLiveFilesMetaData(&files);
    uint64_t bytes = 0;
    for (const rocksdb::LiveFileMetaData& file : files) bytes += file.size;
    std::printf("ready %llu %zu\n", static_cast<unsigned long long>(bytes), files.size());
  }

 private:
  bool has_work() {
    for (const char* work : {"rocksdb.mem-table-flush-pending", "rocksdb.num-running-flushes",
                             "rocksdb.compaction-pending", "rocksdb.num-running-compactions"}) {
      uint64_t count = 0;
      if (database_->GetIntProperty(work, &count) && count > 0) return true;
    }
    return false;
  }

  static uint64_t version_of(uint64_t number, std::string_view value) {
    uint64_t version = 0;
    if (!mix::is_whole(number, value, version)) fail(1, "a value is wrong");
    return version;
  }

  std::unique_ptr<rocksdb::DB> database_;
  rocksdb::ReadOptions reading_;
  rocksdb::WriteOptions writing_;
};

// What one thread does in the turn of this number, and what follows from what it found.
uint64_t work(Store& store, const mix::Keys& keys, uint64_t thread, uint64_t turn, uint64_t operations) {
  load::Random random(load::mix(turn) + thread);
  rocksdb::PinnableSlice found;
  uint64_t sum = 0;
  for (uint64_t i = 0; i < operations; ++i) {
    const uint64_t number = keys.next(random, thread);
    switch (mix::next_operation(random)) {
      case mix::Operation::kGet: sum = load::mix(sum ^ store.get(number, found)); break;
      case mix::Operation::kPut: store.put(number, turn << 32 | i); break;
      case mix::Operation::kScan:
        sum = load::mix(sum ^ store.scan(number, mix::next_scan_length(random)));
        break;
    }
  }
  return sum;
}

void answer(const rocksdb::Options& options, const std::string& folder, uint64_t key_count,
            uint64_t thread_count) {
  std::unique_ptr<Store> store;
  const mix::Keys keys(key_count, thread_count);
  uint64_t turn = 0;
  char line[64];
  std::puts("started");
  std::fflush(stdout);
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    unsigned long long operations = 0;
    if (std::string_view(line) == "open\n" && store == nullptr) {
      store = std::make_unique<Store>(options, folder);
      store->say_tables();
    } else if (std::sscanf(line, "run %llu\n", &operations) == 1 && store != nullptr) {
      ++turn;
      std::vector<uint64_t> sums(thread_count);
      cases::Stopwatch watch;
      watch.start();
      {
        std::vector<std::jthread> threads;
        for (uint64_t thread = 0; thread < thread_count; ++thread)
          threads.emplace_back(
              [&, thread] { sums[thread] = work(*store, keys, thread, turn, operations / thread_count); });
      }
      store->rest();
      watch.stop();
      uint64_t found = 0;
      for (const uint64_t sum : sums) found = load::mix(found ^ sum);
      std::printf("%.6f %.6f %016llx\n", static_cast<double>(watch.wall_ns()) * 1e-9,
                  static_cast<double>(watch.cpu_ns()) * 1e-9, static_cast<unsigned long long>(found));
    } else {
      fail(2, "there are open, once, and then run OPERATIONS");
    }
    std::fflush(stdout);
  }
}

}  // namespace

int main(int count, char** words) {
  load::program_name = "mixgraph";
  const std::string what = count > 1 ? words[1] : "";
  if (!(what == "make" && count == 5) && !(what == "run" && count == 7))
    fail(2,
         "usage: mixgraph make plain|block FOLDER KEYS, or run plain|block FOLDER KEYS CACHE_BYTES THREADS");
  const std::string table = load::word_of("the table", words[2], {"plain", "block"});
  const uint64_t keys = load::count_of("KEYS", words[4], uint64_t{1} << 32);
  load::check_range("KEYS", keys, 10'000, uint64_t{1} << 32);
  prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);  // spilled memory has pages of 4 KiB; so has everybody's
  if (what == "make") {
    rocksdb::Options options = options_of(table, 64 << 20);
    options.create_if_missing = true;
    options.error_if_exists = true;
    options.write_buffer_size = kTableBytes;
    Store(options, words[3]).fill(keys);
    return 0;
  }
  const uint64_t cache_bytes = load::count_of("CACHE_BYTES", words[5], uint64_t{1} << 40);
  const uint64_t threads = load::count_of("THREADS", words[6], 64);
  load::check_range("THREADS", threads, 1, 64);
  answer(options_of(table, cache_bytes), words[3], keys, threads);
}
