// spillway kv stats: what is in a store, what it takes, and what opening it has found.
#include <algorithm>
#include <cstdio>
#include <iomanip>
#include <nlohmann/json.hpp>

#include "kv.h"

namespace tools {
namespace {

using Json = nlohmann::ordered_json;

Json stats_of(kv::Store& store) {
  const kv::Geometry& geometry = store.identity().geometry;
  const kv::StoreCounts counts = store.counts();
  const kv::RecoveryReport& recovery = store.recovery();
  const uint64_t usable_bytes = geometry.segment_count * geometry.segment_bytes;
  const uint64_t record_bytes = counts.log.live_grains * geometry.grain_bytes;
  const uint64_t used_bytes = usable_bytes - counts.log.free_segments * geometry.segment_bytes;
  // Tombstones, which end by themselves, are no reason to refuse a put.
  const uint64_t live_bytes = counts.log.live_bytes - counts.log.tombstone_bytes;
  const auto share = [](uint64_t part, uint64_t whole) {
    return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
  };
  return {{"store",
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
            {"damaged_records", counts.collected.damaged_records}}},
          {"recovery",
           {{"records", recovery.records},
            {"read_bytes", recovery.read_bytes},
            {"scanned_segments", recovery.scanned_segments},
            {"damaged_segments", recovery.damaged_segments},
            {"lost_segments", recovery.lost_segments},
            {"passed_grains", recovery.passed_grains},
            {"headless_pieces", recovery.headless_pieces}}}};
}

std::string words_of(std::string name) {
  if (name.ends_with("_bytes")) name.resize(name.size() - 6);
  std::ranges::replace(name, '_', ' ');
  return name;
}

std::string readable(const std::string& name, const Json& value) {
  if (value.is_number_float())
    return concat(std::fixed, std::setprecision(2), value.get<double>(),
                  name.ends_with("_bytes") ? " bytes" : "");
  if (name.ends_with("_bytes")) return readable_bytes(value.get<uint64_t>());
  return value.dump();
}

}  // namespace

int kv_stats(const KvLine& line) {
  KvStore store(line.words[0]);
  const Json stats = stats_of(*store);
  store.close();
  if (line.has("--json")) {
    std::puts(stats.dump(2).c_str());
    return 0;
  }
  for (const auto& [section, facts] : stats.items()) {
    std::printf("%s\n", words_of(section).c_str());
    for (const auto& [name, value] : facts.items())
      std::printf("  %-22s %s\n", words_of(name).c_str(), readable(name, value).c_str());
  }
  return 0;
}

}  // namespace tools
