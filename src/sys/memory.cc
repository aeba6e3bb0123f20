#include "sys/memory.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <string_view>

#include "base/ids.h"
#include "sys/barrier.h"
#include "sys/files.h"
#include "sys/kernel.h"
#include "sys/memory_group.h"

namespace sys {
namespace {

int protection(Access access) {
  switch (access) {
    case Access::kNone: return PROT_NONE;
    case Access::kRead: return PROT_READ;
    case Access::kReadWrite: return PROT_READ | PROT_WRITE;
    case Access::kReadExecute: return PROT_READ | PROT_EXEC;
    case Access::kEverything: return PROT_READ | PROT_WRITE | PROT_EXEC;
  }
  return PROT_NONE;
}

// The number after `key` in `text`; no value when there is no such key.
std::expected<uint64_t, int> number_after(std::string_view text, std::string_view key) {
  size_t at = text.find(key);
  if (at == std::string_view::npos) return std::unexpected(ENOENT);
  at += key.size();
  while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at;
  if (at == text.size() || text[at] < '0' || text[at] > '9') return std::unexpected(EINVAL);
  uint64_t value = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at)
    value = value * 10 + static_cast<uint64_t>(text[at] - '0');
  return value;
}

// "123\n" of a control file; no value when it is missing or says "max".
std::expected<uint64_t, int> read_number(std::string_view directory, const char* file) {
  base::Text<512> path;
  path << directory << '/' << file;
  char text[64];
  long n = read_small_file(path.c_str(), text);
  if (n <= 0) return std::unexpected(ENOENT);
  return number_after({text, static_cast<size_t>(n)}, "");
}

// The names that a version of cgroups has.
struct GroupFiles {
  const char* controllers;
  const char* folder;
  const char* limits[2];  // beyond them a group is slowed down or out of memory; null: no second one
  const char* usage;
  const char* cached[2];  // in memory.stat: cached pages of files, also those of the groups below
};
constexpr GroupFiles kVersion1 = {.controllers = "memory",
                                  .folder = "/sys/fs/cgroup/memory",
                                  .limits = {"memory.limit_in_bytes", nullptr},
                                  .usage = "memory.usage_in_bytes",
                                  .cached = {"\ntotal_inactive_file ", "\ntotal_active_file "}};
constexpr GroupFiles kVersion2 = {.controllers = "",
                                  .folder = "/sys/fs/cgroup",
                                  .limits = {"memory.max", "memory.high"},
                                  .usage = "memory.current",
                                  .cached = {"\ninactive_file ", "\nactive_file "}};

// Cached pages of files count as a group's memory until the kernel reclaims them, but can be had, as MemAvailable says of the machine's.
uint64_t cached_bytes(std::string_view directory, const GroupFiles& files) {
  base::Text<512> path;
  path << directory << "/memory.stat";
  char text[4096];
  const long n = read_small_file(path.c_str(), text);
  uint64_t bytes = 0;
  for (const char* name : files.cached)
    bytes += number_after({text, n > 0 ? static_cast<size_t>(n) : 0}, name).value_or(0);
  return bytes;
}

// What the cgroup in `directory`, and those above it, leave free; the topmost is named by the first `top_size` characters.
uint64_t cgroup_free_bytes(std::string_view directory, size_t top_size, const GroupFiles& files) {
  uint64_t free_bytes = ~uint64_t{0};
  while (directory.size() >= top_size) {
    if (const auto usage = read_number(directory, files.usage)) {
      const uint64_t used = *usage - std::min(*usage, cached_bytes(directory, files));
      for (const char* file : files.limits) {
        if (file == nullptr) continue;
        if (const auto limit = read_number(directory, file))
          free_bytes = std::min(free_bytes, *limit - std::min(*limit, used));
      }
    }
    size_t slash = directory.rfind('/');
    if (slash == std::string_view::npos) break;
    directory = directory.substr(0, slash);
  }
  return free_bytes;
}

}  // namespace

