#include "server/clients/resp_info.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "server/resp/words.h"
#include "sys/memory.h"

namespace server {
namespace {

// Writes lines "name:value".
class Lines {
 public:
  explicit Lines(std::string& text) : text_(text) {}
  void add(std::string_view name, std::string_view value) {
    text_.append(name).append(":").append(value).append("\r\n");
  }
  void add(std::string_view name, uint64_t value) { add(name, std::to_string(value)); }

 private:
  std::string& text_;
};

void tell_server(Hub& hub, Lines& lines) {
  const Settings& settings = hub.settings();
  const uint64_t now_ms = hub.items().store().clock().now_ms();
  const uint64_t up_s = now_ms > hub.started_ms() ? (now_ms - hub.started_ms()) / 1000 : 0;
  lines.add("redis_version", kRedisVersion);
  lines.add("redis_mode", "standalone");
  lines.add("spillway_version", settings.version);
  lines.add("process_id", static_cast<uint64_t>(::getpid()));
  lines.add("tcp_port", settings.resp_port);
  lines.add("server_time_usec", now_ms * 1000);
  lines.add("uptime_in_seconds", up_s);
  lines.add("uptime_in_days", up_s / (24 * 60 * 60));
  lines.add("io_threads_active", settings.worker_count > 1);
}

// A cache drops items that were not used for long, which is nearest to Redis's allkeys-lru.
const char* policy_of(Hub& hub) {
  return hub.items().store().identity().is_cache ? "allkeys-lru" : "noeviction";
}

void tell_clients(Hub& hub, Lines& lines) {
  lines.add("connected_clients", hub.counts().now);
  lines.add("maxclients", hub.settings().connections_max);
  lines.add("blocked_clients", uint64_t{0});
}

void tell_memory(Hub& hub, Lines& lines) {
  lines.add("used_memory", sys::resident_bytes());
  lines.add("used_memory_peak", sys::peak_resident_bytes());
  lines.add("used_memory_index", hub.items().store().counts().index.memory_bytes);
  lines.add("maxmemory", hub.settings().memory_bytes);
  lines.add("maxmemory_policy", policy_of(hub));
}

// There is nothing to load or to save: what was acknowledged is on the device, as the durability of the store says. The fields in which clients and
// monitors look for errors of a save report those of writes to the device.
void tell_persistence(Hub& hub, Lines& lines) {
  const kv::StoreCounts counts = hub.items().store().counts();
  const std::string_view status = counts.error == 0 ? "ok" : "err";
  lines.add("loading", uint64_t{0});
  lines.add("rdb_bgsave_in_progress", uint64_t{0});
  lines.add("rdb_last_bgsave_status", status);
  lines.add("aof_rewrite_in_progress", uint64_t{0});
  lines.add("aof_last_write_status", status);
  lines.add("store_live_bytes", counts.log.live_bytes);
  lines.add("store_limit_bytes", counts.log.limit_bytes);
  lines.add("store_free_segments", counts.log.free_segments);
}

void tell_stats(Hub& hub, Lines& lines) {
  const ConnectionCounts connections = hub.counts();
  const ItemCounts items = hub.item_counts();
  lines.add("total_connections_received", connections.total);
  lines.add("total_commands_processed", connections.requests);
  lines.add("total_net_input_bytes", connections.received_bytes);
  lines.add("total_net_output_bytes", connections.sent_bytes);
  lines.add("rejected_connections", connections.refused);
  lines.add("evicted_keys", hub.store_use(hub.items().store().counts()).dropped_records);
  lines.add("keyspace_hits", items[Count::kGetHits]);
  lines.add("keyspace_misses", items[Count::kGetMisses]);
}

void tell_replication(Hub&, Lines& lines) {
  lines.add("role", "master");
  lines.add("connected_slaves", uint64_t{0});
}

void tell_cpu(Hub&, Lines& lines) {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto add = [&](std::string_view name, const timeval& time) {
    char text[40];
    snprintf(text, sizeof text, "%lld.%06lld", static_cast<long long>(time.tv_sec),
             static_cast<long long>(time.tv_usec));
    lines.add(name, text);
  };
  add("used_cpu_sys", usage.ru_stime);
  add("used_cpu_user", usage.ru_utime);
}

void tell_cluster(Hub&, Lines& lines) { lines.add("cluster_enabled", uint64_t{0}); }

// `keys` is the number of entries in the index, including expired items and pieces of large values. Nobody counts the other two, but clients can
// only parse a line that has all three.
void tell_keyspace(Hub& hub, Lines& lines) {
  const uint64_t entries = hub.items().store().counts().index.entries;
  if (entries != 0) lines.add("db0", "keys=" + std::to_string(entries) + ",expires=0,avg_ttl=0");
}

struct Section {
  std::string_view name, title;
  void (*tell)(Hub& hub, Lines& lines);
};
constexpr Section kSections[] = {
    {"server", "Server", tell_server},
    {"clients", "Clients", tell_clients},
    {"memory", "Memory", tell_memory},
    {"persistence", "Persistence", tell_persistence},
    {"stats", "Stats", tell_stats},
    {"replication", "Replication", tell_replication},
    {"cpu", "CPU", tell_cpu},
    {"cluster", "Cluster", tell_cluster},
    {"keyspace", "Keyspace", tell_keyspace},
};

bool is_wanted(const Section& section, resp::Arguments names) {
  constexpr std::string_view kAll[] = {"all", "default", "everything"};
  return names.empty() || std::ranges::any_of(names, [&](std::string_view name) {
           return resp::is_word(name, section.name) ||
                  std::ranges::any_of(kAll, [&](std::string_view all) { return resp::is_word(name, all); });
         });
}

}  // namespace

std::string info_text(Hub& hub, resp::Arguments names) {
  std::string text;
  for (const Section& section : kSections) {
    if (!is_wanted(section, names)) continue;
    if (!text.empty()) text += "\r\n";
    text.append("# ").append(section.title).append("\r\n");
    Lines lines(text);
    section.tell(hub, lines);
  }
  return text;
}

std::vector<Setting> settings_of(Hub& hub) {
  const Settings& settings = hub.settings();
  const bool may_idle = settings.stream.idle_ns == task::kNever;
  return {
      {"appendonly", "yes"},  // what is acknowledged is kept
      {"databases", "1"},
      {"io-threads", std::to_string(settings.worker_count)},
      {"maxclients", std::to_string(settings.connections_max)},
      {"maxmemory", std::to_string(settings.memory_bytes)},
      {"maxmemory-policy", policy_of(hub)},
      {"port", std::to_string(settings.resp_port)},
      {"proto-max-bulk-len", std::to_string(settings.value_bytes_max)},
      {"requirepass", "", true},
      {"save", ""},
      {"timeout", std::to_string(may_idle ? 0 : settings.stream.idle_ns / 1'000'000'000)},
  };
}

}  // namespace server
