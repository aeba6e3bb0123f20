// Cache: pages of one address range in a bounded amount of memory, backed by a storage device.
//
// Pages are spread over partitions by region (2 MiB of addresses, or 16 pages if that is more); each
// partition has its own lock, frames and policy.
//
// Thread contract: every call may come from any thread with that thread's Lane. None allocates from the
// C library's heap. Not async-signal-safe against itself: a thread must not be interrupted inside a
// call by a handler that calls again.
#pragma once
#include <atomic>

#include "cache/pages/layout.h"
#include "cache/partition/load_queue.h"
#include "cache/partition/partition.h"
#include "cache/servers/delegation.h"

namespace cache {

struct CacheParameters {
  uint64_t range_begin = 0;  // address of page 0; multiple of the page size and of 2 MiB
  uint64_t range_bytes = 0;
  Table::Entry* table_entries = nullptr;  // the entry of range_begin's OS page; memory reserved by the caller
  size_t page_bytes = base::kOsPageBytes;
  uint64_t memory_bytes = 0;       // for frames, tables and metadata
  uint64_t most_memory_bytes = 0;  // what set_memory may raise it to, 0: not at all. Costs address space
  uint32_t frame_count = 0;        // 0: as many as memory_bytes holds
  uint32_t partition_count = 0;    // 0: by memory and cores
  uint32_t read_ahead_pages = 0;
  uint64_t chaos_seed = 0;
  base::PolicyKind policy = base::PolicyKind::kClock;
  bool chooses_policy = false;  // while it runs, instead of that
  PolicyChoice::Parameters policy_choice = {};
  Origins* origins = nullptr;  // outlives the cache; null: all pages begin as zeros
  Closed* closed = nullptr;    // outlives the cache; null: nothing is closed
  bool large_pages = false;    // frames in large OS pages, where there are some
  bool watch = true;  // the kernel says which pages were not stored to, where it can; else all are compared
};

class Cache {
 public:
  static constexpr uint32_t kMaxPartitions = cache::kMaxPartitions;
  static constexpr uint32_t kMinFrames = 8;

  // Errors: EINVAL (page size, budget too small: the message says what is needed), ENOMEM; then nothing stays mapped or open.
  // `device` and `holders` must outlive the cache.
  static base::Expected<Cache*> create(const CacheParameters& parameters, storage::Device& device,
                                       Holders& holders);
  void destroy();

  // A page that nobody looks at: reads of several pages bring to it what lies between them on storage and is not wanted. Such a
  // place may be written, or discarded, meanwhile.
  const char* waste() const { return shared_.waste; }

  base::Expected<Lane*> open_lane() { return Lane::create(*shared_.device, shared_.page_bytes); }

  // For begin_load, as LoadQueues'.
  base::Expected<LoadQueue*> open_loads(bool undisturbed = false) {
    storage::Device* const origins = shared_.origins != nullptr ? shared_.origins->device() : nullptr;
    return shared_.loads.open(*shared_.device, origins, undisturbed);
  }
  // Was the queue opened when its origins had the device that they have now? If not, another call of open_loads brings one.
  bool knows_origins(const LoadQueue& queue) const {
    return shared_.origins == nullptr || queue.origins_device() == shared_.origins->device();
  }
  void close_loads(LoadQueue& queue) { shared_.loads.close(queue); }
  // Ends loads that were begun, whoever did, if their reads are done; returns how many. Who waits for others in a loop of its
  // own calls it in there.
  size_t poll_loads() { return shared_.loads.poll(); }

  // Servers (delegation.h), which load pages for the threads that call load and pin. In this order, once: open_servers,
  // run_server in a thread of its own for each, start_servers with how many of these there are; stop_servers, the end of the
  // threads, destroy. A child of fork has none: it may open its own, and asks them by lanes that it opened. Errors: ENOMEM,
  // EMFILE; then there are none.
  base::Expected<void> open_servers(uint32_t count, bool always);
  void run_server(uint32_t server) { delegation_.load(std::memory_order_acquire)->run(server); }
  void start_servers(uint32_t running_count) {
    delegation_.load(std::memory_order_acquire)->start(running_count);
  }
  // REQUIRES: nobody loads or pins meanwhile.
  void stop_servers() { delegation_.load(std::memory_order_acquire)->stop(); }

