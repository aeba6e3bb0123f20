// Connections by TLS, with OpenSSL's client at the other end; stream_test.cc tests plain ones.
#include "server/net/channel.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <ctime>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "server/net/stream.h"
#include "server/net/test_certificate.h"
#include "server/net/test_peer.h"
#include "sys/kernel.h"
#include "task/test_tasks.h"

namespace server {
namespace {

constexpr size_t kStackBytes = 256 << 10;

class ChannelTest : public testing::Test {
 protected:
  ChannelTest() {
    files.make("server");
    files.make("client");
    files.make("stranger");
  }
  void open(const std::string& authorities = "") {
    ASSERT_TRUE(tls.open({.certificate = files.path("server.crt"),
                          .key = files.path("server.key"),
                          .client_authorities = authorities.empty() ? "" : files.path(authorities)}));
  }
  // `serve` has the stream in a task, `ask` the other end in a thread.
  void talk(const std::function<void(Stream&)>& serve, const std::function<void(int)>& ask) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    std::thread asks([&] {
      ask(ends[1]);
      ::close(ends[1]);
    });
    task::Scheduler scheduler;
    ASSERT_TRUE(
        scheduler.open({.worker_count = 1, .stack_bytes = std::max(kStackBytes, task::kTestStackBytes)}));
    auto run = [&] {
      storage::BufferPool pool;
      Stream stream(pool, {});
      ASSERT_TRUE(stream.take(ends[0], &tls));
      serve(stream);
      stream.close();
    };
    ASSERT_TRUE(scheduler.run(task::calls("serves", run)));
    scheduler.close();
    asks.join();
  }
  // Sends back what comes.
  static void echo(Stream& stream) {
    for (;;) {
      auto received = stream.receive();
      ASSERT_TRUE(received) << received.error().message;
      if (!*received) break;
      ASSERT_TRUE(stream.write(stream.input()));
      stream.consume(stream.input().size());
    }
    ASSERT_TRUE(stream.send());
  }
  // Takes "begin", which the client says first, and waits until it has said everything.
  static void take_begin(Stream& stream, const std::atomic<bool>& has_said_all) {
    auto received = stream.receive();
    ASSERT_TRUE(received) << received.error().message;
    EXPECT_EQ(stream.input(), "begin");
    stream.consume(stream.input().size());
    while (!has_said_all) task::yield();
  }
  // How often others run while `receives` runs. To be called when all input has been sent, so that it never waits.
  template <class Receives>
  static int turns_of_others(const Receives& receives) {
    // Meanwhile the worker is told that the input has come.
    task::sleep_until(sys::monotonic_ns() + 20'000'000);
    bool has_ended = false;
    int turns = 0;
    auto count = [&] {
      while (!has_ended) {
        ++turns;
        task::yield();
      }
    };
    task::Task& counts = task::start("counts", count);
    receives();
    has_ended = true;
    task::join(counts);
    return turns;
  }
  // The error with which a connection ends that is refused.
  static int refused(Stream& stream) {
    auto received = stream.receive();
    return received ? 0 : received.error().number;
  }

  TestCertificates files;
  Tls tls;
};

TEST_F(ChannelTest, BytesGoBothWaysUnchanged) {
  open();
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION})
    talk(echo, [&](int descriptor) {
      TestTlsPeer peer(files, "server", "", version);
      ASSERT_TRUE(peer.connect(descriptor));
      std::mt19937 random(1);
      for (const size_t bytes : {1, 100, 16'383, 16'384, 16'385, 40'000, 65'536, 300'000}) {
        std::string text(bytes, ' ');
        for (char& c : text) c = static_cast<char>(random());
        std::thread says([&] { ASSERT_TRUE(peer.say(text)); });
        says.join();
        ASSERT_TRUE(peer.hear(bytes) == text) << bytes;
      }
      peer.end();
      EXPECT_EQ(peer.hear(), "");
      EXPECT_TRUE(peer.has_heard_the_end());
    });
}

TEST_F(ChannelTest, ManyRecordsThatComeAtOnceAreAllReceived) {
  open();
  talk(echo, [&](int descriptor) {
    TestTlsPeer peer(files, "server");
    ASSERT_TRUE(peer.connect(descriptor));
    std::string all;
    for (int i = 0; i < 200; ++i) {
      const std::string text = "request " + std::to_string(i) + "\r\n";
      ASSERT_TRUE(peer.say(text));
      all += text;
    }
    EXPECT_TRUE(peer.hear(all.size()) == all);
  });
}

TEST_F(ChannelTest, WhatAClientSaysBeforeItTakesAnythingIsReceived) {
  open();
  std::mt19937 random(2);
  std::string text(4 << 20, ' ');
  for (char& c : text) c = static_cast<char>(random());
  talk(
      [&](Stream& stream) {
        stream.keep_ahead(2 * text.size());
        echo(stream);
      },
      [&](int descriptor) {
        TestTlsPeer peer(files, "server");
        ASSERT_TRUE(peer.connect(descriptor));
        ASSERT_TRUE(peer.say(text));
        EXPECT_TRUE(peer.hear(text.size()) == text);
        peer.end();
        EXPECT_EQ(peer.hear(), "");
      });
}

