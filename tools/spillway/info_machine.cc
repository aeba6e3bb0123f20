// What this machine offers (info.h).
#include "info.h"

#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/magic.h>
#include <linux/membarrier.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "command.h"
#include "descriptor.h"
#include "problems.h"
#include "storage/backends/spdk_load.h"
#include "sys/files.h"
#include "sys/io_ring.h"
#include "sys/kernel.h"
#include "sys/memory.h"
#include "sys/threads.h"

namespace tools {
namespace {

using Json = nlohmann::ordered_json;

namespace abi {
#define SPILLWAY_NUMBER(name, value, doc) [[maybe_unused]] constexpr uint64_t k##name = value;
#include "spillway/abi.inc"
}  // namespace abi

std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The rest of the line that begins with `key`, without blanks around it.
std::string line_after(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    line.erase(0, line.find_first_not_of(" \t:", key.size()));
    return line;
  }
  return "";
}

uint64_t number_or_zero(const std::string& text) { return std::strtoull(text.c_str(), nullptr, 10); }

std::string hex(uint64_t value) { return concat("0x", std::hex, value); }

std::string kernel_answer(long result) {
  return result < 0 ? std::strerror(static_cast<int>(-result)) : "works";
}

Json cpu_info() {
  std::string flags = " " + line_after("/proc/cpuinfo", "flags") + " ";
  Json features = Json::array();
  for (const char* feature : {"avx2", "avx512f", "erms", "clflushopt", "clwb"})
    if (flags.find(std::string(" ") + feature + " ") != std::string::npos) features.push_back(feature);
  return {{"model", line_after("/proc/cpuinfo", "model name")},
          {"cores", sys::cpu_count()},
          {"features", features}};
}

// Preload mode needs the faults of the process itself; those inside system calls need privileges.
Json user_faults_info() {
  constexpr struct {
    uint64_t bit;
    const char* name;
  } kFeatures[] = {
      {UFFD_FEATURE_EVENT_FORK, "fork"},
      {UFFD_FEATURE_EVENT_REMAP, "remap"},
      {UFFD_FEATURE_EVENT_REMOVE, "remove"},
      {UFFD_FEATURE_MISSING_SHMEM, "missing_shared"},
      {UFFD_FEATURE_SIGBUS, "sigbus"},
      {UFFD_FEATURE_THREAD_ID, "thread_id"},
      {UFFD_FEATURE_MINOR_SHMEM, "minor_shared"},
      {UFFD_FEATURE_PAGEFAULT_FLAG_WP, "write_protect"},
      {uint64_t{1} << 12, "write_protect_shared"},  // newer than some headers
      {uint64_t{1} << 15, "write_protect_async"},
  };
  Json answers;
  for (const auto& [name, flags] :
       {std::pair{"userfaultfd", UFFD_USER_MODE_ONLY}, {"userfaultfd_in_system_calls", 0}}) {
    const long descriptor = sys::syscall(SYS_userfaultfd, O_CLOEXEC | flags);
    answers[name] = kernel_answer(descriptor);
    if (descriptor < 0) continue;
    uffdio_api api = {UFFD_API, 0, 0};
    if (flags != 0 && ioctl(static_cast<int>(descriptor), UFFDIO_API, &api) == 0) {
      Json features = Json::array();
      for (const auto& feature : kFeatures)
        if ((api.features & feature.bit) != 0) features.push_back(feature.name);
      answers["userfaultfd_features"] = features;
    }
    close(static_cast<int>(descriptor));
  }
  return answers;
}

// Guard pages that are no mappings of their own.
std::string try_guard_mark() {
  constexpr int kMadviseGuardInstall = 102;  // newer than some headers; Linux 6.13
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return std::strerror(errno);
  const long result = sys::syscall(SYS_madvise, page, 4096, kMadviseGuardInstall);
  munmap(page, 4096);
  return kernel_answer(result);
}

Json kernel_info(Problems& problems) {
  utsname name;
  uname(&name);
  long query = sys::syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  bool expedited = query > 0 && (query & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0;
  if (!expedited)
    problems.add(
        "membarrier PRIVATE_EXPEDITED is not allowed here; eviction needs it: use Linux 4.14 or later and a "
        "seccomp profile that lets it through");

  Json kernel = {
      {"release", name.release}, {"machine", name.machine}, {"membarrier_private_expedited", expedited}};
  kernel.update(user_faults_info());
  kernel["guard_marks"] = try_guard_mark();
  return kernel;
}

// Why io_uring is not available.
std::string io_uring_problem(long result) {
  const std::string disabled = first_line("/proc/sys/kernel/io_uring_disabled");
  if (!disabled.empty() && disabled != "0")
    return concat("the sysctl kernel.io_uring_disabled is ", disabled, "; 0 allows it");
  if (result == -ENOSYS) return "the kernel has none, or a filter of system calls hides it";
  return "a filter of system calls (seccomp) forbids it, as in most containers; let io_uring_setup, _enter "
         "and _register through";
}

// What the rings of the runtime register.
Json registration_info() {
  Json answers = Json::object();
  sys::IoRing ring;
  if (!ring.open(8)) return answers;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) == 0) {
    answers["registered_file"] = ring.fix_files({ends, 1}) ? "works" : "refused";
    for (int end : ends) close(end);
  }
  alignas(4096) static char page[4096];
  const iovec piece = {page, sizeof page};
  answers["registered_memory"] = ring.fix_memory(&piece, 1) ? "works" : "refused; raise ulimit -l";
  constexpr uint32_t kOperations = IORING_OP_URING_CMD + 1;
  alignas(io_uring_probe) char memory[sizeof(io_uring_probe) + kOperations * sizeof(io_uring_probe_op)] = {};
  auto* known = reinterpret_cast<io_uring_probe*>(memory);
  const long asked =
      sys::syscall(SYS_io_uring_register, ring.descriptor(), IORING_REGISTER_PROBE, known, kOperations);
  const bool passes = asked >= 0 && known->last_op >= IORING_OP_URING_CMD &&
                      (known->ops[IORING_OP_URING_CMD].flags & IO_URING_OP_SUPPORTED) != 0;
  answers["uring_cmd"] = passes ? "works" : "not in this kernel";
  ring.close();
  return answers;
}

