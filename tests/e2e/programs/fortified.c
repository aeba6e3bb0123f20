// What sources compiled with -D_FORTIFY_SOURCE call, by its names: each does what the function does that it stands for, and ends the process where
// the room that it is told of does not suffice. All they are given is spilled.
// flags: -fno-builtin
// levels: O2
// pages: 4K 16K
// chaos: 1
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <syslog.h>
#include <unistd.h>

#include "call_arguments.h"

extern void* __memcpy_chk(void*, const void*, size_t, size_t);
extern void* __memmove_chk(void*, const void*, size_t, size_t);
extern void* __mempcpy_chk(void*, const void*, size_t, size_t);
extern void* __memset_chk(void*, int, size_t, size_t);
extern void __explicit_bzero_chk(void*, size_t, size_t);
extern char* __strcpy_chk(char*, const char*, size_t);
extern char* __stpcpy_chk(char*, const char*, size_t);
extern char* __strncpy_chk(char*, const char*, size_t, size_t);
extern char* __stpncpy_chk(char*, const char*, size_t, size_t);
extern char* __strcat_chk(char*, const char*, size_t);
extern char* __strncat_chk(char*, const char*, size_t, size_t);
extern char* __fgets_chk(char*, size_t, int, FILE*);
extern char* __fgets_unlocked_chk(char*, size_t, int, FILE*);
extern size_t __fread_chk(void*, size_t, size_t, size_t, FILE*);
extern size_t __fread_unlocked_chk(void*, size_t, size_t, size_t, FILE*);
extern int __printf_chk(int, const char*, ...);
extern int __fprintf_chk(FILE*, int, const char*, ...);
extern int __dprintf_chk(int, int, const char*, ...);
extern int __asprintf_chk(char**, int, const char*, ...);
extern int __sprintf_chk(char*, int, size_t, const char*, ...);
extern int __snprintf_chk(char*, size_t, int, size_t, const char*, ...);
extern void __syslog_chk(int, int, const char*, ...);
extern int __vprintf_chk(int, const char*, va_list);
extern int __vfprintf_chk(FILE*, int, const char*, va_list);
extern int __vdprintf_chk(int, int, const char*, va_list);
extern int __vasprintf_chk(char**, int, const char*, va_list);
extern int __vsprintf_chk(char*, int, size_t, const char*, va_list);
extern int __vsnprintf_chk(char*, size_t, int, size_t, const char*, va_list);
extern void __vsyslog_chk(int, int, const char*, va_list);
extern ssize_t __read_chk(int, void*, size_t, size_t);
extern ssize_t __pread_chk(int, void*, size_t, off_t, size_t);
extern ssize_t __pread64_chk(int, void*, size_t, off_t, size_t);
extern ssize_t __recv_chk(int, void*, size_t, size_t, int);
extern ssize_t __recvfrom_chk(int, void*, size_t, size_t, int, struct sockaddr*, socklen_t*);
extern int __poll_chk(struct pollfd*, nfds_t, int, size_t);
extern int __ppoll_chk(struct pollfd*, nfds_t, const struct timespec*, const sigset_t*, size_t);
extern int __open_2(const char*, int);
extern int __open64_2(const char*, int);
extern int __openat_2(int, const char*, int);
extern int __openat64_2(int, const char*, int);
extern char* __getcwd_chk(char*, size_t, size_t);
extern char* __getwd_chk(char*, size_t);
extern char* __realpath_chk(const char*, char*, size_t);
extern ssize_t __readlink_chk(const char*, char*, size_t, size_t);
extern ssize_t __readlinkat_chk(int, const char*, char*, size_t, size_t);
extern int __gethostname_chk(char*, size_t, size_t);
extern int __getdomainname_chk(char*, size_t, size_t);
extern int __getlogin_r_chk(char*, size_t, size_t);
extern int __ttyname_r_chk(int, char*, size_t, size_t);
extern int __getgroups_chk(int, gid_t*, size_t);

