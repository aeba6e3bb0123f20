// Recording: an Observer that writes down what it is told, for the checker (persist/check/recorder.h).
#pragma once
#include "persist/check/recorder.h"
#include "persist/own/observer.h"
#include "sys/lock.h"

namespace persist {

class Recording final : public Observer {
 public:
  constexpr Recording() = default;

  // `path`: where the log is to be; it is copied. The log is made when the first domain comes, so that a shell that starts the program leaves none.
  // `compares`: fences look for stores that nobody reported. What cannot be recorded ends the process, with one line and exit status 2.
  void begin(std::string_view path, bool compares);

  void add(const Domain& domain, std::string_view path, uint64_t offset_bytes) override;
  void remove(uintptr_t begin, uintptr_t end) override;
  void store(uintptr_t address, size_t bytes, bool is_past_caches, const void* site) override;
  void flush(uintptr_t address, size_t bytes, bool is_ordered, const void* site) override;
  void fence(const void* site) override;
  void mark(std::string_view text) override;
  void write_statistics(base::TextRef&) const override {}
  void finish() override;

  // Around a fork, so that no other thread is in the middle of making the log. REQUIRES: the thread's signals are blocked.
  void before_fork() { lock_.lock(); }
  void after_fork() { lock_.unlock(); }

 private:
  char path_[kMaxTextBytes] = {};
  bool compares_ = true;
  sys::Mutex lock_;  // of the start
  // Until the first domain comes, or the process ends; other threads may map even after that.
  bool may_start_ = true;
  Recorder recorder_;
};

}  // namespace persist
