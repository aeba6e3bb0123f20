#include "sys/statistics_file.h"

#include <fcntl.h>

#include <algorithm>

#include "sys/kernel.h"

namespace sys {

StatisticsFile::StatisticsFile(std::string_view name) {
  for (size_t i = 0; i < name.size(); ++i) {
    if (name.substr(i).starts_with("%p")) {
      path_ << syscall(SYS_getpid);
      ++i;
    } else {
      path_ << name[i];
    }
  }
  if (path_.size() > kPathBytesMost) {
    error_ = -ENAMETOOLONG;
    return;
  }
  beside_ << path_.view() << ".new";
  file_ = syscall(SYS_openat, AT_FDCWD, beside_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (failed(file_)) error_ = file_;
}

void StatisticsFile::put(const base::TextRef& text) {
  if (error_ != 0) return;
  const long written = syscall(SYS_write, file_, text.c_str(), text.size());
  if (written != static_cast<long>(text.size())) error_ = failed(written) ? written : -ENOSPC;
}

base::Expected<void> StatisticsFile::finish() {
  if (file_ >= 0) {
    const long closed = syscall(SYS_close, file_);
    if (error_ == 0 && failed(closed)) error_ = closed;
    if (error_ == 0) error_ = std::min(syscall(SYS_rename, beside_.c_str(), path_.c_str()), 0L);
    if (error_ != 0) syscall(SYS_unlink, beside_.c_str());
  }
  if (error_ == 0) return {};
  const int number = static_cast<int>(-error_);
  return base::failure(number, base::error_name(number));
}

}  // namespace sys
