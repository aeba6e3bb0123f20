// Every error, and what its line says.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/vfs.h>

#include "persist_test.h"

static void *address = (void *)1;

// The file is refused, and none was made.
static void refused_without_a_trace(const char *path, size_t bytes, const char *kind, int status,
                                    const char *words) {
  struct stat facts;
  const int was_there = stat(path, &facts) == 0;
  address = (void *)1;
  CHECK_REFUSED(spillway_persist_map(path, bytes, kind, &address, NULL), status, words);
  CHECK(address == NULL && (stat(path, &facts) == 0) == was_there);
}

static void maps(const char *folder) {
  char path[4200];
  strcpy(path, path_in(folder, "file"));
  CHECK_REFUSED(spillway_persist_map(NULL, 4096, "auto", &address, NULL), SPILLWAY_PERSIST_INVALID, "null");
  CHECK_REFUSED(spillway_persist_map(path, 4096, NULL, &address, NULL), SPILLWAY_PERSIST_INVALID, "null");
  CHECK_REFUSED(spillway_persist_map(path, 4096, "auto", NULL, NULL), SPILLWAY_PERSIST_INVALID, "null");
  refused_without_a_trace(path, 4096, "pmem", SPILLWAY_PERSIST_INVALID,
                          "there is no kind 'pmem'; give auto, memory");
  refused_without_a_trace(path, 4096, "none", SPILLWAY_PERSIST_INVALID, "there is no kind 'none'");
  refused_without_a_trace(path, 4096, "device", SPILLWAY_PERSIST_INVALID, "there is no kind 'device'");
  refused_without_a_trace(path, 0, "auto", SPILLWAY_PERSIST_INVALID,
                          "0 bytes are not a whole number of OS pages");
  refused_without_a_trace(path, 5000, "auto", SPILLWAY_PERSIST_INVALID, "a multiple of 4096");
  refused_without_a_trace(path, (size_t)-4096, "auto", SPILLWAY_PERSIST_INVALID, path);
  refused_without_a_trace(path, 4096, "memory", SPILLWAY_PERSIST_UNSUPPORTED, "not persistent memory");
  refused_without_a_trace(path, 4096, "flush_on_fail", SPILLWAY_PERSIST_UNSUPPORTED, "not persistent memory");
  refused_without_a_trace(path_in(folder, "no/file"), 4096, "auto", SPILLWAY_PERSIST_NOT_FOUND, "/no/file: ");
  refused_without_a_trace("", 4096, "auto", SPILLWAY_PERSIST_NOT_FOUND, "no such file or directory");
  refused_without_a_trace(folder, 4096, "auto", SPILLWAY_PERSIST_INVALID, "is a directory");
  refused_without_a_trace("/dev/null", 4096, "dram", SPILLWAY_PERSIST_UNSUPPORTED, "/dev/null: ");
  CHECK(mkfifo(path, 0600) == 0);
  refused_without_a_trace(path, 4096, "dram", SPILLWAY_PERSIST_INVALID, "neither a file nor a device");
  unlink(path);
  CHECK(symlink("none", path) == 0);
  refused_without_a_trace(path, 4096, "dram", SPILLWAY_PERSIST_INVALID, "a link to a file that is not there");
  unlink(path);

  CHECK_OK(spillway_persist_unmap(map_new(path, 4096, "dram")));
  refused_without_a_trace(path, 4096, "memory", SPILLWAY_PERSIST_UNSUPPORTED, "give file, or for tests dram");
  refused_without_a_trace(path_in(folder, "file/x"), 4096, "auto", SPILLWAY_PERSIST_INVALID,
                          "not a directory");
  unlink(path);
  char long_name[300];
  memset(long_name, 'x', sizeof long_name);
  long_name[sizeof long_name - 1] = 0;
  refused_without_a_trace(path_in(folder, long_name), 4096, "auto", SPILLWAY_PERSIST_INVALID, "xxx");
}

