// Cache: pages of one address range in a bounded amount of memory, backed by a storage device.
//
// Pages are spread over partitions by region (2 MiB of addresses, or 16 pages if that is more); each
// partition has its own lock, frames and policy.
//
// Thread contract: every call may come from any thread with that thread's Workspace. None allocates from the
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
  uint64_t most_memory_bytes = 0;  // how far set_memory can raise it; 0: not at all. Costs address space
  uint32_t frame_count = 0;        // for tests and benchmarks; 0: as many as memory_bytes holds
  uint32_t read_ahead_pages = 0;
  uint64_t chaos_seed = 0;
  base::PolicyKind policy = base::PolicyKind::kClock;
  bool chooses_policy = false;  // the cache chooses its policy while it runs; `policy` is ignored
  Origins* origins = nullptr;   // outlives the cache; null: all pages begin as zeros
  Closed* closed = nullptr;     // outlives the cache; null: nothing is closed
  bool large_pages = false;     // frames in large OS pages, where there are some

  // Only tests set these.
  struct ForTests {
    uint32_t partition_count = 0;  // a power of two; 0: by how many frames there are
    PolicyChoice::Parameters policy_choice = {};
    bool watch = true;  // let the kernel say which pages were not stored to, where it can; false: compare all
  };
  ForTests for_tests = {};
};

class Cache {
 public:
  static constexpr uint32_t kMaxPartitions = cache::kMaxPartitions;
  static constexpr uint32_t kMinFrames = 8;

  // `device` and `holders` must outlive the cache. Errors: EINVAL (the page size, or a budget that is too small: the message says what is needed);
  // ENOMEM. After an error nothing stays mapped or open.
  static base::Expected<Cache*> create(const CacheParameters& parameters, storage::Device& device,
                                       Holders& holders);
  void destroy();

  // A page of memory that nobody looks at. A read that spans several pages puts the unwanted places between them here; those may be written or
  // discarded at the same time.
  const char* waste() const { return shared_.waste; }

  base::Expected<Workspace*> open_workspace(const storage::QueueUse& use = {}) {
    return Workspace::create(*shared_.device, shared_.page_bytes, use);
  }

  // Opens a queue for begin_load and prefetch; see LoadQueues::open.
  base::Expected<LoadQueue*> open_loads(bool undisturbed = false) {
    storage::Device* const origins = shared_.origins != nullptr ? shared_.origins->device() : nullptr;
    return shared_.loads.open(*shared_.device, origins, undisturbed);
  }
  // Was the queue opened for the device that the origins have now? If not, open_loads opens one that is.
  bool knows_origins(const LoadQueue& queue) const {
    return shared_.origins == nullptr || queue.origins_device() == shared_.origins->device();
  }
  void close_loads(LoadQueue& queue) { shared_.loads.close(queue); }
  // Finishes loads whose reads are done, whoever began them; returns how many. A thread that waits for others in its own loop calls this in the loop.
  size_t poll_loads() { return shared_.loads.poll(); }

  // Servers (delegation.h) load pages for the threads that call load and pin. Each is called once, in this order: open_servers; run_server for each
  // server, in a thread of its own; start_servers with the number of these threads; stop_servers; the threads end; destroy. A child of fork has no
  // servers; it may open its own, and asks them through workspaces that it opened itself. Errors: ENOMEM, EMFILE; there are no servers then.
  base::Expected<void> open_servers(uint32_t count, bool always);
  void run_server(uint32_t server) { delegation_.load(std::memory_order_acquire)->run(server); }
  void start_servers(uint32_t running_count) {
    delegation_.load(std::memory_order_acquire)->start(running_count);
  }
  // REQUIRES: nobody loads or pins meanwhile.
  void stop_servers() { delegation_.load(std::memory_order_acquire)->stop(); }

