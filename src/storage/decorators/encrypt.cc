#include "storage/decorators/encrypt.h"

#include <algorithm>
#include <atomic>

#include "base/ids.h"
#include "storage/decorators/decorator.h"
#include "sys/kernel.h"
#include "sys/memory.h"

namespace storage {
namespace {

constexpr size_t kSectorBytes = XtsCipher::kSectorBytes;

class EncryptQueue;

class EncryptDevice final : public Decorator<EncryptDevice, EncryptQueue> {
 public:
  EncryptDevice(Device* inner, const XtsKey& key) : Decorator(inner), cipher_(key) {
    base::TextRef(name_, sizeof name_) << "encrypt:[" << inner->name() << ']';
    block_bytes_ = std::max<uint32_t>(inner->block_bytes(), kSectorBytes);
    // A partial last block cannot be decrypted.
    capacity_bytes_ = base::round_down(inner->end_bytes(), block_bytes_);
    missing_bytes_ = 0;
    whereabouts_ = {};
    // The object has OS pages of its own, with nothing else in them.
    sys::keep_from_core_files(this, sizeof *this);
    keep_from_swap();
  }

  const XtsCipher& cipher() const { return cipher_; }
  // As far as the limit on locked memory allows it. A child of fork inherits the memory, but not the lock on it.
  void keep_from_swap() {
    const long process = sys::syscall(SYS_getpid);
    // Relaxed: it does no harm to lock it twice.
    if (locked_in_.exchange(process, std::memory_order_relaxed) == process) return;
    sys::syscall(SYS_mlock, this, sizeof *this);
  }

 private:
  void do_close() override {
    cipher_.~XtsCipher();
    Decorator::do_close();
  }

  XtsCipher cipher_;
  std::atomic<long> locked_in_{0};  // the process that locked this memory last
};

// A unit of the memory that a queue encrypts into.
struct alignas(base::kOsPageBytes) Cell {
  std::byte bytes[base::kOsPageBytes];
};
constexpr size_t kCells = 256;

struct EncryptSlot : DecoratorSlot<EncryptQueue, EncryptSlot> {
  // For writes:
  uint64_t written_bytes = 0;    // before the piece that is under way
  iovec segments[kMaxSegments];  // of that piece, in cells
};

// Walks through the memory that a request lists.
class Cursor {
 public:
  Cursor(const iovec* segments, uint64_t skipped_bytes) : segment_(segments), inside_(skipped_bytes) {}

  // REQUIRES: it is not at the end.
  std::byte* here() {
    while (inside_ >= segment_->iov_len) inside_ -= (segment_++)->iov_len;
    return static_cast<std::byte*>(segment_->iov_base) + inside_;
  }
  void advance(uint64_t bytes) { inside_ += bytes; }

 private:
  const iovec* segment_;
  uint64_t inside_;
};

bool is_zeros(const std::byte* sector) {
  const auto* const words = reinterpret_cast<const uint64_t*>(sector);
  return std::all_of(words, words + kSectorBytes / sizeof *words, [](uint64_t word) { return word == 0; });
}

class EncryptQueue final : public DecoratorQueue<EncryptQueue, EncryptSlot> {
 public:
  EncryptQueue(EncryptDevice& device, Queue* inner, size_t depth)
      : DecoratorQueue(device, inner, depth, this + 1), cipher_(device.cipher()) {
    const auto extra = reinterpret_cast<uintptr_t>(this + 1) + DecoratorQueue::extra_bytes(depth);
    const auto cells = reinterpret_cast<Cell*>(base::round_up(extra, alignof(Cell)));
    // They are taken in ascending order, so that a write of several gets adjacent ones.
    for (size_t i = 0; i < kCells; ++i) free_cells_[i] = &cells[kCells - 1 - i];
    device.keep_from_swap();
  }
  // Cells take memory from the OS only when they are used.
  static uint64_t extra_bytes(size_t depth) {
    return DecoratorQueue::extra_bytes(depth) + alignof(Cell) + kCells * sizeof(Cell);
  }

  void inner_done(EncryptSlot& slot) {
    const Operation operation = slot.outer->operation;
    if (operation == Operation::kRead) decrypt(slot);
    if (operation == Operation::kWrite && end_piece(slot))
      waiting_.append(slot.inner);
    else
      complete_as_is(take_result(slot));
    while (!waiting_.empty() && free_count_ > 0) {
      auto& next = *static_cast<EncryptSlot*>(waiting_.take_first().owner);
      encrypt_piece(next);
      gather(next);
    }
  }

