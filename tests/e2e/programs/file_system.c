// A file system that the program itself serves (fuse(4)): requests and answers go through its device whole, one in each call,
// from and to spilled memory, and the device refuses room for less than the longest. Where none may be mounted it is skipped.
// levels: O2
// pages: 4K 16K
// chaos: 2
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "e2e.h"

enum { kLongest = 1 << 20, kRoom = kLongest + 4096, kFileBytes = 300000, kFile = 2 };
static int device;
static char* content;
static char seen[kFileBytes];  // plain

static void answer(uint64_t request, int error, const void* data, size_t bytes) {
  struct fuse_out_header* head = spilled_zeros(sizeof *head);
  *head =
      (struct fuse_out_header){.len = (uint32_t)(sizeof *head + bytes), .error = error, .unique = request};
  const struct iovec parts[2] = {{head, sizeof *head}, {(void*)data, bytes}};
  const ssize_t written = writev(device, parts, 2);
  // The kernel gives up what is still to be released when the file system is unmounted.
  CHECK(written == (ssize_t)(sizeof *head + bytes) || (written < 0 && errno == ENOENT && data == NULL));
  free(head);
}

static struct fuse_attr attributes_of(uint64_t node) {
  if (node == FUSE_ROOT_ID) return (struct fuse_attr){.ino = node, .mode = S_IFDIR | 0755, .nlink = 2};
  return (struct fuse_attr){.ino = node, .size = kFileBytes, .mode = S_IFREG | 0444, .nlink = 1};
}

static void answer_read(const struct fuse_in_header* request, const struct fuse_read_in* wanted) {
  const size_t from = wanted->offset < kFileBytes ? wanted->offset : kFileBytes;
  const size_t most = kFileBytes - from;
  answer(request->unique, 0, content + from, wanted->size < most ? wanted->size : most);
}

static void serve_request(const struct fuse_in_header* request) {
  const void* more = request + 1;
  switch (request->opcode) {
    case FUSE_INIT: {
      const struct fuse_init_in* kernel = more;
      const struct fuse_init_out out = {.major = kernel->major,
                                        .minor = kernel->minor,
                                        .max_readahead = kernel->max_readahead,
                                        .flags = FUSE_MAX_PAGES | FUSE_BIG_WRITES,
                                        .max_write = kLongest,
                                        .time_gran = 1,
                                        .max_pages = kLongest / 4096};
      answer(request->unique, 0, &out, sizeof out);
      return;
    }
    case FUSE_LOOKUP: {
      const struct fuse_entry_out out = {.nodeid = kFile, .attr = attributes_of(kFile)};
      answer(request->unique, strcmp(more, "file") == 0 ? 0 : -ENOENT, &out,
             strcmp(more, "file") == 0 ? sizeof out : 0);
      return;
    }
    case FUSE_GETATTR: {
      const struct fuse_attr_out out = {.attr = attributes_of(request->nodeid)};
      answer(request->unique, 0, &out, sizeof out);
      return;
    }
    case FUSE_OPEN: {
      const struct fuse_open_out out = {.open_flags = FOPEN_DIRECT_IO};
      answer(request->unique, 0, &out, sizeof out);
      return;
    }
    case FUSE_READ: answer_read(request, more); return;
    case FUSE_FLUSH:
    case FUSE_RELEASE: answer(request->unique, 0, NULL, 0); return;
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT: return;
    default: answer(request->unique, -ENOSYS, NULL, 0);
  }
}

static void* serve(void* unused) {
  char* room = malloc(kRoom);
  CHECK_SPILLED(room);
  for (;;) {
    const ssize_t bytes = read(device, room, kRoom);
    if (bytes >= 0) {
      CHECK(bytes >= (ssize_t)sizeof(struct fuse_in_header));
      serve_request((const struct fuse_in_header*)room);
    } else if (errno != EINTR && errno != ENOENT) {
      CHECK(errno == ENODEV || errno == ECONNABORTED);  // it is unmounted
      free(room);
      return unused;
    }
  }
}

static int mount_here(const char* folder) {
  char options[100];
  device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  // The mount ends with the process.
  if (device < 0 || unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
    return 0;
  snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=%u,group_id=%u", device, getuid(),
           getgid());
  return mount("e2e", folder, "fuse", MS_NOSUID | MS_NODEV, options) == 0;
}

int main(void) {
  alarm(100);
  content = malloc(kFileBytes);
  for (size_t i = 0; i < kFileBytes; ++i) content[i] = (char)(i * 7 + i / 251);
  push_out(3 << 20);
  char folder[] = "mount-XXXXXX", path[64];
  CHECK(mkdtemp(folder) == folder);
  if (!mount_here(folder)) {
    rmdir(folder);
    puts("no file system of a program's own can be mounted here");
    return 77;
  }
  pthread_t server;
  CHECK(pthread_create(&server, NULL, serve, NULL) == 0);
  snprintf(path, sizeof path, "%s/file", folder);
  const int file = open(path, O_RDONLY);
  CHECK(file >= 0 && read(file, seen, kFileBytes) == kFileBytes);
  CHECK(memcmp(seen, content, kFileBytes) == 0 && close(file) == 0);
  CHECK(umount2(folder, MNT_DETACH) == 0 && pthread_join(server, NULL) == 0);
  rmdir(folder);
  puts("end");
  return 0;
}
