// What programs say and ask about mapped memory: madvise, mprotect, msync, mlock, mincore. protection.h keeps the protection of spilled memory.
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "spill/advice.h"
#include "spill/ahead/patterns.h"
#include "spill/ahead/prefetch.h"
#include "spill/discard.h"
#include "spill/intercept/maps.h"
#include "sys/files.h"
#include "sys/kernel.h"

namespace spill {

namespace {

Pattern pattern_of_advice(int advice) {
  return advice == MADV_SEQUENTIAL ? Pattern::kSequential
         : advice == MADV_RANDOM   ? Pattern::kRandom
                                   : Pattern::kNormal;
}

// Does this memory of spilled globals have initial values in the file of its program or library? Natively it would have those
// again after MADV_DONTNEED.
bool begins_as_file(uint64_t begin, size_t length) {
  struct Range {
    uint64_t begin, end;
  } range = {begin, begin + length};
  const auto touches_file = [](dl_phdr_info* object, size_t, void* context) {
    const Range& wanted = *static_cast<Range*>(context);
    for (int i = 0; i < object->dlpi_phnum; ++i) {
      const auto& segment = object->dlpi_phdr[i];
      const uint64_t first = object->dlpi_addr + segment.p_vaddr;
      if (segment.p_type == PT_LOAD && first < wanted.end && wanted.begin < first + segment.p_filesz)
        return 1;
    }
    return 0;
  };
  return dl_iterate_phdr(touches_file, &range) != 0;
}

// madvise of memory that is allocated, and belongs to one file map or to none.
int advise_spilled(uint64_t begin, size_t length, int advice) {
  const Advice meaning = meaning_of_advice(advice);
  const FileMapKind kind = kind_at(begin);
  if (kind == FileMapKind::kPlain) return madvise(reinterpret_cast<void*>(begin), length, advice);
  if (meaning == Advice::kForget) {
    if (is_global_at(reinterpret_cast<void*>(begin)) && begins_as_file(begin, length)) return fail(EINVAL);
    if (kind == FileMapKind::kNone)
      discard_memory(begin, length);
    else if (advice == MADV_FREE)
      return fail(EINVAL);
    else if (kind == FileMapKind::kPrivate && !reload_file(begin, length))
      return fail(EIO);
  }
  if (meaning == Advice::kPattern) set_pattern(begin, length, pattern_of_advice(advice));
  // Protected memory needs no loading.
  if (meaning == Advice::kWillNeed && protection_at(begin) == Protection::kOpen)
    prefetch_range(begin, length);
  return meaning == Advice::kRefused ? fail(EINVAL) : 0;
}

}  // namespace

SPILL_EXPORT int __spill_madvise(void* address, size_t bytes, int advice) {
  if (touches_runtime(address, bytes)) return fail(ENOMEM);
  const bool around_globals = is_around_globals(address, bytes);
  // For 0 bytes the kernel only says whether it knows the advice.
  if (bytes == 0 || (!in_range(address) && !around_globals)) return madvise(address, bytes, advice);
  if (reinterpret_cast<uint64_t>(address) % base::kOsPageBytes != 0 ||
      base::round_up(bytes, base::kOsPageBytes) == 0)
    return fail(EINVAL);
  if (is_too_large(bytes)) return fail(ENOMEM);
  if (around_globals)
    return for_each_part_around_globals(address, bytes, [advice](void* part, size_t length, bool is_spilled) {
      return is_spilled ? advise_spilled(reinterpret_cast<uint64_t>(part), length, advice)
                        : madvise(part, length, advice);
    });
  return for_each_mapped_part(address, bytes, [advice](void* part, size_t length) {
    return advise_spilled(reinterpret_cast<uint64_t>(part), length, advice);
  });
}

// Spilled globals, whose pages hold what the compiler put beside them too, are always readable and writable: other
// protection is refused, so that nobody relies on it.
SPILL_EXPORT int __spill_mprotect(void* address, size_t bytes, int protection) {
  if (touches_runtime(address, bytes)) return fail(ENOMEM);
  const bool around_globals = is_around_globals(address, bytes);
  if (!in_range(address) && !around_globals) return mprotect(address, bytes, protection);
  if (reinterpret_cast<uint64_t>(address) % base::kOsPageBytes != 0 || (protection & ~kAllAccess) != 0)
    return fail(EINVAL);
  if (is_too_large(bytes)) return fail(ENOMEM);
  const Protection wanted = protection_of_flags(protection);
  if (around_globals) {
    if (wanted != Protection::kOpen) return fail(EACCES);
    return for_each_part_around_globals(address, bytes,
                                        [protection](void* part, size_t length, bool is_spilled) {
                                          return is_spilled ? 0 : mprotect(part, length, protection);
                                        });
  }
  return for_each_part(address, bytes, [protection, wanted](void* part, size_t length) {
    const auto begin = reinterpret_cast<uint64_t>(part);
    if (kind_at(begin) == FileMapKind::kReading && protection == PROT_READ) return 0;
    if (kernel_kind(begin, length) == FileMapKind::kPlain) return mprotect(part, length, protection);
    if (!is_allocated(begin)) return fail(ENOMEM);
    const uint64_t end = same_allocation_end(begin, begin + length);
    protect(begin, end - begin, wanted);
    return end == begin + length ? 0 : fail(ENOMEM);
  });
}

// Protection keys are applied by the kernel, at addresses that compiled code does not access.
SPILL_EXPORT int __spill_pkey_mprotect(void* address, size_t bytes, int protection, int key) {
  if (key == -1 || touches_runtime(address, bytes)) return __spill_mprotect(address, bytes, protection);
  return in_range(address) || is_around_globals(address, bytes)
             ? fail(EACCES)
             : pkey_mprotect(address, bytes, protection, key);
}

// Read-only maps need no writing, and private ones are not written.
SPILL_EXPORT int __spill_msync(void* address, size_t bytes, int flags) {
  if (!in_range(address)) return msync(address, bytes, flags);
  if (reinterpret_cast<uint64_t>(address) % base::kOsPageBytes != 0 ||
      (flags & ~(MS_ASYNC | MS_SYNC | MS_INVALIDATE)) != 0 ||
      (flags & (MS_ASYNC | MS_SYNC)) == (MS_ASYNC | MS_SYNC))
    return fail(EINVAL);
  return for_each_mapped_part(address, bytes, [flags](void* part, size_t length) {
    return kind_at(reinterpret_cast<uint64_t>(part)) == FileMapKind::kPlain ? msync(part, length, flags) : 0;
  });
}

SPILL_EXPORT int __spill_mlock(const void* address, size_t bytes) {
  if (!in_range(address)) return mlock(address, bytes);
  return for_each_part(address, bytes, [](void* part, size_t length) {
    return kernel_kind(reinterpret_cast<uint64_t>(part), length) == FileMapKind::kPlain ? mlock(part, length)
                                                                                        : fail(ENOMEM);
  });
}

// It would fill memory with the runtime's mostly empty tables, and with pages that are meant to leave.
SPILL_EXPORT int __spill_mlockall(int) { return fail(ENOMEM); }

SPILL_EXPORT int __spill_munlock(const void* address, size_t bytes) {
  if (!in_range(address)) return munlock(address, bytes);
  return for_each_mapped_part(address, bytes, [](void* part, size_t length) {
    return kind_at(reinterpret_cast<uint64_t>(part)) == FileMapKind::kPlain ? munlock(part, length) : 0;
  });
}

SPILL_EXPORT int __spill_mlock2(const void* address, size_t bytes, unsigned flags) {
  if (!in_range(address)) return mlock2(address, bytes, flags);
  return (flags & ~MLOCK_ONFAULT) != 0 ? fail(EINVAL) : __spill_mlock(address, bytes);
}

SPILL_EXPORT int __spill_posix_madvise(void* address, size_t bytes, int advice) {
  if (!in_range(address)) return posix_madvise(address, bytes, advice);
  // As in the C library: posix_madvise must not lose content.
  if (advice == POSIX_MADV_DONTNEED) return 0;
  const int error = errno;
  const int result = __spill_madvise(address, bytes, advice) == 0 ? 0 : errno;
  errno = error;
  return result;
}

// Spilled memory counts as resident if it can be accessed without the runtime's help.
SPILL_EXPORT int __spill_mincore(void* address, size_t bytes, unsigned char* pages) {
  const size_t count = bytes / base::kOsPageBytes + (bytes % base::kOsPageBytes != 0 ? 1 : 0);
  const auto begin = reinterpret_cast<uint64_t>(address);
  if (in_range(address)) {
    if (begin % base::kOsPageBytes != 0) return fail(EINVAL);
    if (is_too_large(bytes)) return fail(ENOMEM);
  }
  PlainBytes plain_pages(pages, count, PlainBytes::kInOut);
  if (!in_range(address))
    return mincore(address, bytes, reinterpret_cast<unsigned char*>(plain_pages.data()));
  if (!plain(pages) && count > 0 && plain_pages.data() == nullptr) return fail(EAGAIN);
  // Can the answer be stored? Asking about memory that is certainly mapped makes the kernel check each of the answer's pages.
  auto* here =
      reinterpret_cast<void*>(base::round_down(reinterpret_cast<uint64_t>(&runtime), base::kOsPageBytes));
  for (size_t i = 0; i < count; i += bytes_to_page_end(plain_pages.data() + i))
    if (mincore(here, 1, reinterpret_cast<unsigned char*>(plain_pages.data() + i)) != 0) return -1;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t at = begin + i * base::kOsPageBytes;
    if (!in_range(at) || !is_allocated(at)) return fail(ENOMEM);
    plain_pages.data()[i] = entry_of(at).load(std::memory_order_relaxed) != 0;
  }
  return 0;
}

