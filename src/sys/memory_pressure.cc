#include "sys/memory_pressure.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>

#include "sys/files.h"
#include "sys/kernel.h"
#include "sys/memory_group.h"

namespace sys {
namespace {

long open_file(const base::Text<512>& path, int flags) {
  return syscall(SYS_openat, AT_FDCWD, path.c_str(), flags | O_CLOEXEC);
}

}  // namespace

base::Expected<void> MemoryPressure::open(const char* root) {
  base::Text<512> groups;
  groups << root << "/proc/self/cgroup";
  char text[4096];
  const long n = read_small_file(groups.c_str(), text);
  const std::string_view lines(text, n > 0 ? static_cast<size_t>(n) : 0);
  std::string_view path;
  // In a container the group may be visible as the root only.
  if (find_group(lines, "memory", path))
    for (const std::string_view group : {path, std::string_view{}})
      if (open_group(group, root)) return {};
  if (find_group(lines, "", path)) {
    for (const std::string_view group : {path, std::string_view{}}) {
      base::Text<512> file;
      file << root << "/sys/fs/cgroup" << group << "/memory.pressure";
      if (open_stall(file.view())) return {};
    }
  }
  base::Text<512> machine;
  machine << root << "/proc/pressure/memory";
  if (open_stall(machine.view())) return {};
  return base::failure(ENOENT,
                       "the kernel tells nobody here of pressure on memory: there is no "
                       "memory.pressure_level, memory.pressure "
                       "or /proc/pressure/memory that may be listened to");
}

bool MemoryPressure::open_group(std::string_view group, const char* root) {
  base::Text<512> level_path, control_path;
  level_path << root << "/sys/fs/cgroup/memory" << group << "/memory.pressure_level";
  control_path << root << "/sys/fs/cgroup/memory" << group << "/cgroup.event_control";
  const long level = open_file(level_path, O_RDONLY);
  if (failed(level)) return false;
  const long control = open_file(control_path, O_WRONLY);
  auto event = failed(control) ? base::Expected<int>(base::failure(ENOENT, ""))
                               : own_new_descriptor(syscall(SYS_eventfd2, 0, EFD_NONBLOCK | EFD_CLOEXEC));
  bool registered = false;
  if (event) {
    base::Text<64> words;
    words << *event << ' ' << level << " medium";
    registered = !failed(syscall(SYS_write, control, words.c_str(), words.view().size()));
    if (!registered) close_own_descriptor(*event);
  }
  syscall(SYS_close, level);
  if (!failed(control)) syscall(SYS_close, control);
  if (!registered) return false;
  descriptor_ = *event;
  is_event_ = true;
  base::TextRef(source_, sizeof source_) << level_path.view();
  return true;
}

bool MemoryPressure::open_stall(std::string_view path) {
  base::Text<512> file;
  file << path;
  auto opened = own_new_descriptor(open_file(file, O_RDWR | O_NONBLOCK));
  if (!opened) return false;
  // Windows of two seconds are allowed to everybody, others only to root.
  constexpr char kTrigger[] = "some 150000 2000000";
  if (failed(syscall(SYS_write, *opened, kTrigger, sizeof kTrigger))) {
    close_own_descriptor(*opened);
    return false;
  }
  descriptor_ = *opened;
  is_event_ = false;
  base::TextRef(source_, sizeof source_) << path;
  return true;
}

void MemoryPressure::close() {
  if (descriptor_ >= 0) close_own_descriptor(descriptor_);
  descriptor_ = -1;
}

bool MemoryPressure::take() {
  if (descriptor_ < 0) return false;
  if (is_event_) {
    uint64_t count = 0;
    return syscall(SYS_read, descriptor_, &count, sizeof count) == sizeof count;
  }
  pollfd asked = {descriptor_, POLLPRI, 0};
  const timespec no_time = {};
  return syscall(SYS_ppoll, &asked, 1, &no_time, nullptr, 0) == 1 && (asked.revents & POLLPRI) != 0 &&
         (asked.revents & POLLERR) == 0;
}

}  // namespace sys
