// RocksDB under the same load (load.h, run.h), by threads. PLACE is a folder.
//
// Reads, flushes and compactions are direct and no block is cached, so that a get reads its block from the device; indexes and filters are
// in memory. Nothing is compressed. durability=none writes the log without waiting for the device, sync waits. After `make` all keys are in
// sorted files: flushed and compacted. The device's I/Os are what the kernel counts for this process: calls that read and write, and bytes
// that came from and went to a device.
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>

#include "run.h"

namespace {

using load::fail;

void check(const rocksdb::Status& status) {
  if (!status.ok()) fail(1, status.ToString());
}

class Client {
 public:
  Client(rocksdb::DB& database, bool sync) : database_(database) {
    reading_.verify_checksums = true;
    writing_.sync = sync;
  }

  template <class Take>
  bool get(std::string_view key, const Take& take) {
    const rocksdb::Status status =
        database_.Get(reading_, database_.DefaultColumnFamily(), slice(key), &found_);
    if (status.IsNotFound()) return false;
    check(status);
    take(std::string_view(found_.data(), found_.size()), load::kNoVersion);
    found_.Reset();
    return true;
  }
  uint64_t put(std::string_view key, std::string_view value) {
    const rocksdb::Status status = database_.Put(writing_, slice(key), slice(value));
    if (status.IsNoSpace()) return load::kFull;
    check(status);
    return load::kNoVersion;
  }

 private:
  static rocksdb::Slice slice(std::string_view text) { return {text.data(), text.size()}; }

  rocksdb::DB& database_;
  rocksdb::ReadOptions reading_;
  rocksdb::WriteOptions writing_;
  rocksdb::PinnableSlice found_;
};

class Store {
 public:
  explicit Store(const load::Plan& plan) : plan_(plan) {
    if (plan.by != "threads" || plan.durability == "batch")
      fail(2, "there are by=threads, and durability none and sync");
    options_.create_if_missing = true;
    options_.compression = rocksdb::kNoCompression;
    options_.use_direct_reads = true;
    options_.use_direct_io_for_flush_and_compaction = true;
    options_.max_background_jobs = 2;
    rocksdb::BlockBasedTableOptions table;
    table.no_block_cache = true;
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
    options_.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  }

  void make() {
    check(rocksdb::DestroyDB(plan_.place, options_));
    is_new_ = true;
  }
  void open(std::string_view durability) {
    sync_ = durability == "sync";
    rocksdb::DB* database = nullptr;
    check(rocksdb::DB::Open(options_, plan_.place, &database));
    database_.reset(database);
  }
  void close() {
    if (is_new_) {
      check(database_->Flush({}));
      check(database_->CompactRange({}, nullptr, nullptr));
    }
    is_new_ = false;
    check(database_->Close());
    database_.reset();
  }

  template <class Enter, class Moments>
  void run(uint64_t depth, const Enter& enter, Moments& moments) {
    load::run_by_threads(
        depth, [&] { return std::make_unique<Client>(*database_, sync_); }, [](Client&) {}, enter, moments);
  }

  load::DeviceIo io() const {
    return {.reads = count_of("syscr:"),
            .read_bytes = count_of("read_bytes:"),
            .writes = count_of("syscw:"),
            .write_bytes = count_of("write_bytes:")};
  }
  uint64_t record_bytes() const { return load::kMaxKeyBytes + plan_.value_bytes; }
  std::string more_json() const { return ""; }

 private:
  // measure.h reads kibibytes.
  static uint64_t count_of(const char* word) { return cases::bytes_of("/proc/self/io", word) >> 10; }

  const load::Plan& plan_;
  rocksdb::Options options_;
  std::unique_ptr<rocksdb::DB> database_;
  bool sync_ = false;
  bool is_new_ = false;
};

}  // namespace

int main(int count, char** words) { return load::run<Store>("rocksdb-load", count, words); }
