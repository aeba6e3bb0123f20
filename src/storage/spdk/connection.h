// A connection to an NVMe controller, and the namespaces in use behind it.
//
//   Connection   one spdk_nvme_ctrlr. It is shared by all devices with the same target that are opened while it works
//   Target       a device: a namespace, and the connection that new channels use
//
// A connection that is lost takes no new channels; when its last channel is closed it goes. A channel that needs one then
// makes its target connect anew.
#pragma once
#include <spdk/nvme.h>

#include <atomic>
#include <memory>

#include "storage/spdk_interface.h"

namespace storage::spdk {

class Connection {
 public:
  // Control thread only, as is the end of one. Null and an error, if it cannot be had.
  static std::shared_ptr<Connection> to(const SpdkTarget& target, SpdkError& error);
  ~Connection();

  spdk_nvme_ctrlr* controller() const { return controller_; }
  // Any thread.
  void set_lost() { lost_.store(true, std::memory_order_relaxed); }
  bool is_lost() const { return lost_.load(std::memory_order_relaxed); }

 private:
  Connection(const spdk_nvme_transport_id& id, spdk_nvme_ctrlr* controller)
      : id_(id), controller_(controller) {}

  const spdk_nvme_transport_id id_;
  spdk_nvme_ctrlr* const controller_;
  std::atomic<bool> lost_{false};
};

// Lets go of a connection; it ends on the control thread.
void release(std::shared_ptr<Connection> connection);

class Target {
 public:
  explicit Target(const SpdkTarget& text) : text_(text) {}

  // Control thread only. A queue pair of `depth` requests at a time, on a connection that works now.
  struct Pair {
    std::shared_ptr<Connection> connection;
    spdk_nvme_ns* space = nullptr;
    spdk_nvme_qpair* queue = nullptr;
  };
  bool open_pair(size_t depth, Pair& pair, SpdkError& error);
  // Connects if there is no connection that works. False, and an error, if it cannot be, or the namespace is another one.
  bool connect(SpdkError& error);

  // After connect() worked once: as it was then.
  const SpdkFacts& facts() const { return facts_; }
  bool flushes() const { return flushes_; }
  const SpdkTarget& text() const { return text_; }

 private:
  bool look_at(Connection& connection, SpdkError& error);

  const SpdkTarget text_;
  SpdkFacts facts_;
  bool flushes_ = false;
  std::shared_ptr<Connection> connection_;
};

}  // namespace storage::spdk
