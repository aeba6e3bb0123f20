#include "persist/own/own.h"

#include <pthread.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/options.h"
#include "base/platform.h"
#include "persist/own/dirtiness.h"
#include "persist/own/recording.h"
#include "sys/kernel.h"
#include "sys/lock.h"
#include "sys/mappings.h"
#include "sys/persistent.h"
#include "sys/signals.h"
#include "sys/statistics_file.h"
#include "sys/threads.h"

extern "C" {
constinit thread_local int32_t __spillway_persist_countdown = 0;
constinit thread_local persist::Direct __spillway_persist_thread;

// Defined by the preload library: there, programs flush that know nothing about domains.
extern const char __spillway_persist_preloaded[] __attribute__((weak, visibility("default")));
}

namespace persist::own {

constinit thread_local Thread* thread = nullptr;

namespace {

// The thread's last destructors run, or there was no memory for it.
constinit thread_local bool is_without = false;
// Of a thread without a Thread: a file's mapping that could not be written when it was flushed; an errno value.
constinit thread_local int failure = 0;

constinit Runtime process_runtime;
constinit Dirtiness process_dirtiness;
constinit Recording process_recording;
constinit std::atomic<bool> has_told_unwritten{false};
constinit sys::Mutex lock;  // of what follows
constinit std::atomic<bool> is_started{false};
constinit std::atomic<Observer*> process_observer{nullptr};
constinit Plan process_plan;
constinit pthread_key_t key = 0;
constinit uint64_t mask_before_fork = 0;
// A copy of the option's text: the caller's texts, and those of the environment, may change.
constinit char stats_path[1024] = {};

bool find_domain(uintptr_t address);

[[noreturn]] void refuse(const base::Error& error) {
  base::log("persist: ", error.message);
  for (;;) sys::syscall(SYS_exit_group, 2);
}

// The destructor of the thread's key. A thread may flush for the first time in a later round of destructors, and leaves in the round after. What is
// flushed afterwards is executed at once.
void leave_thread(void*) {
  if (thread == nullptr) return;
  // A handler in between would find the thread without what it has put off.
  const uint64_t mask = sys::block_signals(sys::kSentSignals);
  const auto left = process_runtime.leave(thread);
  thread = nullptr;
  is_without = true;
  sys::set_signal_mask(mask);
  if (!left) base::log("persist: a thread ends: ", left.error().message);
}

// Fences for a program that cannot be told here that something cannot be written: its next fence says so.
void fence_untold() {
  if (thread != nullptr)
    if (const auto fenced = thread->fence(); !fenced) thread->fail_next_fence(fenced.error().number);
}

void before_fork() {
  fence_untold();
  const uint64_t mask = sys::block_signals(sys::kSentSignals);
  lock.lock();
  mask_before_fork = mask;
  process_runtime.before_fork();
  process_dirtiness.before_fork();
  process_recording.before_fork();
}
void unlock_after_fork() {
  const uint64_t mask = mask_before_fork;
  lock.unlock();
  sys::set_signal_mask(mask);
}
void after_fork_in_parent() {
  process_recording.after_fork();
  process_dirtiness.after_fork();
  process_runtime.after_fork_in_parent();
  unlock_after_fork();
}
void after_fork_in_child() {
  process_recording.after_fork();
  process_dirtiness.after_fork();
  process_runtime.after_fork_in_child(thread);
  unlock_after_fork();
}

// Under the lock.
void start_as(const Plan& plan) {
  process_plan = plan;
  base::TextRef stats(stats_path, sizeof stats_path);
  stats << plan.stats;
  process_plan.stats = stats.view();
  if (plan.found) process_plan.settings.find_domain = find_domain;
  process_runtime.configure(process_plan.settings);
  if (plan.counts_dirtiness) process_observer.store(&process_dirtiness, std::memory_order_relaxed);
  if (!plan.record.empty()) {
    process_recording.begin(plan.record, plan.compares);
    process_observer.store(&process_recording, std::memory_order_relaxed);
  }
  if (const int error = pthread_key_create(&key, leave_thread); error != 0)
    refuse(base::Error::of(error, "no key for what ends with a thread: ", base::error_name(error)));
  if (const int error = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child); error != 0)
    refuse(base::Error::of(error, "no memory for what is done around a fork"));
  is_started.store(true, std::memory_order_release);
}

void start() {
  if (is_started.load(std::memory_order_acquire)) return;
  sys::QuietLockGuard scope(lock);
  if (is_started.load(std::memory_order_relaxed)) return;
  const auto options = read_environment(environ, default_options());
  if (!options) refuse(options.error());
  const auto plan = persist::plan(*options);
  if (!plan) refuse(plan.error());
  start_as(*plan);
}

// The kernel will not write what is flushed in this file. The program, which may know nothing about domains, cannot be told.
void tell_unwritten(const char* path) {
  if (!has_told_unwritten.exchange(true, std::memory_order_relaxed))
    base::log("persist: there are ", Domains::kMaxDomains,
              " domains already, and what is flushed of this file is not written; map fewer pieces of files, "
              "or larger ones: ",
              path);
}

// A mapping that nobody has made a domain becomes one, if the options say so. One that is private, or no file's, is of kind none, so that it is not
// looked at again.
bool find_domain(uintptr_t address) {
  if (!process_plan.found) return false;
  // If there is no room for another domain, which has been reported if it matters, looking for the mapping would only take time. But an observer has to
  // know of all.
  if (process_runtime.domains().size() == Domains::kMaxDomains && observer() == nullptr &&
      (*process_plan.found != DomainKind::kFile || has_told_unwritten.load(std::memory_order_relaxed)))
    return process_runtime.domains().find(address).is_inside;
  sys::FoundMapping mapping = sys::find_mapping(address);
  // An observer reads all of the domain. What lies past the file's end cannot be read: it is found later, if the file becomes longer.
  if (mapping.is_shared && observer() != nullptr) mapping.end = sys::readable_end(mapping.begin, mapping.end);
  if (address >= mapping.end) return false;
  for (;;) {
    // A mapping may have grown since a part of it became a domain: only the rest of it is new.
    const Domains::Found gap = process_runtime.domains().find(address);
    if (gap.is_inside) return true;
    const uintptr_t begin = std::max(mapping.begin, gap.domain.begin);
    const Domain domain = {.begin = begin,
                           .end = std::min(mapping.end, gap.domain.end),
                           .kind = mapping.is_shared ? *process_plan.found : DomainKind::kNone};
    const auto added = add_domain(domain, mapping.path, mapping.offset_bytes + (begin - mapping.begin));
    if (added) return true;
    // Another thread was faster, here or in the same gap.
    if (added.error().number == EEXIST) continue;
    if (added.error().number == ENOSPC && domain.kind == DomainKind::kFile) tell_unwritten(mapping.path);
    return false;
  }
}

void execute(const Domain& domain, bool is_inside, uintptr_t line, bool is_ordered) {
  if (!is_inside || domain.kind == DomainKind::kMemory || domain.kind == DomainKind::kNone) {
    sys::flush_line(line, is_ordered ? sys::LineFlush::kClflush : process_plan.settings.instruction);
  } else if (domain.kind == DomainKind::kFile) {
    const auto written = write_range(process_runtime.file_failures(), domain, line, line + base::kLineBytes);
    if (!written) failure = written.error().number;
  }
}

// Tells the observer of a flush, if there is one. Nobody knows what was stored to a mapping before a flush has found it; that there was something to
// flush is taken for granted.
void observe_flush(uintptr_t address, size_t bytes, bool is_ordered, const void* site) {
  Observer* const observing = observer();
  if (observing == nullptr) return;
  if (!process_runtime.domains().find(address).is_inside && find_domain(address))
    observing->store(address, bytes, false, site);
  observing->flush(address, bytes, is_ordered, site);
  if (!is_ordered) __spillway_persist_thread.pending = 1;
}

// Flushes at once, for a thread without a Thread.
void execute_all(uintptr_t address, size_t bytes, bool is_ordered) {
  Domains::Found found;
  for (uintptr_t line = base::round_down(address, base::kLineBytes); line < address + bytes;
       line += base::kLineBytes) {
    if (!found.domain.holds(line)) found = find_place(line);
    execute(found.domain, found.is_inside, line, is_ordered);
  }
}

// REQUIRES: the calling thread has fenced.
base::Expected<void> remove_fenced(uintptr_t begin, uintptr_t end) {
  if (Observer* const observing = observer(); observing != nullptr) observing->remove(begin, end);
  if (auto removed = runtime().remove_domain(begin, end); !removed) return std::unexpected(removed.error());
  return {};
}

// A program that does not announce its mappings does not announce their ends either.
void end_unmapped_domains() {
  process_runtime.domains().visit([](const Domain& domain) {
    if (!sys::is_mapped(domain.begin, domain.end)) (void)own::remove_domain(domain.begin, domain.end);
  });
}

}  // namespace

