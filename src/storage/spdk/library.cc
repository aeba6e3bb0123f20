// What libspillway-spdk.so exports: spdk_interface.h.
#include <new>

#include "storage/spdk/channel.h"
#include "storage/spdk/environment.h"

namespace storage {

struct SpdkDevice {
  explicit SpdkDevice(const SpdkTarget& text) : target(text) {}
  spdk::Target target;
};

namespace {

using spdk::Channel;
using spdk::NoCancellation;

Channel* channel_of(SpdkChannel* channel) { return reinterpret_cast<Channel*>(channel); }

SpdkDevice* open(const SpdkHost& host, const SpdkTarget& text, SpdkFacts& facts, SpdkError& error) {
  NoCancellation here;
  if (spdk::start_environment(host, error) != 0) return nullptr;
  auto* device = new SpdkDevice(text);
  bool connected = false;
  spdk::run_on_control([&] { connected = device->target.connect(error); }, &error);
  if (connected) {
    facts = device->target.facts();
    return device;
  }
  delete device;
  return nullptr;
}

void close(SpdkDevice* device) {
  NoCancellation here;
  spdk::run_on_control([device] { delete device; });
}

SpdkChannel* open_channel(SpdkDevice* device, size_t depth, SpdkError& error) {
  NoCancellation here;
  return reinterpret_cast<SpdkChannel*>(Channel::open(device->target, depth, error));
}

void close_channel(SpdkChannel* channel) {
  NoCancellation here;
  channel_of(channel)->close();
}

void start(SpdkChannel* channel, Io& io) {
  NoCancellation here;
  channel_of(channel)->start(io);
}

void flush(SpdkChannel* channel) {
  NoCancellation here;
  channel_of(channel)->flush();
}

void poll(SpdkChannel* channel, IoList& ended) {
  NoCancellation here;
  channel_of(channel)->poll(ended);
}

}  // namespace

extern "C" [[gnu::visibility("default")]] const SpdkLibrary spillway_spdk = {
    kSpdkInterfaceVersion, open, close, open_channel, close_channel, start, flush, poll};

}  // namespace storage
