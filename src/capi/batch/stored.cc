#include "capi/batch/stored.h"

#include <cerrno>
#include <string_view>

#include "storage/opening/open.h"

namespace capi::batching {
namespace {

constexpr uint64_t kStagingBytes = uint64_t{64} << 20, kMemoryBytes = uint64_t{32} << 20,
                   kLogBytes = uint64_t{64} << 20;
constexpr uint64_t kGrowth = 4;       // without file_bytes, a file has room for this many times the records
constexpr uint64_t kLogStagings = 4;  // without log_bytes, a log has room for this many times what may wait
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

}  // namespace

// `files` keeps the file locked for as long as the table is open.
base::Expected<void> Stored::Place::open(const char* name, uint64_t bytes) {
  text = name;
  if (auto locked = files.open(text); !locked) return locked;
  if (auto set = files.set_sizes(bytes); !set) return set;
  auto opened = storage::open_device(text, {.store = true, .whole = true, .is_locked = true});
  if (!opened) return std::unexpected(opened.error());
  device = *opened;
  return {};
}

base::Expected<std::unique_ptr<Stored>> Stored::open(const spillway_batch_options& options) {
  if (auto checked = check(options); !checked) return std::unexpected(checked.error());
  const batch::StoredOptions own = {
      .shape = {.key_bytes = options.key_bytes, .value_bytes = options.value_bytes},
      .records = options.records,
      .key_space = options.key_space,
      .staging_bytes = options.staging_bytes != 0 ? options.staging_bytes : kStagingBytes,
      .makers = options.threads != 0 ? options.threads : kMakers};
  // Before any file is made for it.
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
  if (auto opened = table_place_.open(options.file, file_bytes); !opened) return opened;
  batch::StoredOptions with_log = own;
  if (options.log != nullptr) {
    const uint64_t log_bytes =
        options.log_bytes != 0 ? options.log_bytes : kLogBytes + kLogStagings * own.staging_bytes;
    if (auto opened = log_place_.open(options.log, log_bytes); !opened) return opened;
    with_log.log = log_place_.device;
  }
  auto cache = pagecache::PageCache::open(
      {.memory_bytes = options.memory_bytes != 0 ? options.memory_bytes : kMemoryBytes});
  if (!cache) return std::unexpected(cache.error());
  cache_ = *cache;
  auto file = cache_->add(*table_place_.device);
  if (!file) return std::unexpected(file.error());
  file_ = *file;
  store_.reset(new (std::nothrow) pagecache::PageStore(*cache_, *file_));
  if (store_ == nullptr) return base::failure(ENOMEM, "table: no memory");
  if (auto opened = table_.open(*store_, with_log); !opened) return opened;
  table_place_.files.keep();
  log_place_.files.keep();
  return {};
}

Stored::~Stored() {
  static_cast<void>(table_.close());
  if (cache_ != nullptr) cache_->close();
  for (const Place* place : {&log_place_, &table_place_})
    if (place->device != nullptr) place->device->close();
}

}  // namespace capi::batching
