// For a native program that is linked with -Wl,--wrap=mmap: the kernel reads one page at a time of the files that it maps.
#include <sys/mman.h>

extern "C" void* __real_mmap(void* address, size_t length, int protection, int flags, int file, off_t offset);

extern "C" void* __wrap_mmap(void* address, size_t length, int protection, int flags, int file,
                             off_t offset) {
  void* const mapped = __real_mmap(address, length, protection, flags, file, offset);
  if (mapped != MAP_FAILED && file >= 0) madvise(mapped, length, MADV_RANDOM);
  return mapped;
}