Json io_uring_info(Problems& problems) {
  struct Mode {
    const char* name;
    unsigned flags;
  };
  static constexpr Mode kModes[] = {
      {"plain", 0},
      {"coop_taskrun", IORING_SETUP_COOP_TASKRUN},
      {"single_issuer_defer_taskrun",
       IORING_SETUP_SINGLE_ISSUER | (1u << 13)},  // DEFER_TASKRUN, newer than some headers
      {"sqpoll", IORING_SETUP_SQPOLL},
      {"iopoll_ring", IORING_SETUP_IOPOLL},
  };
  Json io = Json::object();
  for (const auto& mode : kModes) {
    io_uring_params parameters = {};
    parameters.flags = mode.flags;
    long ring = sys::syscall(SYS_io_uring_setup, 8, &parameters);
    io[mode.name] = kernel_answer(ring);
    if (ring < 0 && mode.flags == 0) {
      io["why_not"] = io_uring_problem(ring);
      problems.add("io_uring: ", kernel_answer(ring), ": ", io_uring_problem(ring),
                   "; storage uses Linux AIO instead, or else blocking calls");
    }
    if (ring < 0) continue;
    if (mode.flags == 0) io["features"] = hex(parameters.features);
    close(static_cast<int>(ring));
  }
  io.update(registration_info());
  return io;
}

Json linux_aio_info() {
  unsigned long context = 0;
  long result = sys::syscall(SYS_io_setup, 8, &context);
  if (result >= 0) sys::syscall(SYS_io_destroy, context);
  return {{"contexts", kernel_answer(result)},
          {"requests_reserved", number_or_zero(first_line("/proc/sys/fs/aio-nr"))},
          {"most_requests", number_or_zero(first_line("/proc/sys/fs/aio-max-nr"))}};
}

Json spdk_info() {
  const auto library = storage::load_spdk();
  return {
      {"library", library ? std::string("works") : std::string(library.error().message)},
      {"vfio", std::filesystem::exists("/dev/vfio/vfio") ? "there" : "no /dev/vfio/vfio, which PCIe needs"}};
}

