// Observer: is told all that a program stores, flushes and fences, in place of the ways that are fast. Flushes are executed where they stand.
//
// Thread contract: any thread, handlers of signals too.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/text.h"

namespace persist {

struct Domain;

class Observer {
 public:
  // A domain begins, before anything is stored there that is to be seen: part of the file's mapping at `path` from offset_bytes on, or "" of none. What it cannot take is left out.
  virtual void add(const Domain& domain, std::string_view path, uint64_t offset_bytes) = 0;
  // Domains end in [begin, end); it is mapped still.
  virtual void remove(uintptr_t begin, uintptr_t end) = 0;
  // After a store. `site` is where the program called, here and below.
  virtual void store(uintptr_t address, size_t bytes, bool is_past_caches, const void* site) = 0;
  // Before a flush; is_ordered: as clflush.
  virtual void flush(uintptr_t address, size_t bytes, bool is_ordered, const void* site) = 0;
  // After a fence.
  virtual void fence(const void* site) = 0;
  // The program says how far it has come.
  virtual void mark(std::string_view text) = 0;
  // A member of a JSON object, with its name and a comma before it; or nothing.
  virtual void write_statistics(base::TextRef& text) const = 0;
  // The process ends.
  virtual void finish() = 0;

 protected:
  ~Observer() = default;
};

}  // namespace persist
