// A program of stores, flushes and fences, run by the persistence runtime on a device that keeps a log, in one order, of what the program asked for and what reached the
// device. why_not() judges both by the checker's model of the CPU.
//
//   program    store  flush  store  fence                    as the CPU would do it without the runtime
//   device     store         store         flush fence       what is really written back, by whatever thread
//
// A flush of the program counts when it begins, a fence when it returns; clflush, which the CPU orders by itself, covers what was stored when it began and is done when it returns.
//
// The device's side of the log has the other domains, too: where the kernel is asked to write (trapped_syncs.h), it flushes the lines when the call begins, and fences
// when it returns; where caches are saved when power fails, each store is durable at once.
#pragma once
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "persist/runtime.h"
#include "persist/test_compiled.h"
#include "tools/persist_check/medium.h"
#include "trapped_syncs.h"

namespace persist_semantics {

using persist::DomainKind;
using persist::Way;
using persist_check::LineId;
using persist_check::Medium;
using persist_check::RecordKind;
using persist_check::Units;

struct Step {
  enum Act : uint8_t { kStore, kFlush, kFlushTwo, kFlushOrdered, kFence, kWay, kRemove, kLeave };
  Act act;
  uint8_t thread = 0;
  // kFlushTwo: the first of two lines, at the end of a page. kWay: which of persist::kWays.
  // kRemove, after which all domains are added again: bit 0: the other thread fences in between; bit 1: domains are cut within a pair of lines, and the rest is left until
  // then; the other bits: within which pair.
  uint32_t line = 0;
};

inline std::string text_of(const std::vector<Step>& steps) {
  static constexpr const char* kNames[] = {"store", "flush", "flush two", "clflush",
                                           "fence", "way",   "remove",    "leave"};
  std::string text;
  for (const Step& step : steps)
    text += std::to_string(step.thread) + ":" + kNames[step.act] + " " + std::to_string(step.line) + "; ";
  return text;
}

struct Noted {
  enum Side : uint8_t { kBoth, kProgram, kDevice };
  Side side;
  RecordKind kind;
  uint32_t who;
  uint32_t line = 0;
  uint8_t units = 0;  // kStore: which of the line's units of 8 bytes
};

// Who calls the device: a thread of the program, from 1 on, or a flusher. If threads of the program take turns in one thread of the test, the one whose turn it is.
inline std::atomic<uint32_t> next_flusher{1000};
inline thread_local uint32_t caller = 0;

// Lines that are a domain, after the lines of the parts before.
struct Part {
  DomainKind kind = DomainKind::kDevice;  // or kFile, or kFlushOnFail
  uint32_t line_count = 1;
  int descriptor = -1;  // of kFile; one that the process does not have
};

struct MachineOptions {
  Way way = Way::kEpoch;
  std::vector<Part> parts;
  // Lines lie in pairs, on both sides of the edge between two pages, with two pages between pairs; otherwise all in a row.
  bool is_paged = true;
  bool shares_syncs = false;
  bool is_kernel_slow = false;  // so that other threads come while it writes
};

class LogDevice final : public persist::LineDevice, public Syncs {
 public:
  explicit LogDevice(const MachineOptions& options)
      : is_paged_(options.is_paged), is_slow_(options.is_kernel_slow) {
    log_.reserve(kMaxLog);
    for (const Part& part : options.parts) kinds_.insert(kinds_.end(), part.line_count, part.kind);
    bytes_ = base::round_up(distance(static_cast<uint32_t>(kinds_.size())), 4 * base::kOsPageBytes);
    begin_ =
        reinterpret_cast<uintptr_t>(mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    uint32_t line = 0;
    for (const Part& part : options.parts) {
      uintptr_t begin = address(line), end = address(line + part.line_count - 1) + base::kLineBytes;
      if (is_paged_) {
        begin = base::round_down(begin, base::kOsPageBytes);
        end = base::round_up(end, base::kOsPageBytes);
      }
      domains_.push_back({.begin = begin,
                          .end = end,
                          .kind = part.kind,
                          .device = part.kind == DomainKind::kDevice ? this : nullptr,
                          .descriptor = part.descriptor});
      line += part.line_count;
    }
  }
  ~LogDevice() { munmap(reinterpret_cast<void*>(begin_), bytes_); }
  LogDevice(const LogDevice&) = delete;
  LogDevice& operator=(const LogDevice&) = delete;

  const std::vector<persist::Domain>& domains() const { return domains_; }
  uintptr_t address(uint32_t line) const { return begin_ + distance(line); }

  void note(const Noted& noted) {
    const std::scoped_lock scope(lock_);
    log_.push_back(noted);
  }
  void note_store(const Noted& store) {
    const std::scoped_lock scope(lock_);
    log_.push_back(store);
    if (kinds_[store.line] != DomainKind::kFlushOnFail) return;
    const uint32_t who = kSaversBegin + store.who;
    log_.push_back({Noted::kDevice, RecordKind::kFlush, who, store.line});
    log_.push_back({Noted::kDevice, RecordKind::kFence, who});
  }
  std::vector<Noted> take_log() {
    const std::scoped_lock scope(lock_);
    std::vector<Noted> taken = log_;
    log_.clear();
    return taken;
  }

  void flush(const uintptr_t* lines, size_t count) override {
    for (size_t i = 0; i < count; ++i)
      EXPECT_EQ(note_flushes(lines[i], lines[i] + base::kLineBytes, who(), DomainKind::kDevice), 1u);
  }
  void fence() override { note({Noted::kDevice, RecordKind::kFence, who()}); }

  int write_range(uintptr_t begin, uintptr_t end) override {
    const auto is_around = [&](const persist::Domain& domain) {
      return domain.kind == DomainKind::kFile && domain.begin <= begin && end <= domain.end;
    };
    if (begin % base::kOsPageBytes != 0 || !std::ranges::any_of(domains_, is_around)) return ENOMEM;
    note_flushes(begin, end, kKernelsBegin + who(), DomainKind::kFile);
    end_write();
    return 0;
  }
  int write_file(int descriptor) override {
    bool is_file = false;
    for (const persist::Domain& domain : domains_) {
      if (domain.kind != DomainKind::kFile || domain.descriptor != descriptor) continue;
      note_flushes(domain.begin, domain.end, kKernelsBegin + who(), DomainKind::kFile);
      is_file = true;
    }
    end_write();
    return is_file ? 0 : EBADF;
  }

 private:
  // Added to the caller's number: for the kernel within its call; for what saves the caches that it stored to.
  static constexpr uint32_t kKernelsBegin = 1'000'000, kSaversBegin = 2'000'000;
  // Room for what is noted until it is taken: what the kernel does is noted in a signal handler, which must not allocate.
  static constexpr size_t kMaxLog = 1 << 16;

  static uint32_t who() {
    if (caller == 0) caller = next_flusher.fetch_add(1);
    return caller;
  }
  uintptr_t distance(uint32_t line) const {
    if (!is_paged_) return line * base::kLineBytes;
    return (line / 2 * 4 + 1) * base::kOsPageBytes + line % 2 * base::kLineBytes - base::kLineBytes;
  }
  // Notes only lines of this kind. Returns how many there are.
  size_t note_flushes(uintptr_t begin, uintptr_t end, uint32_t by, DomainKind kind) {
    size_t count = 0;
    for (uint32_t line = line_from(begin); line < kinds_.size() && address(line) < end; ++line) {
      if (kinds_[line] != kind) continue;
      note({Noted::kDevice, RecordKind::kFlush, by, line});
      ++count;
    }
    return count;
  }
  // The first line at that address or behind it.
  uint32_t line_from(uintptr_t begin) const {
    const uintptr_t distance_of_begin = begin - begin_;
    auto line = static_cast<uint32_t>(is_paged_ ? distance_of_begin / (4 * base::kOsPageBytes) * 2
                                                : distance_of_begin / base::kLineBytes);
    while (distance(line) < distance_of_begin) ++line;
    return line;
  }
  void end_write() {
    if (is_slow_) std::this_thread::sleep_for(std::chrono::microseconds(20));
    note({Noted::kDevice, RecordKind::kFence, kKernelsBegin + who()});
  }

  const bool is_paged_, is_slow_;
  std::vector<DomainKind> kinds_;  // of lines
  std::vector<persist::Domain> domains_;
  size_t bytes_ = 0;
  uintptr_t begin_ = 0;  // nothing is ever stored there: what is stored is in the log
  std::mutex lock_;
  std::vector<Noted> log_;
};

// Up to two threads of a program, over one runtime.
class Machine {
 public:
  static constexpr uint32_t kThreads = 2;

