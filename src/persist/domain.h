// Domain: a mapping, and what makes durable what is stored there.
//
//   memory         persistent memory, or DRAM that is taken for it: lines are written back by the CPU's instructions, a fence is an sfence
//   flush_on_fail  the caches' content is saved when power fails (eADR, battery-backed hosts, CXL with GPF): flushes fall away, a fence is an sfence
//   file           any file: what is flushed is noted as ranges, and a fence has the kernel write them (msync, or fdatasync of many)
//   device         lines go to a LineDevice: the modelled device, or a test's
//   none           a mapping that was looked at, and is nothing of this: as what is in no domain
//
// All have the semantics of the CPU's instructions: a flush promises nothing by itself; what a thread has flushed before its fence is durable when that returns.
#pragma once
#include <cstddef>
#include <cstdint>

namespace persist {

enum class DomainKind : uint8_t { kMemory, kFlushOnFail, kFile, kDevice, kNone };
const char* name_of(DomainKind kind);

// Where lines go that the CPU's instructions do not write back. Any thread calls any of it at any time.
class LineDevice {
 public:
  // Begins to make the lines durable; each is the address of a line's first byte. May block while the device has no room. Several threads may flush a line at the same time:
  // content never becomes durable in the place of newer content, as with caches, which are coherent.
  virtual void flush(const uintptr_t* lines, size_t count) = 0;
  // Returns when all is durable that the calling thread has begun.
  virtual void fence() = 0;

 protected:
  ~LineDevice() = default;
};

struct Domain {
  uintptr_t begin = 0, end = 0;
  DomainKind kind = DomainKind::kMemory;
  LineDevice* device = nullptr;  // of kDevice
  int descriptor = -1;  // of kFile, as long as the domain is there; -1: ranges are written one by one (msync)

  bool holds(uintptr_t address) const { return address - begin < end - begin; }
};

}  // namespace persist