  // See Partition.
  base::Expected<char*> load(PageId page, Workspace& workspace) {
    if (char* bytes = delegate(page, workspace, false); bytes != nullptr) return bytes;
    return load(page, workspace, workspace.stream);
  }
  base::Expected<char*> load(PageId page, Workspace& workspace, Stream& stream) {
    return of(page).load(page, workspace, stream, false);
  }
  base::Expected<char*> pin(PageId page, Workspace& workspace) {
    if (char* bytes = delegate(page, workspace, true); bytes != nullptr) return bytes;
    return of(page).load(page, workspace, workspace.stream, true);
  }
  base::Expected<Partition::Begun> begin_load(PageId page, Workspace& workspace, Stream& stream,
                                              LoadQueue& queue, void (*ended)(void* context), void* context) {
    return of(page).begin_load(page, workspace, stream, queue, ended, context);
  }
  // Gives back a queue that was used for prefetch only; some of its loads may be under way.
  void leave_loads(LoadQueue& queue) { shared_.loads.leave(queue); }
  // Begins to load, ahead of use, the pages that are not in memory but on storage or with another origin. Returns how many pages, counted from the
  // first, need nothing more: fewer than all if the queue is full or free frames are few. Waits only for locks, evicts nothing and reports no errors:
  // a page that is not loaded here is loaded by whoever uses it. Pages named in ascending order that are close to each other, and side by side on
  // storage, are loaded by one read, together with the pages between them where these are few. Cost: 100 ns for each page, and a system call for
  // every LoadQueue::kBatch reads. REQUIRES: only the caller begins loads through this queue, and only here.
  size_t prefetch(std::span<const PageId> pages, LoadQueue& queue);
  // The same for pages first .. first + count - 1.
  uint64_t prefetch_run(PageId first, uint64_t count, LoadQueue& queue);
  // See Partition. Returns how many pages could not be written. Errors: ENOMEM.
  base::Expected<uint32_t> write_back(PageId first, uint64_t count, Workspace& workspace);
  // For a thread that is about to load or pin these pages one by one: has servers load all missing ones at the same time. Does nothing without
  // servers. Cost: that of the loads.
  void load_together(PageId first, uint64_t count, Workspace& workspace);
  // See Partition.
  void unpin(PageId page) { of(page).unpin(page); }
  void stay(PageId page) { of(page).stay(page); }
  void end_stay(PageId page) { of(page).end_stay(page); }
  using After = Partition::After;
  void discard(PageId first, uint64_t count, Workspace& workspace, After after = After::kInUse);
  Partition::Left forget(PageId first, uint64_t count, Workspace& workspace);
  // Cost: a look at each region of the table (2 MiB), more only where pages are in memory. REQUIRES: `closed` was given.
  Partition::Seen close_again(PageId first, uint64_t count);
  void guard(uint64_t address, sys::Access access) {
    const PageId page = page_of(address);
    of(page).guard(page, (address - address_of(page)) / base::kOsPageBytes, access);
  }
  // The address in the cache's range to which `address`, in a guarded frame, corresponds; nothing if it is in no guarded frame.
  std::optional<uint64_t> guarded_address(const char* address);
  void zero(PageId page, uint64_t offset, uint64_t bytes) { of(page).zero(page, offset, bytes); }
  void copy_in(PageId page, uint64_t offset, const char* from, uint64_t bytes) {
    of(page).copy_in(page, offset, from, bytes);
  }
  void copy_out(PageId page, uint64_t offset, char* to, uint64_t bytes) {
    of(page).copy_out(page, offset, to, bytes);
  }

  // Regions (regions.h) are mapped from begin_regions on, until end_regions or the cache itself ends it. `mappable` outlives the cache. REQUIRES: the
  // caller has not mapped a resident page at its own address that a region may cover, and does not map one there that map_own maps.
  void begin_regions(Mappable& mappable);
  void end_regions(RegionsEnd why) { shared_.regions.end(why); }
  bool maps_regions() const { return shared_.regions.is_on(); }
  // May anything be mapped? Cost: two loads.
  bool has_regions() const { return shared_.regions.any(); }
  // An access at the page's own address, which is allowed, has faulted: maps the page there if its region is mapped or can be; else returns false.
  // May do I/O.
  bool map_own(PageId page, Workspace& workspace) { return of(page).map_own(page, workspace); }
  // Makes [address, address + bytes), whole OS pages, inaccessible where it is mapped, also where another thread is just mapping it because
  // Mappable::find still allowed that. An allowed access maps it again. Cost: a look at each region, and a system call for each mapped one.
  void cut(uint64_t address, uint64_t bytes);
  // Unmap the regions that overlap [address, address + bytes), or all. While maps_regions(), a region may be mapped again once none of its pages is
  // known.
  void unmap_regions(uint64_t address, uint64_t bytes);
  void unmap_all_regions();