Runtime& runtime() {
  start();
  return process_runtime;
}

Observer* observer() {
  start();
  return process_observer.load(std::memory_order_relaxed);
}

Domains::Found find_place(uintptr_t address) {
  start();
  const Domains::Found found = process_runtime.domains().find(address);
  return found.is_inside || !find_domain(address) ? found : process_runtime.domains().find(address);
}

Options default_options() {
  Options options;
  if (__spillway_persist_preloaded != nullptr) options.domain = name_of(DomainKind::kMemory);
  return options;
}

base::Expected<void> configure(const Options& options) {
  const auto plan = persist::plan(options);
  if (!plan) return std::unexpected(plan.error());
  sys::QuietLockGuard scope(lock);
  if (is_started.load(std::memory_order_relaxed))
    return base::failure(
        EBUSY, "the runtime has started already; configure it before anything is flushed or mapped");
  start_as(*plan);
  return {};
}

Thread* enter() {
  start();
  if (thread != nullptr || is_without || observer() != nullptr) return thread;
  // A handler in between that forks would leave the child with a Thread that is nobody's.
  const uint64_t mask = sys::block_signals(sys::kSentSignals);
  Thread* const entered = process_runtime.enter(&__spillway_persist_thread);
  is_without = entered == nullptr;
  if (entered != nullptr && pthread_setspecific(key, &key) != 0) {
    (void)process_runtime.leave(entered);
    is_without = true;
  }
  if (!is_without) thread = entered;
  sys::set_signal_mask(mask);
  if (is_without) return nullptr;
  __spillway_persist_countdown = static_cast<int32_t>(process_plan.settings.sample_stores);
  return thread;
}

