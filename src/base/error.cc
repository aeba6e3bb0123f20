#include "base/error.h"

namespace base {

const char* error_name(int number) {
  switch (number) {
    case 0: return "success";
    case EPERM: return "operation not permitted";
    case ENOENT: return "no such file or directory";
    case EINTR: return "interrupted";
    case EIO: return "input/output error";
    case ENXIO: return "no such device or address";
    case EBADF: return "bad file descriptor";
    case EAGAIN: return "resource temporarily unavailable";
    case ENOMEM: return "cannot allocate memory";
    case EACCES: return "permission denied";
    case EBUSY: return "device or resource busy";
    case EEXIST: return "file exists";
    case ENODEV: return "no such device";
    case ENOTDIR: return "not a directory";
    case EISDIR: return "is a directory";
    case EINVAL: return "invalid argument";
    case ENFILE: return "too many open files in the system";
    case EMFILE: return "too many open files";
    case EFBIG: return "file too large";
    case ENOSPC: return "no space left on device";
    case EROFS: return "read-only file system";
    case ENOSYS: return "function not implemented";
    case EOPNOTSUPP: return "operation not supported";
    case ETIMEDOUT: return "timed out";
    case EDQUOT: return "disk quota exceeded";
    default: return "error";
  }
}

}  // namespace base