// Names in `folder` that begin with one of `beginnings` and a digit.
Json names_in(const char* folder, std::initializer_list<std::string_view> beginnings) {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename();
    for (std::string_view beginning : beginnings)
      if (name.starts_with(beginning) &&
          std::isdigit(static_cast<unsigned char>(name[beginning.size()])) != 0)
        names.push_back((std::filesystem::path(folder) / name).string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Json devices_info() {
  std::vector<std::string> dax, polling;
  std::ifstream mounts("/proc/self/mounts");
  for (std::string device, folder, type, options, rest; mounts >> device >> folder >> type >> options;) {
    std::getline(mounts, rest);
    if (concat(",", options, ",").find(",dax") != std::string::npos &&
        options.find("dax=never") == std::string::npos)
      dax.push_back(folder);
  }
  std::error_code none;
  for (const auto& disk : std::filesystem::directory_iterator("/sys/block", none))
    if (first_line(disk.path() / "queue/io_poll") == "1")
      polling.push_back("/dev/" + disk.path().filename().string());
  return {{"persistent_memory", names_in("/dev", {"pmem", "dax"})},
          {"file_systems_with_dax", dax},
          {"nvme_character_devices", names_in("/dev", {"ng"})},
          {"polling_block_devices", polling}};
}

// The memory cgroup of this process: version, folder, limit (absent when there is none), usage.
Json cgroup_info() {
  std::ifstream file("/proc/self/cgroup");
  Json result = {{"version", "none"}};
  auto look = [&](const char* version, const std::filesystem::path& root, std::string group,
                  const char* limit_file, const char* usage_file) {
    if (!std::filesystem::exists(root / group.substr(1) / usage_file)) group = "/";  // a cgroup namespace
    std::filesystem::path folder = root / group.substr(1);
    if (!std::filesystem::exists(folder / usage_file)) return;
    result = {{"version", version}, {"folder", folder.string()}};
    uint64_t limit = number_or_zero(first_line(folder / limit_file));
    // "max" reads as 0; version 1 says "none" with a number near 2^63.
    if (limit != 0 && limit < uint64_t{1} << 60) result["limit_bytes"] = limit;
    result["usage_bytes"] = number_or_zero(first_line(folder / usage_file));
  };
  for (std::string line; std::getline(file, line);) {
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    std::string controllers = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
    if (controllers == "memory")
      look("v1", "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes", "memory.usage_in_bytes");
    else if (controllers.empty() && result["version"] == "none")
      look("v2", "/sys/fs/cgroup", group, "memory.max", "memory.current");
  }
  return result;
}

Json memory_info() {
  Json memory = {{"machine_bytes", sys::machine_memory_bytes()},
                 {"free_for_this_process_bytes", sys::free_memory_bytes()}};
  memory["swap_bytes"] = number_or_zero(line_after("/proc/meminfo", "SwapTotal")) * 1024;
  memory["transparent_huge_pages"] = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  memory["transparent_huge_pages_shared"] = first_line("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  memory["hugetlb_pages"] = number_or_zero(line_after("/proc/meminfo", "HugePages_Total"));
  memory["hugetlb_pages_free"] = number_or_zero(line_after("/proc/meminfo", "HugePages_Free"));
  memory["hugetlb_page_bytes"] = number_or_zero(line_after("/proc/meminfo", "Hugepagesize")) * 1024;
  return memory;
}

Json limit_of(decltype(RLIMIT_AS) resource) {
  rlimit limit;
  getrlimit(resource, &limit);
  if (limit.rlim_cur == RLIM_INFINITY) return "unlimited";
  return limit.rlim_cur;
}

// Can the runtime's address ranges be reserved?
std::string try_range(uint64_t begin, uint64_t bytes, const char* purpose, Problems& problems) {
  auto reserved = sys::reserve_at(begin, bytes, sys::Access::kNone, purpose);
  if (!reserved) {
    problems.add(reserved.error().message);
    return reserved.error().message;
  }
  sys::unmap(reinterpret_cast<void*>(begin), bytes);
  return "works";
}

Json limits_info(Problems& problems) {
  Json limits = {{"address_space_bytes", limit_of(RLIMIT_AS)},
                 {"locked_memory_bytes", limit_of(RLIMIT_MEMLOCK)},
                 {"open_files", limit_of(RLIMIT_NOFILE)},
                 {"overcommit_memory", number_or_zero(first_line("/proc/sys/vm/overcommit_memory"))},
                 {"max_map_count", number_or_zero(first_line("/proc/sys/vm/max_map_count"))}};
  limits["spill_range"] =
      try_range(abi::kRangeBegin, abi::kRangeEnd - abi::kRangeBegin, "spilled memory", problems);
  // A statically placed program of another kind may stand here; ours is position-independent.
  limits["translation_table"] = try_range(abi::kTableBase, (uint64_t{1} << 47 >> abi::kTableShift) * 8,
                                          "the translation table", problems);
  return limits;
}

std::string file_system_name(long magic) {
  switch (magic) {
    case EXT4_SUPER_MAGIC: return "ext4";
    case XFS_SUPER_MAGIC: return "xfs";
    case BTRFS_SUPER_MAGIC: return "btrfs";
    case F2FS_SUPER_MAGIC: return "f2fs";
    case TMPFS_MAGIC: return "tmpfs";
    case OVERLAYFS_SUPER_MAGIC: return "overlay";
    case NFS_SUPER_MAGIC: return "nfs";
    case FUSE_SUPER_MAGIC: return "fuse";
    case 0x2fc12fc1: return "zfs";
    default: return hex(static_cast<uint64_t>(magic));
  }
}

// Makes a file in a folder as the runtime does: without a name or, where the file system does not support that, with one for a moment. Returns
// its descriptor, or -1 and errno.
int make_nameless(const std::string& folder) {
  const int file = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return file;
  std::string path = folder + "/.spillway-XXXXXX";
  const int named = mkostemp(path.data(), O_CLOEXEC);
  if (named >= 0) unlink(path.c_str());
  return named;
}

// Writes a block past the page cache.
std::string try_direct_io(int file) {
  alignas(4096) static char block[4096];
  const bool is_written =
      fcntl(file, F_SETFL, O_DIRECT) == 0 && pwrite(file, block, sizeof block, 0) == sizeof block;
  return is_written ? "works" : std::strerror(errno);
}

Json storage_info(Problems& problems) {
  const char* variable = std::getenv("TMPDIR");
  std::string folder = variable != nullptr && *variable != 0 ? variable : "/var/tmp";
  Json storage = {{"folder", folder}};
  const Descriptor file(make_nameless(folder));
  struct statfs status;
  if (*file < 0 || fstatfs(*file, &status) != 0) {
    storage["state"] = std::strerror(errno);
    problems.add("the default storage folder ", folder, " cannot be used (", std::strerror(errno),
                 "); give --storage, or set TMPDIR");
    return storage;
  }
  storage["file_system"] = file_system_name(status.f_type);
  storage["free_bytes"] = static_cast<uint64_t>(status.f_bavail) * static_cast<uint64_t>(status.f_bsize);
  storage["direct_io"] = try_direct_io(*file);
  if (status.f_type == TMPFS_MAGIC)
    problems.add("the default storage folder ", folder, " is memory (tmpfs); give --storage on a disk");
  if (storage["direct_io"] != "works")
    problems.add(folder, " does not take direct I/O (", storage["direct_io"].get<std::string>(),
                 "); spilled pages would take memory of the page cache too");
  return storage;
}

}  // namespace

Json machine_info() {
  Problems problems;
  Json machine;
  machine["cpu"] = cpu_info();
  machine["kernel"] = kernel_info(problems);
  machine["io_uring"] = io_uring_info(problems);
  machine["linux_aio"] = linux_aio_info();
  machine["spdk"] = spdk_info();
  machine["memory"] = memory_info();
  machine["cgroup"] = cgroup_info();
  machine["limits"] = limits_info(problems);
  machine["devices"] = devices_info();
  machine["storage"] = storage_info(problems);
  machine["problems"] = problems.lines();
  return machine;
}

}  // namespace tools