void flush_slowly(uintptr_t address, size_t bytes, const void* site) {
  if (Thread* const own = enter(); own != nullptr) return own->flush(address, bytes);
  observe_flush(address, bytes, false, site);
  execute_all(address, bytes, false);
}

void end_unwritten(const base::Error& error) {
  base::log("persist: ", error.message);
  base::platform_abort();
}

void flush_ordered(uintptr_t address, const void* site) {
  if (Thread* const own = enter(); own != nullptr) return own->flush_ordered(address);
  observe_flush(address, 1, true, site);
  execute_all(address, 1, true);
}

base::Expected<void> fence_slowly(const void* site) {
  if (Thread* const own = enter(); own != nullptr) return own->fence();
  sys::fence_stores();
  if (Observer* const observing = observer(); observing != nullptr) {
    observing->fence(site);
    end_unmapped_domains();  // after the fence, which is for what was flushed there, too
  }
  __spillway_persist_thread.pending = 0;
  const int number = std::exchange(failure, 0);
  if (number == 0) return {};
  return base::failure(number,
                       "what was flushed of a file's mapping cannot be written: ", base::error_name(number));
}

void store(uintptr_t address, size_t bytes, bool is_past_caches, const void* site) {
  if (Observer* const observing = observer(); observing != nullptr) {
    observing->store(address, bytes, is_past_caches, site);
    if (is_past_caches) __spillway_persist_thread.pending = 1;
  }
}

void mark(std::string_view text) {
  if (Observer* const observing = observer(); observing != nullptr) observing->mark(text);
}

void copied(uintptr_t address, size_t bytes, const void* site) {
  if (Thread* const own = enter(); own != nullptr) return own->note_copied(bytes / base::kLineBytes);
  store(address, bytes, true, site);
}

void sampled(uintptr_t address) {
  Thread* const own = enter();
  __spillway_persist_countdown = static_cast<int32_t>(process_plan.settings.sample_stores);
  if (own != nullptr) own->sample_store(address);
}

base::Expected<void> set_way(Way way) {
  Thread* const own = enter();
  if (own != nullptr) return own->set_way(way);
  return base::failure(EBUSY,
                       "this thread has no way of its own: it is observed, or there was no memory for it");
}

