#include "sys/memory.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/ids.h"
#include "sys/files.h"
#include "sys/kernel.h"

namespace sys {
namespace {

using base::kOsPageBytes;

// Can a byte be read at `address`? The kernel is asked, whose own load does not fault.
bool readable(const void* address) {
  int ends[2];
  if (pipe(ends) != 0) return false;
  bool result = write(ends[1], address, 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return result;
}

// An address that nothing else uses, found by mapping and unmapping.
uint64_t free_address(uint64_t bytes) {
  void* place = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  munmap(place, bytes);
  return reinterpret_cast<uint64_t>(place);
}

// The system would unmap all of the process.
TEST(Unmap, OfNullIsNothing) {
  unmap(nullptr, (uint64_t{1} << 47) - kOsPageBytes);
  EXPECT_FALSE(readable(nullptr));
}

TEST(ReserveAt, ReservesExactlyThereAndOnlyOnce) {
  constexpr uint64_t kBytes = uint64_t{1} << 36;
  uint64_t address = free_address(kBytes);
  ASSERT_TRUE(reserve_at(address, kBytes, Access::kReadWrite, "a test"));
  auto* words = reinterpret_cast<uint64_t*>(address);
  EXPECT_EQ(words[kBytes / 16], 0u);
  words[kBytes / 16] = 7;
  EXPECT_EQ(words[kBytes / 16], 7u);
  auto again = reserve_at(address + kBytes / 2, kOsPageBytes, Access::kNone, "a second test");
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().number, EEXIST);
  EXPECT_NE(std::string(again.error().message).find("a second test"), std::string::npos);
  EXPECT_EQ(words[kBytes / 16], 7u);
  unmap(reinterpret_cast<void*>(address), kBytes);
}

TEST(ReserveAt, AccessIsWhatWasAskedFor) {
  uint64_t address = free_address(kOsPageBytes);
  auto* place = reinterpret_cast<char*>(address);
  ASSERT_TRUE(reserve_at(address, kOsPageBytes, Access::kNone, "a test"));
  EXPECT_FALSE(readable(place));
  unmap(place, kOsPageBytes);
  ASSERT_TRUE(reserve_at(address, kOsPageBytes, Access::kRead, "a test"));
  EXPECT_TRUE(readable(place));
  unmap(place, kOsPageBytes);
}

TEST(ReserveAt, NamesTheLimitWhenThereIsNoRoom) {
  auto reserved = reserve_at(uint64_t{1} << 45, uint64_t{1} << 62, Access::kNone, "everything");
  ASSERT_FALSE(reserved.has_value());
  EXPECT_EQ(reserved.error().number, ENOMEM);
  EXPECT_NE(std::string(reserved.error().message).find("ulimit -v"), std::string::npos);
}

#if !__has_feature(thread_sanitizer) && \
    !__has_feature(address_sanitizer)  // they need system calls of their own
// Answers a call of mmap() as a kernel does that does not know MAP_FIXED_NOREPLACE.
void map_by_wish(int, siginfo_t*, void* interrupted) {
  greg_t* const registers = static_cast<ucontext_t*>(interrupted)->uc_mcontext.gregs;
  registers[REG_RAX] =
      syscall_raw(SYS_mmap, registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
                  registers[REG_R10] & ~MAP_FIXED_NOREPLACE, registers[REG_R8], registers[REG_R9]);
}

bool forget_fixed_noreplace() {
  struct sigaction action = {};
  action.sa_sigaction = map_by_wish;
  action.sa_flags = SA_SIGINFO;
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args) + 3 * sizeof(uint64_t)),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_FIXED_NOREPLACE, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program = {6, code};
  return sigaction(SIGSYS, &action, nullptr) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(ReserveAt, RefusesAnotherAddressThatAnOldKernelChooses) {
  const pid_t child = fork();
  if (child == 0) {
    if (!forget_fixed_noreplace()) _exit(1);
    const uint64_t address = free_address(kOsPageBytes);
    if (!reserve_at(address, kOsPageBytes, Access::kReadWrite, "a test")) _exit(2);
    const auto again = reserve_at(address, kOsPageBytes, Access::kNone, "a second test");
    _exit(!again && again.error().number == EEXIST ? 0 : 3);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}
#endif

TEST(MapAnonymous, IsZeroedAndFailsWithAMessage) {
  auto memory = map_anonymous(3 * kOsPageBytes, "a test");
  ASSERT_TRUE(memory.has_value());
  for (size_t i = 0; i < 3 * kOsPageBytes; ++i) ASSERT_EQ((*memory)[i], 0);
  std::memset(*memory, 7, 3 * kOsPageBytes);
  release(*memory + kOsPageBytes, kOsPageBytes);
  EXPECT_EQ((*memory)[kOsPageBytes - 1], 7);
  EXPECT_EQ((*memory)[kOsPageBytes], 0);
  EXPECT_EQ((*memory)[2 * kOsPageBytes], 7);
  unmap(*memory, 3 * kOsPageBytes);
  EXPECT_FALSE(readable(*memory));
  auto none = map_anonymous(uint64_t{1} << 62, "the moon");
  ASSERT_FALSE(none.has_value());
  EXPECT_NE(std::string(none.error().message).find("the moon"), std::string::npos);
}

TEST(MemoryFile, TwoMappingsAreOneMemory) {
  auto descriptor = create_memory_file(4 * kOsPageBytes, "test");
  ASSERT_TRUE(descriptor.has_value());
  EXPECT_TRUE(is_own_descriptor(*descriptor));
  auto whole = map_shared(*descriptor, 0, 4 * kOsPageBytes, Access::kReadWrite);
  ASSERT_TRUE(whole.has_value());
  auto* place = reinterpret_cast<char*>(free_address(2 * kOsPageBytes));
  ASSERT_TRUE(reserve_at(reinterpret_cast<uint64_t>(place), 2 * kOsPageBytes, Access::kNone, "a test"));

  auto second = map_shared(*descriptor, 2 * kOsPageBytes, kOsPageBytes, Access::kReadWrite, place);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(*second, place);
  (*whole)[2 * kOsPageBytes + 5] = 42;
  EXPECT_EQ(place[5], 42);
  EXPECT_FALSE(readable(place + kOsPageBytes));

  EXPECT_EQ(make_inaccessible(place, kOsPageBytes), 0);
  EXPECT_FALSE(readable(place));
  EXPECT_EQ((*whole)[2 * kOsPageBytes + 5], 42);

  (*whole)[0] = 1;
  release_file_piece(*descriptor, 2 * kOsPageBytes, kOsPageBytes);
  EXPECT_EQ((*whole)[2 * kOsPageBytes + 5], 0);
  EXPECT_EQ((*whole)[0], 1);

  unmap(place, 2 * kOsPageBytes);
  unmap(*whole, 4 * kOsPageBytes);
  close_own_descriptor(*descriptor);
}

TEST(MemoryFile, LeavesNoDescriptorBehindWhenThereIsNoneForTheRuntime) {
  const int next = dup(0);
  close(next);
  rlimit limit, few;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  few = {static_cast<rlim_t>(next + 1), limit.rlim_max};  // one, which cannot be moved
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  const bool made = create_memory_file(kOsPageBytes, "test").has_value();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_FALSE(made);
  const int again = dup(0);
  EXPECT_EQ(again, next);
  close(again);
}

// The kernel would send SIGXFSZ, which ends most programs.
TEST(MemoryFile, IsNotWrittenToBeyondALimitThatCameLater) {
  EXPECT_EXIT(
      {
        const auto file = create_memory_file(2 * kOsPageBytes, "test");
        const auto memory = map_anonymous(kOsPageBytes, "a test");
        rlimit limit;
        limit.rlim_cur = limit.rlim_max = kOsPageBytes;
        setrlimit(RLIMIT_FSIZE, &limit);
        const bool fits = write_file_piece(*file, 0, *memory, kOsPageBytes);
        const bool is_refused = !write_file_piece(*file, kOsPageBytes, *memory, kOsPageBytes) &&
                                move_to_file(*file, kOsPageBytes, kOsPageBytes, *memory) == -EFBIG;
        _exit(fits && is_refused ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(MemoryFile, ErrorsLeaveNoDescriptorBehind) {
  size_t before = own_descriptors({});
  auto descriptor = create_memory_file(~uint64_t{0}, "too large");
  EXPECT_FALSE(descriptor.has_value());
  EXPECT_EQ(own_descriptors({}), before);
  auto mapped = map_shared(-1, 0, kOsPageBytes, Access::kRead);
  ASSERT_FALSE(mapped.has_value());
  EXPECT_EQ(mapped.error().number, EBADF);
}

TEST(MakeInaccessible, ReportsWhatTheKernelSays) {
  EXPECT_EQ(make_inaccessible(reinterpret_cast<void*>(uint64_t{1} << 45 | 1), kOsPageBytes), -EINVAL);
}

TEST(ResidentBytes, ThePeakStaysWhenMemoryIsGivenBack) {
  constexpr uint64_t kBytes = 64 << 20;
  const uint64_t before = resident_bytes();
  char* const memory = *map_anonymous(kBytes, "a test");
  memset(memory, 1, kBytes);
  unmap(memory, kBytes);
  EXPECT_GE(peak_resident_bytes(), before + kBytes / 2);
}

TEST(FreeMemory, IsSomeOfTheMachines) {
  uint64_t machine = machine_memory_bytes();
  EXPECT_GT(machine, uint64_t{64} << 20);
  EXPECT_GT(free_memory_bytes(), 0u);
  EXPECT_LE(free_memory_bytes(), machine);
}

// A root with the files of control groups that a test wants, on a machine that has 8 GiB available.
class FreeMemoryOfGroup : public testing::Test {
 protected:
  FreeMemoryOfGroup() {
    std::string name = testing::TempDir() + "spillway-free-memory-XXXXXX";
    root_ = mkdtemp(name.data());
    file("proc/meminfo", "MemTotal:       16777216 kB\nMemAvailable:    8388608 kB\n");
  }
  ~FreeMemoryOfGroup() override { std::filesystem::remove_all(root_); }
  void file(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  uint64_t free_mib() const { return free_memory_bytes(root_.c_str()) >> 20; }

  static constexpr const char* kMib100 = "104857600\n";
  static constexpr const char* kMib400 = "419430400\n";
  static constexpr const char* kMib900 = "943718400\n";
  static constexpr const char* kMib1000 = "1048576000\n";
  std::filesystem::path root_;
};

TEST_F(FreeMemoryOfGroup, IsTheMachinesWithoutALimit) {
  EXPECT_EQ(free_mib(), 8192u);
  file("proc/self/cgroup", "0::/a\n");
  file("sys/fs/cgroup/a/memory.max", "max\n");
  file("sys/fs/cgroup/a/memory.current", kMib900);
  EXPECT_EQ(free_mib(), 8192u);
}

// A container that has read many files is not short of memory.
TEST_F(FreeMemoryOfGroup, FilesInMemoryAreFree) {
  file("proc/self/cgroup", "0::/a/b\n");
  file("sys/fs/cgroup/a/memory.max", kMib1000);
  file("sys/fs/cgroup/a/memory.current", kMib900);
  EXPECT_EQ(free_mib(), 100u);
  file("sys/fs/cgroup/a/memory.stat",
       "anon 104857600\nfile 838860800\ninactive_file 419430400\nactive_file 314572800\n");
  EXPECT_EQ(free_mib(), 800u);
  file("sys/fs/cgroup/a/memory.stat", "anon 0\ninactive_file 943718400\nactive_file 943718400\n");
  EXPECT_EQ(free_mib(), 1000u) << "more than is used";
}

TEST_F(FreeMemoryOfGroup, EndsWhereTheGroupIsSlowedDown) {
  file("proc/self/cgroup", "0::/a\n");
  file("sys/fs/cgroup/a/memory.max", kMib1000);
  file("sys/fs/cgroup/a/memory.high", kMib400);
  file("sys/fs/cgroup/a/memory.current", kMib100);
  EXPECT_EQ(free_mib(), 300u);
}

TEST_F(FreeMemoryOfGroup, Version1CountsTheGroupsBelowToo) {
  file("proc/self/cgroup", "12:cpu:/x\n4:memory:/outside/only\n0::/c\n");
  file("sys/fs/cgroup/memory/memory.limit_in_bytes", kMib1000);
  file("sys/fs/cgroup/memory/memory.usage_in_bytes", kMib900);
  file("sys/fs/cgroup/memory/memory.stat",
       "cache 0\ninactive_file 1048576\nactive_file 1048576\ntotal_inactive_file 104857600\n"
       "total_active_file 104857600\n");
  EXPECT_EQ(free_mib(), 300u);
}

}  // namespace
}  // namespace sys
