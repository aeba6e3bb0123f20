#include "storage/backends/pmem.h"

#include <asm/statfs.h>
#include <string.h>
#include <sys/stat.h>

#include "base/check.h"
#include "base/ids.h"
#include "persist/copy.h"
#include "persist/runtime.h"
#include "storage/objects.h"
#include "sys/files.h"
#include "sys/kernel.h"
#include "sys/persistent.h"

namespace storage {
namespace {

using persist::DomainKind;

class PmemDevice final : public Device {
 public:
  // The medium is closed with the device; if it has no descriptor, there is no file.
  PmemDevice(char* bytes, uint64_t capacity_bytes, const Medium& medium, DomainKind kind)
      : bytes_(bytes), medium_(medium), kind_(kind) {
    capacity_bytes_ = capacity_bytes;
    whereabouts_.descriptor = medium.descriptor;
    persist::Settings settings;
    settings.way = persist::Way::kInline;
    settings.instruction = sys::best_line_flush();
    runtime_.configure(settings);
  }

  // From now on writes become durable. Errors: as persist::Runtime::add_domain.
  base::Expected<void> begin(persist::LineDevice* lines) {
    const auto address = reinterpret_cast<uintptr_t>(bytes_);
    return runtime_.add_domain(
        {.begin = address, .end = address + capacity_bytes_, .kind = kind_, .device = lines});
  }
  void set_name(std::string_view name) { base::TextRef(name_, sizeof name_) << name; }

  char* at(uint64_t offset_bytes) const { return bytes_ + offset_bytes; }
  DomainKind kind() const { return kind_; }
  persist::Runtime& runtime() { return runtime_; }

 private:
  base::Expected<Queue*> do_open_queue(size_t depth, const QueueUse& use) override;
  void do_close() override {
    sys::unmap(bytes_, capacity_bytes_);
    close_medium(medium_);
    free_object(this, 0);
  }

  char* const bytes_;
  const Medium medium_;
  const DomainKind kind_;
  persist::Runtime runtime_;
};

class PmemQueue final : public Queue {
 public:
  PmemQueue(PmemDevice& device, size_t depth)
      : Queue(device, depth), pmem_(device), thread_(device.runtime()) {}

  // Called by copies.
  void flush(uintptr_t address, size_t bytes) { thread_.flush(address, bytes); }
  void copied(uintptr_t, size_t bytes) { thread_.note_copied(bytes / base::kLineBytes); }
  bool has_streams(uintptr_t, uintptr_t) const { return pmem_.kind() == DomainKind::kMemory; }

 private:
  void do_start(Io& io) override {
    char* at = pmem_.at(io.offset_bytes);
    for (uint32_t i = 0; i < io.segment_count; ++i) {
      const iovec& segment = io.segments[i];
      if (io.operation == Operation::kRead)
        memcpy(segment.iov_base, at, segment.iov_len);
      else if (pmem_.kind() == DomainKind::kFile)
        memcpy(at, segment.iov_base, segment.iov_len);
      else
        persist::copy(*this, at, segment.iov_base, segment.iov_len, persist::Caches::kPast);
      at += segment.iov_len;
    }
    if (io.operation != Operation::kRead) finish(io);
    if (io.error == 0) io.transferred_bytes = io.length_bytes;
    complete(io);
  }
  // A write is durable when it ends, except through the page cache, where a flush has the kernel write what all queues have written.
  void finish(Io& io) {
    if (pmem_.kind() == DomainKind::kFile && io.operation == Operation::kWrite) return;
    const auto done = pmem_.kind() == DomainKind::kFile ? pmem_.runtime().write_files() : thread_.fence();
    if (!done) io.error = done.error().number;
  }
  void do_poll(bool) override {}                      // nothing is ever left to finish
  void do_close() override { free_object(this, 0); }  // every write has fenced by itself

  PmemDevice& pmem_;
  // It has not entered the runtime, which takes a lock: in a child of fork nobody might give that back. Nobody looks for it there, since the domain
  // stays as long as the device.
  persist::Thread thread_;
};

base::Expected<Queue*> PmemDevice::do_open_queue(size_t depth, const QueueUse&) {
  return make_object<PmemQueue>(0, "a storage queue", *this, depth);
}

uint64_t file_size(const Medium& medium) {
  struct stat facts = {};
  sys::syscall(SYS_fstat, medium.descriptor, &facts);
  return static_cast<uint64_t>(facts.st_size);
}

// Allocates the first `bytes` of the file.
base::Expected<void> allocate(const Medium& medium, uint64_t bytes) {
  if (bytes > sys::file_size_limit())
    return base::failure(EFBIG, "storage ", medium.label, ": files may not be as large as ",
                         base::Bytes{bytes}, " in this process; raise ulimit -f");
  // The kernel would allocate all there is before it fails.
  struct statfs facts = {};
  const bool is_known = !sys::failed(sys::syscall(SYS_fstatfs, medium.descriptor, &facts));
  const uint64_t free_bytes = static_cast<uint64_t>(facts.f_bavail) * static_cast<uint64_t>(facts.f_bsize);
  const uint64_t file_bytes = file_size(medium);
  const bool has_room = !is_known || bytes <= file_bytes || bytes - file_bytes <= free_bytes;
  const long result = has_room ? sys::allocate_file(medium.descriptor, 0, bytes) : -ENOSPC;
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
    const DomainKind kind = settings.needs_dax ? DomainKind::kMemory : DomainKind::kFile;
    auto device = make_object<PmemDevice>(0, "a pmem device", *mapped, bytes, medium, kind);
    if (device) {
      // The label's last word, direct or buffered, applies to transfers by system calls: it is left out.
      const std::string_view label(medium.label);
      base::Text<sizeof medium.label + 32> name;
      name << "pmem:" << label.substr(0, label.rfind(','))
           << (settings.needs_dax ? ", mapped)" : ", mapped by the page cache)");
      (*device)->set_name(name.view());
      CHECK((*device)->begin(nullptr));
      return *device;
    }
    error = device.error();
  }
  sys::unmap(*mapped, bytes);
  // This also frees what was allocated before the room ran out.
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

base::Expected<Device*> make_pmem_device(char* bytes, uint64_t capacity_bytes, persist::LineDevice& lines) {
  auto device =
      make_object<PmemDevice>(0, "a pmem device", bytes, capacity_bytes, Medium(), DomainKind::kDevice);
  if (!device) return std::unexpected(device.error());
  (*device)->set_name("pmem:memory");
  CHECK((*device)->begin(&lines));
  return *device;
}

}  // namespace storage