  // With one domain, of a device.
  Machine(Way way, uint32_t lines)
      : Machine(MachineOptions{.way = way, .parts = {{.line_count = lines}}, .is_paged = false}) {}
  explicit Machine(const MachineOptions& options) : device_(options) {
    runtime_->configure({.way = options.way,
                         .instruction = sys::best_line_flush(),
                         .flushers = {.least = 1, .most = 2, .period_ns = 20'000'000},
                         .shares_syncs = options.shares_syncs});
    answering.store(&device_);
    add_domains();
    for (auto& thread : threads_) thread = runtime_->enter();
  }
  ~Machine() {
    for (uint32_t i = 0; i < kThreads; ++i) {
      caller = i + 1;
      EXPECT_TRUE(runtime_->leave(threads_[i]));
    }
    runtime_->flushers().stop();
    answering.store(nullptr);
  }

  LogDevice& device() { return device_; }

  // A store of one unit, or of two. Units take turns, so that torn contents show.
  void store(uint32_t who, uint32_t line, uint64_t number) {
    const auto units = static_cast<uint8_t>(number % 3 == 0 ? 3u << number % 7 : 1u << number % 8);
    device_.note_store({Noted::kBoth, RecordKind::kStore, who, line, units});
  }

  void run(const Step& step) {
    const uint32_t who = caller = step.thread + 1u;
    persist::Thread*& thread = threads_[step.thread];
    switch (step.act) {
      case Step::kStore:
        store(who, step.line, stores_.fetch_add(1));
        thread->sample_store(device_.address(step.line));
        break;
      case Step::kFlush:
        device_.note({Noted::kProgram, RecordKind::kFlush, who, step.line});
        persist::flush_compiled(*thread, device_.address(step.line) + step.line % base::kLineBytes);
        break;
      case Step::kFlushTwo:
        for (const uint32_t line : {step.line, step.line + 1})
          device_.note({Noted::kProgram, RecordKind::kFlush, who, line});
        thread->flush(device_.address(step.line) + 8, base::kLineBytes);
        break;
      case Step::kFlushOrdered: {
        const uint32_t alone = 100 + who;
        device_.note({Noted::kProgram, RecordKind::kFlush, alone, step.line});
        persist::flush_compiled(*thread, device_.address(step.line), sys::LineFlush::kClflush);
        device_.note({Noted::kProgram, RecordKind::kFence, alone});
        break;
      }
      case Step::kFence: fence(persist::fence_compiled(*thread), who); break;
      case Step::kWay: EXPECT_TRUE(thread->set_way(persist::kWays[step.line % 5])); break;
      case Step::kRemove: {
        fence(persist::fence_compiled(*thread), who);
        const auto& domains = device_.domains();
        const uintptr_t begin = domains.front().begin, end = domains.back().end;
        const bool is_partly = step.line / 2 % 2 != 0;
        const uintptr_t cut = is_partly ? device_.address(step.line / 4 * 2) + base::kLineBytes : end;
        EXPECT_TRUE(runtime_->remove_domain(begin, cut).value());
        if (step.line % 2 != 0) run({Step::kFence, static_cast<uint8_t>(1 - step.thread)});
        if (is_partly) EXPECT_TRUE(runtime_->remove_domain(cut, end));
        add_domains();
        break;
      }
      case Step::kLeave:
        fence(runtime_->leave(thread), who);
        thread = runtime_->enter();
        break;
    }
  }

