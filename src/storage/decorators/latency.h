// The latency decorator: a device over a device that completes each request when a modelled device would have (latency_model.h). It shows
// how software behaves on a device that this machine does not have. Over `memory:` it is such a device; a real device it makes slower,
// never faster.
//
// The inner device gets each request at once. Its completion, with its result, is handed on when the model says that it is due. All queues
// of a device share the model's channels. poll() never waits. wait() sleeps until shortly before the earliest request is due, and spins for
// the rest, 80 us at most, because a sleep ends later than it should. With `sleeps` it does not spin: then as much CPU time is left as a
// device of that speed would leave, but each wait is longer by the time that the kernel takes to wake a thread.
#pragma once
#include "storage/decorators/latency_model.h"
#include "storage/device.h"

namespace storage {

// Owns `inner` from now on, also on errors, and closes it when it is closed. Errors: ENOMEM.
base::Expected<Device*> make_latency_device(Device* inner, const LatencyParameters& parameters);

}  // namespace storage
