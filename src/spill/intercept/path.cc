// Functions that take paths, and those that return a small structure about files. Paths and structures in spilled memory are copied.
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <limits.h>
#include <mntent.h>
#include <nl_types.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#include "spill/intercept/call.h"
#include "spill/thread.h"

// Opening: a FIFO waits for its other end.
#define SPILL_OPEN_MODE(flags)                                          \
  mode_t mode = 0;                                                      \
  if (((flags) & O_CREAT) != 0 || ((flags) & O_TMPFILE) == O_TMPFILE) { \
    va_list list;                                                       \
    va_start(list, flags);                                              \
    mode = va_arg(list, mode_t);                                        \
    va_end(list);                                                       \
  }                                                                     \
  const PlainString plain_path(path);                                   \
  spill::clear_slots()

SPILL_EXPORT int __spill_open(const char* path, int flags, ...) {
  SPILL_OPEN_MODE(flags);
  return LIBC(open)(plain_path, flags, mode);
}
SPILL_EXPORT int __spill_open64(const char* path, int flags, ...) {
  SPILL_OPEN_MODE(flags);
  return LIBC(open64)(plain_path, flags, mode);
}
SPILL_EXPORT int __spill_openat(int folder, const char* path, int flags, ...) {
  SPILL_OPEN_MODE(flags);
  return LIBC(openat)(folder, plain_path, flags, mode);
}
SPILL_EXPORT int __spill_openat64(int folder, const char* path, int flags, ...) {
  SPILL_OPEN_MODE(flags);
  return LIBC(openat64)(folder, plain_path, flags, mode);
}
// open() without a mode in programs compiled with -D_FORTIFY_SOURCE.
SPILL_EXPORT int __spill___open_2(const char* path, int flags) { return __spill_open(path, flags, 0); }
SPILL_EXPORT int __spill___open64_2(const char* path, int flags) { return __spill_open64(path, flags, 0); }
SPILL_EXPORT int __spill___openat_2(int folder, const char* path, int flags) {
  return __spill_openat(folder, path, flags, 0);
}
SPILL_EXPORT int __spill___openat64_2(int folder, const char* path, int flags) {
  return __spill_openat64(folder, path, flags, 0);
}

SPILL_NEXT(int, creat, (const char* path, mode_t mode), (PlainString(path), mode))
SPILL_NEXT(int, creat64, (const char* path, mode_t mode), (PlainString(path), mode))
SPILL_NEXT(int, access, (const char* path, int mode), (PlainString(path), mode))
SPILL_CALL(int, eaccess, (const char* path, int mode), (PlainString(path), mode))
SPILL_CALL(int, euidaccess, (const char* path, int mode), (PlainString(path), mode))
SPILL_NEXT(int, faccessat, (int folder, const char* path, int mode, int flags),
           (folder, PlainString(path), mode, flags))
SPILL_NEXT(int, mkdir, (const char* path, mode_t mode), (PlainString(path), mode))
SPILL_NEXT(int, mkdirat, (int folder, const char* path, mode_t mode), (folder, PlainString(path), mode))
SPILL_CALL(int, mkfifo, (const char* path, mode_t mode), (PlainString(path), mode))
SPILL_CALL(int, mkfifoat, (int folder, const char* path, mode_t mode), (folder, PlainString(path), mode))
SPILL_CALL(int, mknod, (const char* path, mode_t mode, dev_t device), (PlainString(path), mode, device))
SPILL_CALL(int, mknodat, (int folder, const char* path, mode_t mode, dev_t device),
           (folder, PlainString(path), mode, device))
SPILL_NEXT(int, rmdir, (const char* path), (PlainString(path)))
SPILL_NEXT(int, unlink, (const char* path), (PlainString(path)))
SPILL_NEXT(int, unlinkat, (int folder, const char* path, int flags), (folder, PlainString(path), flags))
SPILL_NEXT(int, rename, (const char* from, const char* to), (PlainString(from), PlainString(to)))
SPILL_NEXT(int, renameat, (int from_folder, const char* from, int to_folder, const char* to),
           (from_folder, PlainString(from), to_folder, PlainString(to)))