  // As Partition's.
  base::Expected<char*> load(PageId page, Lane& lane) {
    if (char* bytes = delegate(page, lane, false); bytes != nullptr) return bytes;
    return load(page, lane, lane.stream);
  }
  base::Expected<char*> load(PageId page, Lane& lane, Stream& stream) {
    return of(page).load(page, lane, stream, false);
  }
  base::Expected<char*> pin(PageId page, Lane& lane) {
    if (char* bytes = delegate(page, lane, true); bytes != nullptr) return bytes;
    return of(page).load(page, lane, lane.stream, true);
  }
  base::Expected<Partition::Begun> begin_load(PageId page, Lane& lane, Stream& stream, LoadQueue& queue,
                                              void (*ended)(void* context), void* context) {
    return of(page).begin_load(page, lane, stream, queue, ended, context);
  }
  // Queues for prefetch. Nobody is told of what is under way when one is left.
  void leave_loads(LoadQueue& queue) { shared_.loads.leave(queue); }
  // Begins to load those of the pages that are on storage, or come from elsewhere, and are not in memory, ahead of use, and returns how many of the pages
  // need nothing more, from the first on: fewer than all when the queue is full or frames are few. Waits for nothing but locks,
  // evicts nothing, reports no errors: what is not loaded is loaded by whoever uses it. Cost: 100 ns a page; a system call for
  // each LoadQueue::kBatch reads. REQUIRES: the queue is the caller's alone, but for polling, and all its loads are begun here.
  size_t prefetch(std::span<const PageId> pages, LoadQueue& queue);
  // The same for pages first .. first + count - 1: those that lie side by side there come by one read, up to kGroupPages.
  uint64_t prefetch_run(PageId first, uint64_t count, LoadQueue& queue);
  // As Partition's. Returns how many writes failed. Errors: ENOMEM.
  base::Expected<uint32_t> write_back(PageId first, uint64_t count, Lane& lane);
  // For who is about to load or pin these pages one by one: servers load those that are missing together. Nothing without
  // servers. Cost: as the loads.
  void load_together(PageId first, uint64_t count, Lane& lane);
  // As Partition's.
  void unpin(PageId page) { of(page).unpin(page); }
  void stay(PageId page) { of(page).stay(page); }
  void end_stay(PageId page) { of(page).end_stay(page); }
  using After = Partition::After;
  void discard(PageId first, uint64_t count, Lane& lane, After after = After::kInUse);
  Partition::Left forget(PageId first, uint64_t count, Lane& lane);
  // Cost: a look at each region of the table (2 MiB), more only where pages are in memory. REQUIRES: `closed` was given.
  Partition::Seen close_again(PageId first, uint64_t count);
  void guard(uint64_t address, sys::Access access) {
    const PageId page = page_of(address);
    of(page).guard(page, (address - address_of(page)) / base::kOsPageBytes, access);
  }
  // The address that `address`, in a frame that is guarded, stands for.
  std::optional<uint64_t> guarded_address(const char* address);
  void zero(PageId page, uint64_t offset, uint64_t bytes) { of(page).zero(page, offset, bytes); }
  void copy_in(PageId page, uint64_t offset, const char* from, uint64_t bytes) {
    of(page).copy_in(page, offset, from, bytes);
  }
  void copy_out(PageId page, uint64_t offset, char* to, uint64_t bytes) {
    of(page).copy_out(page, offset, to, bytes);
  }

  // Regions (regions.h). From begin_regions on they are mapped, until end_regions or the cache ends that; `mappable` outlives
  // the cache. REQUIRES: nothing of what may be mapped is in memory in a mapping of the caller's at its own address; such a page
  // is not mapped by map_own either.
  void begin_regions(Mappable& mappable);
  void end_regions(RegionsEnd why) { shared_.regions.end(why); }
  bool maps_regions() const { return shared_.regions.is_on(); }
  // May anything be mapped? Cost: two loads.
  bool has_regions() const { return shared_.regions.any(); }
  // An access to the page at its own address failed, and may be made: it is mapped there if it is, or can be, part of a
  // region; else false. May do I/O.
  bool map_own(PageId page, Lane& lane) { return of(page).map_own(page, lane); }
  // [address, address + bytes), whole OS pages, becomes inaccessible where it is mapped, also by who found nothing against it
  // (Mappable::find) before; an access that is allowed maps it again.
  // Cost: a look at each region, a system call for each that is mapped.
  void cut(uint64_t address, uint64_t bytes);
  // Regions that touch [address, address + bytes) are not mapped any more, or all. They may be again as long as regions are,
  // but for those of which a page is known.
  void unmap_regions(uint64_t address, uint64_t bytes);
  void unmap_all_regions();

