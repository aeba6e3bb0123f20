#include "persist/check/recorder.h"

#include <fcntl.h>

#include <algorithm>

#include "base/check.h"
#include "base/ids.h"
#include "base/text.h"
#include "sys/files.h"
#include "sys/kernel.h"
#include "sys/mappings.h"
#include "sys/memory.h"

namespace persist {
namespace {

// The calling thread is in a call: a signal handler that interrupts it must not wait for the lock.
constinit thread_local bool is_inside = false;
constinit thread_local uint32_t thread_id = 0;

uint32_t this_thread() {
  if (thread_id == 0) thread_id = static_cast<uint32_t>(sys::syscall(SYS_gettid));
  return thread_id;
}

uint32_t this_process() { return static_cast<uint32_t>(sys::syscall(SYS_getpid)); }

// One load of the CPU for each unit, which another thread may be storing to.
uint64_t unit_at(uint64_t address) {
  return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(address)).load(std::memory_order_relaxed);
}

bool are_same(const char* a, const char* b, uint64_t bytes) {
  const uint64_t* const left = reinterpret_cast<const uint64_t*>(a);
  const uint64_t* const right = reinterpret_cast<const uint64_t*>(b);
  uint64_t differences = 0;
  for (uint64_t i = 0; i < bytes / kUnitBytes; ++i) differences |= left[i] ^ right[i];
  return differences == 0;
}

bool is_zero(const char* bytes, uint64_t length) {
  const uint64_t* const units = reinterpret_cast<const uint64_t*>(bytes);
  uint64_t all = 0;
  for (uint64_t i = 0; i < length / kUnitBytes; ++i) all |= units[i];
  return all == 0;
}

uint64_t readable_end(uint64_t begin, uint64_t end) {
  return sys::readable_end(base::round_down(begin, base::kOsPageBytes), end);
}

}  // namespace

