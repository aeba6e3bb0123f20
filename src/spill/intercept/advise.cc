// What programs say and ask of memory that is mapped: madvise, mprotect, msync, mlock, mincore. What mprotect says of spilled
// memory is kept by protection.h.
#include "spill/discard.h"
#include "spill/intercept/maps.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

namespace spill {

SPILL_EXPORT int __spill_madvise(void* address, size_t bytes, int advice) {
  if (touches_runtime(address, bytes)) return fail(ENOMEM);
  if (!in_range(address)) return madvise(address, bytes, advice);
  if (reinterpret_cast<uint64_t>(address) % base::kOsPageBytes != 0 || is_too_large(bytes))
    return fail(EINVAL);
  return for_each_part(address, bytes, [advice](void* part, size_t length) {
    const auto begin = reinterpret_cast<uint64_t>(part);
    const FileMapKind kind = kind_at(begin);
    if (kind == FileMapKind::kPlain) return madvise(part, length, advice);
    if (!is_allocated(begin)) return fail(ENOMEM);
    if (advice == MADV_DONTNEED || advice == MADV_FREE) {
      if (kind == FileMapKind::kNone)
        discard_memory(begin, length);
      else if (advice == MADV_FREE)
        return fail(EINVAL);
      else if (kind == FileMapKind::kPrivate && !reload_file(begin, length))
        return fail(EIO);
    }
    // It would change what a child of fork finds, or what is stored.
    if (advice == MADV_DONTFORK || advice == MADV_WIPEONFORK || advice == MADV_REMOVE) return fail(EINVAL);
    // Other advice is about how the kernel pages, which it does not do here.
    return advice >= 0 && advice <= MADV_COLLAPSE ? 0 : fail(EINVAL);
  });
}

// Spilled globals, whose pages hold what the compiler put beside them too, are always readable and writable: other
// protection is refused, so that nobody relies on it.
SPILL_EXPORT int __spill_mprotect(void* address, size_t bytes, int protection) {
  if (touches_runtime(address, bytes)) return fail(ENOMEM);
  if (!in_range(address)) return mprotect(address, bytes, protection);
  if (reinterpret_cast<uint64_t>(address) % base::kOsPageBytes != 0 || (protection & ~kAllAccess) != 0)
    return fail(EINVAL);
  if (is_too_large(bytes)) return fail(ENOMEM);
  return for_each_part(address, bytes, [protection](void* part, size_t length) {
    const auto begin = reinterpret_cast<uint64_t>(part);
    if (kind_at(begin) == FileMapKind::kReading && protection == PROT_READ) return 0;
    if (kernel_kind(begin, length) == FileMapKind::kPlain) return mprotect(part, length, protection);
    const Protection wanted = protection_of_flags(protection);
    if (is_global_at(part)) return wanted == Protection::kOpen ? 0 : fail(EACCES);
    if (!is_allocated(begin)) return fail(ENOMEM);
    const uint64_t end = same_allocation_end(begin, begin + length);
    protect(begin, end - begin, wanted);
    return end == begin + length ? 0 : fail(ENOMEM);
  });
}

// Keys of protection are the kernel's, by addresses that compiled code does not use.
SPILL_EXPORT int __spill_pkey_mprotect(void* address, size_t bytes, int protection, int key) {
  if (key == -1 || touches_runtime(address, bytes)) return __spill_mprotect(address, bytes, protection);
  return in_range(address) ? fail(EACCES) : pkey_mprotect(address, bytes, protection, key);
}

// What cannot change needs no writing, and private memory is not written.
SPILL_EXPORT int __spill_msync(void* address, size_t bytes, int flags) {
  if (!in_range(address)) return msync(address, bytes, flags);
  return for_each_part(address, bytes, [flags](void* part, size_t length) {
    const auto begin = reinterpret_cast<uint64_t>(part);
    if (kind_at(begin) == FileMapKind::kPlain) return msync(part, length, flags);
    return is_allocated(begin) ? 0 : fail(ENOMEM);
  });
}

SPILL_EXPORT int __spill_mlock(const void* address, size_t bytes) {
  if (!in_range(address)) return mlock(address, bytes);
  return for_each_part(address, bytes, [](void* part, size_t length) {
    return kernel_kind(reinterpret_cast<uint64_t>(part), length) == FileMapKind::kPlain ? mlock(part, length)
                                                                                        : fail(ENOMEM);
  });
}

// It would fill memory with the runtime's tables, which are mostly empty, and with what is to leave it.
SPILL_EXPORT int __spill_mlockall(int) { return fail(ENOMEM); }

SPILL_EXPORT int __spill_munlock(const void* address, size_t bytes) {
  if (!in_range(address)) return munlock(address, bytes);
  return for_each_part(address, bytes, [](void* part, size_t length) {
    return kind_at(reinterpret_cast<uint64_t>(part)) == FileMapKind::kPlain ? munlock(part, length) : 0;
  });
}

SPILL_EXPORT int __spill_mlock2(const void* address, size_t bytes, unsigned flags) {
  return in_range(address) ? __spill_mlock(address, bytes) : mlock2(address, bytes, flags);
}

SPILL_EXPORT int __spill_posix_madvise(void* address, size_t bytes, int advice) {
  if (!in_range(address)) return posix_madvise(address, bytes, advice);
  // As the C library has it, nothing may be lost.
  if (advice == POSIX_MADV_DONTNEED) return 0;
  const int error = errno;
  const int result = __spill_madvise(address, bytes, advice) == 0 ? 0 : errno;
  errno = error;
  return result;
}

// Of spilled memory: what can be accessed without the runtime's help.
SPILL_EXPORT int __spill_mincore(void* address, size_t bytes, unsigned char* pages) {
  const size_t count = (bytes + base::kOsPageBytes - 1) / base::kOsPageBytes;
  PlainBytes plain_pages(pages, count, PlainBytes::kInOut);
  if (!in_range(address))
    return mincore(address, bytes, reinterpret_cast<unsigned char*>(plain_pages.data()));
  const auto begin = reinterpret_cast<uint64_t>(address);
  if (begin % base::kOsPageBytes != 0) return fail(EINVAL);
  if (count > 0 && plain_pages.data() == nullptr) return fail(EAGAIN);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t at = begin + i * base::kOsPageBytes;
    if (!in_range(at) || !is_allocated(at)) return fail(ENOMEM);
    plain_pages.data()[i] = entry_of(at).load(std::memory_order_relaxed) != 0;
  }
  return 0;
}

SPILL_EXPORT ssize_t __spill_process_madvise(int process, const iovec* vector, size_t count, int advice,
                                             unsigned flags) {
  PlainBytes plain_vector(vector, count * sizeof(iovec), PlainBytes::kIn);
  return process_madvise(process, reinterpret_cast<iovec*>(plain_vector.data()), count, advice, flags);
}

}  // namespace spill
