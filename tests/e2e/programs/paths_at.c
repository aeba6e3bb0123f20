// Functions that take paths, more of them than libc_calls.c and kernel_rare.c have: relative to a folder, with flags, by the names that sources
// with 64-bit offsets call, and what moves data between files. All they are given is spilled, and structures cross the end of a page.
// levels: O2
// pages: 4K 16K
// chaos: 1
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#include "call_arguments.h"

static char* folder;
static int at;    // the folder
static int file;  // "file" in it

static char* inside(const char* name) {
  char* path = zeros(200);
  sprintf(path, "%s/%s", folder, name);
  return path;
}

// The same of both: with 64-bit offsets and without they are one structure here.
static void show(const char* what, const void* status) {
  const struct stat* s = status;
  printf("%s: mode %o, %ld links, owners %u %u, %ld bytes\n", what, s->st_mode, (long)s->st_nlink, s->st_uid,
         s->st_gid, (long)s->st_size);
}

static void making(void) {
  folder = text("paths-XXXXXX");
  CHECK(mkdtemp(folder) == folder);
  CHECK((at = open64(folder, O_RDONLY | O_DIRECTORY)) >= 0);
  CHECK((file = openat(at, text("file"), O_CREAT | O_RDWR | O_EXCL, 0640)) >= 0);
  CHECK(write(file, text("0123456789"), 10) == 10);
  const int again = openat64(at, text("file"), O_RDONLY);
  char* bytes = zeros(100);
  CHECK(again >= 0 && read(again, bytes, 100) == 10 && memcmp(bytes, "0123456789", 10) == 0 &&
        close(again) == 0);
  CHECK(mkdirat(at, text("sub"), 0700) == 0 && mkfifoat(at, text("pipe"), 0600) == 0);
  CHECK(mkfifo(inside("fifo"), 0600) == 0 && mknod(inside("node"), S_IFREG | 0600, 0) == 0);
  CHECK(linkat(at, text("file"), at, text("link"), 0) == 0 && symlink("file", inside("soft")) == 0);
  int made = creat(inside("made"), 0600);
  CHECK(made >= 0 && write(made, "made", 4) == 4 && close(made) == 0);
  CHECK((made = creat64(inside("made"), 0600)) >= 0 && close(made) == 0);
}

static void status(void) {
  struct stat* known = NEW(struct stat);
  struct stat64* known64 = NEW(struct stat64);
  CHECK(fstatat(at, text("made"), known, 0) == 0);
  show("fstatat", known);
  CHECK(fstatat64(at, text("soft"), known64, AT_SYMLINK_NOFOLLOW) == 0);
  show("fstatat64", known64);
  CHECK(fstat64(file, known64) == 0);
  show("fstat64", known64);
  CHECK(stat64(inside("soft"), known64) == 0);
  show("stat64", known64);
  CHECK(lstat(inside("soft"), known) == 0);
  show("lstat", known);
  CHECK(lstat64(inside("pipe"), known64) == 0);
  show("lstat64", known64);
  CHECK(fstatat(at, text("none"), known, 0) == -1 && errno == ENOENT);
}

static void file_systems(void) {
  struct statfs* known = NEW(struct statfs);
  CHECK(fstatfs(at, known) == 0);
  printf("type %lx, blocks of %ld, names of %ld\n", (long)known->f_type, (long)known->f_bsize,
         (long)known->f_namelen);
  struct statfs64* known64 = NEW(struct statfs64);
  CHECK(statfs64(folder, known64) == 0 && known64->f_type == known->f_type &&
        known64->f_bsize == known->f_bsize);
  memset(known64, 0, sizeof *known64);
  CHECK(fstatfs64(file, known64) == 0 && known64->f_type == known->f_type &&
        known64->f_namelen == known->f_namelen);
  struct statvfs* posix = NEW(struct statvfs);
  CHECK(fstatvfs(at, posix) == 0 && posix->f_bsize == (unsigned long)known->f_bsize);
  struct statvfs64* posix64 = NEW(struct statvfs64);
  CHECK(statvfs64(folder, posix64) == 0 && posix64->f_namemax == (unsigned long)known->f_namelen);
  memset(posix64, 0, sizeof *posix64);
  CHECK(fstatvfs64(file, posix64) == 0 && posix64->f_namemax == (unsigned long)known->f_namelen);
  CHECK(pathconf(folder, _PC_NAME_MAX) == (long)known->f_namelen);
}

