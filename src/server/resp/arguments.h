// Parsers of the arguments of commands that read and change data. Options are checked as Redis checks them.
//
// `arguments` is the whole request, with the command's name; find_command() has checked how many they are. Times become
// milliseconds since 1970, by the clock `now_ms`. Views point where the arguments do. All functions are pure, and
// take time for what they read.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "server/resp/command.h"

namespace server::resp {

// SET, SETNX, SETEX, PSETEX, GETSET.
enum class Condition : uint8_t { kNone, kIfAbsent, kIfPresent };
struct SetRequest {
  std::string_view key;
  std::string_view value;
  int64_t expires_ms = 0;  // 0: never. May be past
  Condition condition = Condition::kNone;
  bool keeps_expiry = false;
  bool returns_old = false;
};
// Refused: kSyntax, kNotAnInteger, kInvalidExpire. REQUIRES: `command` is one of those above.
Accepted<SetRequest> parse_set(const Command& command, Arguments arguments, int64_t now_ms);

// GETEX. A wrong time is refused here whether or not the key is there; Redis refuses it only if it is.
struct GetexRequest {
  std::string_view key;
  int64_t expires_ms = 0;  // 0: the expiry stays. May be past: the key is gone then
  bool persists = false;
};
// Refused: as parse_set.
Accepted<GetexRequest> parse_getex(const Command& command, Arguments arguments, int64_t now_ms);

// EXPIRE, PEXPIRE, EXPIREAT, PEXPIREAT. A key that never expires counts as one that expires later than all others.
struct ExpireRequest {
  std::string_view key;
  int64_t expires_ms = 0;   // may be past, and below 0
  bool if_never = false;    // NX: if it has no expiry
  bool if_some = false;     // XX: if it has one
  bool if_later = false;    // GT: if the new one is later
  bool if_earlier = false;  // LT: if it is earlier
};
// Refused: kUnsupportedOption, kNxWithOthers, kGtWithLt, kNotAnInteger, kInvalidExpire.
Accepted<ExpireRequest> parse_expire(const Command& command, Arguments arguments, int64_t now_ms);

// MSET, MSETNX. Keys and values in turn. Refused: kWrongArity, when a value is missing.
Accepted<Arguments> parse_pairs(const Command& command, Arguments arguments);

// INCR, DECR, INCRBY, DECRBY.
struct IncrementRequest {
  std::string_view key;
  int64_t delta = 0;
};
// Refused: kNotAnInteger, kDecrementOverflow.
Accepted<IncrementRequest> parse_increment(const Command& command, Arguments arguments);

// The increment of INCRBYFLOAT. Refused: kNotAFloat.
Accepted<long double> parse_float_argument(std::string_view text);

// GETRANGE: from byte `first` to byte `last`; negative ones count from the end, -1 is the last byte.
struct GetrangeRequest {
  std::string_view key;
  int64_t first = 0;
  int64_t last = 0;
};
// Refused: kNotAnInteger.
Accepted<GetrangeRequest> parse_getrange(Arguments arguments);
struct ByteRange {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};
// Which bytes of a value of `value_bytes` the request asks for.
ByteRange bytes_in_range(const GetrangeRequest& request, uint64_t value_bytes);

// SETRANGE.
struct SetrangeRequest {
  std::string_view key;
  uint64_t offset = 0;
  std::string_view bytes;
};
// Refused: kNotAnInteger, kOffsetOutOfRange.
Accepted<SetrangeRequest> parse_setrange(Arguments arguments);

// Bounds a pattern of KEYS and SCAN. Comparing one with a key may take as many steps as the product of their lengths.
inline constexpr size_t kMaxPatternBytes = 1024;

// SCAN.
struct ScanRequest {
  uint64_t cursor = 0;  // 0: from the beginning
  std::string_view pattern = "*";
  uint64_t count = 10;
  std::string_view type;  // empty: any
};
// Refused: kInvalidCursor, kNotAnInteger, kPatternTooLong, kSyntax.
Accepted<ScanRequest> parse_scan(Arguments arguments);

}  // namespace server::resp
