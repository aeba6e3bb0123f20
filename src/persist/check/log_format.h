// The log of a recorded program: what it stored to its persistence domains, flushed and fenced, in one total order.
//
//   LogHeader    64 bytes
//   windows      of kWindowBytes each, from kWindowBytes on; records do not cross their ends
//   record       Record, and its payload, zeros up to a multiple of 8
//
// A record whose `bytes` is 0 is the end. `bytes` is stored last, so that a program that is killed leaves whole records; `check` reveals
// damage. All numbers are little-endian. Beside the log lies a file LOG.<number> for each domain: its content when it was mapped.
//
//   kind      thread site address length  payload
//   kPad      -      -    -       -       up to the end of the window
//   kMap      -      -    begin   bytes   MapPayload, path of the file; `number` is the domain's, from 1 on
//   kUnmap    -      -    -       -       `number` is the domain's
//   kStore    yes    yes  begin   bytes   the units' content after it: begin and bytes are multiples of kUnitBytes
//   kFlush    yes    yes  begin   bytes   whole lines
//   kFence    yes    yes  -       -
//   kMarker   yes    -    -       -       text
//   kModule   -      offset begin bytes   path: code of this file, from this offset on, is mapped there
//   kFull     -      -    -       -       nothing was recorded from here on
//   kExit     -      -    -       -       the program came to its end
//
// `site` is where in the program the call was made that the record is about: its return address.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/ids.h"
#include "base/mix.h"

namespace persist {

static_assert(std::endian::native == std::endian::little);

inline constexpr uint64_t kUnitBytes = 8;  // what the CPU makes durable as a whole
inline constexpr uint64_t kWindowBytes = uint64_t{1} << 20;
inline constexpr uint64_t kMaxStoreBytes = 4096;  // of one record: longer stores are several
inline constexpr uint64_t kMaxTextBytes = 4096;   // of a path, of a marker

struct LogHeader {
  static constexpr char kMagic[8] = {'S', 'P', 'I', 'L', 'L', 'P', 'S', 'T'};
  static constexpr uint32_t kVersion = 1;
  char magic[8] = {};
  uint32_t version = 0;
  uint32_t process = 0;
  uint64_t window_bytes = 0;
  uint64_t zero[5] = {};
};
static_assert(sizeof(LogHeader) == 64);

enum class RecordKind : uint8_t {
  kPad = 1,
  kMap,
  kUnmap,
  kStore,
  kFlush,
  kFence,
  kMarker,
  kModule,
  kFull,
  kExit,
};

// Flags of a store: kFound: nobody reported it; it was found before the flush or fence at its site, and may be several stores. kPastCaches: it went
// past the caches, as if it were flushed at once. Of a flush: kOrdered: it needs no fence (clflush).
inline constexpr uint8_t kFound = 1, kPastCaches = 2;
inline constexpr uint8_t kOrdered = 1;

struct Record {
  uint32_t bytes = 0;  // with the payload, a multiple of 8
  uint16_t check = 0;
  RecordKind kind = RecordKind::kPad;
  uint8_t flags = 0;
  uint32_t thread = 0;
  uint32_t number = 0;
  uint64_t site = 0;
  uint64_t address = 0;
  uint64_t length = 0;
};
static_assert(sizeof(Record) == 40);

struct MapPayload {
  uint64_t file_offset = 0;  // of the domain's begin in its file
  uint64_t file_bytes = 0;   // how long the file was; 0: there is none, it is a device, or it was removed
};

// The `check` of a record that lies at this position of the log.
inline uint16_t check_of(const Record& record, uint64_t position) {
  uint64_t value =
      base::mix(position ^ uint64_t{record.bytes} << 32 ^ static_cast<uint64_t>(record.kind) << 56);
  value = base::mix(value ^ record.flags ^ uint64_t{record.thread} << 8 ^ uint64_t{record.number} << 32);
  value = base::mix(value ^ record.site);
  value = base::mix(value ^ record.address);
  return static_cast<uint16_t>(base::mix(value ^ record.length));
}

}  // namespace persist