 private:
  void add_domains() {
    for (const persist::Domain& domain : device_.domains()) EXPECT_TRUE(runtime_->add_domain(domain));
  }
  void fence(const base::Expected<void>& result, uint32_t who) {
    EXPECT_TRUE(result);
    device_.note({Noted::kProgram, RecordKind::kFence, who});
  }

  LogDevice device_;
  std::unique_ptr<persist::Runtime> runtime_ = std::make_unique<persist::Runtime>();
  persist::Thread* threads_[kThreads] = {};
  std::atomic<uint64_t> stores_{0};
};

// One side of a log in the checker's form: one file, all zeros at first.
inline persist_check::History history_of(const std::vector<Noted>& log, Noted::Side side, size_t lines) {
  persist_check::History history;
  history.files.push_back(
      {.path = "", .image_bytes = lines * base::kLineBytes, .initial = std::vector<Units>(lines)});
  std::vector<Units> contents(lines);
  uint64_t value = 0;
  for (const Noted& noted : log) {
    if (noted.side != Noted::kBoth && noted.side != side) continue;
    persist_check::Event event = {.kind = noted.kind, .thread = noted.who};
    if (noted.kind == RecordKind::kFlush) {
      event.first_line = noted.line;
      event.line_count = 1;
    }
    if (noted.kind == RecordKind::kStore) {
      Units& content = contents[noted.line];
      ++value;
      for (size_t i = 0; i < content.size(); ++i)
        if ((noted.units >> i & 1) != 0) content[i] = value;
      event.first_piece = history.pieces.size();
      event.piece_count = 1;
      history.pieces.push_back({.line = persist_check::line_id(0, noted.line),
                                .content = content,
                                .units = noted.units,
                                .changed = noted.units});
    }
    history.events.push_back(event);
  }
  return history;
}

inline std::set<Units> contents_of(const Medium& medium, LineId id) {
  std::set<Units> contents = {medium.sure()[0][persist_check::line_of(id)]};
  bool is_all = true;
  if (medium.open_lines().contains(id))
    for (const auto& state : medium.states(id, size_t{1} << 30, is_all)) contents.insert(state.content);
  EXPECT_TRUE(is_all);
  return contents;
}

// Checks that at each point of the log the device can hold, after a crash, only what the program's own instructions would have allowed, and holds, at each return of a fence,
// all that its thread had flushed. Lines are independent of each other: the images are a subset if the contents of each line are. Returns what is wrong, or "".
inline std::string why_not(const std::vector<Noted>& log, size_t lines, size_t look_each = 1) {
  const auto by_program = history_of(log, Noted::kProgram, lines),
             by_device = history_of(log, Noted::kDevice, lines);
  Medium program(by_program), device(by_device);
  std::map<uint32_t, std::map<uint32_t, uint64_t>> flushed;  // by thread and line: how many stores to it
  for (size_t i = 0; i < log.size(); ++i) {
    const Noted& noted = log[i];
    const std::string where = " after " + std::to_string(i + 1) + " events";
    if (noted.side != Noted::kDevice) program.advance();
    if (noted.side != Noted::kProgram) device.advance();
    if (noted.side == Noted::kProgram) {
      auto& own = flushed[noted.who];
      const LineId id = persist_check::line_id(0, noted.line);
      if (noted.kind == RecordKind::kFlush && device.open_lines().contains(id))
        own[noted.line] = device.line(id).end();
      if (noted.kind == RecordKind::kFence) {
        for (const auto& [line, end] : own)
          if (device.line(persist_check::line_id(0, line)).sure < end)
            return "line " + std::to_string(line) + " is not durable" + where;
        own.clear();
      }
    }
    // What only the device does leaves fewer contents.
    if (noted.side == Noted::kDevice || (i % look_each != 0 && noted.kind != RecordKind::kFence)) continue;
    for (const LineId id : device.open_lines()) {
      const std::set<Units> allowed = contents_of(program, id), possible = contents_of(device, id);
      if (!std::ranges::includes(allowed, possible))
        return "line " + std::to_string(persist_check::line_of(id)) + " may be what it must not" + where;
    }
  }
  return "";
}

}  // namespace persist_semantics
