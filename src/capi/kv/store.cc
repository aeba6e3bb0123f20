// Stores: how they are made, opened and closed, and what they say of themselves.
#include <algorithm>

#include "capi/kv/objects.h"
#include "capi/kv/workers.h"
#include "kv/make_at.h"
#include "storage/backends/memory.h"
#include "storage/opening/open.h"

namespace capi {
namespace {

base::Expected<kv::StoreOptions> store_options(const spillway_kv_open_options* options) {
  auto given = read_struct(options, "spillway_kv_open_options");
  if (!given) return std::unexpected(given.error());
  kv::StoreOptions own;
  switch (given->durability) {
    case SPILLWAY_KV_SYNC: own.durability = kv::Durability::kSync; break;
    case SPILLWAY_KV_BATCH: own.durability = kv::Durability::kBatch; break;
    case SPILLWAY_KV_NONE: own.durability = kv::Durability::kNone; break;
    default:
      return base::failure(EINVAL, "store: durability ", given->durability,
                           "; give SPILLWAY_KV_SYNC, _BATCH or _NONE");
  }
  own.read_only = given->read_only != 0;
  own.memory_bytes = given->memory_bytes;
  if (given->batch_ms != 0) own.batch_ns = uint64_t{given->batch_ms} * 1'000'000;
  return own;
}

base::Expected<void> make_store(const char* text, const spillway_kv_make_options* options) {
  auto given = read_struct(options, "spillway_kv_make_options");
  if (!given) return std::unexpected(given.error());
  kv::MakeAtOptions own;
  own.overwrite = given->overwrite != 0;
  own.overwrite_advice = "set overwrite";
  own.capacity_advice = "set capacity_bytes";
  own.store.capacity_bytes = given->capacity_bytes;
  own.store.segment_bytes = given->segment_bytes;
  if (given->grain_bytes != 0) own.store.grain_bytes = given->grain_bytes;
  if (given->spare_percent != 0) own.store.spare_percent = given->spare_percent;
  if (auto made = kv::make_store_at(text, own); !made) return std::unexpected(made.error());
  return {};
}

// Takes the device over.
base::Expected<spillway_kv*> open_store(storage::Device* device, const kv::StoreOptions& options) {
  base::Expected<spillway_kv*> opened = make<spillway_kv>();
  if (*opened == nullptr) opened = base::failure(ENOMEM, "store: no memory");
  if (opened) {
    (*opened)->device = device;
    if (auto store = kv::Store::open(*device, options); store) {
      (*opened)->store = *store;
      return opened;
    } else {
      destroy(*opened);
      opened = std::unexpected(store.error());
    }
  }
  device->close();
  return opened;
}

int answer(base::Expected<spillway_kv*> opened, spillway_kv** store) {
  if (!opened) return refuse(nullptr, opened.error());
  *store = *opened;
  return SPILLWAY_KV_OK;
}

void write_ratio(const char* name, double ratio, base::TextRef& text) {
  text << ", \"" << name << "\": ";
  write_thousandths(ratio, text);
}

void write_use(const kv::UseCounts& use, base::TextRef& text) {
  text << ", \"use\": {\"asked_keys\": " << use.asked_keys << ", \"from_memory\": " << use.from_memory
       << ", \"got_bytes\": " << use.got_bytes << ", \"put_bytes\": " << use.put_bytes;
  write_ratio("reads_per_get", use.reads_per_get(), text);
  write_ratio("writes_per_change", use.writes_per_change(), text);
  write_ratio("write_amplification", use.write_amplification(), text);
  for (size_t i = 0; i < kv::kCallCount; ++i) {
    const kv::Latency& latency = use.latencies[i];
    text << "}, \"" << kv::kCallNames[i] << "_latency\": {\"count\": " << latency.count
         << ", \"mean_ns\": " << latency.mean_ns << ", \"p50_ns\": " << latency.p50_ns
         << ", \"p99_ns\": " << latency.p99_ns << ", \"p999_ns\": " << latency.p999_ns
         << ", \"max_ns\": " << latency.max_ns;
  }
  for (size_t i = 0; i < kv::kIoForCount; ++i) {
    const kv::IoCounts& io = use.io[i];
    text << "}, \"io_for_" << kv::kIoForNames[i] << "\": {\"reads\": " << io.reads
         << ", \"read_bytes\": " << io.read_bytes << ", \"writes\": " << io.writes
         << ", \"written_bytes\": " << io.written_bytes << ", \"flushes\": " << io.flushes;
  }
  text << '}';
}

void write_statistics(spillway_kv& store, base::TextRef& text) {
  const kv::StoreCounts counts = store.store->counts();
  const kv::Geometry& geometry = store.store->identity().geometry;
  const kv::RecoveryReport& recovery = store.store->recovery();
  text << "{\"store\": {\"capacity_bytes\": " << geometry.capacity_bytes
       << ", \"segment_bytes\": " << geometry.segment_bytes << ", \"segments\": " << geometry.segment_count
       << ", \"grain_bytes\": " << geometry.grain_bytes << ", \"value_bytes_max\": " << kv::kMaxValueBytes
       << ", \"plain_value_bytes_max\": " << geometry.value_bytes_max()
       << "}, \"tier\": {\"budget_bytes\": " << counts.tier.budget_bytes
       << ", \"used_bytes\": " << counts.tier.used_bytes << ", \"records\": " << counts.tier.record_count
       << ", \"record_bytes\": " << counts.tier.record_bytes << ", \"kept\": " << counts.tier.kept_records
       << ", \"promoted\": " << counts.tier.promoted_records
       << "}, \"log\": {\"live_bytes\": " << counts.log.live_grains * geometry.grain_bytes
       << ", \"free_segments\": " << counts.log.free_segments
       << ", \"sealed_segments\": " << counts.log.sealed_segments
       << "}, \"index\": {\"entries\": " << counts.index.entries << ", \"tables\": " << counts.index.tables
       << ", \"memory_bytes\": " << counts.index.memory_bytes
       << "}, \"recovery\": {\"records\": " << recovery.records << ", \"read_bytes\": " << recovery.read_bytes
       << ", \"scanned_segments\": " << recovery.scanned_segments
       << ", \"damaged_segments\": " << recovery.damaged_segments
       << ", \"lost_segments\": " << recovery.lost_segments << '}';
  write_use(counts.use, text);
  text << '}';
}

}  // namespace
}  // namespace capi

