// spillway kv stats: prints what a store holds, what it takes, what was found when it was opened, and what it has done since.
#include <algorithm>
#include <cstdio>
#include <iomanip>
#include <nlohmann/json.hpp>

#include "kv.h"

namespace tools {
namespace {

using Json = nlohmann::ordered_json;

double share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

// Adds how long calls took and what was read and written, without sections in which all is 0.
void add_use(const kv::UseCounts& use, Json& stats) {
  if (use.asked_keys + use.latency(kv::CallKind::kPut).count + use.put_many_keys +
          use.latency(kv::CallKind::kRemove).count >
      0)
    stats["use"] = {{"asked_keys", use.asked_keys},
                    {"from_memory", use.from_memory},
                    {"got_bytes", use.got_bytes},
                    {"put_bytes", use.put_bytes},
                    {"reads_per_get", use.reads_per_get()},
                    {"writes_per_change", use.writes_per_change()},
                    {"write_amplification", use.write_amplification()}};
  for (size_t i = 0; i < kv::kCallCount; ++i) {
    const kv::Latency& latency = use.latencies[i];
    if (latency.count > 0)
      stats[concat(kv::kCallNames[i], "_latency")] = {
          {"count", latency.count},   {"mean_ns", latency.mean_ns}, {"p50_ns", latency.p50_ns},
          {"p99_ns", latency.p99_ns}, {"p999_ns", latency.p999_ns}, {"max_ns", latency.max_ns}};
  }
  for (size_t i = 0; i < kv::kIoForCount; ++i) {
    const kv::IoCounts& io = use.io[i];
    if (io.reads + io.writes + io.flushes > 0)
      stats[concat("io_for_", kv::kIoForNames[i])] = {{"reads", io.reads},
                                                      {"read_bytes", io.read_bytes},
                                                      {"writes", io.writes},
                                                      {"written_bytes", io.written_bytes},
                                                      {"flushes", io.flushes}};
  }
}

Json stats_of(kv::Store& store) {
  const kv::Geometry& geometry = store.identity().geometry;
  const kv::StoreCounts counts = store.counts();
  const kv::RecoveryReport& recovery = store.recovery();
  const uint64_t usable_bytes = geometry.segment_count * geometry.segment_bytes;
  const uint64_t record_bytes = counts.log.live_grains * geometry.grain_bytes;
  const uint64_t used_bytes = usable_bytes - counts.log.free_segments * geometry.segment_bytes;
  // Tombstones, which end by themselves, are no reason to refuse a put.
  const uint64_t live_bytes = counts.log.live_bytes - counts.log.tombstone_bytes;
  Json stats = {{"store",
                 {{"capacity_bytes", geometry.capacity_bytes},
                  {"grain_bytes", geometry.grain_bytes},
                  {"segment_bytes", geometry.segment_bytes},
                  {"spare_percent", geometry.spare_percent},
                  {"value_in_one_record_bytes", geometry.value_bytes_max()}}},
                {"segments",
                 {{"all", geometry.segment_count},
                  {"free", counts.log.free_segments},
                  {"open", counts.log.open_segments},
                  {"sealed", counts.log.sealed_segments},
                  {"emptied", counts.log.emptied_segments},
                  {"checkpoint", counts.log.checkpoint_segments}}},
                {"room",
                 {{"live_bytes", live_bytes},
                  {"limit_bytes", counts.log.limit_bytes},
                  {"full", share(live_bytes, counts.log.limit_bytes)},
                  {"tombstone_bytes", counts.log.tombstone_bytes},
                  {"dead_bytes", used_bytes - std::min(used_bytes, record_bytes)}}},
                {"index",
                 {{"entries", counts.index.entries},
                  {"memory_bytes", counts.index.memory_bytes},
                  {"tables", counts.index.tables},
                  {"memory_of_an_entry_bytes", share(counts.index.memory_bytes, counts.index.entries)}}},
                {"collected",
                 {{"segments", counts.collected.victims},
                  {"moved_records", counts.collected.moved_records},
                  {"moved_bytes", counts.collected.moved_bytes},
                  {"read_bytes", counts.collected.read_bytes},
                  {"expired_records", counts.collected.expired_records},
                  {"ended_tombstones", counts.collected.ended_tombstones},
                  {"dropped_records", counts.collected.dropped_records},
                  {"dropped_bytes", counts.collected.dropped_bytes},
                  {"kept_records", counts.collected.kept_records},
                  {"damaged_records", counts.collected.damaged_records}}},
                {"recovery",
                 {{"records", recovery.records},
                  {"read_bytes", recovery.read_bytes},
                  {"scanned_segments", recovery.scanned_segments},
                  {"damaged_segments", recovery.damaged_segments},
                  {"lost_segments", recovery.lost_segments},
                  {"passed_grains", recovery.passed_grains},
                  {"headless_pieces", recovery.headless_pieces}}}};
  add_use(counts.use, stats);
  return stats;
}

std::string words_of(std::string name) {
  for (std::string_view unit : {"_bytes", "_ns"})
    if (name.ends_with(unit)) name.resize(name.size() - unit.size());
  std::ranges::replace(name, '_', ' ');
  return name;
}

std::string readable(const std::string& name, const Json& value) {
  if (value.is_number_float())
    return concat(std::fixed, std::setprecision(2), value.get<double>(),
                  name.ends_with("_bytes") ? " bytes" : "");
  if (name.ends_with("_bytes")) return readable_bytes(value.get<uint64_t>());
  if (name.ends_with("_ns"))
    return concat(std::fixed, std::setprecision(1), value.get<double>() / 1000, " us");
  return value.dump();
}

std::string text_of(const Json& stats) {
  std::string text;
  for (const auto& [section, facts] : stats.items()) {
    text += words_of(section) + '\n';
    for (const auto& [name, value] : facts.items())
      text += concat("  ", std::left, std::setw(22), words_of(name), ' ', readable(name, value), '\n');
  }
  return text;
}

}  // namespace

std::string stats_text(kv::Store& store) { return text_of(stats_of(store)); }

int kv_stats(const KvLine& line) {
  KvStore store(line.device, {.read_only = true});
  const Json stats = stats_of(*store);
  store.close();
  if (line.has("--json")) {
    std::puts(stats.dump(2).c_str());
    return 0;
  }
  std::fputs(text_of(stats).c_str(), stdout);
  return 0;
}

}  // namespace tools
