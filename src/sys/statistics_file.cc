#include "sys/statistics_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "sys/files.h"
#include "sys/kernel.h"

namespace sys {
namespace {

enum class Way {
  kReplace,  // a file, or nothing yet
  kAppend,  // a pipe, a terminal; a socket, which the kernel does not open; and what /dev/stdout leads to, which may be a file that the program prints to
  kRefuse,  // a disk
};

Way way_to(std::string_view path_text, const char* path) {
  // 0: there is nothing.
  const auto kind = [&](int flags) {
    struct stat facts = {};
    syscall(SYS_newfstatat, AT_FDCWD, path, &facts, flags);
    return facts.st_mode & S_IFMT;
  };
  switch (kind(0)) {
    case S_IFBLK: return Way::kRefuse;
    case S_IFIFO:
    case S_IFSOCK:
    case S_IFCHR: return Way::kAppend;
    default: break;
  }
  const bool is_the_kernels = path_text.starts_with("/dev/") || path_text.starts_with("/proc/");
  return is_the_kernels && kind(AT_SYMLINK_NOFOLLOW) == S_IFLNK ? Way::kAppend : Way::kReplace;
}

}  // namespace

StatisticsFile::StatisticsFile(std::string_view name) {
  for (size_t i = 0; i < name.size(); ++i) {
    if (name.substr(i).starts_with("%p")) {
      path_ << syscall(SYS_getpid);
      ++i;
    } else {
      path_ << name[i];
    }
  }
  if (path_.size() > kMaxPathBytes) {
    error_ = -ENAMETOOLONG;
    return;
  }
  switch (way_to(path_.view(), path_.c_str())) {
    case Way::kReplace:
      beside_ << path_.view() << '.' << syscall(SYS_getpid) << ".new";
      file_ = syscall(SYS_openat, AT_FDCWD, beside_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
      break;
    case Way::kAppend:
      // A pipe that nobody reads is an error; put() waits for a slow reader.
      file_ = syscall(SYS_openat, AT_FDCWD, path_.c_str(),
                      O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
      if (!failed(file_)) syscall(SYS_fcntl, file_, F_SETFL, O_APPEND);
      break;
    case Way::kRefuse: file_ = -EINVAL; break;
  }
  if (failed(file_)) error_ = file_;
}

void StatisticsFile::put(const base::TextRef& text) {
  if (error_ != 0) return;
  const long written = write_quietly(static_cast<int>(file_), text.c_str(), text.size());
  if (written != static_cast<long>(text.size())) error_ = failed(written) ? written : -ENOSPC;
}

base::Expected<void> StatisticsFile::finish() {
  if (file_ >= 0) {
    const long closed = syscall(SYS_close, file_);
    if (error_ == 0 && failed(closed)) error_ = closed;
    if (beside_.size() > 0) {
      if (error_ == 0) error_ = std::min(syscall(SYS_rename, beside_.c_str(), path_.c_str()), 0L);
      if (error_ != 0) syscall(SYS_unlink, beside_.c_str());
    }
  }
  if (error_ == 0) return {};
  const int number = static_cast<int>(-error_);
  return base::failure(number, base::error_name(number));
}

}  // namespace sys
