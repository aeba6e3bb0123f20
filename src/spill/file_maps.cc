#include "spill/file_maps.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>

#include "spill/access.h"
#include "spill/address_space.h"
#include "spill/fork.h"
#include "spill/leases.h"
#include "spill/mapped_pages.h"
#include "spill/native.h"
#include "spill/protection.h"
#include "spill/runtime.h"
#include "storage/backends/open_files.h"
#include "sys/files.h"
#include "sys/kernel.h"
#include "sys/lock.h"
#include "sys/memory.h"
#include "sys/nap.h"

namespace spill {
namespace {

// Each map takes one of the runtime's own descriptors; further files are mapped by the kernel.
constexpr uint32_t kMaxFileMaps = 128;
constexpr uint64_t kChunkCount = (kRangeEnd - kRangeBegin) / kChunkBytes;
constexpr uint64_t kRetryNs = 50'000;
constexpr uint32_t kMaxRetries = 10'000;
// How often, in rounds of the background thread, held pages of unmapped files are looked at again.
constexpr uint32_t kRoundsPerLook = 64;
// How many places are tried for a map while the cache has something in memory at the earlier ones.
constexpr uint32_t kMaxPlaces = 8;

struct FileMap {
  std::atomic<FileMapKind> kind{FileMapKind::kNone};
  bool is_shared = false;
  bool has_lease = false;
  bool has_pages = false;  // plain: some have yet to leave
  int descriptor = -1;
  uint64_t begin = 0;
  uint64_t end = 0;     // OS page
  uint64_t offset = 0;  // of `begin` in the file
  uint64_t mapped = 0;  // bytes that are not unmapped yet
  uint64_t reserved_bytes() const { return base::round_up(end - begin, kChunkBytes); }
  uint64_t offset_of(uint64_t address) const { return offset + (address - begin); }
};

// Guards everything but `kind` and map_of_chunk, which are read without it.
constinit sys::Mutex maps_mutex;
constinit FileMap maps[kMaxFileMaps] = {};
std::atomic<uint8_t>* map_of_chunk = nullptr;  // number in `maps` + 1, by chunk of the range
constinit std::atomic<uint32_t> map_count{0};
// Made with the first map; stays null if there is no memory.
constinit std::atomic<storage::Device*> open_files{nullptr};
constinit int empty_file = -1;  // every access to a mapping of it raises SIGBUS
static_assert(kMaxFileMaps < 256);

FileMap* map_of(uint64_t address) {
  if (!in_reserved_range(address)) return nullptr;  // a global
  const uint8_t number = map_of_chunk[(address - kRangeBegin) / kChunkBytes].load(std::memory_order_acquire);
  return number == 0 ? nullptr : &maps[number - 1];
}

// Is all of the page unmapped? `begin`: its first address.
bool is_unmapped(uint64_t begin) {
  const uint64_t end = begin + runtime.cache->page_bytes();
  return !is_allocated(begin) && same_allocation_end(begin, end) == end;
}

class FileOrigins final : public cache::Origins {
 public:
  Kind kind_of(base::PageId page) override {
    const uint64_t address = runtime.cache->address_of(page);
    const FileMap* const map = map_of(address);
    if (map == nullptr) return Kind::kZeros;
    const FileMapKind kind = map->kind.load(std::memory_order_acquire);
    // Who loads ahead may ask for what is just being unmapped, and the element may be another file's by now.
    if (map_of(address) != map) return Kind::kGone;
    switch (kind) {
      case FileMapKind::kReading: return is_unmapped(address) ? Kind::kGone : Kind::kConstant;
      case FileMapKind::kPrivate: return is_unmapped(address) ? Kind::kGone : Kind::kChanging;
      case FileMapKind::kNone:
      case FileMapKind::kPlain:
      case FileMapKind::kGone: break;
    }
    return Kind::kGone;
  }

  // What was unmapped must not come back, and nothing beyond a map's end may be read.
  uint32_t count_together(base::PageId first, uint32_t most) override {
    const uint64_t begin = runtime.cache->address_of(first);
    if (!is_allocated(begin)) return 0;
    const uint64_t end = std::min(map_of(begin)->end, begin + most * runtime.cache->page_bytes());
    return static_cast<uint32_t>((same_allocation_end(begin, end) - begin) / runtime.cache->page_bytes());
  }

  storage::Device* device() override { return open_files.load(std::memory_order_acquire); }

