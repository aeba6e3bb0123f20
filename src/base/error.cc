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
    case ENOTTY: return "inappropriate ioctl for device";
    case ETXTBSY: return "text file busy";
    case EFBIG: return "file too large";
    case ENOSPC: return "no space left on device";
    case EROFS: return "read-only file system";
    case ENAMETOOLONG: return "file name too long";
    case ENOLCK: return "no locks available";
    case ENOSYS: return "function not implemented";
    case ELOOP: return "too many levels of symbolic links";
    case EBADE: return "invalid exchange";
    case EOPNOTSUPP: return "operation not supported";
    case EPIPE: return "broken pipe";
    case EAFNOSUPPORT: return "address family not supported";
    case EADDRINUSE: return "address already in use";
    case EADDRNOTAVAIL: return "cannot assign requested address";
    case ENETUNREACH: return "network is unreachable";
    case EHOSTUNREACH: return "no route to host";
    case ECONNABORTED: return "software caused connection abort";
    case ECONNRESET: return "connection reset by peer";
    case ECONNREFUSED: return "connection refused";
    case ENOTCONN: return "transport endpoint is not connected";
    case ECANCELED: return "operation canceled";
    case ENODATA: return "no data available";
    case ETIME: return "timer expired";
    case ENOLINK: return "link has been severed";
    case EILSEQ: return "invalid or incomplete data";
    case EREMOTEIO: return "remote input/output error";
    case ETIMEDOUT: return "timed out";
    case ESTALE: return "stale file handle";
    case EUCLEAN: return "structure needs cleaning";
    case EDQUOT: return "disk quota exceeded";
    case ENOMEDIUM: return "no medium found";
    default: return "error";
  }
}

}  // namespace base
