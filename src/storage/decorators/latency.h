// The latency decorator: a device over another device, which completes each request when a modelled device would have (latency_model.h). It
// shows how software behaves on a device that this machine does not have. Over `memory:` it simulates such a device; it makes a real device
// slower, never faster.
//
// The inner device gets each request at once. Its completion, with its result, is passed on when the model says that it is due. All queues
// of a device share the model's channels. poll() never waits. wait() sleeps until shortly before the earliest request is due, and spins for
// the rest, 80 us at most, because sleeps end late. With `sleeps` it does not spin: that leaves as much CPU time as a device of that
// speed would, but each wait is longer by the time that the kernel takes to wake a thread.
#pragma once
#include "storage/decorators/latency_model.h"
#include "storage/device.h"

namespace storage {

// Takes over `inner`, even on errors, and closes it when it is closed itself. Errors: ENOMEM.
base::Expected<Device*> make_latency_device(Device* inner, const LatencyParameters& parameters);

}  // namespace storage