  // Evicts a batch of every partition, however much memory is free; returns how many frames became free.
  uint32_t evict(Lane& lane);

  // One round of background work: evicts where frames run low (in chaos mode: anywhere). Returns how
  // many frames became free; 0: nothing to do.
  uint32_t background_step(Lane& lane);
  // Gets the memory that idle_step needs for cleaning; without it idle_step does not clean. Errors: ENOMEM.
  base::Expected<void> prepare_cleaning();
  // When nothing else is to be done: gives storage back that freed pages took, and cleans pages that
  // will be evicted soon. Returns whether it did something. May do I/O.
  bool idle_step(Lane& lane);
  bool wants_background() const;
  // Sleeps until a partition runs low on frames, at most timeout_ns.
  void wait_for_background(uint64_t timeout_ns);

  // The budget is another from now on: what exceeds it leaves memory by and by, in the background and by who misses. Any thread; one
  // at a time. Errors: EINVAL, below least_memory_bytes, or above what it was made for (the message says what may be);
  // EAGAIN, no memory file for more frames, since a fork; then the budget is what it was.
  // `held_count`: how many frames threads may hold at one time, wherever; `pinned_count`: how many pages are pinned to stay.
  base::Expected<void> set_memory(uint64_t bytes, uint64_t held_count, uint64_t pinned_count = 0);
  // The least budget that can be: what tables and metadata take now, in each partition frames for twice as many as are held, and twice
  // those that are pinned.
  uint64_t least_memory_bytes(uint64_t held_count, uint64_t pinned_count = 0);

  // Memory that the cache's user takes for data kept here (heap metadata) counts against the budget.
  void charge(uint64_t bytes) { shared_.budget.add(bytes); }
  void uncharge(uint64_t bytes) { shared_.budget.subtract(bytes); }

  PageId page_of(uint64_t address) const { return PageId{(address - range_begin_) / shared_.page_bytes}; }
  uint64_t address_of(PageId page) const { return range_begin_ + index(page) * shared_.page_bytes; }
  size_t page_bytes() const { return shared_.page_bytes; }
  // How many frames the budget allows.
  uint32_t frame_count() const;
  // How many there may be now, beside what else is charged; not fewer than partitions keep in any case. Cost: a few loads for each partition.
  uint32_t frames_within_budget();
  uint32_t resident_count();
  // How many frames are not free, about. Cost: inline.
  uint32_t used_count() const;
  // Bytes of frames that hold memory of the OS.
  uint64_t frames_bytes();
  // The memory file and offset of pinned memory, to map it elsewhere.
  struct FilePiece {
    int descriptor;
    uint64_t offset;
  };
  FilePiece file_piece(PageId page, const char* pinned);
  // The page's frame is about to be mapped elsewhere too, where stores are not seen by a WriteWatch: its content
  // is compared when it leaves. REQUIRES: pinned.
  void stop_watching(PageId page) { of(page).stop_watching(page); }
  // Every partition's frames as [begin, end) of this process's addresses, for fork.
  struct Pool {
    char* begin;
    uint64_t bytes;
    int descriptor;
  };
  uint32_t partition_count() const { return partition_count_; }
  // Which of them has the page.
  uint32_t partition_number(PageId page) const {
    return partition_of(page, shared_.region_shift, partition_count_);
  }
  Pool pool(uint32_t partition);

  // A copy of this process that was made without the calls below does not have the frames.
  void keep_from_copies() { set_inherited(false); }