static char *to, *from;  // of 100 bytes
static int file;         // holds "ten bytes!"
static FILE* stream;     // reads "a line\n" again and again

static void memory(void) {
  CHECK(__memcpy_chk(to, from, 12, 12) == to && memcmp(to, "twelve bytes", 12) == 0);
  CHECK(__memmove_chk(to + 1, to, 12, 12) == to + 1 && memcmp(to, "ttwelve bytes", 13) == 0);
  CHECK(__mempcpy_chk(to, from, 6, 6) == to + 6 && memcmp(to, "twelvee bytes", 13) == 0);
  CHECK(__memset_chk(to, 'x', 3, 3) == to && memcmp(to, "xxxlvee", 7) == 0);
  __explicit_bzero_chk(to, 50, 50);
  for (int i = 0; i < 50; ++i) CHECK(to[i] == 0);
}

static void strings(void) {
  CHECK(__strcpy_chk(to, from, 13) == to && strcmp(to, "twelve bytes") == 0);
  CHECK(__stpcpy_chk(to, text("one"), 4) == to + 3 && strcmp(to, "one") == 0);
  CHECK(__strcat_chk(to, text(", two"), 9) == to && strcmp(to, "one, two") == 0);
  CHECK(__strncat_chk(to, text(", three"), 3, 12) == to && strcmp(to, "one, two, t") == 0);
  CHECK(__strncpy_chk(to, text("four"), 6, 6) == to && memcmp(to, "four\0\0wo", 8) == 0);
  CHECK(__stpncpy_chk(to, text("fi"), 3, 3) == to + 2 && memcmp(to, "fi\0r", 4) == 0);
}

static void streams(void) {
  rewind(stream);
  CHECK(__fgets_chk(to, 8, 8, stream) == to && strcmp(to, "a line\n") == 0);
  CHECK(__fgets_chk(to, 8, 100, stream) == to && strcmp(to, "a line\n") == 0);  // which is true where it fits
  CHECK(__fgets_unlocked_chk(to, 8, 100, stream) == to && strcmp(to, "a line\n") == 0);
  CHECK(__fread_chk(to, 14, 7, 2, stream) == 2 && memcmp(to, "a line\na line\n", 14) == 0);
  CHECK(__fread_unlocked_chk(to, 7, 1, 7, stream) == 7);
}

static void with_list(const char* format, ...) {
  char** block = NEW(char*);
  va_list list;
  va_start(list, format);
  va_list all[7];
  for (int i = 0; i < 7; ++i) va_copy(all[i], list);
  CHECK(__vprintf_chk(1, format, all[0]) == 9 && __vfprintf_chk(stdout, 1, format, all[1]) == 9);
  fflush(stdout);
  CHECK(__vdprintf_chk(1, 1, format, all[2]) == 9);
  CHECK(__vasprintf_chk(block, 1, format, all[3]) == 9 && strcmp(*block, "list, 12\n") == 0);
  CHECK(__vsprintf_chk(to, 1, 10, format, all[4]) == 9 && strcmp(to, "list, 12\n") == 0);
  CHECK(__vsnprintf_chk(to, 5, 1, 5, format, all[5]) == 9 && strcmp(to, "list") == 0);
  __vsyslog_chk(LOG_DEBUG, 1, format, all[6]);
  for (int i = 0; i < 7; ++i) va_end(all[i]);
  va_end(list);
  free(*block);
}
static void printing(void) {
  char *format = text("%s, %d\n"), *word = text("more"), **block = NEW(char*);
  CHECK(__printf_chk(1, format, word, 34) == 9 && __fprintf_chk(stdout, 1, format, word, 56) == 9);
  fflush(stdout);
  CHECK(__dprintf_chk(1, 1, format, word, 78) == 9);
  CHECK(__asprintf_chk(block, 1, format, word, 90) == 9 && strcmp(*block, "more, 90\n") == 0);
  free(*block);
  CHECK(__sprintf_chk(to, 1, 10, format, word, 12) == 9 && strcmp(to, "more, 12\n") == 0);
  CHECK(__snprintf_chk(to, 5, 1, 5, format, word, 34) == 9 && strcmp(to, "more") == 0);
  setlogmask(LOG_UPTO(LOG_ERR));
  __syslog_chk(LOG_DEBUG, 1, format, word, 56);
  with_list(text("%s, %d\n"), text("list"), 12);
}