namespace {

enum class Whose { kOwn, kOther, kUnknown };

// Whose process a pidfd refers to.
Whose whose_process(int process) {
  // PIDFD_SELF_THREAD and PIDFD_SELF_THREAD_GROUP, which the kernel knows or refuses.
  if (process == -10000 || process == -10001) return Whose::kOwn;
  char path[64], text[512];
  snprintf(path, sizeof path, "/proc/self/fdinfo/%d", process);
  if (sys::read_small_file(path, text) <= 0) return Whose::kUnknown;
  constexpr char kKey[] = "\nPid:\t";
  const char* key = strstr(text, kKey);
  if (key == nullptr) return Whose::kUnknown;
  // The number is as in this /proc. It may also be a thread's, whose memory is the same.
  snprintf(path, sizeof path, "/proc/self/task/%d", atoi(key + sizeof kKey - 1));
  return sys::failed(sys::syscall(SYS_faccessat, AT_FDCWD, path, F_OK)) ? Whose::kOther : Whose::kOwn;
}

}  // namespace

// Advice on spilled memory is carried out only for this process: in another one the addresses mean other memory.
SPILL_EXPORT ssize_t __spill_process_madvise(int process, const iovec* vector, size_t count, int advice,
                                             unsigned flags) {
  if (count > IOV_MAX) return fail(EINVAL);
  PlainBytes plain_vector(vector, count * sizeof(iovec), PlainBytes::kIn);
  const auto* pieces = reinterpret_cast<const iovec*>(plain_vector.data());
  const bool any_spilled = pieces != nullptr && std::any_of(pieces, pieces + count, [](const iovec& piece) {
                             return in_range(piece.iov_base);
                           });
  const Whose whose = any_spilled ? whose_process(process) : Whose::kOther;
  if (whose == Whose::kOther) return process_madvise(process, pieces, count, advice, flags);
  // Lets the kernel check everything except the pieces.
  if (process_madvise(process, pieces, 0, advice, flags) != 0) return -1;
  if (whose == Whose::kUnknown) return fail(EINVAL);
  ssize_t advised = 0;
  for (size_t i = 0; i < count; ++i) {
    if (__spill_madvise(pieces[i].iov_base, pieces[i].iov_len, advice) != 0)
      return advised > 0 ? advised : -1;
    advised += static_cast<ssize_t>(pieces[i].iov_len);
  }
  return advised;
}

}  // namespace spill