base::Expected<void> reserve_at(uint64_t address, uint64_t bytes, Access access, const char* purpose) {
  long result = syscall(SYS_mmap, address, bytes, protection(access),
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  // Before Linux 4.17 the kernel takes the address for a wish.
  if (!failed(result) && static_cast<uint64_t>(result) != address) {
    syscall(SYS_munmap, result, bytes);
    result = -EEXIST;
  }
  if (failed(result)) {
    int number = static_cast<int>(-result);
    if (number == EEXIST) {
      return base::failure(number, "cannot reserve ", purpose, " at ", base::Hex{address},
                           ": something is mapped there already");
    }
    return base::failure(number, "cannot reserve ", base::Bytes{bytes}, " of address space for ", purpose,
                         ": ", base::error_name(number),
                         "; allow it with ulimit -v unlimited and vm.overcommit_memory 0 or 1");
  }
  syscall(SYS_madvise, address, bytes, MADV_DONTDUMP);
  return {};
}

namespace {

base::Expected<char*> map_zeros(uint64_t bytes, int kind, const char* purpose, const void* wish = nullptr) {
  long result =
      syscall(SYS_mmap, wish, bytes, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (failed(result)) {
    int number = static_cast<int>(-result);
    return base::failure(number, "cannot get ", base::Bytes{bytes}, " for ", purpose, ": ",
                         base::error_name(number));
  }
  note_map();
  return reinterpret_cast<char*>(result);
}

// What sysinfo(2) says, for where there is no /proc.
struct MachineMemory {
  uint64_t total, free;
};
MachineMemory memory_told_of() {
  struct sysinfo facts = {};
  syscall(SYS_sysinfo, &facts);
  return {uint64_t{facts.totalram} * facts.mem_unit,
          uint64_t{facts.freeram + facts.bufferram} * facts.mem_unit};
}

}  // namespace

base::Expected<char*> map_anonymous(uint64_t bytes, const char* purpose, const void* wish) {
  return map_zeros(bytes, MAP_PRIVATE, purpose, wish);
}

base::Expected<char*> map_shared_anonymous(uint64_t bytes, const char* purpose) {
  return map_zeros(bytes, MAP_SHARED, purpose);
}

void unmap(void* address, uint64_t bytes) {
  if (address == nullptr) return;
  note_unmap();
  syscall(SYS_munmap, address, bytes);
}

base::Expected<int> create_memory_file(uint64_t bytes, const char* name) {
  if (const uint64_t limit = file_size_limit(); bytes > limit) {
    return base::failure(EFBIG, "files may be as large as ", base::Bytes{limit}, " here, and ",
                         base::Bytes{bytes}, " are needed in memory; raise ulimit -f");
  }
  long descriptor = syscall(SYS_memfd_create, name, MFD_CLOEXEC);
  if (failed(descriptor)) {
    int number = static_cast<int>(-descriptor);
    return base::failure(number, "cannot create a memory file: ", base::error_name(number));
  }
  if (long result = syscall(SYS_ftruncate, descriptor, bytes); failed(result)) {
    syscall(SYS_close, descriptor);
    int number = static_cast<int>(-result);
    return base::failure(number, "cannot size a memory file to ", base::Bytes{bytes}, ": ",
                         base::error_name(number));
  }
  return own_new_descriptor(descriptor);
}

base::Expected<char*> map_shared(int descriptor, uint64_t offset, uint64_t bytes, Access access,
                                 void* address) {
  int fixed = address != nullptr ? MAP_FIXED : 0;
  long result = syscall(SYS_mmap, address, bytes, protection(access), MAP_SHARED | fixed, descriptor, offset);
  if (failed(result)) {
    int number = static_cast<int>(-result);
    return base::failure(number, "cannot map ", base::Bytes{bytes},
                         " of a memory file: ", base::error_name(number));
  }
  note_map();
  return reinterpret_cast<char*>(result);
}

base::Expected<char*> map_shared_high(int descriptor, uint64_t bytes) {
  constexpr uint64_t kMaxStackBytes = uint64_t{16} << 30;
  constexpr uint64_t kApartBytes = uint64_t{64} << 20;
  constexpr uint64_t kAlignment = uint64_t{2} << 20;
  static uint64_t lowest = 0;
  if (lowest == 0) {
    rlimit limit = {};
    syscall(SYS_prlimit64, 0, RLIMIT_STACK, 0, &limit);
    const uint64_t stack_bytes = limit.rlim_cur < kMaxStackBytes ? limit.rlim_cur : kMaxStackBytes;
    // AT_RANDOM's bytes lie near the top of the stack.
    lowest = getauxval(AT_RANDOM) - stack_bytes - kApartBytes;
  }
  const uint64_t wish = (lowest - bytes) / kAlignment * kAlignment;
  long result = syscall(SYS_mmap, wish, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (failed(result)) {
    int number = static_cast<int>(-result);
    return base::failure(number, "cannot map ", base::Bytes{bytes},
                         " of a memory file: ", base::error_name(number));
  }
  if (static_cast<uint64_t>(result) == wish) lowest = wish;
  note_map();
  return reinterpret_cast<char*>(result);
}

void keep_in_core_files(void* address, uint64_t bytes) { syscall(SYS_madvise, address, bytes, MADV_DODUMP); }

void keep_from_core_files(void* address, uint64_t bytes) {
  syscall(SYS_madvise, address, bytes, MADV_DONTDUMP);
}

long map_private(int descriptor, uint64_t offset, uint64_t bytes, void* address) {
  const long result = syscall(SYS_mmap, address, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, descriptor, offset);
  return failed(result) ? result : 0;
}

void keep_from_children(void* address, uint64_t bytes) {
  syscall(SYS_madvise, address, bytes, MADV_DONTFORK);
}

void give_to_children(void* address, uint64_t bytes) { syscall(SYS_madvise, address, bytes, MADV_DOFORK); }

bool forbid_stores(void* address, uint64_t bytes) {
  return !failed(syscall(SYS_mprotect, address, bytes, PROT_READ));
}

bool allow_stores(void* address, uint64_t bytes) {
  return !failed(syscall(SYS_mprotect, address, bytes, PROT_READ | PROT_WRITE));
}

bool write_file_piece(int descriptor, uint64_t offset, const void* from, uint64_t bytes) {
  if (offset + bytes > file_size_limit()) return false;  // the kernel would send SIGXFSZ
  for (uint64_t done = 0; done < bytes;) {
    const long n =
        syscall(SYS_pwrite64, descriptor, static_cast<const char*>(from) + done, bytes - done, offset + done);
    if (n == -EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<uint64_t>(n);
  }
  return true;
}

long move_to_file(int descriptor, uint64_t offset, uint64_t bytes, void* address) {
  if (offset + bytes > file_size_limit()) return -EFBIG;  // as above
  // Both calls are in one piece of assembly, with all operands in registers.
  long result = SYS_pwrite64;
  register long length asm("r12") = static_cast<long>(bytes);
  register long file_offset asm("r10") = static_cast<long>(offset);
  register long file asm("r8") = descriptor;
  register long at asm("r9") = reinterpret_cast<long>(address);
  asm volatile(
      "mov %%r8, %%rdi\n\t"
      "mov %%r9, %%rsi\n\t"
      "mov %%r12, %%rdx\n\t"
      "syscall\n\t"
      "cmp %%r12, %%rax\n\t"
      "jne 1f\n\t"
      "mov %%r9, %%rdi\n\t"
      "mov %%r12, %%rsi\n\t"
      "mov %[protection], %%edx\n\t"
      "mov %%r10, %%r9\n\t"  // the offset
      "mov %[flags], %%r10d\n\t"
      "mov %[mmap], %%eax\n\t"
      "syscall\n\t"
      "1:"
      : "+a"(result), "+r"(file_offset), "+r"(at)
      : "r"(length), "r"(file), [protection] "i"(PROT_READ | PROT_WRITE), [flags] "i"(MAP_SHARED | MAP_FIXED),
        [mmap] "i"(SYS_mmap)
      : "rdi", "rsi", "rdx", "rcx", "r11", "memory", "cc");
  if (result == reinterpret_cast<long>(address)) return 0;
  return failed(result) ? result : -ENOMEM;
}

long set_access(void* address, uint64_t bytes, Access access) {
  return syscall(SYS_mprotect, address, bytes, protection(access));
}

long make_inaccessible(void* address, uint64_t bytes) {
  long result = syscall(SYS_mmap, address, bytes, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  return failed(result) ? result : 0;
}

bool populate(void* address, bool to_write) {
  constexpr int kPopulateRead = 22, kPopulateWrite = 23;
  auto* const page =
      reinterpret_cast<void*>(base::round_down(reinterpret_cast<uint64_t>(address), base::kOsPageBytes));
  return !failed(syscall(SYS_madvise, page, base::kOsPageBytes, to_write ? kPopulateWrite : kPopulateRead));
}

void release(void* address, uint64_t bytes) { syscall(SYS_madvise, address, bytes, MADV_DONTNEED); }

bool release_file_piece(int descriptor, uint64_t offset, uint64_t bytes) {
  constexpr int kKeepSize = 1, kPunchHole = 2;  // FALLOC_FL_*
  return !failed(syscall(SYS_fallocate, descriptor, kKeepSize | kPunchHole, offset, bytes));
}

uint64_t machine_memory_bytes() {
  char text[4096];
  long n = read_small_file("/proc/meminfo", text);
  auto total = number_after({text, n > 0 ? static_cast<size_t>(n) : 0}, "MemTotal:");
  return total ? *total * 1024 : memory_told_of().total;
}

uint64_t resident_bytes() {
  char text[256];
  const long n = read_small_file("/proc/self/statm", text);
  // The second number.
  const auto pages = number_after({text, n > 0 ? static_cast<size_t>(n) : 0}, " ");
  return pages ? *pages * base::kOsPageBytes : 0;
}

uint64_t peak_resident_bytes() {
  const long status = syscall(SYS_openat, AT_FDCWD, "/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (failed(status)) return 0;
  const uint64_t kibibytes = number_in_file(static_cast<int>(status), "\nVmHWM:");
  syscall(SYS_close, status);
  return kibibytes * 1024;
}

uint64_t free_memory_bytes(const char* root) {
  const auto read = [&](const char* file, std::span<char> to) {
    base::Text<512> path;
    path << root << file;
    return read_small_file(path.c_str(), to);
  };
  char text[4096];
  long n = read("/proc/meminfo", text);
  auto available = number_after({text, n > 0 ? static_cast<size_t>(n) : 0}, "MemAvailable:");
  uint64_t free_bytes = available ? *available * 1024 : memory_told_of().free;

  n = read("/proc/self/cgroup", text);
  const std::string_view groups(text, n > 0 ? static_cast<size_t>(n) : 0);
  for (const GroupFiles* const files : {&kVersion1, &kVersion2}) {
    std::string_view group;
    if (!find_group(groups, files->controllers, group)) continue;
    base::Text<512> directory;
    directory << root << files->folder;
    const size_t top_size = directory.size();
    directory << group;
    free_bytes = std::min(free_bytes, cgroup_free_bytes(directory.view(), top_size, *files));
  }
  return free_bytes;
}

}  // namespace sys