static void descriptors(void) {
  CHECK(lseek(file, 0, SEEK_SET) == 0 && __read_chk(file, to, 4, 4) == 4 && memcmp(to, "ten ", 4) == 0);
  CHECK(__pread_chk(file, to, 5, 4, 5) == 5 && memcmp(to, "bytes", 5) == 0);
  CHECK(__pread64_chk(file, to, 90, 9, 90) == 1 && to[0] == '!');
  int* ends = zeros(8);
  CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0 && send(ends[0], from, 12, 0) == 12 &&
        send(ends[0], from, 6, 0) == 6);
  CHECK(__recv_chk(ends[1], to, 50, 50, 0) == 12 && memcmp(to, "twelve bytes", 12) == 0);
  struct sockaddr_storage* address = NEW(struct sockaddr_storage);
  socklen_t* length = NEW(socklen_t);
  *length = sizeof *address;
  CHECK(__recvfrom_chk(ends[1], to, 50, 50, 0, (struct sockaddr*)address, length) == 6 &&
        *length <= sizeof *address);
  struct pollfd* wanted = NEW(struct pollfd);
  *wanted = (struct pollfd){ends[1], POLLOUT, 0};
  CHECK(__poll_chk(wanted, 1, 1000, sizeof *wanted) == 1 && wanted->revents == POLLOUT);
  wanted->revents = 0;
  CHECK(__ppoll_chk(wanted, 1, NEW(struct timespec), NEW(sigset_t), sizeof *wanted) == 1 &&
        wanted->revents == POLLOUT);
  CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
}

static void opened(int descriptor) {
  CHECK(descriptor >= 0 && read(descriptor, to, 10) == 10 && memcmp(to, "ten bytes!", 10) == 0 &&
        close(descriptor) == 0);
}
static void paths(const char* name) {
  const int here = open(".", O_RDONLY | O_DIRECTORY);
  char *path = text(name), *whole = zeros(PATH_MAX), *link = text("fortified.link");
  opened(__open_2(path, O_RDONLY));
  opened(__open64_2(path, O_RDONLY));
  opened(__openat_2(here, path, O_RDONLY));
  opened(__openat64_2(here, path, O_RDONLY));
  CHECK(__getcwd_chk(whole, PATH_MAX, PATH_MAX) == whole && whole[0] == '/');
  whole[0] = 0;
  CHECK(__getwd_chk(whole, PATH_MAX) == whole && whole[0] == '/');
  CHECK(__realpath_chk(path, whole, PATH_MAX) == whole && strcmp(strrchr(whole, '/') + 1, name) == 0);
  unlink(link);
  CHECK(symlink("where it leads", link) == 0);
  CHECK(__readlink_chk(link, to, 5, 5) == 5 && memcmp(to, "where", 5) == 0);
  CHECK(__readlinkat_chk(here, link, to, 50, 50) == 14 && memcmp(to, "where it leads", 14) == 0);
  CHECK(unlink(link) == 0 && close(here) == 0);
}

static void system_(void) {
  CHECK(__gethostname_chk(to, 90, 90) == 0 && to[0] != 0);
  CHECK(__getdomainname_chk(to, 90, 90) == 0);
  CHECK(__getlogin_r_chk(to, 90, 90) != EFAULT);
  gid_t* groups = zeros(4 * 100);
  const int count = __getgroups_chk(100, groups, 4 * 100);
  CHECK(count == getgroups(0, NULL));
  int *owner = NEW(int), *other = NEW(int);
  if (openpty(owner, other, NULL, NULL, NULL) != 0) return;
  CHECK(__ttyname_r_chk(*other, to, 90, 90) == 0 && strncmp(to, "/dev/", 5) == 0);
  CHECK(close(*owner) == 0 && close(*other) == 0);
}

