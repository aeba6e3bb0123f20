// The fault decorator: a device over a device that fails, shortens and delays by a schedule.
//
// What the schedule leaves alone passes through unchanged. Operations are counted in the order in which
// queues start them; with one thread a schedule replays exactly.
#pragma once
#include "storage/decorators/fault_schedule.h"

namespace storage {

// Owns `inner` from now on, also on errors, and closes it when it is closed. Errors: ENOMEM.
base::Expected<Device*> make_fault_device(Device* inner, const FaultSchedule& schedule);

}  // namespace storage
