// Pager: evictions, in the steps that pager.h numbers.
#include <sys/mman.h>

#include <utility>

#include "base/log.h"
#include "base/probe.h"
#include "spill/preload/cooling.h"
#include "spill/preload/pager.h"
#include "spill/runtime.h"
#include "sys/kernel.h"
#include "sys/memory.h"
#include "sys/nap.h"

namespace spill::preload {
namespace {

using base::kOsPageBytes;

// After this many rounds in which nothing could be written, a millisecond apart, the program is ended.
constexpr uint32_t kMaxFailures = 100;

uint64_t address_of(PageNumber page) { return kRangeBegin + uint64_t{page} * kOsPageBytes; }

}  // namespace

// Gives back the side area's memory of these frames, neighbours together.
void Pager::release_side(std::span<const FrameNumber> frames) {
  for (size_t i = 0; i < frames.size();) {
    size_t end = i + 1;
    while (end < frames.size() && frames[end] == frames[end - 1] + 1) ++end;
    sys::release(side_of(frames[i]), (end - i) * kOsPageBytes);
    i = end;
  }
}

// Makes room for `wanted` more pages. Returns for how many it did, at least 1.
uint32_t Pager::make_room(uint32_t wanted) {
  uint32_t failures = 0;
  while (in_use() + wanted > allowed()) {
    cool(cooling_wanted(allowed(), cooling_.count, most_leaving_));
    int error = 0;
    if (cooling_.count > 0 && leave(error) > 0) {
      failures = 0;
      continue;
    }
    if (in_use() < allowed()) return allowed() - in_use();
    if (error == 0) {
      // Everything is in use by the kernel, or may not be written: better to exceed the budget than to corrupt data.
      if (!std::exchange(said_over_, true))
        base::log({.name = "memory_exceeded", .fields = {{"memory_bytes", runtime.options.memory}}},
                  "pages that the program made read-only, or the kernel is using, cannot leave memory; it "
                  "takes more than its budget");
      return 1;
    }
    if (++failures == kMaxFailures)
      end_process(error == ENOSPC
                      ? base::Error::of(error, "storage is full: ", store_.name(),
                                        "; no page can leave memory, give more room with --storage")
                      : base::Error::of(error, "cannot write to ", store_.name(), ": ",
                                        base::error_name(error), "; no page can leave memory"),
                  kFatalStatus);
    sys::nap(1'000'000);
  }
  return wanted;
}

// Step 1, for the oldest hot pages, until `wanted` pages are cooling.
void Pager::cool(uint32_t wanted) {
  for (uint32_t looked = hot_.count; looked > 0 && cooling_.count < wanted && hot_.count > 0;) {
    const uint32_t tried = cool_run();
    looked -= std::min(tried, looked);
  }
}

// Step 1 for the oldest hot page, and for its neighbours if they came with it. Returns how many were tried, at least 1.
uint32_t Pager::cool_run() {
  const FrameNumber first = hot_.first;
  uint32_t count = 1;
  while (count < most_leaving_ && frames_[first + count - 1].next == first + count &&
         frames_[first + count].page == frames_[first].page + count)
    ++count;
  const uint64_t from = address_of(frames_[first].page), to = reinterpret_cast<uint64_t>(side_of(first));
  long moved = faults_->move(to, from, count * kOsPageBytes);
  // If one of the pages is read-only, none of them moves, not even those before it.
  if (moved <= 0 && count > 1) moved = faults_->move(to, from, kOsPageBytes);
  const uint32_t done = moved > 0 ? static_cast<uint32_t>(static_cast<uint64_t>(moved) / kOsPageBytes) : 0;
  for (uint32_t i = 0; i < done; ++i) {
    remove(first + i);
    append(cooling_, first + i, State::kCooling);
  }
  if (done == 0) cool_stubborn(first, moved);
  return done > 0 ? done : 1;
}

// A page that did not move. True if it is cooling after all; else it becomes the newest, so that others are tried first.
bool Pager::cool_stubborn(FrameNumber frame, long error) {
  const uint64_t address = address_of(frames_[frame].page);
  remove(frame);
  if (error == -ENOENT) {
    // The program gave it back to the kernel itself.
    store_.forget(std::exchange(pages_[frames_[frame].page].spot, kNoSpot));
    free_frame(frame);
    return false;
  }
  // Shared with a child of fork: a copy of our own can move.
  if (error == -EBUSY &&
      !sys::failed(sys::syscall(SYS_madvise, address, kOsPageBytes, MADV_POPULATE_WRITE)) &&
      faults_->move(reinterpret_cast<uint64_t>(side_of(frame)), address, kOsPageBytes) > 0) {
    append(cooling_, frame, State::kCooling);
    return true;
  }
  append(hot_, frame, State::kHot);
  return false;
}

// Steps 2 to 4, for the oldest cooling pages; returns how many left. REQUIRES: there are some.
uint32_t Pager::leave(int& error) {
  auto& statistics = base::statistics;
  FrameNumber gone[Store::kMaxPages], changed[Store::kMaxPages];
  Store::Leaving leaving[Store::kMaxPages];
  uint32_t gone_count = 0, changed_count = 0;
  for (uint32_t i = 0; i < most_leaving_ && cooling_.count > 0; ++i) {
    const FrameNumber number = cooling_.first;
    Frame& frame = frames_[number];
    Page& page = pages_[frame.page];
    remove(number);
    const base::Fingerprint now = base::take_fingerprint(side_of(number));
    if (now.same_content_as(frame.known)) {
      gone[gone_count++] = number;
      statistics.cache_unchanged.add();
    } else if (now.same_content_as(base::zero_fingerprint())) {
      store_.forget(std::exchange(page.spot, kNoSpot));
      gone[gone_count++] = number;
      statistics.cache_unchanged.add();
    } else {
      frame.known = base::Fingerprint::unknown();
      leaving[changed_count] = {side_of(number), page.spot, false};
      changed[changed_count++] = number;
    }
  }
  const uint32_t unchanged_count = gone_count;
  if (changed_count > 0) error = store_.save({leaving, changed_count});
  for (uint32_t i = 0; i < changed_count; ++i) {
    if (!leaving[i].saved) {
      append(cooling_, changed[i], State::kCooling);
      continue;
    }
    pages_[frames_[changed[i]].page].spot = leaving[i].spot;
    gone[gone_count++] = changed[i];
  }
  release_side({gone, gone_count});
  for (uint32_t i = 0; i < gone_count; ++i) {
    base::probes::eviction(address_of(frames_[gone[i]].page) / kOsPageBytes, i < unchanged_count ? 0 : 1);
    free_frame(gone[i]);
  }
  statistics.cache_evictions.add(gone_count);
  return gone_count;
}

}  // namespace spill::preload
