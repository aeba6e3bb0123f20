#include "capi/batch/stored.h"

#include <cerrno>
#include <string_view>

#include "storage/open.h"
#include "storage/store_files.h"

namespace capi::batching {
namespace {

constexpr uint64_t kStagingBytes = uint64_t{64} << 20, kMemoryBytes = uint64_t{32} << 20,
                   kLogBytes = uint64_t{64} << 20;
constexpr uint64_t kGrowth = 4;       // that a file has room for, without file_bytes
constexpr uint64_t kLogStagings = 4;  // that a log has room for, without log_bytes
constexpr uint32_t kMakers = 8;

base::Expected<void> check(const spillway_batch_options& options) {
  const std::string_view engine = options.engine != nullptr ? options.engine : "auto";
  if (engine != "auto")
    return base::failure(EINVAL, "table: a table in a file has no engine ", engine, "; give none");
  const auto is_refused = [](const char* name) {
    return base::failure(EINVAL, "table: ", name, " is for tables in memory, not in a file; leave it out");
  };
  if (options.bucket_bytes != 0) return is_refused("bucket_bytes");
  if (options.no_growth != 0) return is_refused("no_growth");
  if (options.cache_bytes != 0) return is_refused("cache_bytes");
  if (options.stale_changes_max != 0) return is_refused("stale_changes_max");
  if (options.stale_ms_max != 0) return is_refused("stale_ms_max");
  return {};
}

base::Expected<storage::Device*> open_device(std::string_view text, uint64_t bytes) {
  const storage::OpenParameters parameters = {.store = true, .whole = true};
  if (auto made = storage::make_files(text, bytes, parameters); !made) return std::unexpected(made.error());
  return storage::open_device(text, parameters);
}

}  // namespace

base::Expected<std::unique_ptr<Stored>> Stored::open(const spillway_batch_options& options) {
  if (auto checked = check(options); !checked) return std::unexpected(checked.error());
  const batch::StoredOptions own = {
      .shape = {.key_bytes = options.key_bytes, .value_bytes = options.value_bytes},
      .records = options.records,
      .key_space = options.key_space,
      .staging_bytes = options.staging_bytes != 0 ? options.staging_bytes : kStagingBytes,
      .makers = options.threads != 0 ? options.threads : kMakers};
  // Before files are made for it.
  if (auto checked = batch::StoredTable::check(own); !checked) return std::unexpected(checked.error());
  std::unique_ptr<Stored> stored(new (std::nothrow) Stored);
  if (stored == nullptr) return base::failure(ENOMEM, "table: no memory");
  if (auto opened = stored->open_files(options, own); !opened) return std::unexpected(opened.error());
  return stored;
}

base::Expected<void> Stored::open_files(const spillway_batch_options& options,
                                        const batch::StoredOptions& own) {
  const uint64_t file_bytes = options.file_bytes != 0
                                  ? options.file_bytes
                                  : kGrowth * batch::StoredTable::store_bytes_for(own.shape, own.records);
  auto device = open_device(options.file, file_bytes);
  if (!device) return std::unexpected(device.error());
  device_ = *device;
  batch::StoredOptions with_log = own;
  if (options.log != nullptr) {
    const uint64_t log_bytes =
        options.log_bytes != 0 ? options.log_bytes : kLogBytes + kLogStagings * own.staging_bytes;
    auto log = open_device(options.log, log_bytes);
    if (!log) return std::unexpected(log.error());
    with_log.log = log_ = *log;
  }
  auto cache = pagecache::PageCache::open(
      {.memory_bytes = options.memory_bytes != 0 ? options.memory_bytes : kMemoryBytes});
  if (!cache) return std::unexpected(cache.error());
  cache_ = *cache;
  auto file = cache_->add(*device_);
  if (!file) return std::unexpected(file.error());
  file_ = *file;
  store_.reset(new (std::nothrow) pagecache::PageStore(*cache_, *file_));
  if (store_ == nullptr) return base::failure(ENOMEM, "table: no memory");
  return table_.open(*store_, with_log);
}

Stored::~Stored() {
  static_cast<void>(table_.close());
  if (cache_ != nullptr) cache_->close();
  if (log_ != nullptr) log_->close();
  if (device_ != nullptr) device_->close();
}

}  // namespace capi::batching