extern "C" {

int spillway_kv_make(const char* device, const spillway_kv_make_options* options) {
  if (device == nullptr) return capi::refuse_invalid(nullptr, "store: device is null");
  auto made = capi::make_store(device, options);
  return made ? SPILLWAY_KV_OK : capi::refuse(nullptr, made.error());
}

int spillway_kv_open(const char* device, const spillway_kv_open_options* options, spillway_kv** store) {
  if (store == nullptr) return capi::refuse_invalid(nullptr, "store: the place for it is null");
  *store = nullptr;
  if (device == nullptr) return capi::refuse_invalid(nullptr, "store: device is null");
  auto own = capi::store_options(options);
  if (!own) return capi::refuse(nullptr, own.error());
  auto opened = storage::open_device(device, {.store = true, .read_only = own->read_only});
  if (!opened) return capi::refuse(nullptr, opened.error());
  return capi::answer(capi::open_store(*opened, *own), store);
}

int spillway_kv_open_memory(uint64_t capacity_bytes, const spillway_kv_open_options* options,
                            spillway_kv** store) {
  if (store == nullptr) return capi::refuse_invalid(nullptr, "store: the place for it is null");
  *store = nullptr;
  auto own = capi::store_options(options);
  if (!own) return capi::refuse(nullptr, own.error());
  auto device = storage::make_memory_device(capacity_bytes);
  if (!device) return capi::refuse(nullptr, device.error());
  if (auto made = kv::Store::make(**device, {}); !made) {
    (*device)->close();
    return capi::refuse(nullptr, made.error());
  }
  return capi::answer(capi::open_store(*device, *own), store);
}

int spillway_kv_close(spillway_kv* store) {
  if (store == nullptr) return SPILLWAY_KV_OK;
  {
    sys::LockGuard scope(store->lock);
    if (store->user_count > 0)
      return capi::refuse(nullptr, base::Error::of(EBUSY, "store: ", store->user_count,
                                                   " sessions and queues are open; close them first"));
  }
  if (store->background != nullptr) {
    store->background->close();
    capi::destroy(store->background);
  }
  auto closed = store->store->close();
  store->device->close();
  capi::destroy(store);
  return closed ? SPILLWAY_KV_OK : capi::refuse(nullptr, closed.error());
}

int spillway_kv_stats(spillway_kv* store, char* text, size_t bytes, size_t* needed_bytes) {
  if (store == nullptr || (text == nullptr && bytes > 0))
    return capi::refuse_invalid(nullptr, "store: the store or the place for its statistics is null");
  base::Text<8192> all;
  capi::write_statistics(*store, all);
  return capi::give_text(all.view(), text, bytes, needed_bytes) ? SPILLWAY_KV_OK : SPILLWAY_KV_TOO_SMALL;
}

}  // extern "C"