TEST_F(ChannelTest, OthersRunWhileAClientSaysAgainAndAgainThatItsKeysAreNew) {
  open();
  std::atomic<bool> has_said_all{false};
  talk(
      [&](Stream& stream) {
        take_begin(stream, has_said_all);
        base::Expected<bool> received;
        EXPECT_GE(turns_of_others([&] { received = stream.receive(); }), 3);
        ASSERT_TRUE(received) << received.error().message;
        EXPECT_EQ(stream.input(), "end");
      },
      [&](int descriptor) {
        TestTlsPeer peer(files, "server");
        EXPECT_TRUE(peer.connect(descriptor));
        EXPECT_TRUE(peer.say("begin"));
        EXPECT_TRUE(say(descriptor, peer.new_keys(3500)));
        EXPECT_TRUE(peer.say("end"));
        has_said_all = true;
        peer.hear();
      });
}

TEST_F(ChannelTest, OthersRunWhileALongValueComes) {
  open();
  std::atomic<bool> has_said_all{false};
  talk(
      [&](Stream& stream) {
        take_begin(stream, has_said_all);
        base::Expected<bool> received;
        std::vector<std::byte> value(80'000);
        EXPECT_GE(turns_of_others([&] { received = stream.receive_into(0, value); }), 2);
        ASSERT_TRUE(received) << received.error().message;
        EXPECT_TRUE(*received && std::ranges::all_of(value, [](std::byte b) { return b == std::byte{'v'}; }));
      },
      [&](int descriptor) {
        TestTlsPeer peer(files, "server");
        EXPECT_TRUE(peer.connect(descriptor));
        EXPECT_TRUE(peer.say("begin"));
        EXPECT_TRUE(peer.say(std::string(80'000, 'v')));
        has_said_all = true;
        peer.hear();
      });
}

TEST_F(ChannelTest, AClientThatGoesWithoutAWordHasEnded) {
  open();
  talk([](Stream& stream) { EXPECT_EQ(refused(stream), 0); },
       [&](int descriptor) {
         TestTlsPeer peer(files, "server");
         ASSERT_TRUE(peer.connect(descriptor));
         ::shutdown(descriptor, SHUT_WR);
         peer.hear();
       });
}

TEST_F(ChannelTest, WhatIsNoTlsIsRefused) {
  open();
  for (const std::string& text : {std::string("get key\r\n"), std::string("GET / HTTP/1.1\r\n\r\n"),
                                  std::string(200, '\x16'), std::string(1, '\x80')})
    talk([](Stream& stream) { EXPECT_NE(refused(stream), ECANCELED); },
         [&](int descriptor) {
           say(descriptor, text);
           ::shutdown(descriptor, SHUT_WR);
           hear(descriptor);
         });
}

TEST_F(ChannelTest, OldVersionsAreRefused) {
  open();
  talk([](Stream& stream) { EXPECT_EQ(refused(stream), EPROTO); },
       [&](int descriptor) {
         TestTlsPeer peer(files, "server", "", TLS1_1_VERSION);
         EXPECT_FALSE(peer.connect(descriptor));
       });
}

TEST_F(ChannelTest, ClientsNeedACertificateOfTheAuthority) {
  open("client.crt");
  talk(echo, [&](int descriptor) {
    TestTlsPeer peer(files, "server", "client");
    ASSERT_TRUE(peer.connect(descriptor));
    ASSERT_TRUE(peer.say("hello"));
    EXPECT_EQ(peer.hear(5), "hello");
    peer.end();
    peer.hear();
  });
  for (const char* other : {"", "stranger"})
    talk([](Stream& stream) { EXPECT_EQ(refused(stream), EPROTO); },
         [&](int descriptor) {
           TestTlsPeer peer(files, "server", other);
           // In TLS 1.3 the client's end is open before the server has checked its certificate.
           if (peer.connect(descriptor)) EXPECT_EQ(peer.hear(1), "");
         });
}

TEST_F(ChannelTest, SessionsAreResumedOnlyUntilTheirClientsCertificateExpires) {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION})
    for (const bool has_expired : {false, true}) {
      files.make("client", nullptr, has_expired ? -30 : 3600);
      open("client.crt");
      // When there is no session to resume, the server checks the certificate as of 45 s ago.
      SSL_CTX* const context = SSL_get_SSL_CTX(tls.begin().get());
      X509_VERIFY_PARAM_set_time(SSL_CTX_get0_param(context), time(nullptr) - 45);
      std::shared_ptr<SSL_SESSION> session;
      for (const bool resumes : {false, true})
        talk(echo, [&](int descriptor) {
          TestTlsPeer peer(files, "server", "client", version);
          if (resumes) peer.resume(session.get());
          ASSERT_TRUE(peer.connect(descriptor));
          ASSERT_TRUE(peer.say("hello"));
          EXPECT_EQ(peer.hear(5), "hello");
          EXPECT_EQ(peer.has_resumed(), resumes && !has_expired);
          peer.end();
          EXPECT_EQ(peer.hear(), "");
          session = peer.session();
        });
    }
}

TEST_F(ChannelTest, WhatIsSaidFirstGoesBehindTheHandshake) {
  open();
  talk(
      [](Stream& stream) {
        ASSERT_TRUE(stream.write("too many"));
        EXPECT_TRUE(stream.send());
      },
      [&](int descriptor) {
        TestTlsPeer peer(files, "server");
        ASSERT_TRUE(peer.connect(descriptor));
        EXPECT_EQ(peer.hear(), "too many");
      });
}

TEST_F(ChannelTest, SessionsBeginWithACertificateThatWasReadAgain) {
  open();
  files.make("server");
  ASSERT_TRUE(tls.renew());
  talk(echo, [&](int descriptor) {
    TestTlsPeer peer(files, "server");
    ASSERT_TRUE(peer.connect(descriptor));
    peer.end();
    peer.hear();
  });
}

}  // namespace
}  // namespace server
