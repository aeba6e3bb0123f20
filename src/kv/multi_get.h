// Many keys at once: their reads are in flight together, so that a thread without tasks uses a device that takes many.
// (uDepot, section 3: a device is fast only when much is asked of it at a time)
//
//  1 the keys of a group, up to kGroup, are looked up in the index together: its cache misses overlap
//  2 one read for each that has a candidate, all under way at once
//  3 what is in memory (tier/memory_tier.h) needs none
//  4 a record that is not the key's, or damaged, or the head of a large value, is looked for again, alone: Session::get says what is so
//
// Thread contract: as Session.
#pragma once
#include <span>

#include "kv/store.h"

namespace kv {

class MultiGet {
 public:
  static constexpr size_t kGroup = 64;

  // results[i] is what session.get(keys[i]) would return, each for itself: one that fails takes no other with it. They were not all
  // so at one time. REQUIRES: results.size() == keys.size(). Cost: one I/O for each key that there is, two for that of a large value.
  static void get(Session& session, std::span<const std::string_view> keys,
                  std::span<base::Expected<Found>> results);

 private:
  struct Group;
  static void get_group(Session& session, Group& group, std::span<const std::string_view> keys,
                        std::span<base::Expected<Found>> results);
  static const storage::Io* begin(Session& session, Group& group, const Location& location,
                                  std::string_view key, base::Expected<Found>& result);
  static void end(Session& session, const Location& location, base::Expected<Found>& result);
  static void end(Session& session, uint64_t hash, const Location& location, std::string_view key,
                  const storage::Io& io, base::Expected<Found>& result);
};

}  // namespace kv
