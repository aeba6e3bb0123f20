// Partition: Load, in the steps that partition.h numbers.
#include "base/probe.h"
#include "cache/partition/partition.h"

namespace cache {
namespace {

// How many consecutive pages that are in memory a read takes along to reach those after them.
constexpr uint32_t kMaxInMemory = 2;

// A prefetch leaves so many frames free: a batch divided by this.
constexpr uint32_t kBatchPerReserve = 8;

}  // namespace

base::Expected<char*> Partition::load(PageId page, Workspace& workspace, Stream& stream, bool pin) {
  char* bytes = nullptr;
  InVain in_vain;
  bool has_waited = false, has_loaded = false;
  for (;;) {
    mutex_.lock();
    uint32_t key = 0;
    const Attempt attempt = try_load(page, workspace.claim, stream, pin, in_vain.attempts > 0, bytes);
    if (attempt == Attempt::kWait) key = changed_.prepare();
    mutex_.unlock();
    // Not under the lock: the thread that is woken may take the CPU, and then wait for the lock.
    if (attempt == Attempt::kLoad && wants_frames()) shared_->low_on_frames.notify_all();
    switch (attempt) {
      case Attempt::kDone:
        if (!has_loaded) base::statistics.cache_hits.add();
        return bytes;
      case Attempt::kWait:
        if (!has_waited) base::statistics.cache_waits.add();
        has_waited = true;
        wait_for_change(key);
        break;
      case Attempt::kNeedFrame: {
        if (evict_for_load(workspace)) break;
        if (auto room = make_room(workspace, in_vain); !room) return std::unexpected(room.error());
        break;
      }
      case Attempt::kGone: return base::failure(ESTALE, "page ", index(page), " is gone");
      case Attempt::kLoad:
        base::probes::miss(index(page), workspace.claim.count);
        if (auto filled = fill(workspace.claim, workspace); !filled) return std::unexpected(filled.error());
        // The page was resident and open a moment ago. To pin it, the loop runs again; it may find the page evicted.
        if (!pin) return frames_.bytes(workspace.claim.frames[0]);
        has_loaded = true;
        break;
    }
  }
}

base::Expected<Partition::Begun> Partition::begin_load(PageId page, Workspace& workspace, Stream& stream,
                                                       LoadQueue& queue, void (*ended)(void* context),
                                                       void* context) {
  BegunLoad* const load = queue.take();
  if (load == nullptr) return Begun::kNoRoom;
  for (;;) {
    char* bytes = nullptr;
    mutex_.lock();
    const Attempt attempt = try_load(page, load->claim, stream, false, false, bytes);
    mutex_.unlock();
    if (attempt == Attempt::kNeedFrame && evict_for_load(workspace)) continue;
    if (attempt != Attempt::kLoad) {
      queue.give_back(*load);
      switch (attempt) {
        case Attempt::kDone: base::statistics.cache_hits.add(); return Begun::kDone;
        case Attempt::kWait: return Begun::kWait;
        case Attempt::kGone: return base::failure(ESTALE, "page ", index(page), " is gone");
        default: return Begun::kNoRoom;
      }
    }
    if (wants_frames()) shared_->low_on_frames.notify_all();
    const Claim& claim = load->claim;
    base::probes::miss(index(page), claim.count);
    // A page that needs no asynchronous read is filled at once.
    const bool on_storage = frames_[claim.frames[0]].place != base::kNoPlace;
    if (!on_storage && count_from_origin(page, claim.origin, claim.count, queue) < claim.count) {
      auto filled = fill(claim, workspace);
      queue.give_back(*load);
      if (!filled) return std::unexpected(filled.error());
      return Begun::kDone;
    }
    load->partition = this;
    load->ended = ended;
    load->context = context;
    prepare_read(claim, load->io);
    queue.submit(*load);
    return Begun::kUnderWay;
  }
}

Partition::Prefetched Partition::prefetch(PageId page, uint32_t& count, LoadQueue& queue, uint64_t now_ns) {
  const uint32_t asked = count;
  uint32_t most = std::min(asked, BegunLoad::most_pages(shared_->page_bytes));
  count = 1;
  BegunLoad* const load = queue.take();
  if (load == nullptr) return Prefetched::kNoRoom;
  Prefetched result = Prefetched::kBegun;
  {
    sys::LockGuard guard(mutex_);
    const PageMap::Where where = map_.find(page);
    const bool is_nowhere = where.frame == base::kNoFrame && where.place == base::kNoPlace;
    const auto origin = is_nowhere ? origin_of(page) : Origins::Kind::kZeros;
    if (is_nowhere) most = count_from_origin(page, origin, most, queue);
    if (where.frame != base::kNoFrame) {
      result = Prefetched::kThere;
    } else if (most == 0) {
      result = Prefetched::kNothing;
      if (origin == Origins::Kind::kZeros) count = count_nowhere(page, asked);
    } else {
      // Some frames are left to threads that cannot continue without one.
      const uint32_t reserve = batch_size_ / kBatchPerReserve;
      bool fresh;
      const FrameId taken =
          frames_.free_count() > reserve ? take_frame(page, where.place, false, fresh) : base::kNoFrame;
      if (taken == base::kNoFrame) {
        result = Prefetched::kNoRoom;
      } else {
        note_coming(page, nullptr);
        frames_[taken].ahead = Ahead::kNew;
        load->claim.begin(page, taken, fresh, origin, frames_);
        claim_following(load->claim, where.place, most, reserve);
        count = load->claim.count;
      }
    }
  }
  if (wants_frames()) shared_->low_on_frames.notify_all();
  if (result != Prefetched::kBegun) {
    queue.give_back(*load);
    return result;
  }
  load->partition = this;
  load->ended = nullptr;
  load->begun_ns = now_ns;
  prepare_read(load->claim, load->io);
  base::probes::prefetch(index(page), count);
  queue.submit(*load);
  return Prefetched::kBegun;
}

// How many consecutive pages, at most `most`, are unknown and begin as zeros. REQUIRES: the first one is such a page.
uint32_t Partition::count_nowhere(PageId first, uint32_t most) {
  uint32_t count = 1;
  for (; count < most; ++count) {
    const PageId page = first + count;
    if (!shared_->same_region(page, first)) break;
    if (shared_->directory.leaf_of(page) != 0 || origin_of(page) != Origins::Kind::kZeros) break;
  }
  return count;
}

// How many pages the queue can read together from their origin: at most `most`, from this one on, which has neither frame nor place. 0 if none.
uint32_t Partition::count_from_origin(PageId page, Origins::Kind origin, uint32_t most,
                                      const LoadQueue& queue) {
  if ((origin != Origins::Kind::kConstant && origin != Origins::Kind::kChanging) || !queue.reads_origins() ||
      !shared_->origins->offset_of(page, most))
    return 0;
  return shared_->origins->count_together(page, most);
}

void Partition::end_load(const BegunLoad& load) { finish_read(load.claim, load.io); }

// Step 1 of Load for a page that has a frame.
Partition::Attempt Partition::take_resident(FrameId id, bool pin, char*& bytes) {
  Frame& frame = frames_[id];
  switch (frame.state()) {
    case State::kLoading: return Attempt::kWait;
    case State::kEvicting:
      if (frame.gone) return Attempt::kGone;
      [[fallthrough]];
    case State::kWriting:
      base::statistics.cache_rescues.add();
      frame.rescue();
      base::probes::rescue(index(frame.page), 0);
      break;
    case State::kResident: break;
    case State::kAbsent:
    case State::kFree: CHECK(frame.state() == State::kResident);
  }
  reopen(id);
  if (pin) frame.pin();
  bytes = frames_.bytes(id);
  return Attempt::kDone;
}

Partition::Look Partition::look(PageId page, bool pin, char*& bytes) {
  sys::LockGuard guard(mutex_);
  const FrameId frame = map_.find(page).frame;
  if (frame == base::kNoFrame) return Look::kNotThere;
  return take_resident(frame, pin, bytes) == Attempt::kDone ? Look::kThere : Look::kBusy;
}

// Steps 1 to 3 of Load. On kLoad `claim` has the page and those that are read along with it. REQUIRES: the lock.
Partition::Attempt Partition::try_load(PageId page, Claim& claim, Stream& stream, bool pin, bool desperate,
                                       char*& bytes) {
  PageMap::Where where = map_.find(page);
  if (where.frame == base::kNoFrame && where.place == base::kNoPlace && map_region(page))
    where = map_.find(page);
  if (where.frame != base::kNoFrame) return take_resident(where.frame, pin, bytes);
  const auto origin = where.place != base::kNoPlace ? Origins::Kind::kZeros : origin_of(page);
  if (origin == Origins::Kind::kGone) return Attempt::kGone;
  bool fresh;
  const FrameId taken = take_frame(page, where.place, desperate, fresh);
  if (taken == base::kNoFrame) return Attempt::kNeedFrame;
  note_coming(page, &base::statistics.cache_miss_curve);
  claim.begin(page, taken, fresh, origin, frames_);
  if (where.place != base::kNoPlace || origin != Origins::Kind::kZeros)
    add_read_ahead(claim, where.place, stream);
  return Attempt::kLoad;
}

void Partition::note_coming(PageId page, base::MissCurve* curve) {
  ghosts_.came(page, frames_.touched_count() - frames_.free_touched_count(), curve);
}

// From the second consecutive miss on the page after the last one: claims frames for the pages that follow, on storage or in their origin.
void Partition::add_read_ahead(Claim& claim, PlaceId place, Stream& stream) {
  const PageId page = claim.first;
  const bool sequential = index(page) == index(stream.last_miss) + 1;
  stream.miss_streak = sequential ? stream.miss_streak + 1 : 0;
  stream.last_miss = page;
  if (stream.miss_streak < 2) return;
  const bool on_storage = place != base::kNoPlace;
  uint32_t most = std::min(1 + shared_->read_ahead_pages, Claim::kMaxPages);
  if (!on_storage) most = shared_->origins->count_together(page, most);
  claim_following(claim, place, most, batch_size_);
  stream.last_miss = page + (claim.count - 1);
}

// Claims frames for pages that follow the claim's first one, which is at `place` or in its origin, and can be loaded by the same read: `most` in all,
// as long as more than `reserve` frames are free. Pages among them that are in memory get no frame: up to kMaxInMemory in a row are read and
// discarded, since two operations take longer than one that reads more. REQUIRES: most <= Claim::kMaxPages.
void Partition::claim_following(Claim& claim, PlaceId place, uint32_t most, uint32_t reserve) {
  const bool on_storage = place != base::kNoPlace;
  uint32_t in_memory = 0;
  for (uint32_t i = 1; i < most; ++i) {
    const PageId next = claim.first + i;
    if (!shared_->same_region(next, claim.first)) break;
    const PageMap::Where where = map_.find(next);
    if (where.frame != base::kNoFrame) {
      if (!on_storage || ++in_memory > kMaxInMemory) break;
      claim.skip(i, shared_->waste, shared_->page_bytes);
      continue;
    }
    if (on_storage ? where.place == base::kNoPlace || index(where.place) != index(place) + i
                   : where.place != base::kNoPlace)
      break;
    if (frames_.free_count() <= reserve) break;
    bool fresh;
    const FrameId taken = take_frame(next, where.place, false, fresh);
    if (taken == base::kNoFrame) break;
    note_coming(next, nullptr);
    frames_[taken].ahead = Ahead::kNew;
    claim.set_frame(i, taken, frames_);
    claim.count = i + 1;
    in_memory = 0;
  }
}

// Steps 4 to 6 of Load for what try_load claimed.
base::Expected<void> Partition::fill(const Claim& claim, Workspace& workspace) {
  if (claim.origin != Origins::Kind::kZeros) return fill_from_origin(claim);
  const FrameId first = claim.frames[0];
  if (frames_[first].place == base::kNoPlace) {
    if (!claim.fresh) spillway_plain_memset(claim.segments[0].iov_base, 0, shared_->page_bytes);
    frames_.set_fingerprints(first, base::zero_fingerprint());
    base::statistics.cache_zero_fills.add();
    finish_load(claim, 1);
    base::probes::load_done(index(claim.first), 1, 0);
    return {};
  }
  storage::Io& io = workspace.batch.ios[0];
  prepare_read(claim, io);
  workspace.queue().run(io);
  if (claim.count > 1 && (io.error != 0 || io.transferred_bytes < shared_->page_bytes)) {
    // Perhaps only the pages that were read ahead have failed.
    io.segment_count = 1;
    io.length_bytes = shared_->page_bytes;
    workspace.queue().run(io);
  }
  if (finish_read(claim, io)) return {};
  const PageId page = claim.first;
  if (io.error == 0) {
    return base::failure(EIO, "cannot read page ", index(page), " from ", shared_->device->name(), ": only ",
                         io.transferred_bytes, " of ", shared_->page_bytes, " bytes at offset ",
                         io.offset_bytes);
  }
  return base::failure(io.error, "cannot read page ", index(page), " from ", shared_->device->name(),
                       " at offset ", io.offset_bytes, ": ", base::error_name(io.error));
}

// Step 4 of Load for consecutive pages on storage or in their origin.
void Partition::prepare_read(const Claim& claim, storage::Io& io) {
  io = {};
  io.operation = storage::Operation::kRead;
  io.offset_bytes = claim.origin == Origins::Kind::kZeros
                        ? uint64_t{index(frames_[claim.frames[0]].place)} * shared_->page_bytes
                        : *shared_->origins->offset_of(claim.first, claim.count);
  io.segments = claim.segments;
  io.segment_count = claim.count;
  io.length_bytes = claim.count * shared_->page_bytes;
}

// Steps 5 and 6 of Load. Returns false if the first page could not be read. A page in which a file ends counts as not read: fill_from_origin loads it.
bool Partition::finish_read(const Claim& claim, const storage::Io& io) {
  const auto good_count =
      io.error != 0 ? 0 : static_cast<uint32_t>(io.transferred_bytes / shared_->page_bytes);
  for (uint32_t i = 0; i < good_count; ++i)
    if (claim.has_frame(i)) claim.take_fingerprints(i, claim.origin != Origins::Kind::kChanging, frames_);
  if (claim.origin != Origins::Kind::kZeros) base::statistics.cache_origin_reads.add(good_count);
  finish_load(claim, good_count);
  base::probes::load_done(index(claim.first), good_count, good_count * shared_->page_bytes);
  return good_count > 0;
}

// Step 6 of Load: the first good_count pages are in their frames; loading the others has failed.
void Partition::finish_load(const Claim& claim, uint32_t good_count) {
  sys::LockGuard guard(mutex_);
  bool was_read = false;
  for (uint32_t i = 0; i < claim.count; ++i) {
    if (!claim.has_frame(i)) continue;
    const FrameId id = claim.frames[i];
    Frame& frame = frames_[id];
    CHECK(frame.is(State::kLoading, claim.versions[i]));
    if (i >= good_count) {
      end_load_without_page(id);
      continue;
    }
    if (frame.stale_load) frames_.end_stale_load(id);
    frame.loaded();
    // A page that was loaded ahead begins cooling, so that its first touch shows.
    const bool ahead = frame.ahead != Ahead::kNo;
    policies_.loaded(id, frame.page, !ahead);
    if (frame.place != base::kNoPlace || claim.origin != Origins::Kind::kZeros) {
      policies_.note_read(frame.page);
      was_read = true;
    }
    shared_->table->publish(frame.page, frames_.bytes(id), ahead ? Table::Heat::kCooling : Table::Heat::kHot);
    (i > 0   ? base::statistics.cache_read_aheads
     : ahead ? base::statistics.cache_prefetches
             : base::statistics.cache_misses)
        .add();
  }
  if (was_read) policies_.note_io(good_count * shared_->page_bytes);
  changed_.notify_all();
}

// Frees the frame; its page is on storage as before, or nowhere.
void Partition::end_load_without_page(FrameId id) {
  Frame& frame = frames_[id];
  if (frame.stale_load) frames_.end_stale_load(id);
  if (frame.place == base::kNoPlace)
    map_.erase(frame.page);
  else
    map_.set_place(frame.page, frame.place);
  frame.load_failed();
  frames_.give_back(id);
}

}  // namespace cache