  // Fork. The child has all pages as they were, wherever they are, and both go on; the first store to a frame in
  // either copies an OS page, until share_step has given frames memory of their own again.
  //   before_fork            from here to the next call no page comes or goes: whoever needs one waits. Waits for pins
  //                          that are not in `pins`, which the kernel may store to memory for, a second at most.
  //                          Returns whether this process will know when the child is over
  //   after_fork_in_parent   also if there is no child
  //   after_fork_in_child    lanes that it inherited may only be destroyed. Nothing is pinned until own_kept and
  //                          pin_again; false: it cannot have what its parent has, and must end
  bool before_fork(const PinsOverFork& pins);
  void after_fork_in_parent();
  bool after_fork_in_child();
  // In the child: the kept page, and the mapping of it at `address`, become its own, pinned. Returns 0 or -errno. The
  // calling thread may run on that memory. REQUIRES: the parent does not return from fork before.
  long own_kept(PageId page, void* address);
  // In the child: pins a page that its thread had pinned. REQUIRES: it was, and no other thread runs.
  void pin_again(PageId page);
  // In the parent: is the child made last over?
  bool last_child_is_over() { return shared_.places.last_child_is_over(); }
  // As pin, for mapping the page elsewhere.
  base::Expected<char*> pin_shared(PageId page, Lane& lane) { return of(page).load_shared(page, lane); }
  // Can it still be mapped elsewhere, if it was pinned by pin_shared? Not if there was a fork since.
  bool is_shared(PageId page) { return of(page).is_shared(page); }
  // A step of background work: lets go of what was kept for children that have ended, and gives frames their own memory
  // again, once no child has what they have, nor the parent. Returns whether there is more of that. Cost: system calls;
  // copies of 256 KiB for each partition. May do I/O.
  bool share_step(Lane& lane);
  // Whether `address` is in a frame of this process.
  bool is_in_frame(const char* address);
  // A store to a frame failed. Waits until whoever gives it other memory is done: then it succeeds.
  void wait_for_share() {
    for (uint32_t i = 0; i < partition_count_; ++i) partitions_[i].wait_for_share();
  }
  // For other processes that look into this one.
  Layout layout() const;
  const Budget& budget() const { return shared_.budget; }
  storage::Device& device() { return *shared_.device; }
  void verify();

 private:
  // Has a server load the page, or finds it; null: the caller is to do it by itself.
  char* delegate(PageId page, Lane& lane, bool pin) {
    Delegation* const delegation = delegation_.load(std::memory_order_acquire);
    if (delegation == nullptr || !delegation->is_running()) return nullptr;
    return ask(*delegation, page, lane, pin);
  }
  // Of create. Where one fails, destroy undoes what was done.
  void set(const CacheParameters& parameters, char* waste, storage::Device& device, Holders& holders);
  base::Expected<void> open_tables(const CacheParameters& parameters);
  base::Expected<void> open_partitions(const CacheParameters& parameters, uint64_t frame_count);

  char* ask(Delegation& delegation, PageId page, Lane& lane, bool pin);
  Client* client_for(Delegation& delegation, PageId page, Lane& lane);

  // What is charged besides frames.
  uint64_t other_bytes();

  Partition& of(PageId page) { return shared_.of(page); }

  template <class F>
  void for_each_part(PageId first, uint64_t count, F f);

  static constexpr uint32_t kCalmSteps = 10'000;  // ten seconds where nothing else is to be done

  void set_inherited(bool inherited) {
    for (uint32_t i = 0; i < partition_count_; ++i) partitions_[i].frames().set_inherited(inherited);
  }
  uint32_t prefetch_some(PageId page, uint32_t most, LoadQueue& queue, uint64_t now_ns);
  bool discard_garbage(Lane& lane);
  void discard(Places::Run run, Lane& lane);
  template <class F>
  void for_each_region(uint64_t address, uint64_t bytes, F f);

  // Of idle_step: how often in a row no page had moved, and what move_count was then.
  uint32_t calm_steps_ = kCalmSteps;
  uint32_t last_move_count_ = 0;
  uint32_t steps_ = 0;            // of share_step
  long process_ = 0;              // that created the cache, or became its owner as a child
  std::atomic<long> parent_ = 0;  // of a child of fork, as long as it lives; 0: none
  bool lend_failed_ = false;
  uint32_t chaos_steps_ = 0;  // of background_step until regions end, in chaos mode
  std::atomic<Delegation*> delegation_{nullptr};
  Shared shared_;
  Table table_;
  uint64_t range_begin_ = 0;
  uint64_t range_bytes_ = 0;
  uint64_t frame_bytes_ = 0;      // a page and what is known of its frame
  uint32_t partition_count_ = 1;  // a power of two
  Partition partitions_[kMaxPartitions];
};

}  // namespace cache
