#include "storage/pmem.h"

#include <asm/statfs.h>
#include <string.h>
#include <sys/stat.h>

#include "base/ids.h"
#include "storage/objects.h"
#include "sys/files.h"
#include "sys/kernel.h"
#include "sys/persistent.h"

namespace storage {
namespace {

class PmemDevice final : public Device {
 public:
  PmemDevice(const Medium& medium, char* bytes, uint64_t capacity_bytes, bool is_memory)
      : bytes_(bytes), descriptor_(medium.descriptor), is_memory_(is_memory) {
    capacity_bytes_ = capacity_bytes;
    whereabouts_.descriptor = medium.descriptor;
    // The label's last word, direct or buffered, is of transfers by system calls.
    const std::string_view label(medium.label);
    base::TextRef(name_, sizeof name_) << "pmem:" << label.substr(0, label.rfind(','))
                                       << (is_memory ? ", mapped)" : ", mapped by the page cache)");
  }

  char* at(uint64_t offset_bytes) const { return bytes_ + offset_bytes; }

  // Returns 0 or an errno value.
  int flush() const {
    sys::fence_stores();
    if (is_memory_) return 0;
    long result;
    do {
      result = sys::syscall(SYS_fdatasync, descriptor_);
    } while (result == -EINTR);
    return static_cast<int>(-result);
  }

 private:
  base::Expected<Queue*> do_open_queue(size_t depth, const QueueUse& use) override;
  void do_close() override {
    sys::unmap(bytes_, capacity_bytes_);
    sys::close_own_descriptor(descriptor_);
    free_object(this, 0);
  }

  char* const bytes_;
  const int descriptor_;
  const bool is_memory_;
};

class PmemQueue final : public Queue {
 public:
  PmemQueue(PmemDevice& device, size_t depth) : Queue(device, depth), pmem_(device) {}

 private:
  void do_start(Io& io) override {
    char* at = pmem_.at(io.offset_bytes);
    for (uint32_t i = 0; i < io.segment_count; ++i) {
      const iovec& segment = io.segments[i];
      if (io.operation == Operation::kRead)
        memcpy(segment.iov_base, at, segment.iov_len);
      else
        sys::copy_past_caches(at, segment.iov_base, segment.iov_len);
      at += segment.iov_len;
    }
    if (io.operation == Operation::kWrite) sys::fence_stores();
    if (io.operation == Operation::kFlush) io.error = pmem_.flush();
    if (io.error == 0) io.transferred_bytes = io.length_bytes;
    complete(io);
  }
  void do_poll(bool) override {}  // nothing is ever left to finish
  void do_close() override { free_object(this, 0); }

  PmemDevice& pmem_;
};

base::Expected<Queue*> PmemDevice::do_open_queue(size_t depth, const QueueUse&) {
  return make_object<PmemQueue>(0, "a storage queue", *this, depth);
}

uint64_t file_size(const Medium& medium) {
  struct stat facts = {};
  sys::syscall(SYS_fstat, medium.descriptor, &facts);
  return static_cast<uint64_t>(facts.st_size);
}

// Makes the first `bytes` of the file real.
base::Expected<void> allocate(const Medium& medium, uint64_t bytes) {
  if (bytes > sys::file_size_limit())
    return base::failure(EFBIG, "storage ", medium.label, ": files may not be as large as ",
                         base::Bytes{bytes}, " in this process; raise ulimit -f");
  // Else the kernel would take all there is before it says so.
  struct statfs facts = {};
  const bool is_known = !sys::failed(sys::syscall(SYS_fstatfs, medium.descriptor, &facts));
  const uint64_t free_bytes = static_cast<uint64_t>(facts.f_bavail) * static_cast<uint64_t>(facts.f_bsize);
  const uint64_t file_bytes = file_size(medium);
  long result = is_known && bytes > file_bytes && bytes - file_bytes > free_bytes ? -ENOSPC : -EINTR;
  while (result == -EINTR) result = sys::syscall(SYS_fallocate, medium.descriptor, 0, 0, bytes);
  if (!sys::failed(result)) return {};
  const int number = static_cast<int>(-result);
  return base::failure(number, "storage ", medium.label, ": cannot allocate ", base::Bytes{bytes}, ": ",
                       base::error_name(number));
}

base::Expected<char*> map(const Medium& medium, uint64_t bytes, bool is_memory) {
  auto mapped = sys::map_file(medium.descriptor, bytes, is_memory);
  if (mapped) return mapped;
  if (mapped.error().number != EOPNOTSUPP)
    return base::failure(mapped.error().number, "storage ", medium.label, ": ", mapped.error().message);
  return base::failure(
      EOPNOTSUPP, "storage ", medium.label,
      ": this is not persistent memory (a file system with DAX); name a file there, or leave ", "pmem: away");
}

base::Expected<Device*> make_device(const Medium& medium, const PmemSettings& settings) {
  const uint64_t size_bytes = medium.is_block_device ? medium.capacity_bytes : file_size(medium);
  const bool all = settings.size_bytes == 0 || (medium.is_block_device && settings.size_bytes > size_bytes);
  const uint64_t bytes = base::round_down(all ? size_bytes : settings.size_bytes, base::kOsPageBytes);
  if (bytes == 0)
    return base::failure(EINVAL, "storage ", medium.label, ": it is empty; write pmem:PATH?size=SIZE");
  auto mapped = map(medium, bytes, settings.needs_dax);
  if (!mapped) return std::unexpected(mapped.error());
  base::Error error;
  if (auto allocated = medium.is_block_device ? base::Expected<void>{} : allocate(medium, bytes);
      !allocated) {
    error = allocated.error();
  } else {
    auto device = make_object<PmemDevice>(0, "a pmem device", medium, *mapped, bytes, settings.needs_dax);
    if (device) return *device;
    error = device.error();
  }
  sys::unmap(*mapped, bytes);
  // Also what was allocated before there was no more.
  if (!medium.is_block_device && file_size(medium) > size_bytes)
    sys::syscall(SYS_ftruncate, medium.descriptor, size_bytes);
  return std::unexpected(error);
}

}  // namespace

base::Expected<Device*> make_pmem_device(const Medium& medium, const PmemSettings& settings) {
  auto device = make_device(medium, settings);
  if (!device) close_medium(medium);
  return device;
}

}  // namespace storage
