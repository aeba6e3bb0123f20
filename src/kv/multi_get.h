// MultiGet: gets of many keys at once. Their reads are in flight together, so that a thread without tasks makes use of a device that serves many
// requests at a time. (uDepot, section 3)
//
//  1 The keys of a group, up to kGroup, are looked up in the index together, so that their cache misses overlap
//  2 Each key that has a candidate gets one read, unless its record is in memory (tier/memory_tier.h); all are under way at once
//  3 If a record is another key's, damaged, or the head of a large value, the key is looked up again alone, as by Session::get
//
// Thread contract: Session's.
#pragma once
#include <span>

#include "kv/store.h"

namespace kv {

class MultiGet {
 public:
  static constexpr size_t kGroup = 64;

  // Sets results[i] to what session.get(keys[i]) would return: one that fails does not affect others, and together they do not show one moment. Cost: one
  // I/O for each key that exists, two if its value is large. REQUIRES: results.size() == keys.size().
  static void get(Session& session, std::span<const std::string_view> keys,
                  std::span<base::Expected<Found>> results);
  // The same for as many of the first keys as have records of `bytes_most` bytes together, at least one and at most kGroup: for a caller that cannot
  // keep all that is found in memory. Returns how many keys that are; it sets no results of the others.
  static size_t get_some(Session& session, std::span<const std::string_view> keys,
                         std::span<base::Expected<Found>> results, uint64_t bytes_most);

 private:
  struct Group;
  static size_t get_group(Session& session, Group& group, std::span<const std::string_view> keys,
                          std::span<base::Expected<Found>> results, uint64_t bytes_most);
  static size_t count_within(const Session& session, std::span<const Location> locations,
                             uint64_t bytes_most);
  static const storage::Io* begin(Session& session, Group& group, const Location& location,
                                  std::string_view key, base::Expected<Found>& result);
  static void end(Session& session, const Location& location, base::Expected<Found>& result);
  static void end(Session& session, uint64_t hash, const Location& location, std::string_view key,
                  const storage::Io& io, base::Expected<Found>& result);
};

}  // namespace kv
