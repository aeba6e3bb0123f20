// Many puts at once: their records are written together, and those that come to lie behind each other with one write.
//
//  1 as many as get their keys' locks without waiting, up to kGroup and kBytesMost, are a group; the same key twice is two groups
//  2 each gets a sequence and room in the log, in their order; who gets none is not of the group any more
//  3 all records are written, and what is there is read, under way at once; at kSync one flush is for all
//  4 the index learns of each, in their order
// What is not of a group, such as a large value, is put alone.
//
// Thread contract: as Session.
#pragma once
#include <span>

#include "kv/store.h"

namespace kv {

class MultiPut {
 public:
  static constexpr size_t kGroup = 64;
  static constexpr uint64_t kBytesMost = 1 << 20;  // of a group's records

  struct Put {
    std::string_view key;
    Bytes value;
    uint64_t expires_ms = 0;
    uint32_t flags = 0;
  };
  // results[i] is what session.put() of puts[i] would return, one after the other: of the same key the last one stays. One that fails takes no
  // other with it; others may see some done and some not yet. REQUIRES: results.size() == puts.size(). Cost: one write, for each that lies elsewhere
  // one more, and of keys that there are already a read each.
  static void put(Session& session, std::span<const Put> puts, std::span<base::Expected<Changed>> results);

 private:
  struct One;
  struct Group;
  static size_t take(Session& session, Group& group, std::span<const Put> puts);
  static bool take_one(Session& session, One& one, const Put& put);
  static size_t allocate(Session& session, std::span<One> ones);
  static void write(Session& session, Group& group, std::span<One> ones, std::span<std::byte> memory);
  static void write_alone(Session& session, std::span<One> ones);
  static void look(Session& session, Group& group, std::span<One> ones);
  static uint64_t finish(Session& session, std::span<One> ones, std::span<base::Expected<Changed>> results);
};

}  // namespace kv