static void limits(const char *folder) {
  char path[4200];
  strcpy(path, path_in(folder, "file"));
  struct rlimit all_bytes, all_files;
  CHECK(getrlimit(RLIMIT_FSIZE, &all_bytes) == 0 && getrlimit(RLIMIT_NOFILE, &all_files) == 0);
  CHECK_OK(spillway_persist_unmap(map_new(path, 2 << 20, "dram")));
  const struct rlimit small = {1 << 20, all_bytes.rlim_max};
  CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
  // A file that is already larger can be mapped: it does not grow.
  CHECK_OK(spillway_persist_map(path, 0, "dram", &address, NULL));
  CHECK_OK(spillway_persist_unmap(address));
  unlink(path);
  // No signal ends the process.
  refused_without_a_trace(path, 2 << 20, "auto", SPILLWAY_PERSIST_INVALID,
                          "files may be no larger than 1M in this process");
  CHECK_OK(spillway_persist_unmap(map_new(path, 1 << 20, "auto")));
  const int next = open("/dev/null", O_RDONLY);
  const struct rlimit few = {(rlim_t)next, all_files.rlim_max};
  close(next);
  CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
  refused_without_a_trace(path, 4096, "auto", SPILLWAY_PERSIST_NO_MEMORY, "too many open files");
  unlink(path);
  // Enough for the file, but not for its folder, through which its name becomes durable.
  const struct rlimit one = {(rlim_t)next + 1, all_files.rlim_max};
  CHECK(setrlimit(RLIMIT_NOFILE, &one) == 0);
  refused_without_a_trace(path, 4096, "auto", SPILLWAY_PERSIST_NO_MEMORY,
                          "cannot be made durable: too many open files");
  CHECK(setrlimit(RLIMIT_FSIZE, &all_bytes) == 0 && setrlimit(RLIMIT_NOFILE, &all_files) == 0);
}

static void do_nothing(int signal) { (void)signal; }

