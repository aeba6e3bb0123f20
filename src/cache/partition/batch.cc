#include "cache/partition/batch.h"

#include "base/bits.h"

namespace cache {
namespace {

// Frames are watched only if a batch has at least so many unchanged pages for each changed one.
constexpr uint32_t kUnchangedToWatch = 8;

}  // namespace

// Step 3 of Evict, first half; step 2 of the others.
void Batch::mark_held(Holders& holders) {
  holders.visit(
      [](void* context, PageId page) {
        Batch& visited = *static_cast<Batch*>(context);
        for (uint32_t i = 0; i < visited.victim_count; ++i)
          if (visited.victims[i].page == page) visited.victims[i].held = true;
      },
      this);
}

// Step 4 of Evict, first half; step 3 of Clean.
void Batch::find_untouched(const FramePool& frames) {
  const uint64_t pieces = frames.pieces();
  const auto asked = [&](uint32_t v) {
    const Victim& victim = victims[v];
    return victim.watched && !victim.held;
  };
  for (uint32_t v = 0; v < victim_count;) {
    if (!asked(v)) {
      ++v;
      continue;
    }
    const FrameId first = victims[v].frame;
    const auto pages_to = [&](uint32_t i) {
      return (uint64_t{index(victims[i].frame)} + 1 - index(first)) * pieces;
    };
    uint32_t end = v + 1;
    while (end < victim_count && victims[end - 1].frame < victims[end].frame &&
           pages_to(end) <= sys::WriteWatch::kMaxPages)
      ++end;
    uint64_t found[sys::WriteWatch::kMaxPages / 64];
    frames.watch().find_untouched(frames.bytes(first), pages_to(end - 1), found);
    for (; v < end; ++v) {
      Victim& victim = victims[v];
      if (!asked(v)) continue;
      const uint64_t from = pages_to(v) - pieces;
      uint64_t count = 0;
      for (uint64_t word = 0; word < (pieces + 63) / 64; ++word) untouched[v][word] = 0;
      for (uint64_t piece = 0; piece < pieces; ++piece) {
        const uint64_t bit = found[(from + piece) / 64] >> ((from + piece) % 64) & 1;
        untouched[v][piece / 64] |= bit << (piece % 64);
        count += bit;
      }
      victim.untouched = count == pieces;
    }
  }
}

// Step 4 of Evict. A victim that is rescued meanwhile, and its fingerprints, may be written while they are read here; the
// result is not used then. Hidden from the thread sanitizer (fingerprint.cc is not instrumented either).
__attribute__((no_sanitize("thread"))) void Batch::compare(FramePool& frames) {
  const uint64_t pieces = frames.pieces();
  for (uint32_t v = 0; v < victim_count; ++v) {
    Victim& victim = victims[v];
    if (victim.held || victim.verified || victim.untouched) continue;
    const char* bytes = frames.bytes(victim.frame);
    const base::Fingerprint* known = frames.fingerprints(victim.frame);
    for (uint64_t word = 0; word < (pieces + 63) / 64; ++word) changed[v][word] = 0;
    for (uint64_t piece = 0; piece < pieces; ++piece) {
      if (victim.watched && base::has_bit(untouched[v], piece)) continue;
      const base::Fingerprint before = {known[piece].low, known[piece].high};
      if (!before.is_unknown() &&
          before.same_content_as(base::take_fingerprint(bytes + piece * base::kOsPageBytes)))
        continue;
      base::set_bit(changed[v], piece);
      ++victim.changed_count;
    }
  }
}

// Step 3 of Clean.
void Batch::copy_changed(FramePool& frames, char* copies) {
  const uint64_t pieces = frames.pieces();
  for (uint32_t v = 0; v < victim_count; ++v) {
    Victim& victim = victims[v];
    if (victim.held || victim.untouched) continue;
    const char* bytes = frames.bytes(victim.frame);
    const base::Fingerprint* known = frames.fingerprints(victim.frame);
    uint64_t piece = 0;
    while (piece < pieces &&
           ((victim.watched && base::has_bit(untouched[v], piece)) ||
            known[piece].same_content_as(base::take_fingerprint(bytes + piece * base::kOsPageBytes))))
      ++piece;
    if (piece == pieces) continue;
    victim.changed_count = static_cast<uint32_t>(pieces);
    spillway_plain_memcpy(copies + v * frames.page_bytes(), bytes, frames.page_bytes());
  }
}

// Step 5 of Evict. A frame that a fork has lent is not watched: loads would store to it through the protected mapping, and all its pages would then be
// written at eviction.
void Batch::watch_unchanged(FramePool& frames) {
  if (!frames.can_watch()) return;
  uint32_t unchanged_count = 0, changed_count = 0;
  for (uint32_t v = 0; v < victim_count; ++v) {
    const Victim& victim = victims[v];
    if (victim.held) continue;
    // A verified page has usually been changed, and then cleaned.
    ++(victim.changed_count > 0 || (victim.verified && !victim.untouched) ? changed_count : unchanged_count);
  }
  if (changed_count * kUnchangedToWatch > unchanged_count) return;
  const auto watchable = [&](uint32_t v) {
    const Victim& victim = victims[v];
    const Frame& frame = frames[victim.frame];
    return !victim.watched && !victim.held && !victim.verified && victim.changed_count == 0 &&
           frame.backing == Backing::kOwn && frame.is(State::kEvicting, victim.version);
  };
  for (uint32_t v = 0; v < victim_count;) {
    if (!watchable(v)) {
      ++v;
      continue;
    }
    const FrameId first = victims[v].frame;
    uint32_t end = v + 1;
    while (end < victim_count && victims[end].frame == first + (end - v) && watchable(end)) ++end;
    const bool is_protected = frames.can_watch() && frames.protect(first, end - v);
    for (; v < end; ++v) victims[v].newly_protected = is_protected;
  }
}

// Step 5 of Evict for a changed victim that has a place.
void Batch::add_writes(uint32_t v, uint64_t place_offset, uint32_t victims_left, FramePool& frames) {
  const uint64_t pieces = frames.pieces();
  Victim& victim = victims[v];
  // With many scattered pieces, the whole page is written at once rather than using up the batch's Ios.
  const bool crowded = segment_count + victim.changed_count + victims_left > kMaxSegments ||
                       io_count + victim.changed_count + victims_left > kMaxIos;
  if (victim.whole_page || (crowded && victim.changed_count > 1)) {
    for (uint64_t piece = 0; piece < pieces; ++piece) base::set_bit(changed[v], piece);
    victim.changed_count = static_cast<uint32_t>(pieces);
  }
  for (uint64_t piece = 0; piece < pieces; ++piece)
    if (base::has_bit(changed[v], piece))
      frames.fingerprints(victim.frame)[piece] = base::Fingerprint::unknown();
  victim.first_io = ~uint32_t{0};
  for (uint64_t piece = 0; piece < pieces;) {
    if (!base::has_bit(changed[v], piece)) {
      ++piece;
      continue;
    }
    uint64_t end = piece + 1;
    while (end < pieces && base::has_bit(changed[v], end)) ++end;
    add_write(place_offset + piece * base::kOsPageBytes,
              frames.bytes(victim.frame) + piece * base::kOsPageBytes, (end - piece) * base::kOsPageBytes);
    victim.last_io = io_count - 1;
    if (victim.first_io == ~uint32_t{0}) victim.first_io = victim.last_io;
    piece = end;
  }
}

void Batch::release_freed(FramePool& frames) const {
  const auto is_free = [&](uint32_t v) { return frames[victims[v].frame].state() == State::kFree; };
  for (uint32_t v = 0; v < victim_count;) {
    if (!is_free(v)) {
      ++v;
      continue;
    }
    const FrameId first = victims[v].frame;
    uint32_t count = 0;
    for (; v < victim_count && victims[v].frame == first + count && is_free(v); ++v) ++count;
    frames.release_run(first, count);
  }
}

void Batch::add_write(uint64_t offset, char* bytes, uint64_t length) {
  storage::Io* io = io_count > 0 ? &ios[io_count - 1] : nullptr;
  if (io == nullptr || io->offset_bytes + io->length_bytes != offset ||
      io->segment_count == storage::kMaxSegments) {
    io = &ios[io_count++];
    *io = {};
    io->operation = storage::Operation::kWrite;
    io->offset_bytes = offset;
    io->segments = &segments[segment_count];
  }
  segments[segment_count++] = {bytes, length};
  ++io->segment_count;
  io->length_bytes += length;
}

}  // namespace cache
