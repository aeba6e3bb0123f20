// Change: what an item is to become, decided by a function that has looked at it; and Outcome and Done, which calls that change items return.
#pragma once
#include <array>
#include <cstdint>
#include <type_traits>

#include "base/check.h"
#include "base/error.h"
#include "server/items/item.h"

namespace server {

enum class Outcome : uint8_t {
  kDone,
  // Nothing was done:
  kAbsent,     // there is no such item
  kPresent,    // there is one
  kOtherCas,   // it has another cas than the one asked for
  kNotNumber,  // its value is no number
  kOverflow,   // the number would be beyond 64 bits
  kTooLong,    // its value would be longer than it is, and longer than the server takes
  kUnmet,      // another condition is not met
};

// Describes the item after the call. If nothing was done: the item that is there, if the call has read it; else 0.
struct Done {
  Outcome outcome = Outcome::kDone;
  uint64_t cas = 0;
  uint64_t value_bytes = 0;
  uint64_t expires_ms = 0;
};

// Part of a new value.
struct Part {
  enum class Kind : uint8_t {
    kBytes,  // `bytes`
    kOld,    // of the old value, from `offset` on
    kFill,   // `fill`, repeated
  };
  Kind kind = Kind::kBytes;
  const std::byte* bytes = nullptr;
  uint64_t offset = 0;
  char fill = 0;
  uint64_t length = 0;

  // The bytes stay until the change has been made.
  static Part of(kv::Bytes bytes) { return {.bytes = bytes.data(), .length = bytes.size()}; }
  static Part old(uint64_t offset, uint64_t length) {
    return {.kind = Kind::kOld, .offset = offset, .length = length};
  }
  static Part filled(char with, uint64_t length) {
    return {.kind = Kind::kFill, .fill = with, .length = length};
  }
};

struct Change {
  static constexpr size_t kMaxParts = 4;
  enum class Kind : uint8_t { kNothing, kPut, kRemove };

  Kind kind = Kind::kNothing;
  Outcome outcome = Outcome::kDone;  // of kNothing: what the call returns
  // Of kPut:
  ItemHead head = {};
  uint32_t flags = 0;
  uint64_t expires_ms = 0;
  bool is_new_value = true;  // false: what the hot table says of the item's use stays (hot_table.h)
  std::array<Part, kMaxParts> parts = {};
  size_t part_count = 0;

  static Change nothing(Outcome outcome) { return {.outcome = outcome}; }
  static Change removal() { return {.kind = Kind::kRemove}; }
  static Change put(kv::Bytes value, uint32_t flags, uint64_t expires_ms) {
    Change change = {.kind = Kind::kPut, .flags = flags, .expires_ms = expires_ms};
    change.add(Part::of(value));
    return change;
  }
  // A new value, whose parts are to be added, and so a new cas; all else stays.
  static Change value_of(const Item& item) {
    return {.kind = Kind::kPut,
            .head = {.marks = item.marks()},
            .flags = item.flags(),
            .expires_ms = item.expires_ms()};
  }
  // Everything stays, the cas too.
  static Change same_as(const Item& item) {
    Change change = value_of(item);
    change.head.own_cas = item.cas();
    change.is_new_value = false;
    change.add(Part::old(0, item.value_bytes()));
    return change;
  }
  // REQUIRES: there are fewer than kMaxParts.
  void add(const Part& part) {
    CHECK_LT(part_count, kMaxParts);
    parts[part_count++] = part;
  }
  uint64_t value_bytes() const {
    uint64_t bytes = 0;
    for (size_t i = 0; i < part_count; ++i) bytes += parts[i].length;
    return bytes;
  }
};

// A reference to a function that decides: `base::Expected<Change> decide(Item& item)`, or `Change decide(Item& item)`. The item may be one that was
// not found. The function is called again when others have changed the item meanwhile.
class Decision {
 public:
  template <class Function>
    requires(!std::is_same_v<std::remove_const_t<Function>, Decision>)
  Decision(Function& function)
      : function_(&function), call_([](const void* context, Item& item) -> base::Expected<Change> {
          return (*static_cast<Function*>(const_cast<void*>(context)))(item);
        }) {}
  base::Expected<Change> operator()(Item& item) const { return call_(function_, item); }

 private:
  const void* function_;
  base::Expected<Change> (*call_)(const void* context, Item& item);
};

}  // namespace server
