// The stripe decorator (RAID-0): a device over 2 to 16 devices, its members, to which its units are dealt in turn (stripe_map.h). It is as
// fast as all of them together, and loses whatever one of them loses.
//
// A request becomes one part for each member that it touches, or several if one part would have more segments than an Io may. Each part goes
// to the member's queue, and the request completes when all its parts have. Its error is that of the first part, in the order of the
// stripe's bytes, that has one; transferred_bytes is how much of its front is complete. A flush goes to all members.
// The capacity is that of the smallest member in whole units, times the number of members.
//
// While only one member has something under way, wait() sleeps in that member's queue. While several have, it polls each of them in turn,
// with naps in between (of 20 us, which in practice take some 70).
//
// Each queue has a pool of parts. When none is free, or a member's queue is full, that request and those after it wait inside the queue,
// first in, first out, until poll() or wait() finds room.
#pragma once
#include <span>

#include "storage/device.h"

namespace storage {

inline constexpr size_t kMinStripeMembers = 2;
inline constexpr size_t kMaxStripeMembers = 16;
inline constexpr uint64_t kMinStripeUnitBytes = uint64_t{4} << 10;
inline constexpr uint64_t kMaxStripeUnitBytes = uint64_t{1} << 30;
inline constexpr uint64_t kDefaultStripeUnitBytes = uint64_t{64} << 10;

// Takes over `members`, even on errors, and closes them when it is closed itself. REQUIRES: kMinStripeMembers to kMaxStripeMembers of them;
// unit_bytes is a power of two from kMinStripeUnitBytes to kMaxStripeUnitBytes. Errors: ENOMEM; EINVAL if a member is smaller than a unit,
// if two members are the same file or device, or if fork copies some of them and shares the others.
base::Expected<Device*> make_stripe_device(std::span<Device* const> members, uint64_t unit_bytes);

}  // namespace storage
