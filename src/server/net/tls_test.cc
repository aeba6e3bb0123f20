#include "server/net/tls.h"

#include <gtest/gtest.h>

#include "server/net/test_certificate.h"

namespace server {
namespace {

class TlsTest : public testing::Test {
 protected:
  TlsTest() {
    files.make("server");
    files.make("other");
  }
  // The error for files with these names.
  std::string error(const std::string& certificate, const std::string& key,
                    const std::string& authorities = "") {
    Tls tls;
    const auto path = [&](const std::string& name) { return name.empty() ? "" : files.path(name); };
    auto opened = tls.open(
        {.certificate = path(certificate), .key = path(key), .client_authorities = path(authorities)});
    if (opened) return "";
    EXPECT_EQ(opened.error().number, EINVAL);
    return opened.error().message;
  }

  std::string content(const std::string& name) {
    std::FILE* const file = fopen(files.path(name).c_str(), "r");
    char text[4096];
    std::string all(text, fread(text, 1, sizeof text, file));
    fclose(file);
    return all;
  }

  TestCertificates files;
};

TEST_F(TlsTest, ACertificateAndItsKey) {
  EXPECT_EQ(error("server.crt", "server.key"), "");
  EXPECT_EQ(error("server.crt", "server.key", "other.crt"), "");
  Tls tls;
  ASSERT_TRUE(tls.open({.certificate = files.path("server.crt"), .key = files.path("server.key")}));
  EXPECT_NE(tls.begin(), nullptr);
}

TEST_F(TlsTest, BothInOneFile) {
  files.write("both.pem", content("server.crt") + content("server.key"));
  EXPECT_EQ(error("both.pem", ""), "");
}

TEST_F(TlsTest, WhatDoesNotFitIsSaidOfItsFile) {
  EXPECT_EQ(error("server.crt", "other.key"),
            "TLS: the key " + files.path("other.key") +
                ": key values mismatch; it is a private key in PEM, without a "
                "passphrase, that fits the certificate");
  EXPECT_EQ(error("none.crt", "server.key"),
            "TLS: the certificate " + files.path("none.crt") + ": no such file or directory");
  EXPECT_EQ(error("server.crt", "none.key"),
            "TLS: the key " + files.path("none.key") + ": no such file or directory");
  EXPECT_EQ(error("server.key", "server.key"),
            "TLS: the certificate " + files.path("server.key") + ": no start line");
  files.write("empty", "");
  EXPECT_EQ(error("server.crt", "empty"), "TLS: the key " + files.path("empty") + ": is empty");
  files.write("garbage", "-----BEGIN CERTIFICATE-----\nnothing of the kind\n-----END CERTIFICATE-----\n");
  EXPECT_NE(error("garbage", "server.key"), "");
  EXPECT_EQ(error("server.crt", "server.key", "none.crt"),
            "TLS: authorities of clients " + files.path("none.crt") + ": no such file or directory");
  EXPECT_NE(error("server.crt", "server.key", "garbage"), "");
}

// What was made from the intact ones is freed: the leak sanitizer checks that.
TEST_F(TlsTest, OneOfSeveralAuthoritiesIsDamaged) {
  files.write("authorities", content("other.crt") +
                                 "-----BEGIN CERTIFICATE-----\nnothing of the kind\n"
                                 "-----END CERTIFICATE-----\n");
  EXPECT_NE(error("server.crt", "server.key", "authorities"), "");
}

TEST_F(TlsTest, NobodyIsAskedForAPassphrase) {
  files.make("closed", "secret");
  EXPECT_NE(error("closed.crt", "closed.key"), "");
}

TEST_F(TlsTest, WhatCannotBeReadAgainLeavesWhatThereWas) {
  Tls tls;
  ASSERT_TRUE(tls.open({.certificate = files.path("server.crt"), .key = files.path("server.key")}));
  files.write("server.key", "gone");
  EXPECT_FALSE(tls.renew());
  EXPECT_NE(tls.begin(), nullptr);
  files.make("server");
  EXPECT_TRUE(tls.renew());
}

}  // namespace
}  // namespace server