// A file system of bounded size, in memory. In kernels before 6.10, it does not allocate anything large while a timer's signals keep coming.
static void full_device(const char *folder) {
  (void)folder;
  const char *const shared = "/dev/shm";
  struct statfs facts;
  if (statfs(shared, &facts) != 0 || facts.f_type != TMPFS_MAGIC || facts.f_blocks == 0 ||
      access(shared, W_OK) != 0) {
    puts("no file system of a bounded size at /dev/shm: what is full is not tried");
    return;
  }
  char path[100];
  snprintf(path, sizeof path, "%s/spillway-persist-%d", shared, (int)getpid());
  const size_t too_much = ((size_t)facts.f_blocks * (size_t)facts.f_bsize + (1 << 20)) / 4096 * 4096;
  refused_without_a_trace(path, too_much, "dram", SPILLWAY_PERSIST_FULL, "cannot allocate");
  const size_t some = 16 << 20;
  if ((size_t)facts.f_bavail * (size_t)facts.f_bsize < 2 * some) return;
  struct sigaction action = {.sa_handler = do_nothing};
  const struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
  CHECK(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
  CHECK_OK(spillway_persist_unmap(map_new(path, some, "dram")));
  CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
  unlink(path);
}

// A block device made of a file: a part of it may be mapped, or all of it, but not more.
static void block_devices(const char *folder) {
  char name[50];
  const int control = open("/dev/loop-control", O_RDWR);
  const int number = control >= 0 ? ioctl(control, LOOP_CTL_GET_FREE) : -1;
  snprintf(name, sizeof name, "/dev/loop%d", number);
  const int loop = number >= 0 ? open(name, O_RDWR) : -1;
  const int image = open(path_in(folder, "file"), O_RDWR | O_CREAT, 0600);
  CHECK(image >= 0 && unlink(path_in(folder, "file")) == 0 && ftruncate(image, 1 << 20) == 0);
  if (loop < 0 || ioctl(loop, LOOP_SET_FD, image) != 0) {
    puts("no block device can be made here: none is tried");
    return;
  }
  const size_t sizes[] = {4096, 1 << 20, 0};
  for (int i = 0; i < 3; ++i) {
    size_t mapped = 0;
    CHECK_OK(spillway_persist_map(name, sizes[i], "auto", &address, &mapped));
    CHECK(mapped == (sizes[i] != 0 ? sizes[i] : 1 << 20));
    memset(address, 'x', mapped);
    CHECK_OK(spillway_persist(address, mapped));
    CHECK_OK(spillway_persist_unmap(address));
  }
  refused_without_a_trace(name, (1 << 20) + 4096, "auto", SPILLWAY_PERSIST_FULL, "has 1048576 bytes");
  CHECK(ioctl(loop, LOOP_CLR_FD, 0) == 0);
}

static void not_allowed(const char *folder) {
  CHECK(chmod(folder, 0500) == 0);
  if (geteuid() == 0) CHECK(chmod(folder, 0700) == 0 && setegid(65534) == 0 && seteuid(65534) == 0);
  CHECK_REFUSED(spillway_persist_map(path_in(folder, "file"), 4096, "auto", &address, NULL),
                SPILLWAY_PERSIST_DENIED, "permission denied");
  if (geteuid() != getuid()) CHECK(seteuid(getuid()) == 0 && setegid(getgid()) == 0);
}

static _Alignas(4096) char memory[1 << 16];

static void adds(const char *folder) {
  (void)folder;
  CHECK_REFUSED(spillway_persist_add(NULL, 4096, "dram", -1), SPILLWAY_PERSIST_INVALID, "null");
  CHECK_REFUSED(spillway_persist_add(memory, 4096, NULL, -1), SPILLWAY_PERSIST_INVALID, "null");
  CHECK_REFUSED(spillway_persist_add(memory, 4096, "auto", -1), SPILLWAY_PERSIST_INVALID,
                "there is no kind 'auto'");
  CHECK_REFUSED(spillway_persist_add(memory, 0, "dram", -1), SPILLWAY_PERSIST_INVALID,
                "whole lines of 64 bytes");
  CHECK_REFUSED(spillway_persist_add(memory, 100, "dram", -1), SPILLWAY_PERSIST_INVALID,
                "whole lines of 64 bytes");
  CHECK_REFUSED(spillway_persist_add(memory + 8, 64, "dram", -1), SPILLWAY_PERSIST_INVALID,
                "whole lines of 64 bytes");
  CHECK_REFUSED(spillway_persist_add(memory, (size_t)-64, "dram", -1), SPILLWAY_PERSIST_INVALID,
                "whole lines of 64 bytes");
  CHECK_REFUSED(spillway_persist_add(memory, 4096, "file", 999), SPILLWAY_PERSIST_INVALID,
                "999 is not an open descriptor");
  CHECK_OK(spillway_persist_add(memory + 4096, 4096, "dram", -1));
  CHECK_REFUSED(spillway_persist_add(memory, 8192, "file", -1), SPILLWAY_PERSIST_INVALID,
                "is in a domain already");
  CHECK_REFUSED(spillway_persist_add(memory + 8128, 64, "dram", -1), SPILLWAY_PERSIST_INVALID,
                "is in a domain already");
  CHECK_STATUS(spillway_persist_remove(memory, 4096), SPILLWAY_PERSIST_ABSENT, NULL);
  CHECK_STATUS(spillway_persist_remove(memory + 4096, 0), SPILLWAY_PERSIST_ABSENT, NULL);
  CHECK_REFUSED(spillway_persist_remove(memory + 4096, 100), SPILLWAY_PERSIST_INVALID, "are not whole lines");
  CHECK_REFUSED(spillway_persist_remove(memory + 4097, 64), SPILLWAY_PERSIST_INVALID, "are not whole lines");
  CHECK_REFUSED(spillway_persist_remove(memory + 4096, (size_t)-64), SPILLWAY_PERSIST_INVALID,
                "are not whole lines");
  CHECK(statistic("domains") == 1);
  CHECK_OK(spillway_persist_remove(memory, sizeof memory));
  for (int i = 0; i < 256; ++i) CHECK_OK(spillway_persist_add(memory + 128 * i, 64, "dram", -1));
  CHECK_REFUSED(spillway_persist_add(memory + 64, 64, "dram", -1), SPILLWAY_PERSIST_FULL,
                "there are 256 domains already");
  // Nor is there room for one that spillway_persist_map() would make.
  refused_without_a_trace(path_in(folder, "file"), 4096, "dram", SPILLWAY_PERSIST_FULL, "256 domains");
  CHECK_OK(spillway_persist_remove(memory, sizeof memory));
  // Nor for the two that would be left if the middle of one were removed.
  for (int i = 0; i < 255; ++i) CHECK_OK(spillway_persist_add(memory + 128 * i, 64, "dram", -1));
  CHECK_OK(spillway_persist_add(memory + 32768, 32768, "dram", -1));
  CHECK_REFUSED(spillway_persist_remove(memory + 40960, 4096), SPILLWAY_PERSIST_FULL,
                "there are 256 domains already");
  CHECK_OK(spillway_persist_remove(memory + 32768, 4096));
  CHECK_OK(spillway_persist_remove(memory, 64));
  CHECK_OK(spillway_persist_remove(memory + 40960, 4096));
  CHECK(statistic("domains") == 256);
  CHECK_OK(spillway_persist_remove(memory, sizeof memory));
  CHECK(statistic("domains") == 0);
}

static void unmaps(const char *folder) {
  char *const mapped = map_new(path_in(folder, "file"), 8192, "dram");
  CHECK_STATUS(spillway_persist_unmap(NULL), SPILLWAY_PERSIST_ABSENT, NULL);
  CHECK_STATUS(spillway_persist_unmap(mapped + 4096), SPILLWAY_PERSIST_ABSENT, NULL);
  CHECK_OK(spillway_persist_add(memory, 4096, "dram", -1));
  CHECK_STATUS(spillway_persist_unmap(memory), SPILLWAY_PERSIST_ABSENT, NULL);
  CHECK_OK(spillway_persist_remove(mapped, 8192));  // it is still mapped
  mapped[0] = 'x';
  CHECK_OK(spillway_persist_unmap(mapped));
  CHECK_STATUS(spillway_persist_unmap(mapped), SPILLWAY_PERSIST_ABSENT, NULL);
  unlink(path_in(folder, "file"));
}

// A descriptor that cannot be synced: the fence reports it, once.
static void fences(const char *folder) {
  char *const mapped = map_new(path_in(folder, "file"), 1 << 16, "file");
  CHECK_OK(spillway_persist_remove(mapped, 1 << 16));
  const int null = open("/dev/null", O_RDWR);
  CHECK_OK(spillway_persist_add(mapped, 1 << 16, "file", null));
  mapped[0] = mapped[40000] = 'x';
  spillway_persist_flush(mapped, 1);
  spillway_persist_flush(mapped + 40000, 1);
  CHECK_REFUSED(spillway_persist_fence(), SPILLWAY_PERSIST_IO, "cannot be written: invalid argument");
  CHECK_OK(spillway_persist_fence());
  CHECK_OK(spillway_persist_unmap(mapped));
  unlink(path_in(folder, "file"));
}

static void others(const char *folder) {
  (void)folder;
  CHECK_REFUSED(spillway_persist_set_policy(NULL), SPILLWAY_PERSIST_INVALID, "null");
  CHECK_REFUSED(spillway_persist_set_policy("fast"), SPILLWAY_PERSIST_INVALID,
                "policy: 'fast' is none; give auto, inline");
  CHECK_REFUSED(spillway_persist_stats(NULL, 100, NULL), SPILLWAY_PERSIST_INVALID, "null");
}

// One wrong option at a time; none of them starts the runtime.
static void options(const char *folder) {
  (void)folder;
  const struct {
    const char *words;
    spillway_persist_options options;
  } wrong[] = {
      {"struct_bytes is 0", {.struct_bytes = 0}},
      {"reserved is 1", {.struct_bytes = sizeof wrong[0].options, .reserved = 1}},
      {"policy: 'fast' is none", {.struct_bytes = sizeof wrong[0].options, .policy = "fast"}},
      {"instruction: 'mfence' is none", {.struct_bytes = sizeof wrong[0].options, .instruction = "mfence"}},
      {"flushers: '0' is not a number from 1 to 64",
       {.struct_bytes = sizeof wrong[0].options, .flushers = "0"}},
      {"flushers: '3-2' is not", {.struct_bytes = sizeof wrong[0].options, .flushers = "3-2"}},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i)
    CHECK_REFUSED(spillway_persist_configure(&wrong[i].options), SPILLWAY_PERSIST_INVALID, wrong[i].words);
  char path[1200];
  memset(path, 'x', sizeof path);
  path[sizeof path - 1] = 0;
  const spillway_persist_options long_path = {.struct_bytes = sizeof long_path, .stats = path};
  CHECK_REFUSED(spillway_persist_configure(&long_path), SPILLWAY_PERSIST_INVALID,
                "stats: a path of 1199 bytes is too long");
  CHECK_OK(spillway_persist_configure(NULL));
}

void test_errors(const char *folder) {
  void (*const all[])(const char *) = {maps, limits, full_device, block_devices, not_allowed,
                                       adds, unmaps, fences,      others,        options};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) CHECK(in_child(all[i], folder) == 0);
  CHECK(chmod(folder, 0700) == 0);
}