// Which of two paths is the first tells what is there afterwards.
static void names(void) {
  CHECK(renameat(at, text("link"), at, text("sub/moved")) == 0);
  CHECK(faccessat(at, text("link"), F_OK, 0) == -1 && errno == ENOENT);
  CHECK(faccessat(at, text("sub/moved"), R_OK | W_OK, 0) == 0);
  printf("renameat2 %d\n", renameat2(at, text("pipe"), at, text("sub/pipe"), RENAME_NOREPLACE));
  printf("renameat2 %d\n", renameat2(at, text("made"), at, text("sub/moved"), RENAME_NOREPLACE));
  printf("%d %d\n", faccessat(at, text("pipe"), F_OK, 0), faccessat(at, text("sub/pipe"), F_OK, 0));
  char* whole = canonicalize_file_name(inside("sub/../soft"));
  CHECK(whole != NULL && whole[0] == '/' && strcmp(whole + strlen(whole) - 5, "/file") == 0);
  free(whole);
  CHECK(canonicalize_file_name(inside("none")) == NULL && errno == ENOENT);
  CHECK(chroot(inside("none")) == -1 && errno == ENOENT);
  CHECK_REACHES(umount(inside("none")));
}

static void owners_and_modes(void) {
  struct stat* known = NEW(struct stat);
  CHECK(fchmodat(at, text("made"), 0604, 0) == 0 && fstatat(at, text("made"), known, 0) == 0);
  show("fchmodat", known);
  CHECK(eaccess(inside("made"), R_OK | W_OK) == 0 && euidaccess(inside("none"), R_OK) == -1 &&
        errno == ENOENT);
  CHECK(chmod(inside("node"), 0640) == 0);
  // Whoever is not root may not.
  printf("fchownat %d\n", fchownat(at, text("made"), 12, 34, 0));
  printf("lchown %d\n", lchown(inside("soft"), 56, 78));
  printf("chown %d\n", chown(inside("node"), 90, 12));
  CHECK(fstatat(at, text("made"), known, 0) == 0);
  show("fchownat", known);
  CHECK(lstat(inside("soft"), known) == 0);
  show("lchown", known);
  CHECK(stat(inside("node"), known) == 0);
  show("chown", known);
}

static void show_times(const char* what) {
  struct stat* known = NEW(struct stat);
  CHECK(fstat(file, known) == 0);
  printf("%s: %ld.%09ld %ld.%09ld\n", what, (long)known->st_atim.tv_sec, known->st_atim.tv_nsec,
         (long)known->st_mtim.tv_sec, known->st_mtim.tv_nsec);
}
static void times(void) {
  struct utimbuf* seconds = NEW(struct utimbuf);
  *seconds = (struct utimbuf){1000, 2000};
  CHECK(utime(inside("soft"), seconds) == 0);
  show_times("utime");
  struct timeval* micro = zeros(2 * sizeof *micro);
  micro[0] = (struct timeval){3000, 3};
  micro[1] = (struct timeval){4000, 4};
  CHECK(utimes(inside("file"), micro) == 0);
  show_times("utimes");
  struct timespec* nano = zeros(2 * sizeof *nano);
  nano[0] = (struct timespec){5000, 5};
  nano[1] = (struct timespec){6000, UTIME_OMIT};
  CHECK(futimens(file, nano) == 0);
  show_times("futimens");
  CHECK(utime(inside("none"), NULL) == -1 && errno == ENOENT);
}

static void attributes(void) {
  char* value = zeros(100);
  const int set = lsetxattr(inside("file"), text("user.one"), text("value"), 5, 0);
  printf("lsetxattr %d\n", set);
  if (set != 0) return;  // not on this file system
  CHECK(fgetxattr(file, text("user.one"), value, 100) == 5 && memcmp(value, "value", 5) == 0);
  CHECK(lremovexattr(inside("file"), text("user.one")) == 0);
  CHECK(fsetxattr(file, text("user.two"), text("more"), 4, 0) == 0 &&
        fremovexattr(file, text("user.two")) == 0);
  printf("flistxattr %zd\n", flistxattr(file, value, 100));  // of the system's own there may be some
}

