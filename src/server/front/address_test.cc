#include "server/front/address.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace server {
namespace {

std::string texts_of(const char* text) {
  auto parsed = parse_address(text);
  if (!parsed) return std::string("refused: ") + parsed.error().message;
  std::string all;
  for (const Address& address : *parsed)
    all += (all.empty() ? "" : " ") + address.text() + (address.is_optional ? "?" : "");
  return all;
}

TEST(Address, IsOfTheLoopbackUnlessItSaysOtherwise) {
  EXPECT_EQ(texts_of("11211"), "127.0.0.1:11211 [::1]:11211?");
  EXPECT_EQ(texts_of(":11211"), "127.0.0.1:11211 [::1]:11211?");
  EXPECT_EQ(texts_of("*:1"), "0.0.0.0:1 [::]:1?");
  EXPECT_EQ(texts_of("10.1.2.3:65535"), "10.1.2.3:65535");
  EXPECT_EQ(texts_of("[fe80::1]:7"), "[fe80::1]:7");
  EXPECT_EQ(texts_of("/run/some.sock"), "/run/some.sock");
  EXPECT_EQ(texts_of("./some.sock"), "./some.sock");
  EXPECT_EQ(texts_of("unix:some.sock"), "some.sock");
}

TEST(Address, WhatIsNoneIsRefusedWithTheReason) {
  EXPECT_TRUE(texts_of("").starts_with(
      "refused: '' is not an address to listen at: '' is not a port from 0 to 65535; give PORT"));
  EXPECT_TRUE(texts_of("65536").contains("'65536' is not a port"));
  EXPECT_TRUE(texts_of("127.0.0.1").contains("'127.0.0.1' is not a port"));
  EXPECT_TRUE(texts_of("127.0.0.1:+5").contains("'+5' is not a port"));
  EXPECT_TRUE(texts_of("::1:11211").contains("in brackets"));
  EXPECT_TRUE(texts_of("999.1.1.1:5").contains("'999.1.1.1:5' is not an address"));
  EXPECT_TRUE(texts_of("unix:").contains("a path is missing"));
  EXPECT_TRUE(texts_of(("/" + std::string(107, 'a')).c_str()).contains("at most 107 bytes"));
}

TEST(Address, APortThatIsFreeIsTold) {
  Address address = parse_address("0")->front();
  auto listens = listen_at(address);
  ASSERT_TRUE(listens) << listens.error().message;
  EXPECT_NE(address.port(), 0);
  EXPECT_EQ(own_end_of(*listens), address.text());
  Address same = address;
  auto again = listen_at(same);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().number, EADDRINUSE);
  EXPECT_TRUE(std::string_view(again.error().message).contains("another server is there"))
      << again.error().message;
  close(*listens);
}

// As with IPv6 where it is switched off.
TEST(Address, OneThatTheKernelKnowsNotIsSaid) {
  Address address;
  address.bytes.ss_family = AF_MAX;
  const auto listens = listen_at(address);
  ASSERT_FALSE(listens);
  EXPECT_EQ(listens.error().number, EAFNOSUPPORT);
  EXPECT_TRUE(
      std::string_view(listens.error().message).contains(": address family not supported; the kernel"))
      << listens.error().message;
}

TEST(Address, APeerDoesNotChooseWhatItIsCalled) {
  const std::string path = testing::TempDir() + "address_peer_test." + std::to_string(getpid());
  Address server = parse_address(path)->front(), client = parse_address(path + "\nline")->front();
  auto listens = listen_at(server);
  ASSERT_TRUE(listens) << listens.error().message;
  const int asks = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(bind(asks, reinterpret_cast<const sockaddr*>(&client.bytes), client.size), 0);
  ASSERT_EQ(connect(asks, reinterpret_cast<const sockaddr*>(&server.bytes), server.size), 0);
  const int accepted = accept(*listens, nullptr, nullptr);
  EXPECT_EQ(peer_of(accepted), "unix");
  EXPECT_EQ(own_end_of(accepted), path);
  for (const int descriptor : {accepted, asks, *listens}) close(descriptor);
  forget(server);
  forget(client);
}

TEST(Address, OnlyASocketInTheFileSystemHasAFileToGive) {
  const std::string path = testing::TempDir() + "address_give_test." + std::to_string(getpid());
  Address address = parse_address(path)->front();
  EXPECT_EQ(give_to(address, getuid(), getgid()).error().number, ENOENT);
  const int listens = *listen_at(address);
  EXPECT_TRUE(give_to(address, getuid(), getgid()));
  EXPECT_TRUE(give_to(parse_address("11211")->front(), getuid(), getgid()));
  close(listens);
  forget(address);
}

TEST(Address, AServerThatAcceptsNobodyIsThere) {
  const std::string path = testing::TempDir() + "address_full_test." + std::to_string(getpid());
  Address address = parse_address(path)->front();
  const auto* bytes = reinterpret_cast<const sockaddr*>(&address.bytes);
  const int listens = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(bind(listens, bytes, address.size), 0);
  ASSERT_EQ(listen(listens, 0), 0);
  std::vector<int> waiting;  // until there is no room for more
  do waiting.push_back(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  while (connect(waiting.back(), bytes, address.size) == 0);
  auto second = listen_at(address);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().number, EADDRINUSE);
  for (const int descriptor : waiting) close(descriptor);
  close(listens);
  forget(address);
}

TEST(Address, ASocketThatNobodyListensAtIsReplaced) {
  const std::string path = testing::TempDir() + "address_test." + std::to_string(getpid());
  Address address = parse_address(path)->front();
  auto first = listen_at(address);
  ASSERT_TRUE(first) << first.error().message;
  auto second = listen_at(address);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().number, EADDRINUSE);
  close(*first);
  second = listen_at(address);
  ASSERT_TRUE(second) << second.error().message;
  close(*second);
  forget(address);
  EXPECT_NE(access(path.c_str(), F_OK), 0);
  std::ofstream(path) << "a file";
  second = listen_at(address);
  ASSERT_FALSE(second);
  EXPECT_TRUE(std::string_view(second.error().message).contains("another server is there, or a file"))
      << second.error().message;
  EXPECT_EQ(access(path.c_str(), F_OK), 0) << "it is somebody's";
  unlink(path.c_str());
}

}  // namespace
}  // namespace server
