// What libraries that spillcc did not compile ask of the system with memory of the program's: addresses of sockets, arrays of
// poll(), names of files and of their attributes, room for a path, for events and for random bytes, arguments of programs, buffers
// of streams.
// The functions that such a library finds by their names are called.
// levels: O2
// pages: 4K 16K
// chaos: 2
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "e2e.h"

#define FOREIGN(name) ((__typeof__(&name))dlsym(RTLD_DEFAULT, #name))

static void sockets(void) {
  struct sockaddr_in* address = spilled_zeros(sizeof *address);
  socklen_t* length = spilled_zeros(sizeof *length);
  *length = sizeof *address;
  address->sin_family = AF_INET;
  address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  push_out(3 << 20);
  const int listener = socket(AF_INET, SOCK_STREAM, 0), caller = socket(AF_INET, SOCK_STREAM, 0);
  CHECK(FOREIGN(bind)(listener, (struct sockaddr*)address, sizeof *address) == 0 && listen(listener, 1) == 0);
  CHECK(FOREIGN(getsockname)(listener, (struct sockaddr*)address, length) == 0 && *length == sizeof *address);
  const in_port_t port = address->sin_port;
  CHECK(port != 0 && FOREIGN(connect)(caller, (struct sockaddr*)address, sizeof *address) == 0);
  memset(address, 0, sizeof *address);
  CHECK(FOREIGN(getpeername)(caller, (struct sockaddr*)address, length) == 0 && address->sin_port == port);
  struct pollfd* waits = spilled_zeros(2 * sizeof *waits);
  waits[0] = (struct pollfd){listener, POLLIN, 0};
  waits[1] = (struct pollfd){-1, POLLIN, 0};
  push_out(3 << 20);
  CHECK(FOREIGN(poll)(waits, 2, 10000) == 1 && waits[0].revents == POLLIN && waits[1].revents == 0);
  const int epoll = epoll_create1(0);
  struct epoll_event* events = spilled_zeros(2 * sizeof *events);
  events->events = EPOLLIN;
  CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, listener, events) == 0);
  events->events = 0;
  push_out(3 << 20);
  CHECK(FOREIGN(epoll_wait)(epoll, events, 2, 10000) == 1 && events->events == EPOLLIN);
  events->events = 0;
  push_out(3 << 20);
  CHECK(FOREIGN(epoll_pwait)(epoll, events, 2, 10000, NULL) == 1 && events->events == EPOLLIN);
  close(epoll);
  close(listener);
  close(caller);
}

static void names(void) {
  char* folder = spilled_zeros(5000);
  push_out(3 << 20);
  CHECK(FOREIGN(getcwd)(folder, 5000) == folder && folder[0] == '/');
  const int watches = inotify_init1(0);
  CHECK(FOREIGN(inotify_add_watch)(watches, folder, IN_CREATE) >= 0);
  close(watches);
}

// As libacl and libselinux do. Few file systems have such attributes; what has none says so.
static void attributes(void) {
  char* path = spilled_zeros(5000);
  char* key = strcpy((char*)spilled_zeros(100), "user.spilled");
  char* value = spilled_zeros(100);
  strcpy(path, "attributes-XXXXXX");
  const int file = mkstemp(path);
  CHECK(file >= 0);
  push_out(3 << 20);
  const int works = FOREIGN(setxattr)(path, key, "content", 8, 0) == 0;
  CHECK(works || errno == ENOTSUP);
  CHECK(FOREIGN(getxattr)(path, key, value, 100) == (works ? 8 : -1));
  CHECK(strcmp(value, works ? "content" : "") == 0);
  memset(value, 0, 100);
  CHECK(FOREIGN(lgetxattr)(path, key, value, 100) == (works ? 8 : -1) && (works || errno == ENOTSUP));
  CHECK(FOREIGN(fgetxattr)(file, key, value, 100) == (works ? 8 : -1) && (works || errno == ENOTSUP));
  CHECK(FOREIGN(listxattr)(path, value, 100) >= 0 || errno == ENOTSUP);
  CHECK(FOREIGN(removexattr)(path, key) == (works ? 0 : -1) && unlink(path) == 0);
  close(file);
}

static int is_filled(const unsigned char* bytes, size_t n) {
  for (size_t i = 0; i < n; ++i)
    if (bytes[i] != 0) return 1;
  return 0;
}
static void random_bytes(void) {
  enum { kBytes = 128 };
  for (int way = 0; way < 3; ++way) {
    unsigned char* bytes = spilled_zeros(kBytes);
    push_out(3 << 20);
    if (way == 0) CHECK(FOREIGN(getrandom)(bytes, kBytes, 0) == kBytes);
    if (way == 1) CHECK(FOREIGN(getentropy)(bytes, kBytes) == 0);
    if (way == 2) FOREIGN(arc4random_buf)(bytes, kBytes);
    CHECK(is_filled(bytes, kBytes));
  }
}