base::Expected<void> add_domain(const Domain& domain, std::string_view path, uint64_t offset_bytes) {
  if (auto added = runtime().add_domain(domain); !added) return added;
  Observer* const observing = observer();
  if (observing == nullptr || domain.kind == DomainKind::kNone) return {};
  sys::FoundMapping mapping;
  if (path.empty()) mapping = sys::find_mapping(domain.begin);
  if (mapping.is_shared)
    observing->add(domain, mapping.path, mapping.offset_bytes + (domain.begin - mapping.begin));
  else
    observing->add(domain, path, offset_bytes);
  return {};
}

base::Expected<void> remove_domain(uintptr_t begin, uintptr_t end) {
  base::Expected<void> fenced;
  if (thread != nullptr) fenced = thread->fence();
  if (auto removed = remove_fenced(begin, end); !removed) return removed;
  return fenced;
}

DomainKind kind_at(uintptr_t address) {
  const Domains::Found found = find_place(address);
  return found.is_inside ? found.domain.kind : DomainKind::kNone;
}

void begin_mapping(uintptr_t begin, size_t bytes, bool is_memory) {
  start();
  end_mapping(begin, bytes);
  const sys::FoundMapping mapping = sys::find_mapping(begin);
  if (!mapping.is_shared) return;
  Domain domain = {
      .begin = begin, .end = base::round_up(begin + bytes, base::kOsPageBytes), .kind = DomainKind::kFile};
  if (is_memory) domain.kind = process_plan.found.value_or(DomainKind::kMemory);
  (void)add_domain(domain, mapping.path, mapping.offset_bytes + (begin - mapping.begin));
}

void end_mapping(uintptr_t begin, size_t bytes) {
  if (!is_started.load(std::memory_order_acquire) || bytes == 0) return;
  const uintptr_t end = base::round_up(begin + bytes, base::kOsPageBytes);
  begin = base::round_down(begin, base::kLineBytes);  // the call may fail; domains are whole lines
  const Domains::Found found = process_runtime.domains().find(begin);
  if (!found.is_inside && found.domain.end >= end) return;
  fence_untold();
  if (auto removed = remove_fenced(begin, end); !removed)
    base::log("persist: a mapping ends: ", removed.error().message);
}

bool is_flush_on_fail() {
  start();
  return process_plan.found == DomainKind::kFlushOnFail;
}

void write_statistics(base::TextRef& text) {
  Runtime& own = runtime();
  const Counts all = own.counts();
  text << "{\"persist\": {\"asked_lines\": " << all.asked_lines
       << ", \"executed_lines\": " << all.executed_lines << ", \"pushed_lines\": " << all.pushed_lines
       << ", \"noted_lines\": " << all.noted_lines << ", \"outside_lines\": " << all.outside_lines
       << ", \"copied_lines\": " << all.copied_lines << ", \"sampled_stores\": " << all.sampled_stores
       << ", \"fences\": " << all.fences << ", \"domains\": " << own.domains().size()
       << ", \"instruction\": \"" << sys::name_of(own.settings().instruction) << "\", \"policy\": \""
       << name_of(own.settings().way)
       << "\"}, \"flushers\": {\"running\": " << (own.flushers().are_running() ? own.flushers().count() : 0)
       << ", \"executed_lines\": " << own.flushers().executed_lines()
       << ", \"proactive_lines\": " << own.flushers().proactive_lines() << '}';
  if (const Observer* const observing = observer(); observing != nullptr) observing->write_statistics(text);
  text << "}\n";
}

namespace {

void write_statistics_file() {
  sys::StatisticsFile file(process_plan.stats);
  base::Text<4096> text;
  write_statistics(text);
  file.put(text);
  if (auto finished = file.finish(); !finished)
    base::log("persist: cannot write statistics to ", file.path(), ": ", finished.error().message);
}

}  // namespace

void begin() {
  if (getauxval(AT_SECURE) != 0 && environ != nullptr) base::forget_settings(environ);
}

void finish() {
  if (!is_started.load(std::memory_order_acquire)) return;
  if (thread != nullptr)
    if (auto fenced = thread->fence(); !fenced)
      base::log("persist: the program ends: ", fenced.error().message);
  if (!process_plan.stats.empty()) write_statistics_file();
  if (Observer* const observing = observer(); observing != nullptr) observing->finish();
}

}  // namespace persist::own
