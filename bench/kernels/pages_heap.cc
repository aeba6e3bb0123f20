// Pages from the heap, or natively from a memfd.
#include "pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "workspace.h"

namespace kernels {

bool use_memfd;

static void* memfd_pages(size_t bytes) {
  int file = memfd_create("kernels", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) return nullptr;
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return pages == MAP_FAILED ? nullptr : pages;
}

void* allocate_pages(size_t bytes) {
  bytes = (bytes + 4095) & ~size_t{4095};
  void* pages = use_memfd ? memfd_pages(bytes) : std::aligned_alloc(4096, bytes);
  if (pages == nullptr) {
    std::fprintf(stderr, "kernels: no %zu bytes of memory\n", bytes);
    std::exit(1);
  }
  return pages;
}

}  // namespace kernels
