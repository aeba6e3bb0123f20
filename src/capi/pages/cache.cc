// Caches: how they are opened and closed, and what they say of themselves.
#include "capi/pages/objects.h"

namespace capi::pages {
namespace {

// A member that is 0 has its default.
uint32_t or_default(uint32_t given, uint32_t otherwise) { return given != 0 ? given : otherwise; }

base::Expected<pagecache::CacheOptions> cache_options(const spillway_pagecache_options& given) {
  pagecache::CacheOptions own;
  if (given.memory_bytes == 0)
    return base::failure(EINVAL, "page cache: memory_bytes is 0; say how much memory it may have");
  own.memory_bytes = given.memory_bytes;
  own.memory_bytes_max = given.memory_bytes_max;
  if (own.memory_bytes_max != 0 && own.memory_bytes_max < own.memory_bytes)
    return base::failure(EINVAL, "page cache: memory_bytes_max is ", own.memory_bytes_max,
                         ", less than memory_bytes, ", own.memory_bytes);
  if (given.policy != nullptr) {
    auto policy = cache::parse_set_policy(given.policy);
    if (!policy) return std::unexpected(policy.error());
    own.policy = *policy;
  }
  own.page_bytes = or_default(given.page_bytes, own.page_bytes);
  if (given.dirty_percent_max > 100)
    return base::failure(EINVAL, "page cache: dirty_percent_max is ", given.dirty_percent_max,
                         "; give 1 to 100");
  if (given.dirty_percent_max != 0) own.dirty_share_max = given.dirty_percent_max / 100.0;
  if (given.dirty_ms_max == SPILLWAY_PAGECACHE_FOR_EVER)
    own.dirty_ns_max = 0;
  else if (given.dirty_ms_max != 0)
    own.dirty_ns_max = uint64_t{given.dirty_ms_max} * 1'000'000;
  own.nodes = given.nodes;
  own.balances_nodes = given.no_balancing == 0;
  if (given.wait_ms_max != 0) own.wait_ns_max = uint64_t{given.wait_ms_max} * 1'000'000;
  return own;
}

base::Expected<void> open_cache(const spillway_pagecache_options* options, spillway_pagecache& cache) {
  const auto given = read_struct(options, "spillway_pagecache_options");
  if (!given) return std::unexpected(given.error());
  const auto own = cache_options(*given);
  if (!own) return std::unexpected(own.error());
  const auto opened = pagecache::PageCache::open(*own);
  if (!opened) return std::unexpected(opened.error());
  cache.cache = *opened;
  cache.has_barrier = sys::register_barrier().has_value();
  if (given->threads == SPILLWAY_PAGECACHE_NO_THREADS) return {};
  const auto servers = pagecache::Servers::open(
      *cache.cache,
      {.threads = or_default(given->threads, 1), .tasks_each = or_default(given->requests_each, 64)});
  if (!servers) {
    cache.cache->close();
    return std::unexpected(servers.error());
  }
  cache.servers = *servers;
  return {};
}

// Syncs all files. Returns the error of the first one that fails.
base::Expected<void> sync_all(spillway_pagecache& cache) {
  base::Expected<void> result;
  pagecache::Session session;
  session.open(*cache.cache);
  for (auto* file = cache.files.first(); file != nullptr; file = file->next)
    if (auto synced = session.sync(*file->file); !synced && result) result = synced;
  return result;
}

pagecache::SessionCounts use_of(spillway_pagecache& cache) {
  pagecache::SessionCounts all = cache.closed_counts;
  for (auto* session = cache.sessions.first(); session != nullptr; session = session->next)
    all += session->session.counts();
  for (auto* queue = cache.queues.first(); queue != nullptr; queue = queue->next)
    all += queue->queue.counts();
  if (cache.servers != nullptr) all += cache.servers->session_counts();
  return all;
}

void write_spread(const char* name, const pagecache::Spread& spread, base::TextRef& text) {
  text << ", \"" << name << "\": {\"min\": " << spread.min << ", \"mean\": ";
  write_thousandths(spread.mean, text);
  text << ", \"p50\": " << spread.p50 << ", \"p90\": " << spread.p90 << ", \"p99\": " << spread.p99
       << ", \"max\": " << spread.max << '}';
}

void write_statistics(spillway_pagecache& cache, base::TextRef& text) {
  const pagecache::SetStatistics sets = cache.cache->set_statistics();
  {
    sys::LockGuard scope(cache.lock);
    const pagecache::SessionCounts use = use_of(cache);
    text << "{\"cache\": {\"policy\": \"" << name_of(cache.cache->options().policy)
         << "\", \"page_bytes\": " << cache.cache->page_bytes()
         << ", \"frames\": " << cache.cache->frame_count() << ", \"sets\": " << sets.set_count
         << ", \"pages\": " << sets.page_count << ", \"dirty_pages\": " << sets.dirty_count
         << ", \"held_pages\": " << sets.held_count << ", \"files\": " << cache.files.count()
         << ", \"sessions\": " << cache.sessions.count() << ", \"queues\": " << cache.queues.count()
         << "}, \"use\": {\"hits\": " << use.hits << ", \"misses\": " << use.misses
         << ", \"evictions\": " << use.evictions << ", \"read_pages\": " << use.reads
         << ", \"written_pages\": " << use.writebacks << ", \"damaged_pages\": " << use.damaged
         << ", \"waits\": " << use.waits;
  }
  pagecache::MessageCounts messages;
  pagecache::WriteCounts flushes;
  if (cache.servers != nullptr) {
    messages = cache.servers->counts();
    flushes = cache.servers->flush_counts();
  }
  text << "}, \"flushes\": {\"pages\": " << flushes.pages << ", \"writes\": " << flushes.writes
       << "}, \"messages\": {\"requests\": " << messages.requests
       << ", \"request_messages\": " << messages.request_messages
       << ", \"reply_messages\": " << messages.reply_messages << '}';
  write_spread("set_frames", sets.frames, text);
  write_spread("set_pages", sets.pages, text);
  write_spread("set_misses", sets.misses, text);
  text << ", \"nodes\": [";
  for (const pagecache::NodeStatistics& node : sets.nodes)
    text << (&node != sets.nodes.data() ? ", " : "") << "{\"sets\": " << node.set_count
         << ", \"frames\": " << node.frame_count << ", \"pages\": " << node.page_count
         << ", \"dirty_pages\": " << node.dirty_count << ", \"misses\": " << node.miss_count << '}';
  text << "]}";
}

}  // namespace
}  // namespace capi::pages

