// Dirtiness: how much of each line that a program flushes it had changed. (Ribbon, sections 2.3 and 3: the share of dirty bytes in flushed lines)
//
// It keeps a copy of every domain, compares each line that is flushed with the copy, and updates that. So a byte counts as dirty if it differs from
// what it was when its line was flushed last, whoever has stored to it; a store of the value that was there does not count.
#pragma once
#include <atomic>

#include "persist/domain.h"
#include "persist/own/observer.h"
#include "sys/lock.h"

namespace persist {

class Dirtiness final : public Observer {
 public:
  constexpr Dirtiness() = default;

  // A domain is left out, and nothing of it counted, if there is no memory for its copy, there are too many, or not all of it can be read.
  void add(const Domain& domain, std::string_view path, uint64_t offset_bytes) override;
  void remove(uintptr_t begin, uintptr_t end) override;
  void store(uintptr_t, size_t, bool, const void*) override {}
  void flush(uintptr_t address, size_t bytes, bool is_ordered, const void* site) override;
  void fence(const void* site) override;
  void mark(std::string_view) override {}
  void write_statistics(base::TextRef& text) const override;
  void finish() override {}

  // Around a fork, so that no other thread is in the middle of anything here. REQUIRES: the thread's signals are blocked.
  void before_fork() { lock_.lock(); }
  void after_fork() { lock_.unlock(); }

  struct Counts {
    uint64_t lines = 0, clean_lines = 0;  // flushed lines, and those of them in which nothing had changed
    uint64_t dirty_bytes = 0;
    uint64_t fences = 0;

    // The share of dirty bytes in these lines, in millionths.
    uint64_t dirty_millionths() const;
  };
  Counts counts() const;

 private:
  static constexpr size_t kMaxDomains = 64;

  struct Copy {
    uintptr_t begin = 0, end = 0;
    char* bytes = nullptr;
  };

  void flush_line(uintptr_t line);

  mutable sys::Mutex lock_;
  Copy copies_[kMaxDomains];
  Counts counts_;
};

}  // namespace persist