// The calling thread's turn, for a scope; none if there is nothing to record to.
class Recorder::Turn {
 public:
  explicit Turn(Recorder& recorder) : recorder_(recorder) {
    const uint32_t process = recorder.process_.load(std::memory_order_acquire);
    if (process == 0 || is_inside || this_process() != process) return;
    is_inside = true;
    recorder.lock_.lock();
    has_it_ = true;
  }
  ~Turn() {
    if (!has_it_) return;
    recorder_.lock_.unlock();
    is_inside = false;
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  explicit operator bool() const { return has_it_; }

 private:
  Recorder& recorder_;
  bool has_it_ = false;
};

base::Expected<void> Recorder::start(const RecorderOptions& options) {
  CHECK(!is_started());
  const std::string_view path(options.path);
  if (path.size() + 16 > sizeof path_)
    return base::failure(ENAMETOOLONG, "persist: the log's path is too long");
  if (auto opened = log_.open(options.path, options.log_bytes_max); !opened) return opened;
  std::copy_n(options.path, path.size() + 1, path_);
  are_stores_told_ = options.are_stores_told;
  compare_bytes_max_ = options.compare_bytes_max;
  process_.store(this_process(), std::memory_order_release);  // pairs with the loads in Turn and is_started()
  return {};
}

Recorder::Domain* Recorder::free_domain(uint64_t begin, uint64_t end, int& error) {
  Domain* found = nullptr;
  for (uint32_t i = 0; i < domain_count_; ++i) {
    Domain& domain = domains_[i];
    if (domain.bytes == 0)
      found = &domain;
    else if (domain.begin() < end && begin < domain.end()) {
      error = EINVAL;
      return nullptr;
    }
  }
  if (found == nullptr && domain_count_ < kMaxDomains) found = &domains_[domain_count_++];
  error = ENFILE;
  return found;
}

base::Expected<void> Recorder::save_content(const Domain& domain) const {
  base::Text<kMaxTextBytes + 16> name;
  name << path_ << '.' << domain.number;
  const long file =
      sys::syscall(SYS_openat, AT_FDCWD, name.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  // As in LogWriter::map().
  const bool may_be_so_large = domain.bytes <= sys::file_size_limit();
  bool is_done =
      !sys::failed(file) && may_be_so_large && !sys::failed(sys::syscall(SYS_ftruncate, file, domain.bytes));
  for (uint64_t at = 0; is_done && at < domain.bytes; at += base::kOsPageBytes) {
    const uint64_t bytes = std::min<uint64_t>(base::kOsPageBytes, domain.bytes - at);
    if (is_zero(domain.shadow + at, bytes)) continue;
    is_done = sys::write_file_piece(static_cast<int>(file), at, domain.shadow + at, bytes);
  }
  if (!sys::failed(file)) static_cast<void>(sys::syscall(SYS_close, file));
  if (is_done) return {};
  return base::failure(ENOSPC, "persist: cannot write what was in a domain to '", name.view(), "'");
}

base::Expected<void> Recorder::map(const void* address, uint64_t bytes, const char* path, uint64_t offset,
                                   uint64_t file_bytes) {
  const Turn turn(*this);
  if (!turn) return {};
  const uint64_t begin = reinterpret_cast<uint64_t>(address);
  bytes = base::round_up(bytes, base::kLineBytes);
  if (begin % base::kLineBytes != 0 || offset % base::kLineBytes != 0 || bytes == 0)
    return base::failure(EINVAL, "persist: a domain must begin with a line of the CPU's cache");
  if (readable_end(begin, begin + bytes) != begin + bytes)
    return base::failure(EINVAL,
                         "persist: not all of a mapping can be read, so that it cannot be recorded; make its "
                         "file as long as it");
  int error = 0;
  Domain* const place = free_domain(begin, begin + bytes, error);
  if (place == nullptr && error == EINVAL) return base::failure(error, "persist: a domain is in another one");
  if (place == nullptr)
    return base::failure(error, "persist: there are ", kMaxDomains,
                         " mappings already, and no more can be recorded; map fewer pieces of files");
  const auto shadow = sys::map_anonymous(bytes, "the shadow of a domain");
  if (!shadow) return std::unexpected(shadow.error());
  Domain domain = {static_cast<const char*>(address), bytes, *shadow, domain_number_ + 1};
  for (uint64_t at = 0; at < bytes; at += base::kLineBytes)
    if (!is_zero(domain.address + at, base::kLineBytes))  // if it is, the shadow's page need not be touched
      std::copy_n(domain.address + at, base::kLineBytes, domain.shadow + at);
  if (auto saved = save_content(domain); !saved) {
    sys::unmap(domain.shadow, bytes);
    return saved;
  }
  *place = domain;
  ++domain_number_;
  const MapPayload payload = {offset, file_bytes};
  log_.write({.kind = RecordKind::kMap, .number = domain.number, .address = begin, .length = bytes}, &payload,
             sizeof payload, path);
  return {};
}

void Recorder::end_domain(Domain& domain) {
  find_all_stores(domain, nullptr);
  if (log_.begin(0) != nullptr) log_.commit({.kind = RecordKind::kUnmap, .number = domain.number}, 0);
  sys::unmap(domain.shadow, domain.bytes);
  domain = {};
}

void Recorder::unmap(const void* address, uint64_t bytes) {
  const Turn turn(*this);
  if (!turn) return;
  const uint64_t begin = reinterpret_cast<uint64_t>(address), end = begin + bytes;
  for (uint32_t i = 0; i < domain_count_; ++i)
    if (domains_[i].begin() < end && begin < domains_[i].end()) end_domain(domains_[i]);
}

template <class Function>
void Recorder::for_domains(const void* address, uint64_t bytes, uint64_t unit, Function function) {
  if (bytes == 0) return;
  const uint64_t first = reinterpret_cast<uint64_t>(address);
  const uint64_t begin = base::round_down(first, unit);
  const uint64_t end = base::round_up(first + bytes, unit);
  for (uint32_t i = 0; i < domain_count_; ++i) {
    Domain& domain = domains_[i];
    const uint64_t from = std::max(begin, domain.begin()), to = std::min(end, domain.end());
    if (domain.bytes != 0 && from < to) function(domain, from, to);
  }
}

void Recorder::write_store(Domain& domain, uint64_t begin, uint64_t end, uint8_t flags, const void* site) {
  modules_.note(site, log_);
  for (uint64_t at = begin; at < end;) {
    const uint64_t bytes = std::min(end - at, kMaxStoreBytes);
    char* const payload = log_.begin(bytes);
    if (payload == nullptr) return;
    char* const shadow = domain.shadow + (at - domain.begin());
    for (uint64_t unit = 0; unit < bytes; unit += kUnitBytes) {
      const uint64_t value = unit_at(at + unit);
      *reinterpret_cast<uint64_t*>(payload + unit) = value;
      *reinterpret_cast<uint64_t*>(shadow + unit) = value;
    }
    log_.commit({.kind = RecordKind::kStore,
                 .flags = flags,
                 .thread = this_thread(),
                 .site = reinterpret_cast<uint64_t>(site),
                 .address = at,
                 .length = bytes},
                bytes);
    at += bytes;
  }
}

void Recorder::find_stores(Domain& domain, uint64_t begin, uint64_t end, const void* site) {
  for (uint64_t line = begin; line < end; line += base::kLineBytes) {
    const char* const shadow = domain.shadow + (line - domain.begin());
    if (are_same(reinterpret_cast<const char*>(line), shadow, base::kLineBytes)) continue;
    uint64_t first = base::kLineBytes, last = 0;
    for (uint64_t unit = 0; unit < base::kLineBytes; unit += kUnitBytes)
      if (unit_at(line + unit) != *reinterpret_cast<const uint64_t*>(shadow + unit)) {
        first = std::min(first, unit);
        last = unit + kUnitBytes;
      }
    if (first < last) write_store(domain, line + first, line + last, kFound, site);
  }
}

// As far as the domain can be read: the program may have unmapped it without a word, or have made its file shorter.
void Recorder::find_all_stores(Domain& domain, const void* site) {
  if (sys::is_mapped(domain.begin(), domain.end()))
    find_stores(domain, domain.begin(), readable_end(domain.begin(), domain.end()), site);
}

void Recorder::store(const void* address, uint64_t bytes, const void* site, bool is_past_caches) {
  const Turn turn(*this);
  if (!turn) return;
  for_domains(address, bytes, kUnitBytes, [&](Domain& domain, uint64_t begin, uint64_t end) {
    write_store(domain, begin, end, is_past_caches ? kPastCaches : 0, site);
  });
}

void Recorder::flush(const void* address, uint64_t bytes, bool is_ordered, const void* site) {
  const Turn turn(*this);
  if (!turn) return;
  for_domains(address, bytes, base::kLineBytes, [&](Domain& domain, uint64_t begin, uint64_t end) {
    modules_.note(site, log_);
    find_stores(domain, begin, end, site);
    if (log_.begin(0) == nullptr) return;
    log_.commit({.kind = RecordKind::kFlush,
                 .flags = is_ordered ? kOrdered : uint8_t{0},
                 .thread = this_thread(),
                 .site = reinterpret_cast<uint64_t>(site),
                 .address = begin,
                 .length = end - begin},
                0);
  });
}

void Recorder::fence(const void* site) {
  const Turn turn(*this);
  if (!turn) return;
  modules_.note(site, log_);
  for (uint32_t i = 0; i < domain_count_; ++i) {
    Domain& domain = domains_[i];
    if (domain.bytes == 0 || are_stores_told_ || domain.bytes > compare_bytes_max_) continue;
    find_all_stores(domain, site);
  }
  if (log_.begin(0) == nullptr) return;
  log_.commit({.kind = RecordKind::kFence, .thread = this_thread(), .site = reinterpret_cast<uint64_t>(site)},
              0);
}

void Recorder::marker(std::string_view text) {
  const Turn turn(*this);
  if (!turn) return;
  log_.write({.kind = RecordKind::kMarker, .thread = this_thread()}, nullptr, 0, text);
}

void Recorder::finish() {
  const Turn turn(*this);
  if (!turn) return;
  for (uint32_t i = 0; i < domain_count_; ++i)
    if (domains_[i].bytes != 0) end_domain(domains_[i]);
  if (log_.begin(0) != nullptr) log_.commit({.kind = RecordKind::kExit}, 0);
  log_.close();
  process_.store(0, std::memory_order_release);
}

}  // namespace persist
