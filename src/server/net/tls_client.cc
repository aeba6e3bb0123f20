#include "server/net/tls_client.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>

#include <cerrno>

namespace server {

// What the session reads from and writes to. OpenSSL's own sockets raise SIGPIPE when the server has gone.
struct TlsClientBio {
  static int read(BIO* bio, char* to, int bytes) {
    auto& client = *static_cast<TlsClient*>(BIO_get_data(bio));
    const ssize_t got =
        call(client, [&] { return recv(client.descriptor_, to, static_cast<size_t>(bytes), 0); });
    client.has_ended_ = got == 0;
    return static_cast<int>(got);
  }
  static int write(BIO* bio, const char* from, int bytes) {
    auto& client = *static_cast<TlsClient*>(BIO_get_data(bio));
    return static_cast<int>(call(
        client, [&] { return ::send(client.descriptor_, from, static_cast<size_t>(bytes), MSG_NOSIGNAL); }));
  }
  static long control(BIO* bio, int command, long, void*) {
    if (command == BIO_CTRL_EOF) return static_cast<TlsClient*>(BIO_get_data(bio))->has_ended_ ? 1 : 0;
    return command == BIO_CTRL_FLUSH ? 1 : 0;
  }

  static const BIO_METHOD* method() {
    static const BIO_METHOD* const method =
        make_bio_method({.name = "client", .read = read, .write = write, .control = control});
    return method;
  }

 private:
  template <class Call>
  static ssize_t call(TlsClient& client, const Call& on_socket) {
    ssize_t result;
    do result = on_socket();
    while (result < 0 && errno == EINTR);
    client.socket_error_ = result < 0 ? errno : 0;
    return result;
  }
};

namespace {

// An IP address is looked for among those of the certificate, and is not sent as the name by which a server chooses
// its certificate (SNI).
bool expect(SSL* session, const std::string& host) {
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), host.c_str()) == 1) return true;
  return SSL_set1_host(session, host.c_str()) == 1 && SSL_set_tlsext_host_name(session, host.c_str()) == 1;
}

}  // namespace

base::Error TlsClient::error_of(const char* doing) const {
  if (socket_error_ != 0) return base::Error::of(socket_error_, base::error_name(socket_error_));
  if (const long found = SSL_get_verify_result(session_.get()); found != X509_V_OK)
    return base::Error::of(EPROTO,
                           "TLS: the certificate is not trusted: ", X509_verify_cert_error_string(found),
                           "; SSL_CERT_FILE=FILE names authorities that are");
  return base::Error::of(EPROTO, "TLS: cannot ", doing, ": ", tls_reason());
}

base::Expected<void> TlsClient::begin(int descriptor, const std::string& host) {
  descriptor_ = descriptor;
  context_.reset(SSL_CTX_new(TLS_client_method()));
  if (context_ != nullptr) {
    SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION);
    // As in tls.cc: the server may end without a close_notify. HTTP says itself whether an answer is whole.
    SSL_CTX_set_options(context_.get(), SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_default_verify_paths(context_.get());
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    session_.reset(SSL_new(context_.get()));
  }
  if (auto set = set_bio(session_.get(), TlsClientBio::method(), this); !set) return set;
  if (!expect(session_.get(), host)) return base::failure(EINVAL, "TLS: '", host, "' is not a host name");
  ERR_clear_error();
  if (SSL_connect(session_.get()) != 1) return std::unexpected(error_of("begin"));
  return {};
}

base::Expected<void> TlsClient::send(std::string_view text) {
  ERR_clear_error();
  size_t sent = 0;  // all of it, since the socket blocks
  if (SSL_write_ex(session_.get(), text.data(), text.size(), &sent) != 1)
    return std::unexpected(error_of("send"));
  return {};
}

base::Expected<size_t> TlsClient::receive(std::span<char> to) {
  ERR_clear_error();
  size_t got = 0;
  const int result = SSL_read_ex(session_.get(), to.data(), to.size(), &got);
  if (result == 1) return got;
  if (SSL_get_error(session_.get(), result) == SSL_ERROR_ZERO_RETURN) return size_t{0};
  return std::unexpected(error_of("receive"));
}

}  // namespace server
