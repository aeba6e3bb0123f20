#include "spill/preload/store.h"

#include "base/log.h"
#include "base/probe.h"
#include "spill/runtime.h"
#include "sys/kernel.h"

namespace spill::preload {
namespace {

using base::kOsPageBytes;

constexpr size_t kQueueDepth = 64;
constexpr uint64_t kNsBetweenLines = 1'000'000'000;

constexpr uint32_t place_of(Spot spot) { return static_cast<uint32_t>(spot) - 1; }
constexpr Spot spot_of(base::PlaceId place) { return Spot{index(place) + 1}; }
constexpr uint64_t offset_of(Spot spot) { return uint64_t{place_of(spot)} * kOsPageBytes; }

// Ios for OS pages in memory, where neighbours on storage share one.
class Batch {
 public:
  explicit Batch(storage::Operation operation) : operation_(operation) {}
  // Adds the caller's page `i`; pages are added in order.
  void add(uint32_t i, char* memory, Spot spot) {
    segments_[segment_count_] = {memory, kOsPageBytes};
    if (io_count_ > 0) {
      storage::Io& last = ios_[io_count_ - 1];
      if (last.offset_bytes + last.length_bytes == offset_of(spot) &&
          last.segment_count < storage::kMaxSegments) {
        last.length_bytes += kOsPageBytes;
        ++last.segment_count;
        io_of_[i] = io_count_ - 1;
        ++segment_count_;
        return;
      }
    }
    storage::Io& io = ios_[io_count_];
    io.operation = operation_;
    io.offset_bytes = offset_of(spot);
    io.length_bytes = kOsPageBytes;
    io.segments = &segments_[segment_count_++];
    io.segment_count = 1;
    list_[io_count_] = &io;
    io_of_[i] = io_count_++;
  }
  void run(storage::Queue& queue) {
    if (io_count_ == 1)
      queue.run(ios_[0]);
    else if (io_count_ > 1)
      queue.run(std::span<storage::Io* const>(list_, io_count_));
  }
  uint32_t io_count() const { return io_count_; }
  const storage::Io& io_of(uint32_t i) const { return ios_[io_of_[i]]; }

 private:
  storage::Operation operation_;
  uint32_t io_count_ = 0;
  uint32_t segment_count_ = 0;
  uint32_t io_of_[Store::kMaxPages] = {};
  storage::Io ios_[Store::kMaxPages];
  storage::Io* list_[Store::kMaxPages];
  iovec segments_[Store::kMaxPages];
};

int error_of(const storage::Io& io) { return io.error != 0 ? io.error : EIO; }

}  // namespace

base::Expected<void> Store::open(storage::Device& device) {
  auto queue = device.open_queue(kQueueDepth);
  if (!queue) return std::unexpected(queue.error());
  device_ = &device;
  queue_ = *queue;
  return places_.open(device.capacity_bytes() / kOsPageBytes);
}

void Store::load(std::span<const Spot> spots, char* to) {
  CHECK_LE(spots.size(), kMaxPages);
  Batch batch(storage::Operation::kRead);
  for (uint32_t i = 0; i < spots.size(); ++i) {
    char* page = to + i * kOsPageBytes;
    if (spots[i] == kNoSpot)
      __builtin_memset(page, 0, kOsPageBytes);
    else
      batch.add(i, page, spots[i]);
  }
  batch.run(*queue_);
  for (uint32_t i = 0; i < spots.size(); ++i) {
    if (spots[i] == kNoSpot || batch.io_of(i).whole()) continue;
    end_process(base::Error::of(EIO, "cannot read page ", place_of(spots[i]), " from ", name(), ": ",
                                base::error_name(error_of(batch.io_of(i)))),
                kFatalStatus);
  }
}

// Chooses where each page is written: adjacent places for as many as possible, else the page's present place, or any.
int Store::give_spots(std::span<Leaving> pages, Spot* to) {
  const auto count = static_cast<uint32_t>(pages.size());
  cache::Places::Run run;
  if (count > 1) run = places_.take_run(count);
  int error = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (i < run.count) {
      to[i] = spot_of(base::PlaceId{index(run.first) + i});
    } else if (pages[i].spot != kNoSpot) {
      to[i] = pages[i].spot;
    } else {
      const base::PlaceId place = places_.take(base::PageId{i}, base::kNoPlace);
      to[i] = place == base::kNoPlace ? kNoSpot : spot_of(place);
      if (to[i] == kNoSpot) error = ENOSPC;
    }
  }
  return error;
}

int Store::write(std::span<Leaving> pages, const Spot* to) {
  Batch batch(storage::Operation::kWrite);
  for (uint32_t i = 0; i < pages.size(); ++i)
    if (to[i] != kNoSpot) batch.add(i, pages[i].content, to[i]);
  base::probes::write_back_begin(batch.io_count());
  batch.run(*queue_);
  base::probes::write_back_done(batch.io_count());
  int error = 0;
  for (uint32_t i = 0; i < pages.size(); ++i) {
    if (to[i] == kNoSpot) continue;
    Leaving& page = pages[i];
    page.saved = batch.io_of(i).whole();
    const Spot other = page.saved ? page.spot : to[i];
    if (page.spot != to[i]) forget(other);
    if (page.saved) {
      page.spot = to[i];
      base::statistics.cache_writebacks.add();
    } else {
      error = error_of(batch.io_of(i));
      base::statistics.cache_write_failures.add();
      base::probes::write_failed(static_cast<uint64_t>(error));
    }
  }
  return error;
}

int Store::save(std::span<Leaving> pages) {
  CHECK_LE(pages.size(), kMaxPages);
  Spot to[kMaxPages];
  const int full = give_spots(pages, to);
  const int failed = write(pages, to);
  if (failed != 0) places_.pause_moves();
  if (places_.too_much_garbage()) discard_garbage();
  const int error = failed != 0 ? failed : full;
  if (error != 0) say(error);
  return error;
}

void Store::forget(Spot spot) {
  if (spot != kNoSpot) places_.give_back(base::PlaceId{place_of(spot)});
}

void Store::discard_garbage() {
  constexpr uint32_t kMaxPlaces = 4096;
  const cache::Places::Run run = places_.take_garbage(kMaxPlaces);
  if (run.count == 0) return;
  storage::Io io;
  io.operation = storage::Operation::kDiscard;
  io.offset_bytes = uint64_t{index(run.first)} * kOsPageBytes;
  io.length_bytes = uint64_t{run.count} * kOsPageBytes;
  queue_->run(io);
  places_.give_back_discarded(run);
}

void Store::say(int error) {
  const uint64_t now = sys::monotonic_ns();
  if (last_said_ns_ != 0 && now - last_said_ns_ < kNsBetweenLines) return;
  last_said_ns_ = now;
  base::log({.name = "write_failed",
             .level = base::LogLevel::kError,
             .fields = {{"device", name()}, {"error", error}}},
            "cannot write to ", name(), ": ", error == ENOSPC ? "storage is full" : base::error_name(error),
            "; pages stay in memory and are tried again");
}

}  // namespace spill::preload