  std::optional<uint64_t> offset_of(base::PageId first, uint32_t count) override {
    const uint64_t begin = runtime.cache->address_of(first);
    const FileMap& map = *map_of(begin);
    return storage::offset_in_open_file(map.descriptor, map.offset_of(begin),
                                        count * runtime.cache->page_bytes());
  }

  // All errors are ENXIO (is_file_map_error).
  base::Expected<uint64_t> read(base::PageId first, const iovec* segments, uint32_t count) override {
    const uint64_t address = runtime.cache->address_of(first);
    const FileMap& map = *map_of(address);
    const uint64_t at = map.offset_of(address);
    long got;
    do {
      got = sys::syscall(SYS_preadv, map.descriptor, segments, count, at, 0);
      // Some file systems accept O_DIRECT when a file is opened, but refuse some direct reads.
      if (got == -EINVAL && sys::syscall(SYS_fcntl, map.descriptor, F_SETFL, 0) == 0)
        got = sys::syscall(SYS_preadv, map.descriptor, segments, count, at, 0);
    } while (got == -EINTR);
    if (sys::failed(got))
      return base::failure(ENXIO, "cannot read a mapped file: ", base::error_name(static_cast<int>(-got)));
    const auto bytes = static_cast<uint64_t>(got);
    if (bytes == count * runtime.cache->page_bytes()) return bytes;
    struct stat facts;
    if (const long failure = sys::syscall(SYS_fstat, map.descriptor, &facts); sys::failed(failure))
      return base::failure(ENXIO, "cannot ask for the size of a mapped file");
    if (at + bytes < static_cast<uint64_t>(facts.st_size))
      return base::failure(ENXIO, "a read of a mapped file was short");
    return bytes;
  }
};
constinit FileOrigins origins;

void end_lease(FileMap& map) {
  if (!map.has_lease) return;
  give_lease_back(map.descriptor);
  map.has_lease = false;
}

// Forgets the pages of [begin, end). REQUIRES: all of them are gone (Origins); `begin` is the first address of one.
cache::Partition::Left forget_pages(uint64_t begin, uint64_t end, cache::Workspace& workspace) {
  cache::Cache& cache = *runtime.cache;
  return cache.forget(cache.page_of(begin), (end - begin) / cache.page_bytes(), workspace);
}
cache::Partition::Left forget_pages(const FileMap& map, cache::Workspace& workspace) {
  return forget_pages(map.begin, map.begin + base::round_up(map.end - map.begin, runtime.cache->page_bytes()),
                      workspace);
}

// Forgets the unmapped pages of [begin, end), and those at its ends whose other part was unmapped before. A page that somebody
// pins or holds stays until all of the map is unmapped; nobody else reaches it.
void forget_part(uint64_t begin, uint64_t end, cache::Workspace& workspace) {
  const uint64_t page_bytes = runtime.cache->page_bytes();
  uint64_t first = base::round_down(begin, page_bytes), last = base::round_up(end, page_bytes);
  if (!is_unmapped(first)) first += page_bytes;
  if (first < last && !is_unmapped(last - page_bytes)) last -= page_bytes;
  if (first >= last) return;
  clear_slots();
  for (uint32_t i = 0;
       forget_pages(first, last, workspace).busy > 0 && i < kMaxRetries && !keeps_any(first, last - first);
       ++i)
    sys::nap(kRetryNs);
}

// Has the kernel map the file at the map's addresses, except where it was unmapped. REQUIRES: maps_mutex.
void map_by_kernel(FileMap& map) {
  for (uint64_t at = map.begin; at < map.end;) {
    const uint64_t stop = same_allocation_end(at, map.end);
    const int type = map.is_shared ? MAP_SHARED : MAP_PRIVATE;
    long result = 0;
    if (is_allocated(at))
      result = sys::syscall(SYS_mmap, at, stop - at, PROT_READ, MAP_FIXED | type, map.descriptor,
                            map.offset_of(at));
    if (sys::failed(result))
      end_process(base::Error::of(static_cast<int>(-result), "cannot map a file that others want to write: ",
                                  base::error_name(static_cast<int>(-result))),
                  kFatalStatus);
    at = stop;
  }
}

// Puts the kernel's mapping in the place of a reading map, whose pages have yet to leave (drop_pages). REQUIRES: maps_mutex; no slot of the
// calling thread holds the map.
void become_plain(FileMap& map) {
  if (map.kind.load(std::memory_order_relaxed) != FileMapKind::kReading) return;
  // What the fault path mapped is unmapped first, and is not mapped again: the kernel's mapping takes its place in one step.
  hand_over(
      map.begin, map.end - map.begin,
      [](void* context) {
        FileMap& handed = *static_cast<FileMap*>(context);
        map_by_kernel(handed);
        handed.kind.store(FileMapKind::kPlain, std::memory_order_release);
      },
      &map);
  map.has_pages = true;
  base::statistics.spill_file_maps_ended.add();
}

// Drops the pages of a plain map that nobody holds or pins. Once none is pinned, gives the lease back. Does not wait: a thread that pins some
// may be in a handler that is about to fork, and would wait for the lock. REQUIRES: maps_mutex.
void drop_pages(FileMap& map, cache::Workspace& workspace) {
  const auto left = forget_pages(map, workspace);
  map.has_pages = !left.nothing();
  if (left.busy == 0) end_lease(map);
}

// All of the map is unmapped: gives everything back if none of its pages is left, and its file has no record locks. REQUIRES: maps_mutex.
void end_map(FileMap& map, cache::Workspace& workspace) {
  // The file is read no more: a writer need not wait until nobody holds a page of it.
  end_lease(map);
  if (!forget_pages(map, workspace).nothing() || has_record_locks(map.descriptor)) return;
  // Entries of a plain map are identity; the map's pages of the table have no entries of others.
  sys::release(&entry_of(map.begin), map.reserved_bytes() / base::kOsPageBytes * sizeof(Entry));
  sys::close_own_descriptor(map.descriptor);
  for (uint64_t at = map.begin; at < map.end; at += kChunkBytes)
    map_of_chunk[(at - kRangeBegin) / kChunkBytes].store(0, std::memory_order_release);
  free_addresses(map.begin, map.reserved_bytes());
  map.kind.store(FileMapKind::kNone, std::memory_order_release);
  map_count.fetch_sub(1, std::memory_order_relaxed);
}

// Stores an OS page to spilled memory, whatever its protection.
void put(uint64_t address, const char* bytes) {
  with_page_in_memory(address, [bytes](cache::Cache& cache, base::PageId page, uint64_t offset) {
    cache.copy_in(page, offset, bytes, base::kOsPageBytes);
  });
}

// Takes [begin, begin + bytes), which nobody uses, out of the cache's memory. Returns whether all of it has left.
bool leaves_memory(uint64_t begin, uint64_t bytes, cache::Workspace& workspace) {
  end_native(cache::RegionsEnd::kFileMap);
  cache::Cache& cache = *runtime.cache;
  cache.unmap_regions(begin, bytes);
  clear_slots();
  const base::PageId first = cache.page_of(begin);
  const uint64_t count = bytes / cache.page_bytes();
  cache.discard(first, count, workspace, cache::Cache::After::kFree);
  return !cache.close_again(first, count).resident;
}

// Whole chunks for a map of `length` bytes, of which the cache has nothing in memory; 0 if there are none. Memory that was freed
// while a hazard slot named it, or while it was pinned (spill_pin), stays in its frame as zeros, which a load would find instead of
// the file: then other addresses are tried. Another thread's slot must not be cleared, although nobody uses what was freed: a loop
// that calls nothing takes any page at these addresses, even the file's, for the one that it holds (compiler/loops/Held.h).
uint64_t allocate_chunks(uint64_t length, cache::Workspace& workspace, uint32_t tries = kMaxPlaces) {
  if (tries == 0) return 0;
  const uint64_t reserved = base::round_up(length, kChunkBytes);
  const uint64_t begin = allocate_addresses(reserved, kChunkBytes);
  if (begin == 0) return 0;
  withhold_addresses(begin + length, reserved - length);
  if (leaves_memory(begin, reserved, workspace)) return begin;
  // Freed only now, or the search would have found them again.
  const uint64_t elsewhere = allocate_chunks(length, workspace, tries - 1);
  free_addresses(begin, reserved);
  return elsewhere;
}

FileMap* unused_map() {
  for (FileMap& map : maps)
    if (map.kind.load(std::memory_order_relaxed) == FileMapKind::kNone) return &map;
  return nullptr;
}

}  // namespace

base::Expected<void> open_file_maps() {
  auto chunks = sys::map_anonymous(kChunkCount, "the index of mapped files");
  if (!chunks) return std::unexpected(chunks.error());
  map_of_chunk = reinterpret_cast<std::atomic<uint8_t>*>(*chunks);
  auto file = sys::create_memory_file(0, "spillway-empty");
  if (!file) return std::unexpected(file.error());
  empty_file = *file;
  return {};
}

cache::Origins& file_origins() { return origins; }

uint64_t map_file(uint64_t bytes, int protection, int flags, int descriptor, int64_t offset) {
  constexpr int kHarmless = MAP_NORESERVE | MAP_POPULATE | MAP_NONBLOCK;
  const int type = flags & ~kHarmless;
  if (type != MAP_SHARED && type != MAP_PRIVATE) return 0;
  const bool reading = protection == PROT_READ;
  if (!reading && (protection != (PROT_READ | PROT_WRITE) || type != MAP_PRIVATE)) return 0;
  if (offset < 0 || static_cast<uint64_t>(offset) % base::kOsPageBytes != 0) return 0;
  if (bytes > kRangeEnd - kRangeBegin || static_cast<uint64_t>(offset) + bytes > INT64_MAX) return 0;
  // The parent would have the mapping, but not the descriptor.
  if (is_sharing_child()) return 0;
  InRuntime inside;
  sys::LockGuard guard(maps_mutex);
  FileMap* map = unused_map();
  if (map == nullptr) return 0;
  const int own = open_leased(descriptor);
  if (own < 0) return 0;
  const uint64_t length = base::round_up(bytes, base::kOsPageBytes);
  const uint64_t begin = allocate_chunks(length, workspace_of(inside.thread()));
  if (begin == 0) {
    sys::close_own_descriptor(own);
    return 0;
  }
  map->is_shared = type == MAP_SHARED;
  map->has_lease = true;
  map->has_pages = false;
  map->descriptor = own;
  map->begin = begin;
  map->end = begin + length;
  map->offset = static_cast<uint64_t>(offset);
  map->mapped = length;
  if (!reading) end_lease(*map);
  if (open_files.load(std::memory_order_relaxed) == nullptr)
    if (auto device = storage::make_open_files_device(); device)
      open_files.store(*device, std::memory_order_release);  // pairs with FileOrigins::device
  map->kind.store(reading ? FileMapKind::kReading : FileMapKind::kPrivate, std::memory_order_release);
  for (uint64_t at = begin; at < map->end; at += kChunkBytes)
    map_of_chunk[(at - kRangeBegin) / kChunkBytes].store(static_cast<uint8_t>(map - maps + 1),
                                                         std::memory_order_release);
  map_count.fetch_add(1, std::memory_order_relaxed);
  base::statistics.spill_file_maps.add();
  return begin;
}

FileMapKind file_map_kind(uint64_t address) {
  const FileMap* map = map_of(address);
  return map == nullptr ? FileMapKind::kNone : map->kind.load(std::memory_order_acquire);
}

uint64_t file_map_end(uint64_t address, uint64_t end) {
  const FileMap* map = map_of(address);
  uint64_t at = base::round_down(address - kRangeBegin, kChunkBytes) + kRangeBegin;
  while (at < end && map_of(at) == map) at += kChunkBytes;
  return at < end ? at : end;
}

void make_plain(uint64_t address) {
  InRuntime inside;
  for (;;) {
    {
      sys::LockGuard guard(maps_mutex);
      FileMap* const map = map_of(address);
      if (map == nullptr) return;
      become_plain(*map);
      if (map->has_pages) drop_pages(*map, workspace_of(inside.thread()));
      if (!map->has_lease) return;
    }
    sys::nap(kRetryNs);
  }
}

void unmap_file(uint64_t address, uint64_t bytes) {
  InRuntime inside;
  cache::Workspace& workspace = workspace_of(inside.thread());
  sys::LockGuard guard(maps_mutex);
  FileMap& map = *map_of(address);
  unmap_range(address, bytes);
  end_protection(address, bytes);
  withhold_addresses(address, bytes);
  // The kernel's mapping of a plain map, and pages that raise SIGBUS.
  sys::make_inaccessible(reinterpret_cast<void*>(address), bytes);
  map.mapped -= bytes;
  if (map.mapped > 0) {
    forget_part(address, address + bytes, workspace);
    return;
  }
  map.kind.store(FileMapKind::kGone, std::memory_order_release);
  end_map(map, workspace);
}

bool reload_file(uint64_t address, uint64_t bytes) {
  constexpr uint64_t kPieceBytes = 16 * base::kOsPageBytes;
  uint64_t offset;
  int descriptor;
  {
    InRuntime inside;
    sys::LockGuard guard(maps_mutex);
    offset = map_of(address)->offset_of(address);
    descriptor = map_of(address)->descriptor;
  }
  auto memory = sys::map_anonymous(kPieceBytes, "a piece of a file");
  if (!memory) return false;
  const uint64_t end = address + bytes;
  long got = 1;
  while (address < end && got > 0) {
    got = sys::syscall(SYS_pread64, descriptor, *memory, kPieceBytes, offset);
    if (got <= 0) break;
    // Zeros up to the end of the OS page in which the file ends; beyond it, accesses raise SIGBUS. A direct read leaves
    // zeros there itself, but not every file system reads directly.
    const uint64_t read = base::round_up(static_cast<uint64_t>(got), base::kOsPageBytes);
    spillway_plain_memset(*memory + got, 0, read - static_cast<uint64_t>(got));
    for (uint64_t at = 0; at < read && address < end; at += base::kOsPageBytes, address += base::kOsPageBytes)
      put(address, *memory + at);
    offset += read;
  }
  sys::unmap(*memory, kPieceBytes);
  return !sys::failed(got);
}

bool has_file_maps() { return map_count.load(std::memory_order_relaxed) > 0; }

void note_plain(uint64_t address) {
  int64_t unknown = kEntryUnknown;
  // A page that was held when the map became plain has locked entries until it has left.
  entry_of(address).compare_exchange_strong(unknown, kEntryIdentity, std::memory_order_acq_rel);
}

void show_bus_error(uint64_t address) {
  InRuntime inside;
  sys::LockGuard guard(maps_mutex);
  const FileMapKind kind = file_map_kind(address);
  if ((kind != FileMapKind::kReading && kind != FileMapKind::kPrivate) || !is_allocated(address)) return;
  sys::syscall(SYS_mmap, base::round_down(address, base::kOsPageBytes), base::kOsPageBytes,
               PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, empty_file, 0);
}

void hide_bus_error(uint64_t address) {
  InRuntime inside;
  sys::LockGuard guard(maps_mutex);
  const FileMapKind kind = file_map_kind(address);
  if (kind != FileMapKind::kReading && kind != FileMapKind::kPrivate) return;
  sys::make_inaccessible(reinterpret_cast<void*>(base::round_down(address, base::kOsPageBytes)),
                         base::kOsPageBytes);
}

void file_maps_step(cache::Workspace& workspace, uint32_t round) {
  if (map_count.load(std::memory_order_relaxed) == 0) return;
  sys::LockGuard guard(maps_mutex);
  const bool looks_at_held = round % kRoundsPerLook == 0;
  for (FileMap& map : maps) {
    if (map.kind.load(std::memory_order_relaxed) == FileMapKind::kReading &&
        is_lease_asked_back(map.descriptor))
      become_plain(map);
    const FileMapKind kind = map.kind.load(std::memory_order_relaxed);
    if (kind == FileMapKind::kGone && looks_at_held) end_map(map, workspace);
    if (kind == FileMapKind::kPlain && map.has_pages && (map.has_lease || looks_at_held))
      drop_pages(map, workspace);
  }
}

void freeze_file_maps() { maps_mutex.lock(); }

void thaw_file_maps() { maps_mutex.unlock(); }

// The lease is the parent's, which gives it back at any time: the child must keep nothing that was read.
void own_file_maps() {
  cannot_watch_leases();  // yet
  maps_mutex.unlock();
  if (map_count.load(std::memory_order_relaxed) == 0) return;
  InRuntime inside;
  sys::LockGuard guard(maps_mutex);
  for (FileMap& map : maps) {
    map.has_lease = false;
    if (map.kind.load(std::memory_order_relaxed) == FileMapKind::kReading) {
      // Through an open file of its own, so that the lease ends with the parent.
      if (const int own = open_again(map.descriptor); own >= 0) {
        sys::close_own_descriptor(map.descriptor);
        map.descriptor = own;
      }
      become_plain(map);
    }
    // They were held by other threads, which the child does not have. But if a handler forked, the system call that it interrupted may have
    // pinned some: these leave when the call is over.
    if (map.kind.load(std::memory_order_relaxed) == FileMapKind::kPlain && map.has_pages)
      drop_pages(map, workspace_of(inside.thread()));
  }
}

}  // namespace spill
