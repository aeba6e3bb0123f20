// The interceptors of sockets, with messages, addresses and options in spilled memory.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <array>

#include "spill/testing/mirrored.h"

extern "C" {
ssize_t __spill_read(int, void*, size_t);
ssize_t __spill_write(int, const void*, size_t);
ssize_t __spill_send(int, const void*, size_t, int);
ssize_t __spill_recv(int, void*, size_t, int);
ssize_t __spill_sendto(int, const void*, size_t, int, const sockaddr*, socklen_t);
ssize_t __spill_recvfrom(int, void*, size_t, int, sockaddr*, socklen_t*);
ssize_t __spill_sendmsg(int, const msghdr*, int);
ssize_t __spill_recvmsg(int, msghdr*, int);
int __spill_sendmmsg(int, mmsghdr*, unsigned, int);
int __spill_recvmmsg(int, mmsghdr*, unsigned, int, timespec*);
int __spill_bind(int, const sockaddr*, socklen_t);
int __spill_getsockname(int, sockaddr*, socklen_t*);
int __spill_setsockopt(int, int, int, const void*, socklen_t);
int __spill_getsockopt(int, int, int, void*, socklen_t*);
int __spill_socketpair(int, int, int, int*);
}

namespace {

using fake::content;
using fake::Mirrored;
using fake::read_object;
using fake::read_string;
using fake::spilled_object;
using fake::spilled_string;

class Sockets : public fake::SpillTest {};

TEST_F(Sockets, SocketsKeepMessagesWhole) {
  int* pair = spilled_object<int[2]>()[0];
  ASSERT_EQ(__spill_socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
  const int a = read_object(pair), b = read_object(pair + 1);
  const std::string bytes = content(100'000);
  const char* from = spilled_string(bytes);
  Mirrored to(200'000, 4000);
  EXPECT_EQ(__spill_send(a, from, bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  EXPECT_EQ(__spill_recv(b, to.spilled, to.size(), 0), static_cast<ssize_t>(bytes.size()));
  to.twin.replace(0, bytes.size(), bytes);
  to.expect_equal("recv");

  // A message with all of its parts spilled, and a descriptor passed with it.
  char* control = fake::allocate(CMSG_SPACE(sizeof(int)), 4090);
  alignas(cmsghdr) char plain_control[CMSG_SPACE(sizeof(int))] = {};
  auto* header = reinterpret_cast<cmsghdr*>(plain_control);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(header), &a, sizeof a);
  spill::copy(control, plain_control, sizeof plain_control);
  iovec* vector = spilled_object<iovec>({const_cast<char*>(from), 70'000});
  msghdr message = {};
  message.msg_iov = vector;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof plain_control;
  EXPECT_EQ(__spill_sendmsg(a, spilled_object(message), 0), 70'000);
  spill::copy(control, std::string(sizeof plain_control, '\0').data(), sizeof plain_control);
  spill::copy(vector, &(const iovec&)iovec{to.spilled, 200'000}, sizeof(iovec));
  msghdr* received = spilled_object(message);
  EXPECT_EQ(__spill_recvmsg(b, received, 0), 70'000);
  EXPECT_EQ(read_object(received).msg_controllen, sizeof plain_control);
  to.expect_equal("recvmsg");
  int passed;
  spill::copy(&passed, control + CMSG_LEN(0), sizeof passed);
  EXPECT_GE(fcntl(passed, F_GETFD), 0);
  close(passed);
  close(a);
  close(b);
}

// Longer than what is received from a stream at once.
TEST_F(Sockets, LongMessagesStayWhole) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
  const std::string bytes = content((1 << 20) + 60'000);
  const auto n = static_cast<ssize_t>(bytes.size());
  const int room = 8 << 20;
  if (setsockopt(pair[0], SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room) != 0 ||
      send(pair[0], bytes.data(), bytes.size(), 0) != n)
    GTEST_SKIP() << "such messages cannot be sent where the test runs";
  Mirrored to(bytes.size() + 100, 4000);
  EXPECT_EQ(__spill_recv(pair[1], to.spilled, to.size(), 0), n);
  to.twin.replace(0, bytes.size(), bytes);
  to.expect_equal("recv");
  to.fill(0, std::string(bytes.size(), '\0').data(), bytes.size());
  EXPECT_EQ(__spill_write(pair[0], spilled_string(bytes), bytes.size()), n);
  EXPECT_EQ(__spill_read(pair[1], to.spilled, to.size()), n);
  to.twin.replace(0, bytes.size(), bytes);
  to.expect_equal("read");
  close(pair[0]);
  close(pair[1]);
}

// The time limit is beyond the last time that the clock will ever show.
TEST_F(Sockets, SeveralMessagesWithoutAnEnd) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
  std::array<mmsghdr, 2> messages = {};
  for (mmsghdr& message : messages) {
    ASSERT_EQ(send(pair[0], "four", 4, 0), 4);
    message.msg_hdr.msg_iov = spilled_object<iovec>({fake::allocate(4, 4094), 4});
    message.msg_hdr.msg_iovlen = 1;
  }
  auto* spilled = reinterpret_cast<mmsghdr*>(spilled_object(messages));
  timespec limit = {LONG_MAX, 999'999'999};
  EXPECT_EQ(__spill_recvmmsg(pair[1], spilled, 2, MSG_DONTWAIT, &limit), 2);
  close(pair[0]);
  close(pair[1]);
}

TEST_F(Sockets, SeveralMessagesTellTheTimeThatIsLeft) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
  ASSERT_EQ(send(pair[0], "four", 4, 0), 4);
  mmsghdr message = {};
  message.msg_hdr.msg_iov = spilled_object<iovec>({fake::allocate(4, 4094), 4});
  message.msg_hdr.msg_iovlen = 1;
  mmsghdr* spilled = spilled_object(message);
  timespec* limit = spilled_object<timespec>({0, 1'000'000'000});
  EXPECT_EQ(__spill_recvmmsg(pair[1], spilled, 1, 0, limit), -1);
  EXPECT_EQ(errno, EINVAL);
  limit = spilled_object<timespec>({100, 0});
  EXPECT_EQ(__spill_recvmmsg(pair[1], spilled, 1, 0, limit), 1);
  EXPECT_LT(read_object(limit).tv_sec, 100);
  EXPECT_GT(read_object(limit).tv_sec, 0);
  close(pair[0]);
  close(pair[1]);
}

int drained_end = -1;
void drain(int) {
  char bytes[4096];
  while (recv(drained_end, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
  }
}

// A signal interrupts the first message when there is no room for the rest of it, and its handler makes room for the second.
TEST_F(Sockets, NothingFollowsAPartOfAMessage) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  const int room = 1 << 16;
  ASSERT_EQ(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room), 0);
  drained_end = pair[1];
  const std::string bytes = content(1 << 20);
  std::array<mmsghdr, 2> messages = {};
  messages[0].msg_hdr.msg_iov = spilled_object<iovec>({spilled_string(bytes), bytes.size()});
  messages[1].msg_hdr.msg_iov = spilled_object<iovec>({spilled_string("tail"), 4});
  for (mmsghdr& message : messages) message.msg_hdr.msg_iovlen = 1;
  auto* spilled = reinterpret_cast<mmsghdr*>(spilled_object(messages));
  struct sigaction action = {}, before;
  action.sa_handler = drain;
  ASSERT_EQ(sigaction(SIGALRM, &action, &before), 0);
  const itimerval often = {{0, 20'000}, {0, 20'000}}, never = {};
  ASSERT_EQ(setitimer(ITIMER_REAL, &often, nullptr), 0);
  EXPECT_EQ(__spill_sendmmsg(pair[0], spilled, 2, 0), 1);
  EXPECT_EQ(setitimer(ITIMER_REAL, &never, nullptr), 0);
  EXPECT_EQ(sigaction(SIGALRM, &before, nullptr), 0);
  EXPECT_LT(read_object(spilled).msg_len, bytes.size());
  close(pair[0]);
  close(pair[1]);
}

// Data that came by TCP, with MSG_TRUNC.
TEST_F(Sockets, WhatIsDroppedIsNotStored) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0), caller = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in here = {};
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* address = reinterpret_cast<sockaddr*>(&here);
  socklen_t bytes = sizeof here;
  ASSERT_EQ(bind(listener, address, bytes), 0);
  ASSERT_EQ(getsockname(listener, address, &bytes), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  ASSERT_EQ(connect(caller, address, bytes), 0);
  const int end = accept(listener, nullptr, nullptr);
  ASSERT_EQ(send(caller, "0123456789", 10, 0), 10);
  Mirrored to(std::string(100, 'k'));
  EXPECT_EQ(__spill_recv(end, to.spilled, 4, MSG_TRUNC), 4);
  to.expect_equal("recv");
  msghdr message = {};
  message.msg_iov = spilled_object<iovec>({to.spilled, 3});
  message.msg_iovlen = 1;
  EXPECT_EQ(__spill_recvmsg(end, spilled_object(message), MSG_TRUNC), 3);
  to.expect_equal("recvmsg");
  EXPECT_EQ(__spill_recv(end, to.spilled, 3, 0), 3);
  to.twin.replace(0, 3, "789");
  to.expect_equal("what was not dropped");
  for (int descriptor : {listener, caller, end}) close(descriptor);
}

TEST_F(Sockets, SocketAddressesAndOptions) {
  const int a = socket(AF_INET, SOCK_DGRAM, 0), b = socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr_in any = {};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(__spill_bind(b, reinterpret_cast<sockaddr*>(spilled_object(any)), sizeof any), 0);
  sockaddr_in* name = spilled_object<sockaddr_in>();
  socklen_t* bytes = spilled_object<socklen_t>(sizeof(sockaddr_in));
  ASSERT_EQ(__spill_getsockname(b, reinterpret_cast<sockaddr*>(name), bytes), 0);
  EXPECT_NE(read_object(name).sin_port, 0);
  // There is less room than the call is told, and nothing mapped after it.
  char* last = fake::allocate(sizeof(sockaddr_in), 4096 - sizeof(sockaddr_in));
  socklen_t* wrong = spilled_object<socklen_t>(5000);
  ASSERT_EQ(__spill_getsockname(b, reinterpret_cast<sockaddr*>(last), wrong), 0);
  EXPECT_EQ(read_object(reinterpret_cast<sockaddr_in*>(last)).sin_port, read_object(name).sin_port);
  EXPECT_EQ(read_object(wrong), sizeof(sockaddr_in));
  EXPECT_EQ(
      __spill_sendto(a, spilled_string("datagram"), 8, 0, reinterpret_cast<sockaddr*>(name), sizeof any), 8);
  char* to = fake::allocate(100, 4094);
  sockaddr_in* from = spilled_object<sockaddr_in>();
  EXPECT_EQ(__spill_recvfrom(b, to, 100, 0, reinterpret_cast<sockaddr*>(from), bytes), 8);
  EXPECT_EQ(read_string(to), "datagram");
  EXPECT_EQ(read_object(from).sin_family, AF_INET);
  EXPECT_EQ(__spill_setsockopt(b, SOL_SOCKET, SO_REUSEADDR, spilled_object<int>(1), sizeof(int)), 0);
  int* value = spilled_object<int>(7);
  spill::copy(bytes, &(const socklen_t&)socklen_t{4}, sizeof(socklen_t));
  EXPECT_EQ(__spill_getsockopt(b, SOL_SOCKET, SO_REUSEADDR, value, bytes), 0);
  EXPECT_EQ(read_object(value), 1);
  close(a);
  close(b);
}

}  // namespace
