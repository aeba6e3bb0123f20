// A program of stores, flushes and fences, run by the persistence runtime on a device that keeps a log: in one order, what the program asked for and what reached the
// device. legal_images() puts both to the checker's model of the CPU.
//
//   program    store  flush  store  fence                    as the CPU would do it without the runtime
//   device     store         store         flush fence       what is written back in fact, by whom it may be
//
// A flush of the program counts from its begin, a fence at its return, and clflush, which the CPU orders by itself, covers what was stored when it began and is done when it returns.
#pragma once
#include <sys/mman.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "persist/runtime.h"
#include "tools/persist_check/medium.h"

namespace persist_semantics {

using persist::Way;
using persist_check::LineId;
using persist_check::Medium;
using persist_check::RecordKind;
using persist_check::Units;

struct Step {
  enum Act : uint8_t { kStore, kFlush, kFlushOrdered, kFence, kWay, kRemove, kLeave };
  Act act;
  uint8_t thread = 0;
  // kWay: which of persist::kWays. kRemove, after which all lines are mapped again: 1: the other thread fences in between.
  uint32_t line = 0;
};

inline std::string text_of(const std::vector<Step>& steps) {
  static constexpr const char* kNames[] = {"store", "flush", "clflush", "fence", "way", "remove", "leave"};
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

// Who calls the device: a thread of the program, from 1 on, or a flusher. Of program threads that take turns in one of the test's, whose turn it is.
inline std::atomic<uint32_t> next_flusher{1000};
inline thread_local uint32_t caller = 0;

class LogDevice final : public persist::LineDevice {
 public:
  explicit LogDevice(size_t lines)
      : bytes_(lines * base::kLineBytes),
        begin_(reinterpret_cast<uintptr_t>(
            mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  ~LogDevice() { munmap(reinterpret_cast<void*>(begin_), bytes_); }
  LogDevice(const LogDevice&) = delete;
  LogDevice& operator=(const LogDevice&) = delete;

  persist::Domain domain() {
    return {.begin = begin_, .end = begin_ + bytes_, .kind = persist::DomainKind::kDevice, .device = this};
  }
  uintptr_t address(uint32_t line) const { return begin_ + line * base::kLineBytes; }

  void note(const Noted& noted) {
    const std::scoped_lock scope(lock_);
    log_.push_back(noted);
  }
  std::vector<Noted> take_log() {
    const std::scoped_lock scope(lock_);
    return std::exchange(log_, {});
  }

  void flush(const uintptr_t* lines, size_t count) override {
    for (size_t i = 0; i < count; ++i)
      note({Noted::kDevice, RecordKind::kFlush, who(),
            static_cast<uint32_t>((lines[i] - begin_) / base::kLineBytes)});
  }
  void fence() override { note({Noted::kDevice, RecordKind::kFence, who()}); }

 private:
  static uint32_t who() {
    if (caller == 0) caller = next_flusher.fetch_add(1);
    return caller;
  }

  const size_t bytes_;
  const uintptr_t begin_;  // nothing is ever stored there: what is stored is in the log
  std::mutex lock_;
  std::vector<Noted> log_;
};

// Up to two threads of a program, over one runtime.
class Machine {
 public:
  static constexpr uint32_t kThreads = 2;

  Machine(Way way, size_t lines) : device_(lines) {
    runtime_->configure({.way = way,
                         .instruction = sys::best_line_flush(),
                         .flushers = {.least = 1, .most = 2, .period_ns = 20'000'000}});
    EXPECT_TRUE(runtime_->add_domain(device_.domain()));
    for (auto& thread : threads_) thread = runtime_->enter();
  }
  ~Machine() {
    for (uint32_t i = 0; i < kThreads; ++i) {
      caller = i + 1;
      EXPECT_TRUE(runtime_->leave(threads_[i]));
    }
    runtime_->flushers().stop();
  }

  LogDevice& device() { return device_; }

  // A store of one unit, or of two. Units take turns, so that what is torn shows.
  void store(uint32_t who, uint32_t line, uint64_t number) {
    const auto units = static_cast<uint8_t>(number % 3 == 0 ? 3u << number % 7 : 1u << number % 8);
    device_.note({Noted::kBoth, RecordKind::kStore, who, line, units});
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
        thread->flush(device_.address(step.line) + step.line % base::kLineBytes);
        break;
      case Step::kFlushOrdered: {
        const uint32_t alone = 100 + who;
        device_.note({Noted::kProgram, RecordKind::kFlush, alone, step.line});
        thread->flush_ordered(device_.address(step.line));
        device_.note({Noted::kProgram, RecordKind::kFence, alone});
        break;
      }
      case Step::kFence: fence(thread->fence(), who); break;
      case Step::kWay: EXPECT_TRUE(thread->set_way(persist::kWays[step.line % 5])); break;
      case Step::kRemove: {
        fence(thread->fence(), who);
        const persist::Domain domain = device_.domain();
        EXPECT_TRUE(runtime_->remove_domain(domain.begin, domain.end).value());
        if (step.line % 2 != 0) run({Step::kFence, static_cast<uint8_t>(1 - step.thread)});
        EXPECT_TRUE(runtime_->add_domain(domain));
        break;
      }
      case Step::kLeave:
        fence(runtime_->leave(thread), who);
        thread = runtime_->enter();
        break;
    }
  }

 private:
  void fence(const base::Expected<void>& result, uint32_t who) {
    EXPECT_TRUE(result);
    device_.note({Noted::kProgram, RecordKind::kFence, who});
  }

  LogDevice device_;
  std::unique_ptr<persist::Runtime> runtime_ = std::make_unique<persist::Runtime>();
  persist::Thread* threads_[kThreads] = {};
  std::atomic<uint64_t> stores_{0};
};

// One side of a log, as the checker reads it: of one file, all zeros at first.
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

// Whether at each point of the log the device can hold, after a crash, only what the program's own instructions would have allowed, and at each return of a fence holds all
// that its thread had flushed. Lines are independent of each other: the images are a subset if the contents of each line are. "": it is so.
inline std::string why_not(const std::vector<Noted>& log, size_t lines, size_t look_each = 1) {
  const auto by_program = history_of(log, Noted::kProgram, lines),
             by_device = history_of(log, Noted::kDevice, lines);
  Medium program(by_program), device(by_device);
  std::map<uint32_t, std::map<uint32_t, uint64_t>> flushed;  // by thread and line: so many stores there
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
    // What the device alone does leaves fewer contents.
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