// As its template is, with another six letters.
static void check_made(int made, char* name, const char* suffix) {
  struct stat* known = NEW(struct stat);
  CHECK(made >= 0 && memcmp(name, "made-", 5) == 0 && memcmp(name + 5, "XXXXXX", 6) != 0 &&
        strcmp(name + 11, suffix) == 0);
  CHECK(stat(name, known) == 0 && known->st_size == 0);
  printf("temporary%s: flags %d\n", suffix, fcntl(made, F_GETFD));
  CHECK(close(made) == 0 && unlink(name) == 0);
}
static void temporary(void) {
  char* name = text("made-XXXXXX");
  check_made(mkostemp(name, O_CLOEXEC), name, "");
  name = text("made-XXXXXX");
  check_made(mkstemp64(name), name, "");
  name = text("made-XXXXXX");
  check_made(mkostemp64(name, O_CLOEXEC), name, "");
  name = text("made-XXXXXX.txt");
  check_made(mkstemps(name, 4), name, ".txt");
  name = text("made-XXXXXX.c");
  check_made(mkstemps64(name, 2), name, ".c");
  name = text("made-XXXXXX.txt");
  check_made(mkostemps(name, 4, O_CLOEXEC), name, ".txt");
  name = text("made-XXXXXX.c");
  check_made(mkostemps64(name, 2, O_CLOEXEC), name, ".c");
  name = text("made-XXXXX");
  CHECK(mkostemp(name, 0) == -1 && errno == EINVAL && strcmp(name, "made-XXXXX") == 0);
}

// Offsets, too, are told where they are: how far it came.
static void moving(void) {
  const int to = open(inside("made"), O_RDWR | O_TRUNC);
  char* bytes = zeros(100);
  off_t* offset = NEW(off_t);
  *offset = 3;
  CHECK(to >= 0 && sendfile(to, file, offset, 4) == 4 && *offset == 7);
  off64_t* offset64 = NEW(off64_t);
  *offset64 = 8;
  CHECK(sendfile64(to, file, offset64, 100) == 2 && *offset64 == 10);
  CHECK(pread(to, bytes, 100, 0) == 6 && memcmp(bytes, "345689", 6) == 0);
  off64_t *from = NEW(off64_t), *into = NEW(off64_t);
  *from = 1;
  *into = 20;
  const ssize_t copied = copy_file_range(file, from, to, into, 5, 0);
  printf("copy_file_range %zd, to %ld and %ld\n", copied, (long)*from, (long)*into);
  if (copied == 5) CHECK(pread(to, bytes, 100, 20) == 5 && memcmp(bytes, "12345", 5) == 0);
  struct iovec* vector = zeros(2 * sizeof *vector);
  vector[0] = (struct iovec){text("hello "), 6};
  vector[1] = (struct iovec){text("world"), 5};
  CHECK(pwritev64(to, vector, 2, 30) == 11 && pwrite64(to, text("!"), 1, 41) == 1);
  vector[0] = (struct iovec){zeros(100), 3};
  vector[1] = (struct iovec){zeros(100), 50};
  CHECK(preadv64(to, vector, 2, 30) == 12);
  CHECK(memcmp(vector[0].iov_base, "hel", 3) == 0 && memcmp(vector[1].iov_base, "lo world!", 9) == 0);
  CHECK(close(to) == 0 && truncate64(inside("soft"), 5) == 0);
  CHECK(pread(file, bytes, 100, 0) == 5);
  char* mapped = mmap64(NULL, 5, PROT_READ, MAP_PRIVATE, file, 0);
  CHECK(mapped != MAP_FAILED && memcmp(mapped, "01234", 5) == 0 && munmap(mapped, 5) == 0);
  FILE* stream = fopen64(inside("made"), text("r"));
  char* line = zeros(100);
  CHECK(stream != NULL && fgets(line, 7, stream) == line && strcmp(line, "345689") == 0);
  CHECK((stream = freopen64(inside("file"), text("r+"), stream)) != NULL);
  CHECK(fgets(line, 100, stream) == line && strcmp(line, "01234") == 0 && fclose(stream) == 0);
}

int main(void) {
  push_out(3 << 20);
  making();
  status();
  file_systems();
  names();
  owners_and_modes();
  times();
  attributes();
  temporary();
  moving();
  const char* const all[] = {"file", "soft", "made", "pipe", "fifo", "node", "sub/pipe", "sub/moved"};
  for (unsigned i = 0; i < sizeof all / sizeof *all; ++i) unlinkat(at, all[i], 0);
  CHECK(unlinkat(at, text("sub"), AT_REMOVEDIR) == 0 && rmdir(folder) == 0);
  puts("end");
  return 0;
}
