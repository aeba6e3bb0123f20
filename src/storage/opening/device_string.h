// Device strings, as --storage and similar options accept them: their grammar, and the tree into which they are parsed.
//
//   device  := path                                     uring; where that is not possible, aio; or else file
//            | "memory:" SIZE
//            | "file:" path [ "?" setting { "," setting } ]      qd=N  threads=N
//            | "uring:" path [ "?" setting { "," setting } ]     qd=N  threads=N  iopoll=0|1  sqpoll=0|1     see uring.h
//            | "aio:" path [ "?" setting { "," setting } ]       qd=N  threads=N
//            | "pmem:" path [ "?" setting { "," setting } ]      size=SIZE  dax=0|1      see pmem.h
//            | "fault:" [ fault { "," fault } ":" ] "[" device "]"
//            | "stripe:[" device "," device { "," device } "]" [ "?unit=" SIZE ]
//            | "latency:" setting { "," setting } ":" "[" device "]"
//                us=N (needed)  channels=N  mbps=N  dist=fixed|uniform|exp  seed=N  sleep=0|1        see latency_model.h
//            | "trace:file=" path ":[" device "]"                the path has no "["
//            | "encrypt:" [ "key=" path ":" ] "[" device "]"    the path has no "["; without it a key that ends with the device
//            | "spdk:" setting { "," setting }
//                pci=DDDD:BB:DD.F, or tcp=HOST:PORT or rdma=HOST:PORT with nqn=NAME; ns=N  qd=N  timeout=SECONDS  bounce=0|1
//   fault   := "seed=" N | operation "_" effect "=" when [ "x" N ]
//   operation := "read" | "write" | "discard" | "flush" | "any"
//   effect  := "eio" | "enospc" | "torn" | "short" | "split" | "delay_polls" | "delay_us"
//   when    := N "/" M  | "@" N | "@" N "+" | "%" N      see fault_schedule.h; "x" N: how long a delay is
//
// A text without ":", or with a "/" before its first ":", is a plain path, and is taken literally. Paths after "file:", "uring:", "aio:" and
// "pmem:" end at the first "?". In a stripe's list a path has no ",", and as many "[" as "]". There a "," that is followed by a setting of
// the preceding device belongs to that device: "[aio:/a?qd=8,threads=2,/b]" are two devices. A HOST with colons is put in brackets.
#pragma once
#include <string_view>

#include "storage/backends/aio.h"
#include "storage/backends/file.h"
#include "storage/backends/pmem.h"
#include "storage/backends/spdk.h"
#include "storage/backends/uring.h"
#include "storage/decorators/fault_schedule.h"
#include "storage/decorators/latency_model.h"
#include "storage/decorators/stripe.h"

namespace storage {

enum class Scheme { kMemory, kFile, kUring, kAio, kPmem, kFault, kStripe, kLatency, kTrace, kEncrypt, kSpdk };

// One device of the string. Comments say which schemes a field is for.
struct DeviceNode {
  Scheme scheme = Scheme::kUring;
  // file, uring, aio, pmem, trace; encrypt: the key file, empty if there is none. Points into the text.
  std::string_view path;
  uint64_t capacity_bytes = 0;                    // memory
  size_t depth = 0;                               // file, uring, aio, spdk
  uint32_t helper_count = kDefaultHelperCount;    // file, uring, aio
  UringModes modes;                               // uring
  PmemSettings pmem;                              // pmem
  FaultSchedule faults;                           // fault
  uint64_t unit_bytes = kDefaultStripeUnitBytes;  // stripe
  LatencyParameters latency;                      // latency
  SpdkParameters spdk;                            // spdk; points into the text
  // The devices that it is made of: fault, latency, trace and encrypt have 1, stripe several, the others none.
  size_t child_count = 0;
  uint8_t children[kMaxStripeMembers] = {};  // indexes in DeviceTree::nodes, each larger than its own

  // Is `path` that of the medium itself?
  bool names_medium() const {
    using enum Scheme;
    return scheme == kFile || scheme == kUring || scheme == kAio || scheme == kPmem;
  }
};

// nodes[0] is the outermost device. About 30 KiB.
struct DeviceTree {
  // Enough for a stripe of 16 decorated devices, and some decorators around it.
  static constexpr size_t kMaxNodes = 40;
  static constexpr size_t kMaxNesting = 8;  // devices inside each other, the innermost included
  size_t node_count = 0;
  DeviceNode nodes[kMaxNodes];
};

inline constexpr size_t kMaxPathBytes = 4000;

// Pure. Errors: EINVAL, with a message that shows what is wrong and what it should be.
base::Expected<DeviceTree> parse_device_string(std::string_view text);

}  // namespace storage
