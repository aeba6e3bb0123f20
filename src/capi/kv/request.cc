#include "capi/kv/request.h"

#include <algorithm>

namespace capi {
namespace {

constexpr uint64_t kMaxGatheredBytes = 64 << 10;

void fail(Request& request, const base::Error& error) {
  request.value = {};
  request.value.status = status_of(error);
  request.error = error;
}

void get(kv::Session& session, Request& request) {
  auto found = session.get(request.key);
  if (!found) return fail(request, found.error());
  request.value = describe(*found);
  if (!found->found()) return;
  const uint64_t bytes = found->value_bytes();
  if (request.buffer == nullptr && request.buffer_bytes == kAnySize) {
    request.buffer = malloc(std::max<size_t>(bytes, 1));
    if (request.buffer == nullptr)
      return fail(request, base::Error::of(ENOMEM, "store: no memory for a value of ", bytes, " bytes"));
  }
  if (bytes > request.buffer_bytes) {
    request.value.status = SPILLWAY_KV_TOO_SMALL;
    return;
  }
  if (auto read = session.read_value(*found, 0, {static_cast<std::byte*>(request.buffer), bytes}); !read)
    return fail(request, read.error());
  request.value.data = request.buffer;
}

// A piece of no bytes may be null, which memcpy() must not be given.
kv::Bytes bytes_of(const iovec& piece) {
  return {static_cast<const std::byte*>(piece.iov_len > 0 ? piece.iov_base : ""), piece.iov_len};
}

// Puts a value of several pieces: a small one is gathered here, a large one by a ValueWriter.
base::Expected<kv::Changed> put_pieces(kv::Session& session, const Request& request, uint64_t bytes) {
  if (bytes > kMaxGatheredBytes) {
    kv::ValueWriter writer;
    if (auto opened = writer.open(session, request.key); !opened) return std::unexpected(opened.error());
    for (const iovec& piece : request.pieces)
      if (auto appended = writer.append(bytes_of(piece)); !appended) return std::unexpected(appended.error());
    return writer.commit(request.options);
  }
  auto* const whole = static_cast<std::byte*>(malloc(std::max<size_t>(bytes, 1)));
  if (whole == nullptr) return base::failure(ENOMEM, "store: no memory for a value");
  std::byte* to = whole;
  for (const iovec& piece : request.pieces) {
    const kv::Bytes part = bytes_of(piece);
    memcpy(to, part.data(), part.size());
    to += part.size();
  }
  auto done = session.put(request.key, {whole, bytes}, request.options);
  free(whole);
  return done;
}

void put(kv::Session& session, Request& request) {
  uint64_t bytes = 0;
  for (const iovec& piece : request.pieces) bytes += piece.iov_len;
  if (bytes > kv::kMaxValueBytes)
    return fail(request, base::Error::of(E2BIG, "store: a value of ", bytes, " bytes; give ",
                                         kv::kMaxValueBytes, " or fewer"));
  if (request.pieces.size() > 1) return end_change(request, put_pieces(session, request, bytes));
  const iovec piece = request.pieces.empty() ? iovec{} : request.pieces[0];
  end_change(request, session.put(request.key, bytes_of(piece), request.options));
}

}  // namespace

base::Expected<void> set_key(Request& request, const void* key, size_t key_bytes) {
  if (key == nullptr && key_bytes > 0) return base::failure(EINVAL, "store: key is null");
  request.key = {static_cast<const char*>(key), key_bytes};
  return {};
}

base::Expected<void> set_pieces(Request& request, const iovec* pieces, size_t count) {
  if (pieces == nullptr && count > 0) return base::failure(EINVAL, "store: value is null");
  request.pieces = {pieces, count};
  size_t left = SIZE_MAX;
  for (const iovec& piece : request.pieces) {
    if (piece.iov_base == nullptr && piece.iov_len > 0)
      return base::failure(EINVAL, "store: a piece of the value is null");
    if (piece.iov_len > left) return base::failure(E2BIG, "store: a value larger than memory");
    left -= piece.iov_len;
  }
  return {};
}

base::Expected<void> set_options(Request& request, const spillway_kv_change_options* options) {
  auto given = read_struct(options, "spillway_kv_change_options");
  if (!given) return std::unexpected(given.error());
  const bool is_remove = request.kind == Request::Kind::kRemove;
  if (given->when > SPILLWAY_KV_IF_VERSION || (is_remove && given->when == SPILLWAY_KV_IF_ABSENT))
    return base::failure(EINVAL, "store: a ", is_remove ? "remove" : "put", " when ", given->when,
                         "; give SPILLWAY_KV_ALWAYS, ", is_remove ? "" : "_IF_ABSENT, ",
                         "_IF_PRESENT or _IF_VERSION");
  if (given->expires_ms >> 48 != 0) return base::failure(EINVAL, "store: expiry after the year 10889");
  static_assert(static_cast<uint32_t>(kv::When::kIfVersion) == SPILLWAY_KV_IF_VERSION &&
                static_cast<uint32_t>(kv::When::kIfPresent) == SPILLWAY_KV_IF_PRESENT &&
                static_cast<uint32_t>(kv::When::kIfAbsent) == SPILLWAY_KV_IF_ABSENT);
  request.options = {.when = static_cast<kv::When>(given->when),
                     .version = given->version,
                     .expires_ms = given->expires_ms,
                     .flags = given->flags};
  return {};
}

void perform(kv::Session& session, Request& request) {
  request.error.message[0] = 0;
  switch (request.kind) {
    case Request::Kind::kGet: return get(session, request);
    case Request::Kind::kPut: return put(session, request);
    case Request::Kind::kRemove:
      return end_change(request, session.remove(request.key, request.options.when, request.options.version));
  }
}

void end_change(Request& request, const base::Expected<kv::Changed>& changed) {
  using Outcome = kv::Changed::Outcome;
  if (!changed) return fail(request, changed.error());
  request.value = {};
  request.value.version = changed->version;
  switch (changed->outcome) {
    case Outcome::kDone: request.value.status = SPILLWAY_KV_OK; break;
    case Outcome::kAbsent: request.value.status = SPILLWAY_KV_ABSENT; break;
    case Outcome::kPresent: request.value.status = SPILLWAY_KV_PRESENT; break;
    case Outcome::kVersion: request.value.status = SPILLWAY_KV_OTHER_VERSION; break;
  }
}

spillway_kv_value describe(const kv::Found& found) {
  spillway_kv_value value = {};
  value.status = found.found() ? SPILLWAY_KV_OK : SPILLWAY_KV_ABSENT;
  if (!found.found()) return value;
  value.data_bytes = found.value_bytes();
  value.version = found.version();
  value.expires_ms = found.expires_ms();
  value.flags = found.flags();
  return value;
}

}  // namespace capi
