// The interface between the runtime and libspillway-spdk.so. The library is loaded with a C library of its own (spdk_load.h), so only plain
// data crosses this interface, and each side frees the memory that it has allocated.
//
// Invariants
//  1 the library keeps no pointer of the caller's beyond a call, except to Ios and to the functions of SpdkHost
//  2 a channel belongs to one thread at a time; everything else may be called by any thread
//  3 an Io that was given to start() comes back exactly once in the list of poll(), with error and transferred_bytes set (device.h),
//    however its connection ends
#pragma once
#include <cstddef>
#include <cstdint>

#include "storage/device.h"

namespace storage {

// To be raised with any change of this file, or of the layouts of Io and IoList.
inline constexpr uint32_t kSpdkInterfaceVersion = 1;

enum class SpdkTransport : uint32_t { kPcie, kTcp, kRdma };

// A namespace of an NVMe controller. Texts are null-terminated.
struct SpdkTarget {
  SpdkTransport transport = SpdkTransport::kPcie;
  char address[128] = {};  // "0000:01:00.0", or a host
  char port[8] = {};       // not PCIe
  char nqn[224] = {};      // name of the subsystem; not PCIe
  uint32_t namespace_id = 1;
  uint32_t timeout_seconds = 10;
  bool bounces = false;  // data is copied through memory of SPDK's own
};

// What the library found out about the namespace.
struct SpdkFacts {
  uint64_t capacity_bytes = 0;
  uint32_t block_bytes = 0;
  bool discards = false;
};

// What the runtime does for the library: functions of sys/files.h.
struct SpdkHost {
  // Returns the new number; -1 if that is not possible: then the descriptor is unchanged.
  int (*own_descriptor)(int descriptor);
  void (*close_descriptor)(int descriptor);
  bool (*is_own_descriptor)(int descriptor);
};

struct SpdkDevice;
struct SpdkChannel;

// Why something failed. `reason` is one line without its end, in the words of the library or of SPDK.
struct SpdkError {
  int number = 0;
  char reason[120] = {};
};

struct SpdkLibrary {
  uint32_t version;  // kSpdkInterfaceVersion
  // Connects. Null on errors, which `error` describes. Blocks for at most a few of the target's time-outs; so does open_channel.
  SpdkDevice* (*open)(const SpdkHost& host, const SpdkTarget& target, SpdkFacts& facts, SpdkError& error);
  // REQUIRES: all channels have been closed.
  void (*close)(SpdkDevice* device);
  // As open.
  SpdkChannel* (*open_channel)(SpdkDevice* device, size_t depth, SpdkError& error);
  // REQUIRES: nothing is in flight.
  void (*close_channel)(SpdkChannel* channel);
  // Takes an Io, which flush() or poll() passes to the target. REQUIRES: with this one at most `depth` Ios are in flight.
  void (*start)(SpdkChannel* channel, Io& io);
  void (*flush)(SpdkChannel* channel);
  // Appends the Ios that have ended.
  void (*poll)(SpdkChannel* channel, IoList& ended);
};

// Its only symbol: const SpdkLibrary.
inline constexpr const char* kSpdkLibrarySymbol = "spillway_spdk";
inline constexpr const char* kSpdkLibraryFile = "libspillway-spdk.so";

}  // namespace storage
