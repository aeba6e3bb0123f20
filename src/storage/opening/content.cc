#include "storage/opening/content.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <unistd.h>

#include "storage/opening/opened.h"
#include "storage/piece_io.h"

namespace storage {
namespace {

// Looks at what is not a hole; at everything if the file system does not report holes.
int64_t file_content(long descriptor, uint64_t size_bytes, std::span<char> buffer) {
  const auto read = [&](char* to, uint64_t bytes, uint64_t offset) {
    return sys::syscall(SYS_pread64, descriptor, to, bytes, offset);
  };
  for (uint64_t at = 0; at < size_bytes;) {
    const long data = sys::syscall(SYS_lseek, descriptor, at, SEEK_DATA);
    if (data == -ENXIO) return 0;
    if (sys::failed(data) && data != -EINVAL) return data;
    const uint64_t begin = data == -EINVAL ? at : static_cast<uint64_t>(data);
    const long hole = data == -EINVAL ? data : sys::syscall(SYS_lseek, descriptor, begin, SEEK_HOLE);
    const uint64_t end = sys::failed(hole) ? size_bytes : static_cast<uint64_t>(hole);
    if (const int64_t content = content_between(begin, end, buffer, read); content != 0) return content;
    at = end;
  }
  return 0;
}

int64_t block_device_content(long descriptor, std::span<char> buffer) {
  uint64_t size_bytes = 0;
  const long result = sys::syscall(SYS_ioctl, descriptor, BLKGETSIZE64, &size_bytes);
  if (sys::failed(result)) return result;
  return content_of_ends(size_bytes, buffer, [&](char* to, uint64_t bytes, uint64_t offset) {
    return sys::syscall(SYS_pread64, descriptor, to, bytes, offset);
  });
}

}  // namespace

base::Expected<bool> path_has_content(std::string_view path_text) {
  const Path path(path_text);
  struct statx facts;
  long result = describe(AT_FDCWD, path.c_str(), facts);
  if (result == -ENOENT) return false;
  if (sys::failed(result)) return std::unexpected(open_error(path, result));
  const bool is_file = (facts.stx_mode & S_IFMT) == S_IFREG;
  if (!is_file && (facts.stx_mode & S_IFMT) != S_IFBLK) return false;
  const Opened opened(sys::syscall(SYS_openat, AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0));
  if (sys::failed(opened.get())) return std::unexpected(open_error(path, opened.get()));
  if (result = describe(opened.get(), "", facts); sys::failed(result))
    return std::unexpected(open_error(path, result));
  auto buffer = sys::map_anonymous(kContentPieceBytes, "a storage buffer");
  if (!buffer) return std::unexpected(buffer.error());
  const std::span<char> memory(*buffer, kContentPieceBytes);
  const int64_t content = is_file ? file_content(opened.get(), facts.stx_size, memory)
                                  : block_device_content(opened.get(), memory);
  sys::unmap(*buffer, kContentPieceBytes);
  if (content < 0)
    return base::failure(static_cast<int>(-content), path,
                         ": it cannot be read: ", base::error_name(static_cast<int>(-content)));
  return content > 0;
}

base::Expected<bool> device_has_content(Device& device) {
  auto queue = device.open_queue(1);
  if (!queue) return std::unexpected(queue.error());
  auto buffer = sys::map_anonymous(kContentPieceBytes, "a storage buffer");
  if (!buffer) {
    device.close_queue(*queue);
    return std::unexpected(buffer.error());
  }
  bool has_ended = false;
  const auto read = [&](char* to, uint64_t bytes, uint64_t offset) -> int64_t {
    if (has_ended) return 0;
    PieceIo io(Operation::kRead, offset, to, bytes);
    (*queue)->run(io);
    has_ended = !io.whole();
    return io.error != 0 ? -io.error : static_cast<int64_t>(io.transferred_bytes);
  };
  const std::span<char> memory(*buffer, kContentPieceBytes);
  const int64_t content = content_of_ends(device.capacity_bytes(), memory, read);
  sys::unmap(*buffer, kContentPieceBytes);
  device.close_queue(*queue);
  if (content < 0)
    return base::failure(static_cast<int>(-content), "storage: cannot read ", device.name(), ": ",
                         base::error_name(static_cast<int>(-content)));
  return content > 0;
}

}  // namespace storage
