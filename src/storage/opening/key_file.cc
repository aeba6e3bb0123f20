#include "storage/opening/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "storage/opening/opened.h"

namespace storage {
namespace {

constexpr unsigned kOthersModes = 077;

template <class... Parts>
std::unexpected<base::Error> key_failure(int number, const Path& path, const Parts&... parts) {
  return base::failure(number, "storage: encrypt: the key ", path.shown.view(), ": ", parts...);
}

}  // namespace

base::Expected<void> read_key_file(std::string_view path_text, XtsKey& key) {
  const Path path(path_text);
  const Opened opened(open_path(path, O_NONBLOCK, true));
  if (sys::failed(opened.get())) {
    const int number = static_cast<int>(-opened.get());
    return key_failure(number, path, base::error_name(number),
                       number == ENOENT ? "; make one: (umask 077; head -c 64 /dev/urandom > FILE)" : "");
  }
  struct statx facts;
  if (const long result = describe(opened.get(), "", facts); sys::failed(result))
    return key_failure(static_cast<int>(-result), path, base::error_name(static_cast<int>(-result)));
  if ((facts.stx_mode & S_IFMT) != S_IFREG) return key_failure(EINVAL, path, "it is not a file");
  if ((facts.stx_mode & kOthersModes) != 0)
    return key_failure(EINVAL, path, "others may use it; take their rights away: chmod 600 FILE");
  if (facts.stx_size != XtsKey::kBytes)
    return key_failure(EINVAL, path, "it has ", facts.stx_size, " bytes, and a key has ", XtsKey::kBytes,
                       " random ones");
  const long got = sys::syscall(SYS_pread64, opened.get(), key.bytes, XtsKey::kBytes, 0);
  if (got != static_cast<long>(XtsKey::kBytes)) {
    const int number = sys::failed(got) ? static_cast<int>(-got) : EINVAL;
    return key_failure(number, path, "it cannot be read: ", base::error_name(number));
  }
  constexpr size_t kHalf = XtsKey::kBytes / 2;
  if (memcmp(key.bytes, key.bytes + kHalf, kHalf) == 0)
    return key_failure(EINVAL, path, "its halves are the same, so it is not random; make another one");
  return {};
}

}  // namespace storage
