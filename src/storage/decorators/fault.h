// The fault decorator: a device over another device, whose operations it fails, shortens and delays by a schedule (fault_schedule.h).
//
// Operations that the schedule leaves alone pass through unchanged. Operations are counted in the order in which queues start them, so with
// one thread the same schedule reproduces exactly the same faults.
#pragma once
#include "storage/decorators/fault_schedule.h"

namespace storage {

// Takes over `inner`, even on errors, and closes it when it is closed itself. Errors: ENOMEM.
base::Expected<Device*> make_fault_device(Device* inner, const FaultSchedule& schedule);

}  // namespace storage
