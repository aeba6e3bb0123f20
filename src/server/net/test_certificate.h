// For tests: certificates that are made when they are needed, and what a client does with them.
#pragma once
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace server {

// Files in a directory of its own, removed with this object.
class TestCertificates {
 public:
  TestCertificates() {
    directory_ = testing::TempDir() + "spillway-tls-XXXXXX";
    EXPECT_NE(mkdtemp(directory_.data()), nullptr);
  }
  ~TestCertificates() { std::filesystem::remove_all(directory_); }
  TestCertificates(const TestCertificates&) = delete;
  TestCertificates& operator=(const TestCertificates&) = delete;

  std::string path(std::string_view name) const { return directory_ + "/" + std::string(name); }
  void write(std::string_view name, std::string_view content) const {
    FILE* const file = fopen(path(name).c_str(), "w");
    fwrite(content.data(), 1, content.size(), file);
    fclose(file);
  }
  // Makes NAME.crt, which is its own authority, and NAME.key, with a passphrase if one is given. The certificate
  // is valid since a minute ago.
  void make(const std::string& name, const char* passphrase = nullptr, long seconds_left = 3600) const {
    EVP_PKEY* const key = EVP_EC_gen("P-256");
    X509* const certificate = X509_new();
    X509_set_version(certificate, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
    X509_gmtime_adj(X509_getm_notAfter(certificate), seconds_left);
    X509_set_pubkey(certificate, key);
    X509_NAME* const subject = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    X509_set_issuer_name(certificate, subject);
    EXPECT_NE(X509_sign(certificate, key, EVP_sha256()), 0);
    FILE* file = fopen(path(name + ".crt").c_str(), "w");
    EXPECT_EQ(PEM_write_X509(file, certificate), 1);
    fclose(file);
    file = fopen(path(name + ".key").c_str(), "w");
    const EVP_CIPHER* const cipher = passphrase == nullptr ? nullptr : EVP_aes_128_cbc();
    EXPECT_EQ(PEM_write_PKCS8PrivateKey(file, key, cipher, passphrase,
                                        passphrase == nullptr ? 0 : static_cast<int>(strlen(passphrase)),
                                        nullptr, nullptr),
              1);
    fclose(file);
    X509_free(certificate);
    EVP_PKEY_free(key);
  }

 private:
  std::string directory_;
};

// The client's end of a connection by TLS, with calls that block.
class TestTlsPeer {
 public:
  // It trusts that certificate, and shows its own if it has one (NAME of TestCertificates).
  TestTlsPeer(const TestCertificates& files, const std::string& trusted, const std::string& own = "",
              int version = TLS1_3_VERSION)
      : context_(SSL_CTX_new(TLS_client_method())) {
    SSL_CTX_set_min_proto_version(context_, version);
    SSL_CTX_set_max_proto_version(context_, version);
    // Otherwise OpenSSL itself refuses old versions.
    if (version < TLS1_2_VERSION) SSL_CTX_set_security_level(context_, 0);
    SSL_CTX_set_verify(context_, SSL_VERIFY_PEER, nullptr);
    EXPECT_EQ(SSL_CTX_load_verify_file(context_, files.path(trusted + ".crt").c_str()), 1);
    if (!own.empty()) {
      EXPECT_EQ(SSL_CTX_use_certificate_file(context_, files.path(own + ".crt").c_str(), SSL_FILETYPE_PEM),
                1);
      EXPECT_EQ(SSL_CTX_use_PrivateKey_file(context_, files.path(own + ".key").c_str(), SSL_FILETYPE_PEM), 1);
    }
    session_ = SSL_new(context_);
  }
  ~TestTlsPeer() {
    SSL_free(session_);
    SSL_CTX_free(context_);
  }
  TestTlsPeer(const TestTlsPeer&) = delete;
  TestTlsPeer& operator=(const TestTlsPeer&) = delete;

  // Resumes the session of another peer that has ended. To be called before connect().
  void resume(SSL_SESSION* session) { EXPECT_EQ(SSL_set_session(session_, session), 1); }
  bool has_resumed() const { return SSL_session_reused(session_) == 1; }
  std::shared_ptr<SSL_SESSION> session() const { return {SSL_get1_session(session_), SSL_SESSION_free}; }
  bool connect(int descriptor) {
    SSL_set_fd(session_, descriptor);
    return SSL_connect(session_) == 1;
  }
  bool say(std::string_view text) {
    size_t written = 0;
    return SSL_write_ex(session_, text.data(), text.size(), &written) == 1 && written == text.size();
  }
  // So many key updates, which are to be sent before it says more.
  std::string new_keys(int count) {
    BIO* const socket = SSL_get_wbio(session_);
    BIO_up_ref(socket);
    BIO* const memory = BIO_new(BIO_s_mem());
    SSL_set0_wbio(session_, memory);
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(SSL_key_update(session_, SSL_KEY_UPDATE_NOT_REQUESTED), 1);
      EXPECT_EQ(SSL_do_handshake(session_), 1);
    }
    std::string messages(BIO_ctrl_pending(memory), ' ');
    EXPECT_EQ(BIO_read(memory, messages.data(), static_cast<int>(messages.size())),
              static_cast<int>(messages.size()));
    SSL_set0_wbio(session_, socket);
    return messages;
  }
  // So many bytes, or all to the end.
  std::string hear(size_t bytes = SIZE_MAX) {
    std::string text;
    char part[4096];
    size_t got = 0;
    while (text.size() < bytes &&
           SSL_read_ex(session_, part, std::min(sizeof part, bytes - text.size()), &got) == 1)
      text.append(part, got);
    return text;
  }
  // It sends nothing more.
  void end() { SSL_shutdown(session_); }
  bool has_heard_the_end() const { return (SSL_get_shutdown(session_) & SSL_RECEIVED_SHUTDOWN) != 0; }

 private:
  SSL_CTX* context_;
  SSL* session_ = nullptr;
};

}  // namespace server