 private:
  void do_start(Io& io) override {
    EncryptSlot& slot = take_slot(io);
    if (is_ready(slot)) gather(slot);
  }
  void do_start_alone(Io& io) override {
    EncryptSlot& slot = take_slot(io);
    if (is_ready(slot)) inner().run(slot.inner);
  }

  void do_poll(bool block) override {
    do_flush_submissions();
    inner().poll();
    while (block && !has_completed()) {
      do_flush_submissions();
      inner().wait();
    }
    // Further pieces, and writes for which there was no room.
    do_flush_submissions();
  }

  // Can the request be passed to the inner device now? If not, it waits.
  bool is_ready(EncryptSlot& slot) {
    if (slot.outer->operation != Operation::kWrite) return true;
    slot.written_bytes = 0;
    if (waiting_.empty() && free_count_ > 0) {
      encrypt_piece(slot);
      return true;
    }
    waiting_.append(slot.inner);
    return false;
  }

  // Makes the inner Io the next piece of the write. REQUIRES: a cell is free.
  void encrypt_piece(EncryptSlot& slot) {
    const Io& outer = *slot.outer;
    Io& inner = slot.inner;
    const uint64_t room_bytes = std::min<size_t>(free_count_, kMaxSegments) * sizeof(Cell);
    inner.offset_bytes = outer.offset_bytes + slot.written_bytes;
    inner.length_bytes = std::min(outer.length_bytes - slot.written_bytes, room_bytes);
    inner.segments = slot.segments;
    inner.segment_count = 0;
    Cursor from(outer.segments, slot.written_bytes);
    for (uint64_t at = 0; at < inner.length_bytes; at += sizeof(Cell)) {
      Cell& cell = *free_cells_[--free_count_];
      const uint64_t bytes = std::min<uint64_t>(sizeof(Cell), inner.length_bytes - at);
      for (uint64_t in_cell = 0; in_cell < bytes; in_cell += kSectorBytes) {
        cipher_.encrypt(from.here(), cell.bytes + in_cell,
                        (inner.offset_bytes + at + in_cell) / kSectorBytes);
        from.advance(kSectorBytes);
      }
      iovec* const last = slot.segments + inner.segment_count;
      if (inner.segment_count > 0 &&
          static_cast<std::byte*>(last[-1].iov_base) + last[-1].iov_len == cell.bytes) {
        last[-1].iov_len += bytes;
      } else {
        *last = {&cell, bytes};
        ++inner.segment_count;
      }
    }
  }

  // Frees the cells of the piece that has ended, and makes the inner Io's result that of the write as a whole. Returns whether there is more to write.
  bool end_piece(EncryptSlot& slot) {
    Io& inner = slot.inner;
    for (uint32_t i = inner.segment_count; i-- > 0;) {
      const iovec& segment = slot.segments[i];
      for (size_t cell = base::round_up(segment.iov_len, sizeof(Cell)) / sizeof(Cell); cell-- > 0;)
        free_cells_[free_count_++] = static_cast<Cell*>(segment.iov_base) + cell;
    }
    const bool may_go_on = inner.whole();
    slot.written_bytes += inner.transferred_bytes;
    inner.transferred_bytes = slot.written_bytes;
    return may_go_on && slot.written_bytes < slot.outer->length_bytes;
  }

  // Decrypts the whole sectors that have been read.
  void decrypt(EncryptSlot& slot) {
    Io& inner = slot.inner;
    inner.transferred_bytes = base::round_down(inner.transferred_bytes, kSectorBytes);
    Cursor to(inner.segments, 0);
    for (uint64_t at = 0; at < inner.transferred_bytes; at += kSectorBytes) {
      std::byte* const sector = to.here();
      if (!is_zeros(sector)) cipher_.decrypt(sector, sector, (inner.offset_bytes + at) / kSectorBytes);
      to.advance(kSectorBytes);
    }
  }

  const XtsCipher& cipher_;
  IoList waiting_;  // inner Ios of writes that wait for cells for their next piece
  Cell* free_cells_[kCells];
  size_t free_count_ = kCells;
};

}  // namespace

base::Expected<Device*> make_encrypt_device(Device* inner, const XtsKey& key) {
  return make_decorator<EncryptDevice>("an encrypting device", inner, key);
}

}  // namespace storage
