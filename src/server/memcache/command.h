// Command: one request of any of memcached's protocols. The code that executes it looks at what it asks for;
// only the code that writes the reply looks at the protocol.
//
//   classic   get KEY..., set KEY FLAGS EXPTIME BYTES [noreply], ...       text.h, classic.h
//   meta      mg KEY FLAG..., ms KEY BYTES FLAG..., ...                     text.h, meta.h
//   binary    24 bytes, extras, key, value                                 binary.h
//
//  1 key, keys, arguments and the texts of flags point into the input, or into the parser's buffer for keys in
//    base64: they are valid until the consumed bytes go, or the parser is called again
//  2 the value is no part of the command: value_bytes bytes follow what was consumed, and in text then "\r\n"
//    (is_block_end)
//  3 keys have 1 to kMaxKeyBytes bytes, flags fit in 32 bits, and a value is not too large for an item with the
//    key (item_fits)
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "server/memcache/limits.h"
#include "server/memcache/meta_flags.h"
#include "server/memcache/words.h"

namespace server::memcache {

enum class Protocol : uint8_t { kClassic, kMeta, kBinary };

// The first byte that a connection sends says which protocol it speaks.
constexpr bool begins_binary(char first) { return static_cast<unsigned char>(first) == 0x80; }

// From kSlabs on they are administrative: a parser knows nothing of them but `arguments`.
enum class Verb : uint8_t {
  kGet,
  kGat,  // a get that also sets exptime
  kTouch,
  kSet,
  kAdd,
  kReplace,
  kAppend,
  kPrepend,
  kCas,  // as a set, if the item has this cas unique
  kDelete,
  kIncr,
  kDecr,
  kFlushAll,
  kVersion,
  kVerbosity,
  kNoop,
  kQuit,
  kStats,
  kMetaDebug,
  kShutdown,
  kSaslMechanisms,  // binary only, like the next two: lists the mechanisms
  kSaslAuth,        // `key` is the mechanism, `arguments` its message
  kSaslStep,
  kSlabs,
  kLruCrawler,
  kLru,
  kCacheMemlimit,
  kExtstore,
  kWatch,
  kDebugTime,
};

constexpr bool takes_value(Verb verb) { return verb >= Verb::kSet && verb <= Verb::kCas; }

struct Command {
  Protocol protocol = Protocol::kClassic;
  Verb verb = Verb::kGet;
  uint8_t opcode = 0;      // binary; the reply has the same
  bool is_quiet = false;   // noreply, q, or a quiet opcode: is_sent() of result.h says what that leaves out
  bool wants_key = false;  // binary: the reply to a get has the key
  bool wants_cas = false;  // classic: gets and gats
  bool is_last = true;     // classic get; false: more of its keys are in the next command, and no END yet
  uint32_t opaque = 0;     // binary; the reply has the same

  std::string_view key = {};  // of commands of one key
  Words keys = {};            // classic get and gat: all keys, or those of this part of the line
  // Stats and administrative commands: what stands behind the verb; binary stats: the key.
  std::string_view arguments = {};

  uint32_t flags = 0;        // of the item, the client's
  bool has_cas = false;      // delete, store, incr and decr only if the item has this cas unique
  bool has_own_cas = false;  // what is stored gets this cas unique instead of the next one
  bool has_exptime = false;  // mg, md, ma: the item is to get `exptime`; others: one was given
  bool creates = false;      // get, append, prepend, incr, decr: if there is no item, one with create_exptime
  uint64_t value_bytes = 0;  // takes_value(): how many follow
  uint64_t cas = 0;
  uint64_t own_cas = 0;
  int64_t exptime = 0;         // as given (server/items/expiry.h); flush_all: the delay
  int64_t create_exptime = 0;  // as given
  uint64_t number = 0;         // incr and decr: by how much; verbosity: the level
  uint64_t initial = 0;        // of a number that is created

  MetaFlags meta = {};  // of meta commands
};

// In text this follows a value. REQUIRES: `end` has two bytes.
inline constexpr size_t kBlockEndBytes = 2;
constexpr bool is_block_end(std::string_view end) { return end == "\r\n"; }

}  // namespace server::memcache