// As libuv does.
static void by_number(void) {
  enum { kParts = 2, kBytes = 6, kFar = 5000 };
  char* bytes = spilled_zeros(kParts * kFar);
  struct statx* facts = spilled_zeros(sizeof *facts);
  struct mmsghdr* messages = spilled_zeros(kParts * sizeof *messages);
  struct iovec* parts = spilled_zeros(kParts * sizeof *parts);
  for (int i = 0; i < kParts; ++i) {
    parts[i] = (struct iovec){strcpy(bytes + i * kFar, i == 0 ? "first" : "other"), kBytes};
    messages[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i], .msg_iovlen = 1};
  }
  push_out(3 << 20);
  int ends[2];
  CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0);
  CHECK(FOREIGN(syscall)(SYS_sendmmsg, ends[0], messages, (long)kParts, 0L) == kParts);
  memset(bytes, 0, kParts * kFar);
  CHECK(FOREIGN(syscall)(SYS_recvmmsg, ends[1], messages, (long)kParts, (long)MSG_DONTWAIT, NULL) == kParts);
  CHECK(messages[1].msg_len == kBytes && strcmp(bytes, "first") == 0 && strcmp(bytes + kFar, "other") == 0);
  // As GLib does, by the function.
  CHECK(FOREIGN(sendmmsg)(ends[0], messages, kParts, 0) == kParts);
  memset(bytes, 0, kParts * kFar);
  CHECK(FOREIGN(recvmmsg)(ends[1], messages, kParts, MSG_DONTWAIT, NULL) == kParts);
  CHECK(strcmp(bytes, "first") == 0 && strcmp(bytes + kFar, "other") == 0);
  char name[] = "foreign-XXXXXX";
  const int file = mkstemp(name);
  CHECK(FOREIGN(syscall)(SYS_pwritev, file, parts, (long)kParts, 0L, 0L) == kParts * kBytes);
  memset(bytes, 0, kParts * kFar);
  CHECK(FOREIGN(syscall)(SYS_preadv, file, parts, (long)kParts, 0L, 0L) == kParts * kBytes);
  CHECK(strcmp(bytes, "first") == 0 && strcmp(bytes + kFar, "other") == 0 && unlink(name) == 0);
  strcpy(bytes, ".");
  CHECK(FOREIGN(syscall)(SYS_statx, AT_FDCWD, bytes, 0L, (long)STATX_TYPE, facts) == 0 &&
        S_ISDIR(facts->stx_mode));
  CHECK(FOREIGN(syscall)(SYS_statx, AT_FDCWD, name, 0L, (long)STATX_TYPE, facts) == -1 && errno == ENOENT);
  memset(bytes, 0, kFar);
  CHECK(FOREIGN(syscall)(SYS_getrandom, bytes, 64L, 0L) == 64 && is_filled((unsigned char*)bytes, 64));
  CHECK(FOREIGN(syscall)(SYS_getpid) == getpid());
}

// As GLib and libuv start programs.
static char** arguments;
static char* shell;
static void run_by(int way) {
  if (way == 0) FOREIGN(execve)(shell, arguments, environ);
  if (way == 1) FOREIGN(execv)(shell, arguments);
  if (way == 2) FOREIGN(execvp)(arguments[0], arguments);
  if (way == 3) FOREIGN(execl)(shell, arguments[0], arguments[1], arguments[2], (char*)NULL);
  _exit(99);
}
static void expect_seven(pid_t child) {
  int status;
  CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
}
static void children(void) {
  arguments = spilled_zeros(4 * sizeof *arguments);
  const char* const words[] = {"sh", "-c", "exit 7"};
  for (int i = 0; i < 3; ++i) arguments[i] = strcpy(spilled_zeros(100), words[i]);
  shell = strcpy(spilled_zeros(100), "/bin/sh");
  push_out(3 << 20);
  for (int way = 0; way < 4; ++way) {
    const pid_t child = fork();
    if (child == 0) run_by(way);
    expect_seven(child);
  }
  pid_t* child = spilled_zeros(sizeof *child);
  CHECK(FOREIGN(posix_spawn)(child, shell, NULL, NULL, arguments, environ) == 0);
  expect_seven(*child);
  CHECK(FOREIGN(posix_spawnp)(child, arguments[0], NULL, NULL, arguments, environ) == 0);
  expect_seven(*child);
  CHECK(FOREIGN(execv)("/no/such/program", arguments) == -1 && errno == ENOENT);
}

// The C library would give them to the kernel.
static void buffers(void) {
  enum { kBytes = 128 << 10 };
  for (int way = 0; way < 3; ++way) {
    FILE* stream = tmpfile();
    CHECK(stream != NULL);
    char* buffer = spilled_zeros(kBytes);
    if (way == 0) CHECK(FOREIGN(setvbuf)(stream, buffer, _IOFBF, kBytes) == 0);
    if (way == 1) FOREIGN(setbuffer)(stream, buffer, kBytes);
    if (way == 2) FOREIGN(setbuf)(stream, buffer);
    push_out(3 << 20);
    for (int i = 0; i < kBytes; ++i) CHECK(putc('a' + i % 26, stream) != EOF);
    CHECK(fflush(stream) == 0);
    rewind(stream);
    for (int i = 0; i < kBytes; ++i) CHECK(getc(stream) == 'a' + i % 26);
    CHECK(getc(stream) == EOF && fclose(stream) == 0);
  }
}

int main(void) {
  sockets();
  names();
  attributes();
  random_bytes();
  by_number();
  children();
  buffers();
  puts("served");
  return 0;
}
