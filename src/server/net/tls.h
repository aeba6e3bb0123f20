// Tls: what a server needs for connections by TLS (1.2 and 1.3): its certificate and key, and whose clients it takes.
//
//   Tls tls;
//   tls.open({.certificate = "server.pem", .key = "server.key"});
//   channel.take(descriptor, &tls);      channel.h
//   tls.renew();                         the files have changed: sessions that begin from now on
//
// OpenSSL's, whose types nobody else needs to know.
//
// Thread contract: open by one thread before others use it; the rest by any.
#pragma once
#include <memory>
#include <string>

#include "base/error.h"
#include "sys/lock.h"

struct ssl_ctx_st;
struct ssl_st;

namespace server {

// Paths of PEM files.
struct TlsOptions {
  std::string certificate = {};  // the server's, and those that lead to an authority
  std::string key = {};          // "": it is in the same file
  // Clients need a certificate of one of these authorities; "": they need none.
  std::string client_authorities = {};
};

struct TlsDeleter {
  void operator()(ssl_ctx_st* context) const;
  void operator()(ssl_st* session) const;
};
using TlsContext = std::unique_ptr<ssl_ctx_st, TlsDeleter>;
using TlsSession = std::unique_ptr<ssl_st, TlsDeleter>;

// What OpenSSL says of the last call that failed, of this thread; forgets it.
std::string tls_reason();

class Tls {
 public:
  // Errors: EINVAL, what cannot be read, is no certificate or key, or does not fit each other: the file and why.
  base::Expected<void> open(TlsOptions options);
  // Reads the files again. Errors: as above; then everything stays as it was.
  base::Expected<void> renew();
  // A server's side, which has no connection yet. Null: there is no memory.
  TlsSession begin();

 private:
  TlsOptions options_;
  sys::Mutex lock_;  // of what follows
  TlsContext context_;
};

}  // namespace server
