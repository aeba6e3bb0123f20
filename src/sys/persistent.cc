#include "sys/persistent.h"

#include <sys/mman.h>

#include "sys/barrier.h"
#include "sys/kernel.h"

namespace sys {

base::Expected<char*> map_file(int descriptor, uint64_t bytes, bool is_memory) {
  const int flags = is_memory ? MAP_SHARED_VALIDATE | MAP_SYNC : MAP_SHARED;
  const long result = syscall(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE, flags, descriptor, 0);
  if (failed(result)) {
    const int number = static_cast<int>(-result);
    return base::failure(number, "cannot map it: ", base::error_name(number));
  }
  note_map();
  syscall(SYS_madvise, result, bytes, MADV_DONTDUMP);
  return reinterpret_cast<char*>(result);
}

}  // namespace sys
