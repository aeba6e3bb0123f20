#include "sys/lifeline.h"

#include <errno.h>
#include <linux/memfd.h>
#include <sys/mman.h>

#include "base/ids.h"
#include "sys/files.h"
#include "sys/kernel.h"

namespace sys {
namespace {

constexpr int kAddSeals = 1033;  // F_ADD_SEALS
constexpr int kSealWrite = 8;    // F_SEAL_WRITE: refused with EBUSY as long as anybody may write by a mapping

std::unexpected<base::Error> refused(long result) {
  return base::failure(static_cast<int>(-result),
                       "cannot watch a child of fork: ", base::error_name(static_cast<int>(-result)));
}

}  // namespace

base::Expected<void> Lifeline::open() {
  if (file_size_limit() < base::kOsPageBytes) return refused(-EFBIG);  // ftruncate would raise SIGXFSZ
  const long made = syscall(SYS_memfd_create, "spillway-child", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (failed(made)) return refused(made);
  auto owned = own_new_descriptor(made);
  if (!owned) return std::unexpected(owned.error());
  descriptor_ = *owned;
  if (const long sized = syscall(SYS_ftruncate, descriptor_, base::kOsPageBytes); failed(sized)) {
    forget();
    return refused(sized);
  }
  auto mapped = open_again();
  if (!mapped) forget();
  return mapped;
}

base::Expected<void> Lifeline::open_again() {
  const long result =
      syscall(SYS_mmap, 0, base::kOsPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (failed(result)) return refused(result);
  mapping_ = reinterpret_cast<void*>(result);
  return {};
}

void Lifeline::let_go() {
  if (mapping_ != nullptr) syscall(SYS_munmap, mapping_, base::kOsPageBytes);
  mapping_ = nullptr;
}

bool Lifeline::is_over() const {
  return descriptor_ >= 0 && !failed(syscall(SYS_fcntl, descriptor_, kAddSeals, kSealWrite));
}

void Lifeline::forget() {
  if (descriptor_ >= 0) close_own_descriptor(descriptor_);
  descriptor_ = -1;
}

}  // namespace sys
