// Domain: a mapping, and how what is stored there becomes durable.
//
//   memory         persistent memory, or DRAM that is taken for it: the CPU's instructions write lines back, and a fence is an sfence
//   flush_on_fail  memory of a machine that saves its caches when power fails (eADR, battery-backed hosts, CXL with GPF): a flush does nothing, and a
//                  fence is an sfence
//   file           any file: flushes are noted as ranges, and a fence has the kernel write these (msync, or fdatasync where there are several)
//   device         lines are sent to a LineDevice: the modelled device, or a test's
//   none           a mapping that was looked at and is none of these: it is treated as if it were in no domain
//
// All have the semantics of the CPU's instructions: a flush promises nothing by itself; what a thread has flushed before its fence is durable when
// the fence returns.
#pragma once
#include <cstddef>
#include <cstdint>

namespace persist {

enum class DomainKind : uint8_t { kMemory, kFlushOnFail, kFile, kDevice, kNone };
const char* name_of(DomainKind kind);

// Receives lines that the CPU's instructions do not write back. Any thread may call any of it at any time.
class LineDevice {
 public:
  // Begins to make lines durable; each is given by the address of its first byte. May block while the device has no room. Several threads may flush
  // the same line at the same time: as with coherent caches, older content never replaces newer content.
  virtual void flush(const uintptr_t* lines, size_t count) = 0;
  // Returns when all that the calling thread has flushed is durable.
  virtual void fence() = 0;

 protected:
  ~LineDevice() = default;
};

struct Domain {
  uintptr_t begin = 0, end = 0;
  DomainKind kind = DomainKind::kMemory;
  LineDevice* device = nullptr;  // of kDevice
  int descriptor = -1;  // of kFile, open while the domain exists; -1: ranges are written one by one (msync)

  bool holds(uintptr_t address) const { return address - begin < end - begin; }
};

}  // namespace persist