SPILL_CALL(int, renameat2, (int from_folder, const char* from, int to_folder, const char* to, unsigned flags),
           (from_folder, PlainString(from), to_folder, PlainString(to), flags))
SPILL_NEXT(int, link, (const char* from, const char* to), (PlainString(from), PlainString(to)))
SPILL_NEXT(int, linkat, (int from_folder, const char* from, int to_folder, const char* to, int flags),
           (from_folder, PlainString(from), to_folder, PlainString(to), flags))
SPILL_NEXT(int, symlink, (const char* content, const char* path), (PlainString(content), PlainString(path)))
SPILL_NEXT(int, symlinkat, (const char* content, int folder, const char* path),
           (PlainString(content), folder, PlainString(path)))
SPILL_NEXT(int, chdir, (const char* path), (PlainString(path)))
SPILL_CALL(int, chroot, (const char* path), (PlainString(path)))
SPILL_NEXT(int, chmod, (const char* path, mode_t mode), (PlainString(path), mode))
SPILL_NEXT(int, fchmodat, (int folder, const char* path, mode_t mode, int flags),
           (folder, PlainString(path), mode, flags))
SPILL_CALL(int, lchmod, (const char* path, mode_t mode), (PlainString(path), mode))
SPILL_NEXT(int, chown, (const char* path, uid_t user, gid_t group), (PlainString(path), user, group))
SPILL_NEXT(int, lchown, (const char* path, uid_t user, gid_t group), (PlainString(path), user, group))
SPILL_NEXT(int, fchownat, (int folder, const char* path, uid_t user, gid_t group, int flags),
           (folder, PlainString(path), user, group, flags))
SPILL_NEXT(int, truncate, (const char* path, off_t bytes), (PlainString(path), bytes))
SPILL_NEXT(int, truncate64, (const char* path, off_t bytes), (PlainString(path), bytes))
SPILL_CALL(long, pathconf, (const char* path, int name), (PlainString(path), name))
SPILL_NEXT(DIR*, opendir, (const char* path), (PlainString(path)))
SPILL_CALL(FILE*, setmntent, (const char* path, const char* mode), (PlainString(path), PlainString(mode)))
SPILL_CALL(nl_catd, catopen, (const char* path, int flags), (PlainString(path), flags))
SPILL_CALL(int, utime, (const char* path, const utimbuf* times), (PlainString(path), PlainIn<utimbuf>(times)))

SPILL_NEXT(ssize_t, getxattr, (const char* path, const char* name, void* value, size_t n),
           (PlainString(path), PlainString(name), PlainBytes(value, n, PlainBytes::kInOut).data(), n))
SPILL_NEXT(int, setxattr, (const char* path, const char* name, const void* value, size_t n, int flags),
           (PlainString(path), PlainString(name), PlainBytes(value, n, PlainBytes::kIn).data(), n, flags))
SPILL_NEXT(ssize_t, listxattr, (const char* path, char* list, size_t n),
           (PlainString(path), PlainBytes(list, n, PlainBytes::kInOut).data(), n))

// The status of files.
#define SPILL_STATUS(name, status)                                        \
  SPILL_EXPORT int __spill_##name(const char* path, struct status* to) {  \
    return LIBC(name)(PlainString(path), PlainObject<struct status>(to)); \
  }
#define SPILL_STATUS_OF_DESCRIPTOR(name, status)                       \
  SPILL_EXPORT int __spill_##name(int descriptor, struct status* to) { \
    return name(descriptor, PlainObject<struct status>(to));           \
  }
SPILL_STATUS(stat, stat)
SPILL_STATUS(stat64, stat64)
SPILL_STATUS(lstat, stat)
SPILL_STATUS(lstat64, stat64)
SPILL_STATUS(statfs, statfs)
SPILL_STATUS(statfs64, statfs64)
SPILL_STATUS(statvfs, statvfs)
SPILL_STATUS(statvfs64, statvfs64)
SPILL_STATUS_OF_DESCRIPTOR(fstat, stat)
SPILL_STATUS_OF_DESCRIPTOR(fstat64, stat64)
SPILL_STATUS_OF_DESCRIPTOR(fstatfs, statfs)
SPILL_STATUS_OF_DESCRIPTOR(fstatfs64, statfs64)
SPILL_STATUS_OF_DESCRIPTOR(fstatvfs, statvfs)
SPILL_STATUS_OF_DESCRIPTOR(fstatvfs64, statvfs64)
SPILL_NEXT(int, fstatat, (int folder, const char* path, struct stat* to, int flags),
           (folder, PlainString(path), PlainObject<struct stat>(to), flags))
