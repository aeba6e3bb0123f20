// TlsClient: the client's end of a connection by TLS (1.2 and 1.3), for tools that ask a server. Its calls block, as its socket does.
//
//   TlsClient client;
//   client.begin(descriptor, "cache.example");
//   client.send("GET / HTTP/1.1\r\n\r\n");
//   while (*client.receive(part) != 0) use(part);
//
// The server needs a certificate for that name or IP address, of an authority that OpenSSL trusts: one of the system's, or of the file that the
// variable SSL_CERT_FILE names. The client shows no certificate.
//
// Errors: those of the socket, where EAGAIN means that its time limit (SO_RCVTIMEO, SO_SNDTIMEO) has passed; EPROTO, with the reason, for what is no
// TLS and for a certificate that is not trusted. After one only the destructor is left. Thread contract: used by one thread.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "server/net/tls.h"

namespace server {

class TlsClient {
 public:
  TlsClient() = default;
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  // Makes the session. The socket is connected, and is the caller's; it stays open as long as this object is used. Errors: also ENOMEM.
  base::Expected<void> begin(int descriptor, const std::string& host);
  // Sends all of the text.
  base::Expected<void> send(std::string_view text);
  // How many bytes were received; 0: the server sends nothing more. REQUIRES: there is room for some.
  base::Expected<size_t> receive(std::span<char> to);

 private:
  friend struct TlsClientBio;
  // Why a call of the session has failed.
  base::Error error_of(const char* doing) const;

  int descriptor_ = -1;
  int socket_error_ = 0;    // an errno value of the socket's last call; 0: it went well
  bool has_ended_ = false;  // the server has ended the stream
  TlsContext context_;
  TlsSession session_;
};

}  // namespace server
