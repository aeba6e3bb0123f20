#include "server/net/tls_client.h"

#include <gtest/gtest.h>
#include <sys/time.h>

#include <array>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <utility>

#include "server/net/test_certificate.h"

namespace server {
namespace {

class TlsClientTest : public testing::Test {
 protected:
  TlsClientTest() {
    files.make("server");
    files.make("other");
    EXPECT_TRUE(tls.open({.certificate = files.path("server.crt"), .key = files.path("server.key")}));
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    trust("server");
  }
  ~TlsClientTest() override {
    unsetenv("SSL_CERT_FILE");
    ::close(ends[0]);
    close_other();
  }
  void trust(const std::string& name) { setenv("SSL_CERT_FILE", files.path(name + ".crt").c_str(), 1); }
  void close_other() {
    if (ends[1] >= 0) ::close(std::exchange(ends[1], -1));
  }

  // What a client receives that asks this host for an echo; or why it receives nothing.
  std::string echo(const std::string& text, const std::string& host) {
    std::thread answers([&] {
      const TlsSession session = tls.begin();
      SSL_set_fd(session.get(), ends[1]);
      std::string asked(text.size(), 0);
      size_t bytes = 0;
      if (SSL_accept(session.get()) == 1) {
        for (size_t at = 0; at < asked.size(); at += bytes)
          if (SSL_read_ex(session.get(), asked.data() + at, asked.size() - at, &bytes) != 1) break;
        SSL_write_ex(session.get(), asked.data(), asked.size(), &bytes);
        SSL_shutdown(session.get());
      }
      close_other();
    });
    std::string heard;
    TlsClient client;
    auto asked = client.begin(ends[0], host);
    if (asked) asked = client.send(text);
    if (!asked) heard = asked.error().message;
    while (asked) {
      char part[1000];
      auto got = client.receive(part);
      if (!got) heard = got.error().message;
      if (!got || *got == 0) break;
      heard.append(part, *got);
    }
    answers.join();
    return heard;
  }

  TestCertificates files;
  Tls tls;
  std::array<int, 2> ends = {-1, -1};
};

TEST_F(TlsClientTest, HearsWhatTheServerSays) {
  const std::string text(100'000, 'x');
  EXPECT_TRUE(echo(text, "server") == text);
}

TEST_F(TlsClientTest, WhoIsNotTrustedIsAskedNothing) {
  trust("other");
  EXPECT_TRUE(
      echo("hello", "server").starts_with("TLS: the certificate is not trusted: self-signed certificate"));
}

TEST_F(TlsClientTest, ACertificateIsForAName) {
  EXPECT_TRUE(echo("hello", "other").contains("hostname mismatch"));
}

TEST_F(TlsClientTest, ACertificateIsForAnAddress) {
  EXPECT_TRUE(echo("hello", "127.0.0.1").contains("IP address mismatch"));
}

TEST_F(TlsClientTest, WhoSaysNothingIsWaitedForAsLongAsTheSocketDoes) {
  const timeval limit = {.tv_sec = 0, .tv_usec = 50'000};
  ASSERT_EQ(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
  TlsClient client;
  const auto begun = client.begin(ends[0], "server");
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().number, EAGAIN);
}

TEST_F(TlsClientTest, WhoHasGoneIsAnError) {
  close_other();
  TlsClient client;
  const auto begun = client.begin(ends[0], "server");
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().number, EPIPE);
}

TEST_F(TlsClientTest, WhatIsNoTlsIsAnError) {
  ASSERT_EQ(::write(ends[1], "HTTP/1.1 400 Bad Request\r\n\r\n", 28), 28);
  TlsClient client;
  const auto begun = client.begin(ends[0], "server");
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().number, EPROTO);
  EXPECT_TRUE(std::string_view(begun.error().message).starts_with("TLS: cannot begin: "));
}

}  // namespace
}  // namespace server