SPILL_NEXT(int, fstatat64, (int folder, const char* path, struct stat64* to, int flags),
           (folder, PlainString(path), PlainObject<struct stat64>(to), flags))
SPILL_NEXT(int, statx, (int folder, const char* path, int flags, unsigned mask, struct statx* to),
           (folder, PlainString(path), flags, mask, PlainObject<struct statx>(to)))

// The same functions' names in programs built against C libraries before 2.33.
SPILL_EXPORT int __spill___xstat(int, const char* path, struct stat* to) { return __spill_stat(path, to); }
SPILL_EXPORT int __spill___lxstat(int, const char* path, struct stat* to) { return __spill_lstat(path, to); }
SPILL_EXPORT int __spill___fxstat(int, int descriptor, struct stat* to) {
  return __spill_fstat(descriptor, to);
}
SPILL_EXPORT int __spill___fxstatat(int, int folder, const char* path, struct stat* to, int flags) {
  return __spill_fstatat(folder, path, to, flags);
}
SPILL_EXPORT int __spill___xstat64(int, const char* path, struct stat64* to) {
  return __spill_stat64(path, to);
}
SPILL_EXPORT int __spill___lxstat64(int, const char* path, struct stat64* to) {
  return __spill_lstat64(path, to);
}
SPILL_EXPORT int __spill___fxstat64(int, int descriptor, struct stat64* to) {
  return __spill_fstat64(descriptor, to);
}
SPILL_EXPORT int __spill___fxstatat64(int, int folder, const char* path, struct stat64* to, int flags) {
  return __spill_fstatat64(folder, path, to, flags);
}

// Paths as results.
SPILL_EXPORT ssize_t __spill_readlink(const char* path, char* to, size_t n) {
  PlainString plain_path(path);
  PlainBytes content(to, std::min<size_t>(n, PATH_MAX), PlainBytes::kOut);
  const ssize_t length =
      LIBC(readlink)(plain_path, content.data(), content.data() == to ? n : std::min<size_t>(n, PATH_MAX));
  if (length > 0) content.store(static_cast<size_t>(length));
  return length;
}
SPILL_EXPORT ssize_t __spill_readlinkat(int folder, const char* path, char* to, size_t n) {
  PlainString plain_path(path);
  PlainBytes content(to, std::min<size_t>(n, PATH_MAX), PlainBytes::kOut);
  const ssize_t length = LIBC(readlinkat)(folder, plain_path, content.data(),
                                          content.data() == to ? n : std::min<size_t>(n, PATH_MAX));
  if (length > 0) content.store(static_cast<size_t>(length));
  return length;
}
SPILL_EXPORT ssize_t __spill___readlink_chk(const char* path, char* to, size_t n, size_t room) {
  if (n > room) spill::buffer_overflow();
  return __spill_readlink(path, to, n);
}

SPILL_EXPORT ssize_t __spill___readlinkat_chk(int folder, const char* path, char* to, size_t n, size_t room) {
  if (n > room) spill::buffer_overflow();
  return __spill_readlinkat(folder, path, to, n);
}