extern "C" {

int spillway_pagecache_open(const spillway_pagecache_options* options, spillway_pagecache** cache) {
  using namespace capi::pages;
  if (cache == nullptr) return refuse_invalid(nullptr, "page cache: the place for it is null");
  *cache = nullptr;
  auto* const own = capi::make<spillway_pagecache>();
  if (own == nullptr) return refuse(nullptr, base::Error::of(ENOMEM, "page cache: no memory"));
  if (auto opened = open_cache(options, *own); !opened) {
    capi::destroy(own);
    return refuse(nullptr, opened.error());
  }
  *cache = own;
  return SPILLWAY_PAGECACHE_OK;
}

int spillway_pagecache_close(spillway_pagecache* cache) {
  using namespace capi::pages;
  if (cache == nullptr) return SPILLWAY_PAGECACHE_OK;
  {
    sys::LockGuard scope(cache->lock);
    if (cache->sessions.count() + cache->queues.count() > 0)
      return refuse_in_use(nullptr, "page cache: ", cache->sessions.count(), " sessions and ",
                           cache->queues.count(), " queues are open; close them first");
  }
  if (cache->servers != nullptr) cache->servers->close();
  const auto synced = sync_all(*cache);
  cache->cache->close();
  while (auto* const file = cache->files.first()) {
    cache->files.remove(*file);
    file->device->close();
    capi::destroy(file);
  }
  capi::destroy(cache);
  return synced ? SPILLWAY_PAGECACHE_OK : refuse(nullptr, synced.error());
}

int spillway_pagecache_stats(spillway_pagecache* cache, char* text, size_t bytes, size_t* needed_bytes) {
  using namespace capi::pages;
  if (cache == nullptr || (text == nullptr && bytes > 0))
    return refuse_invalid(nullptr, "page cache: the cache or the place for its statistics is null");
  base::Text<16384> all;
  write_statistics(*cache, all);
  return capi::give_text(all.view(), text, bytes, needed_bytes) ? SPILLWAY_PAGECACHE_OK
                                                                : SPILLWAY_PAGECACHE_TOO_SMALL;
}

}  // extern "C"
