// Store: pages of preload mode while they are not in memory.
//
//   Spot   where a page lies on storage; kNoSpot: nowhere, it reads as zeros
//
// Thread contract: the pager's thread only.
#pragma once
#include <cstdint>
#include <span>

#include "cache/pages/places.h"
#include "storage/device.h"

namespace spill::preload {

enum class Spot : uint32_t {};
inline constexpr Spot kNoSpot{0};

class Store {
 public:
  static constexpr uint32_t kMaxPages = 128;  // of one load or save

  // Keeps the device. Errors: ENOMEM, those of Device::open_queue.
  base::Expected<void> open(storage::Device& device);

  // Reads the OS pages at `spots` to `to`, one after the other; kNoSpot yields zeros. Ends the process with one line
  // when a read fails: there is nothing else to give the program. REQUIRES: `to` aligned to an OS page.
  void load(std::span<const Spot> spots, char* to);

  struct Leaving {
    char* content;  // an OS page
    Spot spot;      // where an older content of it lies
    bool saved;     // set by save(); then `spot` is where it lies now
  };
  // Writes pages, neighbours together. The older content of those that were not saved may be lost too. Returns 0, or
  // the errno value of what failed, which is logged in one line, at most once a second.
  int save(std::span<Leaving> pages);

  // Nobody needs the content at `spot` any more.
  void forget(Spot spot);

  const char* name() const { return device_->name(); }

 private:
  int give_spots(std::span<Leaving> pages, Spot* to);
  int write(std::span<Leaving> pages, const Spot* to);
  void discard_garbage();
  void say(int error);

  storage::Device* device_ = nullptr;
  storage::Queue* queue_ = nullptr;
  cache::Places places_;
  uint64_t last_said_ns_ = 0;
};

}  // namespace spill::preload