SPILL_EXPORT char* __spill_realpath(const char* path, char* to) {
  PlainString plain_path(path);
  if (plain(to)) return LIBC(realpath)(plain_path, to);
  PlainBytes content(to, PATH_MAX, PlainBytes::kOut);
  if (content.data() == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  *content.data() = 0;
  // On failure, stores the part that was resolved, if any.
  const bool resolved = LIBC(realpath)(plain_path, content.data()) != nullptr;
  if (*content.data() != 0) content.store(strlen(content.data()) + 1);
  return resolved ? to : nullptr;
}
SPILL_EXPORT char* __spill___realpath_chk(const char* path, char* to, size_t room) {
  if (room < PATH_MAX) spill::buffer_overflow();
  return __spill_realpath(path, to);
}
SPILL_CALL(char*, canonicalize_file_name, (const char* path), (PlainString(path)))

SPILL_EXPORT char* __spill_getcwd(char* to, size_t n) {
  if (spill::all_plain(to, n)) return LIBC(getcwd)(to, n);
  PlainBytes content(to, n, PlainBytes::kOut);
  // Given null, the C library would allocate memory.
  if (content.data() == nullptr) {
    errno = n == 0 ? EINVAL : ENOMEM;
    return nullptr;
  }
  if (LIBC(getcwd)(content.data(), n) == nullptr) return nullptr;
  content.store(strlen(content.data()) + 1);
  return to;
}
SPILL_EXPORT char* __spill___getcwd_chk(char* to, size_t n, size_t room) {
  if (n > room) spill::buffer_overflow();
  return __spill_getcwd(to, n);
}
// getwd() with -D_FORTIFY_SOURCE, which takes no length. (Under its own name the C library copies the path from its stack.)
SPILL_EXPORT char* __spill___getwd_chk(char* to, size_t room) {
  char* const path = __spill_getcwd(to, room);
  if (path == nullptr && errno == ERANGE) spill::buffer_overflow();
  return path;
}

// Templates: the path that was made is written over the argument.
template <class Make>
static auto make_temporary(char* path, Make make) {
  if (spill::spilled_string_bytes(path) == 0) return make(path);
  PlainString plain_path(path);
  auto* made = const_cast<char*>(static_cast<const char*>(plain_path));
  auto result = make(made);
  if (made != nullptr) spill::copy(path, made, strlen(made));
  return result;
}
SPILL_EXPORT int __spill_mkstemp(char* path) { return make_temporary(path, mkstemp); }
SPILL_EXPORT int __spill_mkostemp(char* path, int flags) {
  return make_temporary(path, [=](char* p) { return mkostemp(p, flags); });
}
SPILL_EXPORT int __spill_mkstemps(char* path, int suffix_length) {
  return make_temporary(path, [=](char* p) { return mkstemps(p, suffix_length); });
}
SPILL_EXPORT int __spill_mkostemps(char* path, int suffix_length, int flags) {
  return make_temporary(path, [=](char* p) { return mkostemps(p, suffix_length, flags); });
}
// Offsets have 64 bits anyway.
SPILL_EXPORT int __spill_mkstemp64(char* path) { return __spill_mkstemp(path); }
SPILL_EXPORT int __spill_mkostemp64(char* path, int flags) { return __spill_mkostemp(path, flags); }
SPILL_EXPORT int __spill_mkstemps64(char* path, int suffix_length) {
  return __spill_mkstemps(path, suffix_length);
}
SPILL_EXPORT int __spill_mkostemps64(char* path, int suffix_length, int flags) {
  return __spill_mkostemps(path, suffix_length, flags);
}
SPILL_EXPORT char* __spill_mkdtemp(char* path) {
  return make_temporary(path, mkdtemp) != nullptr ? path : nullptr;
}

// Names that no file has yet. The C library passes them to the kernel.
SPILL_EXPORT char* __spill_mktemp(char* path) {
  PlainBytes memory(path, spill::spilled_string_bytes(path), PlainBytes::kInOut);
  return mktemp(memory.data()) != nullptr ? path : nullptr;
}
SPILL_EXPORT char* __spill_tmpnam_r(char* to) {
  PlainBytes name(to, L_tmpnam, PlainBytes::kOut);
  if (tmpnam_r(name.data()) == nullptr) return nullptr;
  name.store(strlen(name.data()) + 1);
  return to;
}
SPILL_EXPORT char* __spill_tmpnam(char* to) { return to == nullptr ? tmpnam(to) : __spill_tmpnam_r(to); }
SPILL_CALL(char*, tempnam, (const char* folder, const char* prefix),
           (PlainString(folder), PlainString(prefix)))

// Two times, or null for now.
struct TwoTimes {
  timespec times[2];
};
struct TwoTimeValues {
  timeval times[2];
};
SPILL_EXPORT int __spill_utimensat(int folder, const char* path, const timespec* times, int flags) {
  PlainString plain_path(path);
  PlainIn<TwoTimes> plain_times(reinterpret_cast<const TwoTimes*>(times));
  return LIBC(utimensat)(folder, plain_path, times == nullptr ? nullptr : plain_times->times, flags);
}
SPILL_EXPORT int __spill_futimens(int descriptor, const timespec* times) {
  PlainIn<TwoTimes> plain_times(reinterpret_cast<const TwoTimes*>(times));
  return futimens(descriptor, times == nullptr ? nullptr : plain_times->times);
}
SPILL_EXPORT int __spill_utimes(const char* path, const timeval* times) {
  PlainString plain_path(path);
  PlainIn<TwoTimeValues> plain_times(reinterpret_cast<const TwoTimeValues*>(times));
  return utimes(plain_path, times == nullptr ? nullptr : plain_times->times);
}

#define SPILL_BUSY_CALL(T, name, parameters, arguments) \
  SPILL_EXPORT T __spill_##name parameters {            \
    const spill::Busy busy;                             \
    return name arguments;                              \
  }

