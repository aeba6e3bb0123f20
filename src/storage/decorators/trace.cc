#include "storage/decorators/trace.h"

#include <fcntl.h>
#include <linux/stat.h>
#include <string.h>
#include <sys/file.h>

#include "base/check.h"
#include "base/log.h"
#include "storage/decorators/decorator.h"
#include "storage/decorators/trace_format.h"
#include "storage/opening/device_string.h"
#include "sys/files.h"
#include "sys/kernel.h"

namespace storage {
namespace {

constexpr size_t kBufferedRecords = 1024;
constexpr unsigned kFileMode = 0644;

class TraceQueue;

class TraceDevice final : public Decorator<TraceDevice, TraceQueue> {
 public:
  TraceDevice(Device* inner, int file, std::string_view path)
      : Decorator(inner), file_(file), process_(sys::syscall(SYS_getpid)), start_ns_(sys::monotonic_ns()) {
    base::TextRef(name_, sizeof name_) << "trace:file=" << path << ":[" << inner->name() << ']';
  }

  uint64_t start_ns() const { return start_ns_; }
  bool records() const {
    // Relaxed: a few records more or less.
    return !stopped_.load(std::memory_order_relaxed) && process_ == sys::syscall(SYS_getpid);
  }
  uint32_t new_queue() { return queue_count_.fetch_add(1, std::memory_order_relaxed); }

  // Appends to the file. Any thread.
  void append(const void* from, size_t bytes) {
    if (!records()) return;
    // Relaxed: it only matters that each place is handed out once.
    uint64_t at = end_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    long result = -EFBIG;
    // The kernel would send SIGXFSZ, which ends most programs.
    if (at + bytes <= sys::file_size_limit()) {
      const char* left = static_cast<const char*>(from);
      while (bytes > 0) {
        result = sys::syscall(SYS_pwrite64, file_, left, bytes, at);
        if (result == -EINTR) continue;
        if (result == 0) result = -ENOSPC;
        if (sys::failed(result)) break;
        left += result;
        at += static_cast<uint64_t>(result);
        bytes -= static_cast<size_t>(result);
      }
    }
    if (!sys::failed(result)) return;
    // Relaxed: it only ensures that one of several threads logs.
    if (stopped_.exchange(true, std::memory_order_relaxed)) return;
    base::log(name(), ": cannot write the trace: ", base::error_name(static_cast<int>(-result)),
              "; tracing ends");
  }

  void write_header() {
    TraceHeader header = {{}, kTraceVersion, sizeof(TraceRecord), capacity_bytes_, block_bytes_, 0};
    memcpy(header.magic, kTraceMagic, sizeof kTraceMagic);
    append(&header, sizeof header);
  }

 private:
  void do_close() override {
    const int file = file_;
    Decorator::do_close();
    sys::close_own_descriptor(file);
  }

  const int file_;
  const long process_;
  const uint64_t start_ns_;
  std::atomic<uint64_t> end_bytes_{0};
  std::atomic<uint32_t> queue_count_{0};
  std::atomic<bool> stopped_{false};
};

struct TraceSlot : DecoratorSlot<TraceQueue, TraceSlot> {
  uint64_t start_ns = 0;
};

class TraceQueue final : public DecoratorQueue<TraceQueue, TraceSlot> {
 public:
  TraceQueue(TraceDevice& device, Queue* inner, size_t depth)
      : DecoratorQueue(device, inner, depth, this + 1), trace_(device), number_(device.new_queue()) {
    const auto extra = reinterpret_cast<char*>(this + 1);
    records_ = reinterpret_cast<TraceRecord*>(extra + DecoratorQueue::extra_bytes(depth));
  }
  static uint64_t extra_bytes(size_t depth) {
    return DecoratorQueue::extra_bytes(depth) + kBufferedRecords * sizeof(TraceRecord);
  }

  void inner_done(TraceSlot& slot) {
    record(slot);
    complete_as_is(take_result(slot));
  }

 private:
  void do_start(Io& io) override { gather(begin(io)); }
  void do_start_alone(Io& io) override { inner().run(begin(io).inner); }

  void do_close() override {
    write_records();
    DecoratorQueue::do_close();
  }

  TraceSlot& begin(Io& io) {
    TraceSlot& slot = take_slot(io);
    slot.start_ns = sys::monotonic_ns();
    return slot;
  }

  void record(const TraceSlot& slot) {
    if (!trace_.records()) return;
    const Io& inner = slot.inner;
    const bool flush = inner.operation == Operation::kFlush;
    records_[record_count_++] = {.start_ns = slot.start_ns - trace_.start_ns(),
                                 .offset_bytes = flush ? 0 : inner.offset_bytes,
                                 .length_bytes = flush ? 0 : inner.length_bytes,
                                 .transferred_bytes = flush ? 0 : inner.transferred_bytes,
                                 .latency_ns = sys::monotonic_ns() - slot.start_ns,
                                 .queue = number_,
                                 .error = static_cast<uint16_t>(inner.error),
                                 .operation = static_cast<uint8_t>(static_cast<uint8_t>(inner.operation) + 1),
                                 .zero = 0};
    if (record_count_ == kBufferedRecords) write_records();
  }

  void write_records() {
    if (record_count_ > 0) trace_.append(records_, record_count_ * sizeof(TraceRecord));
    record_count_ = 0;
  }

  TraceDevice& trace_;
  const uint32_t number_;
  TraceRecord* records_ = nullptr;
  size_t record_count_ = 0;
};

base::Error file_error(std::string_view path, long result, const char* advice) {
  const int number = static_cast<int>(-result);
  return base::Error::of(number, "storage: the trace ", path.substr(0, 90), ": ", base::error_name(number),
                         advice);
}

// Opens the file, emptied; returns a descriptor of the runtime's own.
base::Expected<int> open_file(std::string_view path) {
  CHECK_LE(path.size(), kMaxPathBytes);
  base::Text<kMaxPathBytes + 1> text;
  text << path;
  long file;
  do {
    file =
        sys::syscall(SYS_openat, AT_FDCWD, text.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, kFileMode);
  } while (file == -EINTR);
  if (sys::failed(file)) return std::unexpected(file_error(path, file, "; name a file that you may write"));
  base::Error error;
  char magic[sizeof kTraceMagic];
  const long found = sys::syscall(SYS_pread64, file, magic, sizeof magic, 0);
  if (found != 0 && (found != sizeof magic || memcmp(magic, kTraceMagic, sizeof magic) != 0)) {
    error = file_error(path, -EEXIST, ", and is not a trace; name another file");
  } else if (sys::syscall(SYS_flock, file, LOCK_EX | LOCK_NB) == -EWOULDBLOCK) {
    error = file_error(path, -EBUSY, "; another trace is being written to it");
  } else if (long result = sys::syscall(SYS_ftruncate, file, 0); sys::failed(result)) {
    error = file_error(path, result, "; name a file");
  } else {
    auto owned = sys::own_descriptor(static_cast<int>(file));
    if (owned) return owned;
    error = owned.error();
  }
  sys::syscall(SYS_close, file);
  return std::unexpected(error);
}

}  // namespace

base::Expected<Device*> make_trace_device(Device* inner, std::string_view path) {
  auto file = open_file(path);
  if (!file) {
    inner->close();
    return std::unexpected(file.error());
  }
  auto device = make_decorator<TraceDevice>("a trace device", inner, *file, path);
  if (!device) {
    sys::close_own_descriptor(*file);
    return std::unexpected(device.error());
  }
  (*device)->write_header();
  return *device;
}

}  // namespace storage
