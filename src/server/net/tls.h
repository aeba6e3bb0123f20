// Tls: what a server needs for connections by TLS (1.2 and 1.3): its certificate and key, and the authorities whose clients it accepts.
//
//   Tls tls;
//   tls.open({.certificate = "server.pem", .key = "server.key"});
//   channel.take(descriptor, &tls);      channel.h
//   tls.renew();                         reads the files again, for sessions that begin from now on
//
// Only this unit, channel.cc and tls_client.cc know OpenSSL's types.
//
// Thread contract: open() by one thread before others use it; the rest by any.
#pragma once
#include <memory>
#include <string>

#include "base/error.h"
#include "sys/lock.h"

struct bio_method_st;
struct bio_st;
struct ssl_ctx_st;
struct ssl_st;

namespace server {

// Paths of PEM files.
struct TlsOptions {
  std::string certificate = {};  // the server's, and behind it those that lead to an authority
  std::string key = {};          // "": the key is in the same file
  // Clients need a certificate that one of these authorities has signed; "": they need none.
  std::string client_authorities = {};
};

struct TlsDeleter {
  void operator()(ssl_ctx_st* context) const;
  void operator()(ssl_st* session) const;
};
using TlsContext = std::unique_ptr<ssl_ctx_st, TlsDeleter>;
using TlsSession = std::unique_ptr<ssl_st, TlsDeleter>;

// What OpenSSL says of this thread's last call that failed. Clears OpenSSL's errors.
std::string tls_reason();

// What a session calls to read and write. The BIO's data is its owner.
struct BioCalls {
  const char* name;
  int (*read)(bio_st* bio, char* to, int bytes);
  int (*write)(bio_st* bio, const char* from, int bytes);
  long (*control)(bio_st* bio, int command, long number, void* data);
};
// To be made once for each kind of BIO, and kept.
bio_method_st* make_bio_method(const BioCalls& calls);
// Makes the session read and write by this method, with `owner` as the BIO's data. Errors: ENOMEM, also for a session that is null.
base::Expected<void> set_bio(ssl_st* session, const bio_method_st* method, void* owner);

class Tls {
 public:
  // Errors: EINVAL, with the file and the reason, for a file that cannot be read or holds no certificate or key, and for a key that does not fit the
  // certificate.
  base::Expected<void> open(TlsOptions options);
  // Reads the files again. Errors: as open(); then everything stays as it was.
  base::Expected<void> renew();
  // The server's side of a new session, without a connection yet. Null: there is no memory.
  TlsSession begin();

 private:
  TlsOptions options_;
  sys::Mutex lock_;  // guards what follows
  TlsContext context_;
};

}  // namespace server