// Walks call the program back with paths of the C library's own, and keep copies in Scratch meanwhile: a loop's task is not
// suspended there. Offsets have 64 bits in any case, so the functions whose names end in 64 are the same.
#define SPILL_WALK(name, visit_type)                                                \
  SPILL_BUSY_CALL(int, name, (const char* path, visit_type visit, int descriptors), \
                  (PlainString(path), visit, descriptors))
SPILL_WALK(ftw, __ftw_func_t)
SPILL_WALK(ftw64, __ftw64_func_t)
#define SPILL_WALK_WITH_FLAGS(name, visit_type)                                                \
  SPILL_BUSY_CALL(int, name, (const char* path, visit_type visit, int descriptors, int flags), \
                  (PlainString(path), visit, descriptors, flags))
SPILL_WALK_WITH_FLAGS(nftw, __nftw_func_t)
SPILL_WALK_WITH_FLAGS(nftw64, __nftw64_func_t)
#define SPILL_SCAN(name, entry)                                                   \
  SPILL_BUSY_CALL(int, name,                                                      \
                  (const char* path, entry*** names, int (*filter)(const entry*), \
                   int (*compare)(const entry**, const entry**)),                 \
                  (PlainString(path), PlainObject<entry**>(names), filter, compare))
SPILL_SCAN(scandir, dirent)
SPILL_SCAN(scandir64, dirent64)
#define SPILL_SCAN_AT(name, entry)                                                            \
  SPILL_BUSY_CALL(int, name,                                                                  \
                  (int folder, const char* path, entry*** names, int (*filter)(const entry*), \
                   int (*compare)(const entry**, const entry**)),                             \
                  (folder, PlainString(path), PlainObject<entry**>(names), filter, compare))
SPILL_SCAN_AT(scandirat, dirent)
SPILL_SCAN_AT(scandirat64, dirent64)
SPILL_BUSY_CALL(int, glob, (const char* pattern, int flags, int (*on_error)(const char*, int), glob_t* found),
                (PlainString(pattern), flags, on_error, PlainObject<glob_t>(found)))
SPILL_BUSY_CALL(int, glob64,
                (const char* pattern, int flags, int (*on_error)(const char*, int), glob64_t* found),
                (PlainString(pattern), flags, on_error, PlainObject<glob64_t>(found)))

// The C library looks at its caller to find the search path: with a plain path this is a tail call.
SPILL_EXPORT void* __spill_dlopen(const char* path, int mode) {
  if (plain(path)) [[clang::musttail]]
    return dlopen(path, mode);
  PlainString plain_path(path);
  return dlopen(plain_path, mode);
}
SPILL_EXPORT void* __spill_dlmopen(Lmid_t space, const char* path, int mode) {
  if (plain(path)) [[clang::musttail]]
    return dlmopen(space, path, mode);
  PlainString plain_path(path);
  return dlmopen(space, plain_path, mode);
}