  // Evicts a batch in each partition, however much memory is free; returns how many frames became free.
  uint32_t evict(Workspace& workspace);

  // One round of background work: gives memory back where the budget is exceeded, and evicts where frames run low (in chaos mode: everywhere). Returns
  // roughly how many frames became free; 0: there was nothing to do.
  uint32_t background_step(Workspace& workspace);
  // Maps the memory that idle_step needs for cleaning; without it idle_step does not clean. Errors: ENOMEM.
  base::Expected<void> prepare_cleaning();
  // To be called when there is nothing else to do: discards places of freed pages, and cleans pages that will be evicted soon. Returns whether it did
  // anything. May do I/O.
  bool idle_step(Workspace& workspace);
  bool wants_background() const;
  // Sleeps until a partition runs low on frames, but at most for timeout_ns.
  void wait_for_background(uint64_t timeout_ns);

  // Changes the budget. Memory in excess of it is freed little by little, in the background and by threads that miss. `held_count`: how many frames
  // all threads together may hold at one time; `pinned_count`: how many pages stay pinned. Any thread, one at a time. Errors: EINVAL, less than
  // least_memory_bytes, or more than the cache was created for (the message gives the bound); EAGAIN, a fork has lent the memory file, and no other
  // one can be had for more frames now. After an error the budget is unchanged.
  base::Expected<void> set_memory(uint64_t bytes, uint64_t held_count, uint64_t pinned_count = 0);
  // The least budget that may be set: what tables and metadata take now, plus, in each partition, twice as many frames as may be held and a few more,
  // plus twice as many frames as are pinned.
  uint64_t least_memory_bytes(uint64_t held_count, uint64_t pinned_count = 0);

  // Memory that the cache's user takes for data kept here (heap metadata) counts against the budget.
  void charge(uint64_t bytes) { shared_.budget.add(bytes); }
  void uncharge(uint64_t bytes) { shared_.budget.subtract(bytes); }

  PageId page_of(uint64_t address) const { return PageId{(address - range_begin_) / shared_.page_bytes}; }
  uint64_t address_of(PageId page) const { return range_begin_ + index(page) * shared_.page_bytes; }
  size_t page_bytes() const { return shared_.page_bytes; }
  // How many frames the budget allows if nothing else is charged.
  uint32_t frame_count() const;
  // How many frames the budget leaves room for beside everything else that is charged; at least those that partitions always keep. Cost: a few loads
  // for each partition.
  uint32_t frames_within_budget();
  uint32_t resident_count();
  // Roughly how many frames are not free. Cost: inline.
  uint32_t used_count() const;
  // Bytes of frames that hold memory of the OS.
  uint64_t frames_bytes();
  // The memory file in which a pinned page lies, and where, to map it elsewhere.
  struct FilePiece {
    int descriptor;
    uint64_t offset;
  };
  FilePiece file_piece(PageId page, const char* pinned);
  // The page's frame is about to be mapped elsewhere, too. A WriteWatch does not see stores there, so the page's content is compared at eviction.
  // REQUIRES: pinned.
  void stop_watching(PageId page) { of(page).stop_watching(page); }
  // The frames of one partition, as addresses of this process, and their memory file.
  struct Pool {
    char* begin;
    uint64_t bytes;
    int descriptor;
  };
  uint32_t partition_count() const { return partition_count_; }
  // The partition that has the page.
  uint32_t partition_number(PageId page) const {
    return partition_of(page, shared_.region_shift, partition_count_);
  }
  Pool pool(uint32_t partition);

  // A copy of this process that is made without the calls below does not get the frames.
  void keep_from_copies() { set_inherited(false); }