// One byte, or element, less room than is asked for. False: there is no such number.
static int overflow(int number) {
  struct pollfd* wanted = NEW(struct pollfd);
  char *format = text("%s"), *four = text("four");
  switch (number) {
    case 0: return __memcpy_chk(to, from, 12, 11) != NULL;
    case 1: return __memmove_chk(to, from, 12, 11) != NULL;
    case 2: return __mempcpy_chk(to, from, 12, 11) != NULL;
    case 3: return __memset_chk(to, 0, 12, 11) != NULL;
    case 4: __explicit_bzero_chk(to, 12, 11); return 1;
    case 5: return __strcpy_chk(to, four, 4) != NULL;
    case 6: return __stpcpy_chk(to, four, 4) != NULL;
    case 7: return __strncpy_chk(to, four, 4, 3) != NULL;
    case 8: return __stpncpy_chk(to, four, 4, 3) != NULL;
    case 9: strcpy(to, "two"); return __strcat_chk(to, four, 7) != NULL;
    case 10: strcpy(to, "two"); return __strncat_chk(to, four, 4, 7) != NULL;
    case 11: return __fgets_chk(to, 6, 100, stream) != NULL;
    case 12: return __fread_chk(to, 13, 7, 2, stream) != 0;
    case 13: return __fread_unlocked_chk(to, 13, 7, 2, stream) != 0;
    case 14: return __sprintf_chk(to, 1, 4, format, four) != 0;
    case 15: return __snprintf_chk(to, 5, 1, 4, format, four) != 0;
    case 16: return __read_chk(file, to, 5, 4) != 0;
    case 17: return __pread_chk(file, to, 5, 0, 4) != 0;
    case 18: return __pread64_chk(file, to, 5, 0, 4) != 0;
    case 19: return __recv_chk(file, to, 5, 4, 0) != 0;
    case 20: return __recvfrom_chk(file, to, 5, 4, 0, NULL, NULL) != 0;
    case 21: return __poll_chk(wanted, 2, 0, sizeof *wanted) != -1;
    case 22: return __ppoll_chk(wanted, 2, NULL, NULL, sizeof *wanted) != -1;
    case 23: return __getcwd_chk(to, 90, 89) != NULL;
    case 24: return __realpath_chk(".", to, 90) != NULL;
    case 25: return __readlink_chk(four, to, 5, 4) != 0;
    case 26: return __readlinkat_chk(AT_FDCWD, four, to, 5, 4) != 0;
    case 27: return __gethostname_chk(to, 90, 89) != -2;
    case 28: return __getdomainname_chk(to, 90, 89) != -2;
    case 29: return __getlogin_r_chk(to, 90, 89) != -2;
    case 30: return __ttyname_r_chk(0, to, 90, 89) != -2;
    case 31: return __getgroups_chk(2, (gid_t*)to, 7) != -2;
    case 32: return __getwd_chk(to, 1) != NULL;
    default: return 0;
  }
}
static void overflows(void) {
  rewind(stream);
  fflush(stdout);
  for (int number = 0;; ++number) {
    const pid_t child = fork();
    if (child == 0) _exit(overflow(number));
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
      printf("%d ended their process\n", number);
      return;
    }
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT) printf("%d: status %x\n", number, status);
  }
}

int main(void) {
  const struct rlimit none = {0, 0};
  CHECK(setrlimit(RLIMIT_CORE, &none) == 0);
  push_out(3 << 20);
  to = zeros(100);
  from = strcpy(zeros(100), "twelve bytes");
  char name[] = "fortified-XXXXXX";
  CHECK((file = mkstemp(name)) >= 0 && write(file, "ten bytes!", 10) == 10);
  stream = tmpfile();
  for (int i = 0; i < 6; ++i) fputs("a line\n", stream);
  memory();
  strings();
  streams();
  printing();
  descriptors();
  paths(name);
  system_();
  overflows();
  CHECK(unlink(name) == 0);
  puts("end");
  return 0;
}
