// A connection to an NVMe controller, and the namespaces in use behind it.
//
//   Connection   one spdk_nvme_ctrlr. All devices with the same target that are opened while it works share it
//   Target       a device: a namespace, and its connection
//
// A connection that is lost for one channel is lost for all, permanently: no device reconnects. For the target may still do writes that were
// given up here, over what has been written to the same places since; and what answers at the same address may be another medium, or the
// same one after it has lost its content. A connection is also lost when a namespace in use is removed or replaced.
#pragma once
#include <spdk/nvme.h>
#include <spdk/uuid.h>

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "storage/backends/spdk_interface.h"

namespace storage::spdk {

class Connection {
 public:
  // The connection to a target, which may be shared. Null and an error if none can be had. Control thread only; so is its destruction.
  static std::shared_ptr<Connection> to(const SpdkTarget& target, SpdkError& error);
  ~Connection();

  spdk_nvme_ctrlr* controller() const { return controller_; }
  // From now on the connection is lost when this namespace is removed, or another one takes its number. That is noticed in the control
  // thread's next poll after the target has reported it, or when the target refuses a request. Control thread only.
  void watch(spdk_nvme_ns* space) { watched_.push_back({space, Identity::of(space)}); }
  // The error with which it was lost; 0: it works. Any thread. Relaxed: whoever must see it (channel.h, 4) has learned of a later end of an
  // Io by something that orders memory.
  int lost_error() const { return lost_error_.load(std::memory_order_relaxed); }
  // Marks it lost with `error` unless it is lost already; returns the error with which it is lost. Any thread.
  int set_lost(int error) {
    int before = 0;
    return lost_error_.compare_exchange_strong(before, error, std::memory_order_relaxed) ? error : before;
  }

  // Keeps the connection alive, and notices its end. Control thread only.
  void attend();

 private:
  // What distinguishes namespaces that have the same number at different times.
  struct Identity {
    bool is_active = false;
    uint64_t block_count = 0;
    spdk_uuid uuid = {};
    std::array<uint8_t, 16> nguid = {};
    bool operator==(const Identity& other) const;
    static Identity of(spdk_nvme_ns* space);
  };
  struct Watched {
    spdk_nvme_ns* space;
    Identity identity;
  };

  Connection(const spdk_nvme_transport_id& id, spdk_nvme_ctrlr* controller)
      : id_(id), controller_(controller) {}

  const spdk_nvme_transport_id id_;
  spdk_nvme_ctrlr* const controller_;
  std::atomic<int> lost_error_{0};
  std::vector<Watched> watched_;  // the control thread's
};

class Target {
 public:
  explicit Target(const SpdkTarget& text) : text_(text) {}

  // To be called once. False and an error if it fails. Control thread only; so is the destruction of a connected target.
  bool connect(SpdkError& error);

  // REQUIRES, of all below: connect() has succeeded.

  // A queue pair for `depth` requests at a time; null and an error if none can be had. Control thread only.
  spdk_nvme_qpair* open_queue_pair(size_t depth, SpdkError& error);

  Connection& connection() { return *connection_; }
  spdk_nvme_ns* space() const { return space_; }
  // As they were when it was connected.
  const SpdkFacts& facts() const { return facts_; }
  bool flushes() const { return flushes_; }
  const SpdkTarget& text() const { return text_; }

 private:
  bool look_at_space(SpdkError& error);

  const SpdkTarget text_;
  SpdkFacts facts_;
  bool flushes_ = false;
  std::shared_ptr<Connection> connection_;
  spdk_nvme_ns* space_ = nullptr;
};

}  // namespace storage::spdk
