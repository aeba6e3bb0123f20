#include "persist/check/log_writer.h"

#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "base/check.h"
#include "sys/files.h"
#include "sys/kernel.h"
#include "sys/memory.h"

namespace persist {

base::Expected<void> LogWriter::open(const char* path, uint64_t bytes_max) {
  const long made = sys::syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (sys::failed(made))
    return base::failure(static_cast<int>(-made), "persist: cannot make the log '", path,
                         made == -EEXIST ? "': another process records there, or has: " : "': ",
                         base::error_name(static_cast<int>(-made)));
  const auto owned = sys::own_new_descriptor(made);
  if (!owned) return std::unexpected(owned.error());
  descriptor_ = *owned;
  bytes_max_ = bytes_max;
  LogHeader header;
  std::copy_n(LogHeader::kMagic, sizeof LogHeader::kMagic, header.magic);
  header.version = LogHeader::kVersion;
  header.process = static_cast<uint32_t>(sys::syscall(SYS_getpid));
  header.window_bytes = kWindowBytes;
  if (sys::write_file_piece(descriptor_, 0, &header, sizeof header)) window_ = map(kWindowBytes);
  if (window_ == nullptr) {
    sys::close_own_descriptor(descriptor_);
    descriptor_ = -1;
    return base::failure(ENOSPC, "persist: no room for the log '", path, "'");
  }
  window_offset_ = kWindowBytes;
  used_bytes_ = 0;
  return {};
}

char* LogWriter::map(uint64_t offset_bytes) const {
  const uint64_t end = offset_bytes + kWindowBytes;
  // The kernel would send SIGXFSZ, which ends most programs.
  if (end > std::max(bytes_max_, 2 * kWindowBytes) || end > sys::file_size_limit()) return nullptr;
  // Disk blocks are allocated before they are stored to: without them a store would raise SIGBUS.
  long grown = sys::allocate_file(descriptor_, offset_bytes, kWindowBytes);
  if (grown == -EOPNOTSUPP) grown = sys::syscall(SYS_ftruncate, descriptor_, end);
  if (sys::failed(grown)) return nullptr;
  const auto mapped = sys::map_shared(descriptor_, offset_bytes, kWindowBytes, sys::Access::kReadWrite);
  if (!mapped) return nullptr;
  sys::keep_from_children(*mapped, kWindowBytes);
  return *mapped;
}

void LogWriter::next_window() {
  char* const next = map(window_offset_ + kWindowBytes);
  if (next != nullptr)
    put({.kind = RecordKind::kPad}, kWindowBytes - used_bytes_ - sizeof(Record));
  else
    put({.kind = RecordKind::kFull}, 0);
  sys::unmap(window_, kWindowBytes);
  window_ = next;
  if (next == nullptr) return;
  window_offset_ += kWindowBytes;
  used_bytes_ = 0;
}

char* LogWriter::begin(uint64_t bytes) {
  if (window_ == nullptr) return nullptr;
  const uint64_t needed = sizeof(Record) + base::round_up(bytes, 8) + sizeof(Record);
  CHECK_LE(needed, kWindowBytes);
  if (used_bytes_ + needed > kWindowBytes) next_window();
  return window_ == nullptr ? nullptr : window_ + used_bytes_ + sizeof(Record);
}

void LogWriter::put(Record record, uint64_t payload_bytes) {
  const uint32_t bytes = static_cast<uint32_t>(sizeof(Record) + base::round_up(payload_bytes, 8));
  record.bytes = bytes;
  record.check = check_of(record, window_offset_ + used_bytes_);
  Record* const at = reinterpret_cast<Record*>(window_ + used_bytes_);
  record.bytes = 0;
  *at = record;
  // Pairs with nothing in this process: whoever reads the file after a kill sees all of a record whose `bytes` it sees.
  std::atomic_ref<uint32_t>(at->bytes).store(bytes, std::memory_order_release);
  used_bytes_ += bytes;
}

void LogWriter::commit(Record record, uint64_t payload_bytes) { put(record, payload_bytes); }

void LogWriter::write(Record record, const void* prefix, uint64_t prefix_bytes, std::string_view text) {
  if (text.size() > kMaxTextBytes) text.remove_suffix(text.size() - kMaxTextBytes);
  char* const payload = begin(prefix_bytes + text.size());
  if (payload == nullptr) return;
  std::copy_n(static_cast<const char*>(prefix), prefix_bytes, payload);
  std::copy_n(text.data(), text.size(), payload + prefix_bytes);
  put(record, prefix_bytes + text.size());
}

void LogWriter::close() {
  if (descriptor_ < 0) return;
  sys::unmap(window_, kWindowBytes);
  window_ = nullptr;
  // If that fails, the longer file can be read as well: after the last record are zeros.
  static_cast<void>(sys::syscall(SYS_ftruncate, descriptor_, window_offset_ + used_bytes_));
  sys::close_own_descriptor(descriptor_);
  descriptor_ = -1;
}

}  // namespace persist
