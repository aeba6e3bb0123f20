#include "storage/backends/spdk.h"

#include "base/check.h"
#include "base/ids.h"
#include "storage/backends/spdk_load.h"
#include "storage/objects.h"
#include "storage/opening/opened.h"
#include "storage/piece_io.h"
#include "sys/files.h"
#include "sys/kernel.h"
#include "sys/nap.h"

namespace storage {
namespace {

constexpr SpdkHost kHost = {
    .own_descriptor =
        [](int descriptor) {
          auto owned = sys::own_descriptor(descriptor);
          return owned ? *owned : -1;
        },
    .close_descriptor = sys::close_own_descriptor,
    .is_own_descriptor = sys::is_own_descriptor,
};

// "spdk:tcp=127.0.0.1:4420,ns=1"
void describe(const SpdkTarget& target, base::TextRef to) {
  switch (target.transport) {
    case SpdkTransport::kPcie: to << "spdk:pci=" << target.address; break;
    case SpdkTransport::kTcp: to << "spdk:tcp=" << target.address << ':' << target.port; break;
    case SpdkTransport::kRdma: to << "spdk:rdma=" << target.address << ':' << target.port; break;
  }
  to << ",ns=" << target.namespace_id;
}

// "storage: spdk:tcp=127.0.0.1:4420,ns=1: no queue: timed out (what SPDK says)"
std::unexpected<base::Error> refusal(const SpdkTarget& target, const char* what, const SpdkError& error) {
  char name[160];
  describe(target, base::TextRef(name, sizeof name));
  return base::failure(error.number, "storage: ", name, ": ", what, base::error_name(error.number), " (",
                       error.reason, ")");
}

class SpdkBackend final : public Device {
 public:
  SpdkBackend(const SpdkLibrary& library, SpdkDevice* device, const SpdkTarget& target,
              const SpdkFacts& facts, size_t max_depth)
      : library_(library),
        device_(device),
        target_(target),
        max_depth_(max_depth),
        process_(sys::syscall(SYS_getpid)) {
    capacity_bytes_ = base::round_down(facts.capacity_bytes, base::kOsPageBytes);
    block_bytes_ = facts.block_bytes;
    discards_ = facts.discards;
    opens_descriptors_ = true;
    describe(target, base::TextRef(name_, sizeof name_));
  }

  const SpdkLibrary& library() const { return library_; }
  // In a child, everything of SPDK's is the parent's.
  bool is_in_child() const { return sys::syscall(SYS_getpid) != process_; }

 private:
  base::Expected<Queue*> do_open_queue(size_t depth, const QueueUse& use) override;
  void do_close() override {
    if (!is_in_child()) library_.close(device_);
    free_object(this, 0);
  }

  const SpdkLibrary& library_;
  SpdkDevice* const device_;
  const SpdkTarget target_;
  const size_t max_depth_;
  const long process_;
};

class SpdkQueue final : public Queue {
 public:
  SpdkQueue(SpdkBackend& device, SpdkChannel* channel, size_t depth)
      : Queue(device, depth), backend_(device), library_(device.library()), channel_(channel) {}

 private:
  // An answer over a network usually takes less than this; when it takes longer, the thread may as well sleep.
  static constexpr uint64_t kYieldingNs = 1'000'000;
  static constexpr uint64_t kNapNs = 50'000;
  // Long enough for the cache's servers to sleep at all (cache/servers/bell.cc).
  static constexpr uint64_t kQuietNs = 100'000;

  void do_start(Io& io) override { library_.start(channel_, io); }
  void do_flush_submissions() override { library_.flush(channel_); }

  void do_poll(bool block) override {
    IoList ended;
    library_.poll(channel_, ended);
    if (block && ended.empty()) {
      const uint64_t since_ns = sys::monotonic_ns();
      do {
        if (sys::monotonic_ns() - since_ns < kYieldingNs)
          sys::syscall(SYS_sched_yield);
        else
          sys::nap(kNapNs);
        library_.poll(channel_, ended);
      } while (ended.empty());
    }
    while (!ended.empty()) complete(ended.take_first());
  }

  // Nothing signals an answer, so the user has to look again after a while.
  base::Quiet do_quiet() override {
    do_poll(false);
    return {.until_ns = sys::monotonic_ns() + kQuietNs};
  }

  void do_close() override {
    if (!backend_.is_in_child()) library_.close_channel(channel_);
    free_object(this, 0);
  }

  SpdkBackend& backend_;
  const SpdkLibrary& library_;
  SpdkChannel* const channel_;
};

base::Expected<Queue*> SpdkBackend::do_open_queue(size_t depth, const QueueUse&) {
  if (is_in_child())
    return base::failure(ENOTSUP, "storage: ", name(), ": a copy of a process (fork) cannot use SPDK; ",
                         "let it execute another program, or spill elsewhere");
  if (depth > max_depth_) depth = max_depth_;
  SpdkError error;
  SpdkChannel* channel = library_.open_channel(device_, depth, error);
  if (channel == nullptr) return refusal(target_, "no queue: ", error);
  auto queue = make_object<SpdkQueue>(0, "a storage queue", *this, channel, depth);
  if (queue) return *queue;
  library_.close_channel(channel);
  return std::unexpected(queue.error());
}

base::Expected<void> check_content_of(Device& device, const OpenParameters& parameters) {
  if (!parameters.spill || parameters.overwrite) return {};
  auto queue = device.open_queue(1);
  if (!queue) return std::unexpected(queue.error());
  const auto read = [&](char* to, uint64_t bytes, uint64_t offset) -> int64_t {
    PieceIo io(Operation::kRead, offset, to, bytes);
    (*queue)->run(io);
    return io.error != 0 ? -io.error : static_cast<int64_t>(io.transferred_bytes);
  };
  base::Text<160> what;
  what << "storage: " << device.name();
  auto checked = check_content(what.view(), device.capacity_bytes(), parameters, read);
  device.close_queue(*queue);
  return checked;
}

SpdkTarget target_of(const SpdkParameters& spdk) {
  SpdkTarget target = {.transport = spdk.transport,
                       .namespace_id = spdk.namespace_id,
                       .timeout_seconds = spdk.timeout_seconds,
                       // Only TCP takes memory that nobody registered.
                       .bounces = spdk.bounces || spdk.transport != SpdkTransport::kTcp};
  base::TextRef(target.address, sizeof target.address) << spdk.address;
  base::TextRef(target.port, sizeof target.port) << spdk.port;
  base::TextRef(target.nqn, sizeof target.nqn) << spdk.nqn;
  return target;
}

}  // namespace

base::Expected<Device*> make_spdk_device(const SpdkParameters& spdk, size_t max_depth,
                                         const OpenParameters& parameters) {
  const SpdkTarget target = target_of(spdk);
  auto library = load_spdk();
  if (!library) return std::unexpected(library.error());
  SpdkFacts facts;
  SpdkError error;
  SpdkDevice* opened = (*library)->open(kHost, target, facts, error);
  if (opened == nullptr) return refusal(target, "", error);
  auto device = make_object<SpdkBackend>(0, "an spdk device", **library, opened, target, facts, max_depth);
  if (!device) {
    (*library)->close(opened);
    return std::unexpected(device.error());
  }
  if (auto checked = check_content_of(**device, parameters); !checked) {
    (*device)->close();
    return std::unexpected(checked.error());
  }
  return *device;
}

}  // namespace storage
