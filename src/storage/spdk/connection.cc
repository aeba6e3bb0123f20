#include "storage/spdk/connection.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <list>

#include "storage/spdk/environment.h"

namespace storage::spdk {
namespace {

// All connections that exist. Control thread only. Leaked, since that thread still runs while the process exits.
std::list<std::weak_ptr<Connection>>& connections = *new std::list<std::weak_ptr<Connection>>;

bool fail(SpdkError& error, int number, const char* reason) {
  error.number = number;
  if (reason != nullptr) snprintf(error.reason, sizeof error.reason, "%s", reason);
  return false;
}

spdk_nvme_transport_id id_of(const SpdkTarget& target) {
  spdk_nvme_transport_id id = {};
  switch (target.transport) {
    case SpdkTransport::kPcie: spdk_nvme_trid_populate_transport(&id, SPDK_NVME_TRANSPORT_PCIE); break;
    case SpdkTransport::kTcp: spdk_nvme_trid_populate_transport(&id, SPDK_NVME_TRANSPORT_TCP); break;
    case SpdkTransport::kRdma: spdk_nvme_trid_populate_transport(&id, SPDK_NVME_TRANSPORT_RDMA); break;
  }
  if (target.transport != SpdkTransport::kPcie)
    id.adrfam = strchr(target.address, ':') != nullptr ? SPDK_NVMF_ADRFAM_IPV6 : SPDK_NVMF_ADRFAM_IPV4;
  snprintf(id.traddr, sizeof id.traddr, "%s", target.address);
  snprintf(id.trsvcid, sizeof id.trsvcid, "%s", target.port);
  snprintf(id.subnqn, sizeof id.subnqn, "%s", target.nqn);
  return id;
}

void limit_connecting(const SpdkTarget& target) {
  spdk_nvme_transport_opts options = {};
  spdk_nvme_transport_get_opts(&options, sizeof options);
  options.tcp_connect_timeout_ms = target.timeout_seconds * 1000;
  spdk_nvme_transport_set_opts(&options, sizeof options);
}

spdk_nvme_ctrlr_opts options_of(const SpdkTarget& target) {
  spdk_nvme_ctrlr_opts options = {};
  spdk_nvme_ctrlr_get_default_ctrlr_opts(&options, sizeof options);
  options.opts_size = sizeof options;
  options.admin_timeout_ms = target.timeout_seconds * 1000;
  options.fabrics_connect_timeout_us = uint64_t{target.timeout_seconds} * 1'000'000;
  options.disable_error_logging = true;
  // No keep-alive: a process that is stopped for long (Ctrl-Z) sends none, and would lose its memory.
  options.keep_alive_timeout_ms = 0;
  if (target.transport != SpdkTransport::kPcie) {
    // A host identity of its own: SPDK treats two connections from one host to one target as the same, even if one of them is lost.
    spdk_uuid id;
    char text[SPDK_UUID_STRING_LEN];
    spdk_uuid_generate(&id);
    spdk_uuid_fmt_lower(text, sizeof text, &id);
    snprintf(options.hostnqn, sizeof options.hostnqn, "nqn.2014-08.org.nvmexpress:uuid:%s", text);
    memcpy(options.extended_host_id, &id, sizeof options.extended_host_id);
  }
  return options;
}

}  // namespace

std::shared_ptr<Connection> Connection::to(const SpdkTarget& target, SpdkError& error) {
  const spdk_nvme_transport_id id = id_of(target);
  connections.remove_if([](const auto& other) { return other.expired(); });
  for (const auto& other : connections) {
    auto connection = other.lock();
    if (spdk_nvme_transport_id_compare(&connection->id_, &id) != 0) continue;
    if (connection->lost_error() == 0) return connection;
    if (target.transport == SpdkTransport::kPcie) {
      fail(error, ENXIO, "the device was lost");
      return nullptr;
    }
  }
  limit_connecting(target);
  const spdk_nvme_ctrlr_opts options = options_of(target);
  spdk_nvme_ctrlr* controller = spdk_nvme_connect(&id, &options, sizeof options);
  if (controller == nullptr) {
    fail(error, ENXIO, nullptr);
    return nullptr;
  }
  std::shared_ptr<Connection> connection(new Connection(id, controller));
  connections.push_back(connection);
  poll_on_control([weak = std::weak_ptr(connection)] {
    auto alive = weak.lock();
    if (alive == nullptr) return false;
    alive->attend();
    return true;
  });
  return connection;
}

void Connection::attend() {
  // This also processes what the target reports about its namespaces.
  bool is_lost = spdk_nvme_ctrlr_process_admin_completions(controller_) < 0;
  for (const Watched& watched : watched_)
    is_lost = is_lost || Identity::of(watched.space) != watched.identity;
  if (is_lost) set_lost(ENXIO);
}

Connection::Identity Connection::Identity::of(spdk_nvme_ns* space) {
  Identity identity = {.is_active = spdk_nvme_ns_is_active(space)};
  if (!identity.is_active) return identity;
  identity.block_count = spdk_nvme_ns_get_num_sectors(space);
  if (const spdk_uuid* uuid = spdk_nvme_ns_get_uuid(space); uuid != nullptr) identity.uuid = *uuid;
  const uint8_t* nguid = spdk_nvme_ns_get_nguid(space);
  if (nguid != nullptr) std::copy_n(nguid, identity.nguid.size(), identity.nguid.begin());
  return identity;
}

bool Connection::Identity::operator==(const Identity& other) const {
  return is_active == other.is_active && block_count == other.block_count && nguid == other.nguid &&
         spdk_uuid_compare(&uuid, &other.uuid) == 0;
}

Connection::~Connection() {
  // A controller that does not answer is not asked to shut down first.
  if (lost_error() != 0) spdk_nvme_ctrlr_fail(controller_);
  spdk_nvme_detach(controller_);
}

bool Target::connect(SpdkError& error) {
  connection_ = Connection::to(text_, error);
  if (connection_ != nullptr && look_at_space(error)) return true;
  connection_.reset();
  return false;
}

bool Target::look_at_space(SpdkError& error) {
  space_ = spdk_nvme_ctrlr_get_ns(connection_->controller(), text_.namespace_id);
  if (space_ == nullptr || !spdk_nvme_ns_is_active(space_))
    return fail(error, ENXIO, "there is no such namespace");
  facts_.capacity_bytes = spdk_nvme_ns_get_size(space_);
  facts_.block_bytes = spdk_nvme_ns_get_sector_size(space_);
  const uint32_t flags = spdk_nvme_ns_get_flags(space_);
  facts_.discards = (flags & SPDK_NVME_NS_DEALLOCATE_SUPPORTED) != 0;
  flushes_ = (flags & SPDK_NVME_NS_FLUSH_SUPPORTED) != 0;
  if (spdk_nvme_ns_get_md_size(space_) != 0)
    return fail(error, ENOTSUP, "namespaces with metadata are not supported");
  if (facts_.block_bytes < 512 || facts_.block_bytes > 4096)
    return fail(error, ENOTSUP, "only blocks of 512 to 4096 bytes are supported");
  if (facts_.capacity_bytes < 4096) return fail(error, ENXIO, "the namespace is empty");
  connection_->watch(space_);
  return true;
}

spdk_nvme_qpair* Target::open_queue_pair(size_t depth, SpdkError& error) {
  const uint64_t since_ns = now_ns();
  if (connection_->lost_error() == 0) {
    spdk_nvme_ctrlr* controller = connection_->controller();
    spdk_nvme_io_qpair_opts options = {};
    spdk_nvme_ctrlr_get_default_io_qpair_opts(controller, &options, sizeof options);
    options.opts_size = sizeof options;
    // A transfer may become several commands.
    options.io_queue_requests = std::max(options.io_queue_requests, static_cast<uint32_t>(4 * depth));
    if (auto* queue = spdk_nvme_ctrlr_alloc_io_qpair(controller, &options, sizeof options)) return queue;
    connection_->attend();
  }
  // A controller without another queue says so at once.
  const bool is_hung = now_ns() - since_ns > uint64_t{text_.timeout_seconds} * 1'000'000'000 / 2;
  const int lost = connection_->lost_error();
  fail(error,
       lost != 0 ? lost
       : is_hung ? ETIMEDOUT
                 : EMFILE,
       lost != 0 ? "the connection was lost" : nullptr);
  return nullptr;
}

}  // namespace storage::spdk
