#include "spill/access.h"

#include <string.h>

#include <algorithm>

#include "spill/pins.h"
#include "spill/thread.h"
#include "sys/memory.h"

namespace spill {
namespace {

// A thread's block holds two of the largest requests, so that a bounce buffer and the strings beside
// it both fit.
constexpr size_t kScratchRequestBytes = 64 << 10;
constexpr size_t kScratchBlockBytes = 2 * kScratchRequestBytes;
constexpr size_t kScratchAlignment = 16;
// Direct I/O needs memory aligned to the device's blocks, and lengths that are multiples of at least this.
constexpr size_t kMinDirectBytes = 512;

Thread::Wired& wired_of(Thread& thread) {
  return thread.wired[thread.top_level.load(std::memory_order_relaxed)];
}

char* map_or_null(size_t bytes) {
  auto memory = sys::map_anonymous(base::round_up(bytes, base::kOsPageBytes), "scratch memory");
  return memory ? *memory : nullptr;
}

}  // namespace

// Uses kHoldC and kHoldD, so that interceptors may keep kHoldA and kHoldB meanwhile.
void copy(void* to, const void* from, size_t n) {
  auto* t = static_cast<char*>(to);
  auto* f = static_cast<const char*>(from);
  const bool to_spilled = reaches_range(to, n), from_spilled = reaches_range(from, n);
  if (!to_spilled && !from_spilled) {
    memcpy(to, from, n);
    return;
  }
  while (n > 0) {
    size_t length = n;
    char* raw_to = t;
    const char* raw_from = f;
    if (to_spilled) {
      length = std::min(length, bytes_to_page_end(t));
      raw_to = hold(t, kHoldC);
    }
    if (from_spilled) {
      length = std::min(length, bytes_to_page_end(f));
      raw_from = hold(f, kHoldD);
    }
    memcpy(raw_to, raw_from, length);
    t += length, f += length, n -= length;
  }
  release(kHoldC);
  release(kHoldD);
}

size_t string_length(const char* text, size_t limit) {
  if (!in_range(text)) return strnlen(text, limit);
  size_t length = 0;
  while (length < limit) {
    const size_t piece = std::min(bytes_to_page_end(text + length), limit - length);
    const size_t found = strnlen(hold(text + length, kHoldC), piece);
    length += found;
    if (found < piece) break;
  }
  release(kHoldC);
  return length;
}

bool ends_spilled(const char* text, size_t limit) {
  constexpr size_t kMax = 128 << 10;  // the longest string that the kernel accepts
  if (plain_length(text, kMax) == kMax) return false;
  const size_t length = string_length(text, limit);
  const size_t bytes = length < limit ? length + 1 : limit;
  return plain_length(text, bytes) < bytes;
}

size_t spilled_string_bytes(const char* text) {
  return in_range(text) || ends_spilled(text) ? string_length(text) + 1 : 0;
}

WiredRange::WiredRange(const void* address, size_t n, Need need) {
  const auto a = reinterpret_cast<uint64_t>(address);
  if (n == 0) return;
  if (!in_range(a)) {
    size_ = plain_length(address, n);
    pieces_[piece_count_++] = {const_cast<void*>(address), size_};
    return;
  }
  // Handlers are deferred until the pins are recorded: one may fork.
  InRuntime inside;
  begin_ = a;
  const size_t pages = (a % base::kOsPageBytes + n - 1) / base::kOsPageBytes + 1;
  const size_t allowance = take_pins(std::min(kMaxPieces, pages));
  if (const size_t most = std::min(n, (allowance - 1) * base::kOsPageBytes + 1);
      bytes_to_page_end(address) < most)
    will_pin(a, most, need);
  size_t pins = 0;
  for (; pins < allowance && size_ < n; ++pins) {
    const uint64_t at = a + size_;
    const size_t length = std::min(bytes_to_page_end(reinterpret_cast<const void*>(at)), n - size_);
    char* raw = pin_page_piece(at, need);
    if (reinterpret_cast<uint64_t>(raw) == at) {
      // Not pinned: returned on its own, as if it were not spilled.
      if (pins > 0) break;
      give_pins_back(allowance);
      begin_ = 0;
      pieces_[piece_count_++] = {raw, length};
      size_ = length;
      return;
    }
    size_ += length;
    if (piece_count_ > 0) {
      iovec& last = pieces_[piece_count_ - 1];
      if (static_cast<char*>(last.iov_base) + last.iov_len == raw) {
        last.iov_len += length;
        continue;
      }
    }
    pieces_[piece_count_++] = {raw, length};
  }
  if (pins < allowance) give_pins_back(allowance - pins);
  Thread::Wired& wired = wired_of(inside.thread());
  left_begin_ = wired.begin;
  left_bytes_ = wired.bytes;
  wired = {begin_, size_};
}

WiredRange::~WiredRange() {
  if (begin_ == 0) return;
  InRuntime inside;
  wired_of(inside.thread()) = {left_begin_, left_bytes_};
  size_t pins = 0;
  for (uint64_t at = begin_; at < begin_ + size_;
       at = base::round_down(at, base::kOsPageBytes) + base::kOsPageBytes, ++pins)
    unpin_page_piece(at);
  give_pins_back(pins);
}

// A signal handler that interrupts this takes what lies above `scratch_used_bytes` and gives it back
// before it returns: the block is claimed by one store.
Scratch::Scratch(size_t bytes, Pages pages) : data_(nullptr), size_(bytes), mapped_(false) {
  if (bytes == 0) return;
  if (pages == kShared && bytes <= kScratchRequestBytes) {
    Thread& thread = this_thread();
    if (thread.scratch == nullptr) thread.scratch = map_or_null(kScratchBlockBytes);
    const size_t alignment = bytes % kMinDirectBytes == 0 ? base::kOsPageBytes : kScratchAlignment;
    const size_t used = base::round_up(size_t{thread.scratch_used_bytes}, alignment);
    const size_t need = base::round_up(bytes, kScratchAlignment);
    if (thread.scratch != nullptr && used + need <= kScratchBlockBytes) {
      thread.scratch_used_bytes = static_cast<uint32_t>(used + need);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      data_ = thread.scratch + used;
      return;
    }
  }
  data_ = map_or_null(bytes);
  mapped_ = data_ != nullptr;
}

Scratch::~Scratch() {
  if (data_ == nullptr) return;
  if (mapped_) {
    sys::unmap(data_, base::round_up(size_, base::kOsPageBytes));
    return;
  }
  Thread& thread = this_thread();
  std::atomic_signal_fence(std::memory_order_seq_cst);
  thread.scratch_used_bytes = static_cast<uint32_t>(data_ - thread.scratch);
  sys::note_life(&thread);
}

PlainString::PlainString(const char* text) : scratch_(spilled_string_bytes(text)), text_(text) {
  if (scratch_.size() == 0) return;
  text_ = scratch_.data();
  if (text_ == nullptr) return;
  copy(scratch_.data(), text, scratch_.size());
  scratch_.data()[scratch_.size() - 1] = 0;
}

}  // namespace spill
