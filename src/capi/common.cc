#include "capi/common.h"

#include <algorithm>

namespace capi {
namespace {

// In the dynamic TLS model: a process that loads the library late may have little room left for the static one.
[[gnu::tls_model(
    "global-dynamic")]] constinit thread_local char thread_line[sizeof(base::Error::message)] = {};

}  // namespace

void write_thousandths(double number, base::TextRef& text) {
  const auto thousandths = static_cast<uint64_t>(number * 1000 + 0.5);
  text << thousandths / 1000 << '.';
  for (uint64_t digit = 100; digit > 0; digit /= 10) text << thousandths / digit % 10;
}

bool give_text(std::string_view text, char* to, size_t bytes, size_t* needed_bytes) {
  if (needed_bytes != nullptr) *needed_bytes = text.size() + 1;
  base::TextRef(to, bytes) << text;
  return bytes > text.size();
}

ErrorKind error_kind(const base::Error& error) {
  switch (error.number) {
    case EINVAL:
    case EFBIG:
    case EISDIR:
    case ELOOP:
    case ENOTDIR:
    case ENAMETOOLONG: return ErrorKind::kInvalid;
    case ENOMEM:
    case EAGAIN:
    case EMFILE:
    case ENFILE: return ErrorKind::kNoMemory;
    case ENOSPC:
    case EDQUOT: return ErrorKind::kFull;
    case EBADMSG: return ErrorKind::kDamaged;
    case EBUSY: return ErrorKind::kInUse;
    case ENOENT: return ErrorKind::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS: return ErrorKind::kDenied;
    default: return ErrorKind::kIo;
  }
}

const char* version() { return SPILLWAY_VERSION; }

char* thread_error() { return thread_line; }

void keep_line(const base::Error& error, char* line) {
  memcpy(line != nullptr ? line : thread_line, error.message, sizeof error.message);
}

base::Expected<void> read_struct_bytes(const void* given, void* own, size_t own_bytes, const char* name) {
  size_t bytes = 0;
  memcpy(&bytes, given, sizeof bytes);
  if (bytes < sizeof bytes || bytes > 4096)
    return base::failure(EINVAL, name, ": struct_bytes is ", bytes, "; set it to the struct's sizeof");
  const auto* const from = static_cast<const char*>(given);
  for (size_t at = own_bytes; at < bytes; ++at)
    if (from[at] != 0)
      return base::failure(EINVAL, name, ": asks for what this version of the library, ", SPILLWAY_VERSION,
                           ", does not know");
  memcpy(own, from, std::min(bytes, own_bytes));
  return {};
}

}  // namespace capi
