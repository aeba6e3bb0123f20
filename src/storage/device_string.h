// Device strings: what --storage and its kin accept, as text, and parsed.
//
//   device  := path                                     uring, or where that is not possible aio, or file
//            | "memory:" SIZE
//            | "file:" path [ "?" setting { "," setting } ]      qd=N  threads=N
//            | "uring:" path [ "?" setting { "," setting } ]     qd=N  threads=N
//            | "aio:" path [ "?" setting { "," setting } ]       qd=N  threads=N
//            | "fault:" [ fault { "," fault } ":" ] "[" device "]"
//   fault   := "seed=" N | operation "_" effect "=" when [ "x" N ]
//   operation := "read" | "write" | "discard" | "flush" | "any"
//   effect  := "eio" | "enospc" | "torn" | "short" | "split" | "delay_polls" | "delay_us"
//   when    := N "/" M  | "@" N | "@" N "+" | "%" N      see fault_schedule.h; "x" N: how long a delay is
//
// A plain path is a text with a "/" before its first ":" or without ":", and is taken as it is. Paths after
// "file:", "uring:" and "aio:" end at the first "?".
#pragma once
#include <string_view>

#include "storage/aio.h"
#include "storage/fault_schedule.h"
#include "storage/file.h"
#include "storage/uring.h"

namespace storage {

enum class Scheme { kMemory, kFile, kUring, kAio, kFault };

// One device of the string. Which fields count depends on the scheme.
struct DeviceNode {
  Scheme scheme = Scheme::kUring;
  std::string_view path;                        // file, uring, aio; points into the text
  uint64_t capacity_bytes = 0;                  // memory
  size_t depth = 0;                             // file, uring, aio
  uint32_t helper_count = kDefaultHelperCount;  // file, uring, aio
  FaultSchedule faults;                         // fault
};

// nodes[i] decorates nodes[i + 1]; the last one decorates nothing.
struct DeviceTree {
  static constexpr size_t kMaxNodes = 4;
  size_t node_count = 0;
  DeviceNode nodes[kMaxNodes];
};

inline constexpr size_t kMaxPathBytes = 4000;

// Pure. Errors: EINVAL, with a message that shows what is wrong and how it should be.
base::Expected<DeviceTree> parse_device_string(std::string_view text);

}  // namespace storage
