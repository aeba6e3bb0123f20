#include "server/net/tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <cerrno>
#include <fstream>
#include <mutex>
#include <string_view>

namespace server {
namespace {

base::Error of_file(std::string_view what, const std::string& path, std::string_view why) {
  return base::Error::of(EINVAL, "TLS: ", what, " ", path, ": ", why);
}

// OpenSSL does not distinguish an error of the file system from one of the content.
base::Expected<void> check_readable(std::string_view what, const std::string& path) {
  errno = 0;
  if (std::ifstream(path).get() != std::ifstream::traits_type::eof()) return {};
  return std::unexpected(of_file(what, path, errno != 0 ? base::error_name(errno) : "is empty"));
}

// Nobody can be asked for one.
int no_passphrase(char*, int, int, void*) { return 0; }

// With TLS 1.3 each resumed session gets new tickets: without this a client could go on for ever with a certificate that has expired.
SSL_TICKET_RETURN take_ticket(SSL*, SSL_SESSION* session, const unsigned char*, size_t,
                              SSL_TICKET_STATUS status, void*) {
  if (status != SSL_TICKET_SUCCESS && status != SSL_TICKET_SUCCESS_RENEW)
    return SSL_TICKET_RETURN_IGNORE_RENEW;
  const X509* const shown = SSL_SESSION_get0_peer(session);
  if (shown == nullptr || X509_cmp_current_time(X509_get0_notAfter(shown)) <= 0)
    return SSL_TICKET_RETURN_IGNORE_RENEW;
  return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}

base::Expected<TlsContext> load(const TlsOptions& options) {
  const std::string& key = options.key.empty() ? options.certificate : options.key;
  if (auto readable = check_readable("the certificate", options.certificate); !readable)
    return std::unexpected(readable.error());
  if (auto readable = check_readable("the key", key); !readable) return std::unexpected(readable.error());
  ERR_clear_error();
  TlsContext context(SSL_CTX_new(TLS_server_method()));
  if (context == nullptr) return base::failure(ENOMEM, "TLS: ", tls_reason());
  SSL_CTX* const raw = context.get();
  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  // A client that goes without a close_notify has just ended its side: requests say themselves how long they are, so none can be truncated
  // unnoticed.
  SSL_CTX_set_options(raw, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(raw, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_read_ahead(raw, 1);
  // Sessions are resumed by tickets, which need no memory here.
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_default_passwd_cb(raw, no_passphrase);
  if (SSL_CTX_use_certificate_chain_file(raw, options.certificate.c_str()) != 1)
    return std::unexpected(of_file("the certificate", options.certificate, tls_reason()));
  if (SSL_CTX_use_PrivateKey_file(raw, key.c_str(), SSL_FILETYPE_PEM) != 1)
    return std::unexpected(of_file("the key", key,
                                   tls_reason() + "; it is a private key in PEM, without a passphrase, "
                                                  "that fits the certificate"));
  if (options.client_authorities.empty()) return context;
  if (auto readable = check_readable("authorities of clients", options.client_authorities); !readable)
    return std::unexpected(readable.error());
  // This one first, which refuses a damaged file as a whole: the other takes what comes before the damage.
  const bool has_all = SSL_CTX_load_verify_file(raw, options.client_authorities.c_str()) == 1;
  STACK_OF(X509_NAME)* const names =
      has_all ? SSL_load_client_CA_file(options.client_authorities.c_str()) : nullptr;
  if (names == nullptr)
    return std::unexpected(of_file("authorities of clients", options.client_authorities, tls_reason()));
  SSL_CTX_set_client_CA_list(raw, names);
  SSL_CTX_set_verify(raw, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  // With verified clients OpenSSL takes only tickets of sessions that have this name.
  constexpr unsigned char kName[] = "spillway";
  SSL_CTX_set_session_id_context(raw, kName, sizeof kName - 1);
  SSL_CTX_set_session_ticket_cb(raw, nullptr, take_ticket, nullptr);
  return context;
}

}  // namespace

void TlsDeleter::operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
void TlsDeleter::operator()(SSL* session) const { SSL_free(session); }

std::string tls_reason() {
  const char* const reason = ERR_reason_error_string(ERR_peek_error());
  ERR_clear_error();
  return reason == nullptr ? "of no known reason" : reason;
}

bio_method_st* make_bio_method(const BioCalls& calls) {
  BIO_METHOD* const made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, calls.name);
  BIO_meth_set_read(made, calls.read);
  BIO_meth_set_write(made, calls.write);
  BIO_meth_set_ctrl(made, calls.control);
  return made;
}

base::Expected<void> set_bio(ssl_st* session, const bio_method_st* method, void* owner) {
  BIO* const bio = session == nullptr ? nullptr : BIO_new(method);
  if (bio == nullptr) return base::failure(ENOMEM, "no memory for a session of TLS");
  BIO_set_data(bio, owner);
  BIO_set_init(bio, 1);
  SSL_set_bio(session, bio, bio);
  return {};
}

base::Expected<void> Tls::open(TlsOptions options) {
  options_ = std::move(options);
  return renew();
}

base::Expected<void> Tls::renew() {
  auto loaded = load(options_);
  if (!loaded) return std::unexpected(loaded.error());
  const std::lock_guard guard(lock_);
  context_ = std::move(*loaded);
  return {};
}

TlsSession Tls::begin() {
  const std::lock_guard guard(lock_);
  return TlsSession(SSL_new(context_.get()));
}

}  // namespace server
