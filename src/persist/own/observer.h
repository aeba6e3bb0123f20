// Observer: is told of every store, flush and fence of a program. In a process with an observer no flush is put off.
//
// Thread contract: any thread, and signal handlers.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/text.h"

namespace persist {

struct Domain;

class Observer {
 public:
  // A domain begins, before anything to be observed is stored there: of the file at `path` from offset_bytes on; "": it is no file's. What the
  // observer cannot take is left out.
  virtual void add(const Domain& domain, std::string_view path, uint64_t offset_bytes) = 0;
  // What lies in [begin, end) is in no domain any more; it is still mapped.
  virtual void remove(uintptr_t begin, uintptr_t end) = 0;
  // Comes after a store. `site`, here and below: where the program called.
  virtual void store(uintptr_t address, size_t bytes, bool is_past_caches, const void* site) = 0;
  // Comes before a flush; is_ordered: as clflush.
  virtual void flush(uintptr_t address, size_t bytes, bool is_ordered, const void* site) = 0;
  // Comes after a fence.
  virtual void fence(const void* site) = 0;
  // The program says how far it has come.
  virtual void mark(std::string_view text) = 0;
  // Writes a comma and a member of a JSON object, with its name; or nothing.
  virtual void write_statistics(base::TextRef& text) const = 0;
  // The process ends.
  virtual void finish() = 0;

 protected:
  ~Observer() = default;
};

}  // namespace persist
