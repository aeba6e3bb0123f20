// The stripe decorator (RAID-0): a device over 2 to 16 devices, to which its units are dealt in turn
// (stripe_map.h). As fast as all of them together; what one loses is lost.
//
// A request becomes one part for each member that it touches (more if a part has more segments than one Io may), of
// which the member's queue does the rest. It completes when all its parts have. Its error is that of the first
// part, in the order of the stripe's bytes, that has one; transferred_bytes is how much of its front is whole.
// A flush goes to all members. Capacity: that of the smallest member in whole units, times their number.
//
// wait() sleeps in a member's queue while only that one has something under way; while several have, it looks at
// each of them again and again, with naps in between (the kernel makes 20 us some 70).
//
// Parts come from a pool of each queue. When none is free or a member's queue is full, the requests after that wait
// inside the queue, first in, first out, until poll() or wait() finds room: with what is under way nothing more
// could be started anyway.
#pragma once
#include <span>

#include "storage/device.h"

namespace storage {

inline constexpr size_t kMinStripeMembers = 2;
inline constexpr size_t kMaxStripeMembers = 16;
inline constexpr uint64_t kMinStripeUnitBytes = uint64_t{4} << 10;
inline constexpr uint64_t kMaxStripeUnitBytes = uint64_t{1} << 30;
inline constexpr uint64_t kDefaultStripeUnitBytes = uint64_t{64} << 10;

// Owns `members` from now on, also on errors, and closes them when it is closed. REQUIRES: kMinStripeMembers to
// kMaxStripeMembers of them; unit_bytes a power of two from kMinStripeUnitBytes to kMaxStripeUnitBytes.
// Errors: ENOMEM; EINVAL if a member is smaller than a unit, two are the same file or device, or some are
// copied by fork and some shared.
base::Expected<Device*> make_stripe_device(std::span<Device* const> members, uint64_t unit_bytes);

}  // namespace storage