  // Fork. The child has all pages as they were, in memory or on storage, and both processes go on. The first store to an OS page of a frame, in either
  // process, copies that OS page, until share_step has given the frames memory of their own again.
  //   before_fork            From here to the next call no page comes or goes: a thread that misses waits. Waits at most a second for pins that are
  //                          not in `pins`, because of which the kernel may be storing to memory. Returns whether this process will know when the
  //                          child is over
  //   after_fork_in_parent   Also called if there is no child
  //   after_fork_in_child    Workspaces that the child inherited may only be destroyed. Nothing is pinned until own_kept and pin_again. False: the child
  //                          cannot have what its parent has, and must end
  bool before_fork(const PinsOverFork& pins);
  void after_fork_in_parent();
  bool after_fork_in_child();
  // In the child: makes the kept page, and the mapping of it at `address`, the child's own, and pins the page. Returns 0 or -errno. The calling
  // thread may run on that memory. REQUIRES: the parent does not return from fork before.
  long own_kept(PageId page, void* address);
  // In the child: pins a page that its thread had pinned before the fork. REQUIRES: no other thread runs.
  void pin_again(PageId page);
  // In the parent: is the child that was made last over?
  bool last_child_is_over() { return shared_.places.last_child_is_over(); }
  // Like pin, in a frame that can be mapped elsewhere.
  base::Expected<char*> pin_shared(PageId page, Workspace& workspace) {
    return of(page).load_shared(page, workspace);
  }
  // Can a page that was pinned by pin_shared still be mapped elsewhere? Not after a fork.
  bool is_shared(PageId page) { return of(page).is_shared(page); }
  // A step of background work: releases what was kept for children that have ended, and gives frames memory of their own again once no child and no
  // parent shares it any more. Returns whether there may be more of that to do. Cost: system calls, and copies of 256 KiB for each partition.
  // May do I/O.
  bool share_step(Workspace& workspace);
  // Whether `address` is in a frame of this process.
  bool is_in_frame(const char* address);
  // A store to a frame has faulted. Waits until the thread that is giving frames other memory is done; then the store succeeds.
  void wait_for_share() {
    for (uint32_t i = 0; i < partition_count_; ++i) partitions_[i].wait_for_share();
  }
  // For other processes that read this one's memory.
  Layout layout() const;
  const Budget& budget() const { return shared_.budget; }
  storage::Device& device() { return *shared_.device; }
  void verify();

 private:
  // Has a server load the page, or finds it in memory. Null: the caller has to load it.
  char* delegate(PageId page, Workspace& workspace, bool pin) {
    Delegation* const delegation = delegation_.load(std::memory_order_acquire);
    if (delegation == nullptr || !delegation->is_running()) return nullptr;
    return ask(*delegation, page, workspace, pin);
  }
  // The parts of create. If one fails, destroy undoes what was done.
  void set(const CacheParameters& parameters, char* waste, storage::Device& device, Holders& holders);
  base::Expected<void> open_tables(const CacheParameters& parameters);
  base::Expected<void> open_partitions(const CacheParameters& parameters, uint64_t frame_count);

  char* ask(Delegation& delegation, PageId page, Workspace& workspace, bool pin);
  Client* client_for(Delegation& delegation, PageId page, Workspace& workspace);

  // What is charged to the budget besides frames.
  uint64_t other_bytes();

  Partition& of(PageId page) { return shared_.of(page); }

  template <class F>
  void for_each_part(PageId first, uint64_t count, F f);

  static constexpr uint32_t kCalmSteps = 10'000;  // ten seconds, if there is nothing else to do

  void set_inherited(bool inherited) {
    for (uint32_t i = 0; i < partition_count_; ++i) partitions_[i].frames().set_inherited(inherited);
  }
  uint32_t prefetch_some(PageId page, uint32_t most, LoadQueue& queue, uint64_t now_ns);
  bool discard_garbage(Workspace& workspace);
  void discard(Places::Run run, Workspace& workspace);
  template <class F>
  void for_each_region(uint64_t address, uint64_t bytes, F f);

  // Of idle_step: for how many calls in a row no page had moved, and move_count at the last call.
  uint32_t calm_steps_ = kCalmSteps;
  uint32_t last_move_count_ = 0;
  uint32_t steps_ = 0;  // of share_step
  long process_ = 0;  // whose cache this is: the process that created it, or a child of fork that has its own
  std::atomic<long> parent_ = 0;  // of a child of fork, as long as it lives; 0: none
  bool lend_failed_ = false;
  uint32_t chaos_steps_ = 0;  // calls of background_step until regions end, in chaos mode
  std::atomic<Delegation*> delegation_{nullptr};
  Shared shared_;
  Table table_;
  uint64_t range_begin_ = 0;
  uint64_t range_bytes_ = 0;
  uint64_t frame_bytes_ = 0;      // a page and its frame's metadata
  uint32_t partition_count_ = 1;  // a power of two
  Partition partitions_[kMaxPartitions];
};

}  // namespace cache
