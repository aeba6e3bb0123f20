// The latency decorator: a device over a device that completes each request when a modelled device would have
// (latency_model.h says how). For seeing what software does on a device that this machine does not have: over
// `memory:` it is that device; over a real one it makes that slower, never faster.
//
// The inner device gets each request at once, and does the transfer; its completion is handed on when it is due, with
// the inner device's result. What the model decides is when: all queues of a device share its channels. poll()
// never waits; wait() sleeps until shortly before the earliest is due, and spins from there (at most 80 us), since a
// sleep ends later than it should. With `sleeps` it does not spin: CPU time is then what a device of that speed would leave, but
// each wait is longer by what the kernel takes to wake a thread.
#pragma once
#include "storage/decorators/latency_model.h"
#include "storage/device.h"

namespace storage {

// Owns `inner` from now on, also on errors, and closes it when it is closed. Errors: ENOMEM.
base::Expected<Device*> make_latency_device(Device* inner, const LatencyParameters& parameters);

}  // namespace storage
