// For tests: a server over a store in memory, which runs in a thread of its own.
#pragma once
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <thread>
#include <utility>

#include "kv/store.h"
#include "server/front/server.h"
#include "storage/backends/memory.h"

namespace server {

class RunningServerTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(kv::Store::make(*device, {.segment_bytes = 1 << 20}));
    auto opened = kv::Store::open(*device, {.durability = kv::Durability::kNone, .stream_count = 2});
    ASSERT_TRUE(opened);
    store = *opened;
  }
  void TearDown() override {
    if (runs.joinable()) end(Hub::End::kDrained);
    ASSERT_TRUE(store->close());
    device->close();
  }
  void run(ServerOptions options) {
    server = std::make_unique<Server>();
    auto listens = server->listen(std::move(options));
    ASSERT_TRUE(listens) << listens.error().message;
    ASSERT_TRUE(server->open(*store));
    runs = std::thread([this] { EXPECT_TRUE(server->run()); });
  }
  void end(Hub::End how) {
    server->end(how);
    runs.join();
    server->close();
  }
  // -1: nobody listens.
  static int connect_to(const Address& place) {
    const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(descriptor, reinterpret_cast<const sockaddr*>(&place.bytes), place.size) == 0)
      return descriptor;
    ::close(descriptor);
    return -1;
  }

  storage::Device* device = *storage::make_memory_device(64 << 20);
  kv::Store* store = nullptr;
  std::unique_ptr<Server> server;
  std::thread runs;
};

}  // namespace server
