// The fault decorator: a device over a device that fails, shortens and delays operations by a schedule (fault_schedule.h).
//
// Operations that the schedule leaves alone pass through unchanged. They are counted in the order in which queues start them, so with one
// thread the same schedule brings exactly the same faults again.
#pragma once
#include "storage/decorators/fault_schedule.h"

namespace storage {

// Owns `inner` from now on, also on errors, and closes it when it is closed. Errors: ENOMEM.
base::Expected<Device*> make_fault_device(Device* inner, const FaultSchedule& schedule);

}  // namespace storage
