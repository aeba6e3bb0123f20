// Worker: how its thread sleeps and is woken through the kernel.
#include "task/worker.h"

namespace task {

base::Expected<void> Worker::open_sleep() {
  if (auto opened = events_.open(); !opened) return opened;
  if (auto opened = woken_.open(); !opened) return opened;
  return events_.add(woken_.descriptor(), sys::EventSet::Wakes::kWhenItBecomesReadable);
}

void Worker::close_sleep() {
  woken_.close();
  events_.close();
}

base::Expected<void> Worker::watch(int descriptor) {
  return events_.add(descriptor, sys::EventSet::Wakes::kWhenItBecomesReadable);
}

void Worker::end_watch(int descriptor) { events_.remove(descriptor); }

void Worker::look_for_peers() { events_.look(); }

void Worker::sleep_until_woken(uint64_t until_ns) { events_.wait_until(until_ns); }

void Worker::end_sleep() { woken_.set(); }

}  // namespace task
