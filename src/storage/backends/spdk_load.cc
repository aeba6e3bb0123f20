#include "storage/backends/spdk_load.h"

#include <dlfcn.h>
#include <signal.h>

#include "sys/kernel.h"
#include "sys/lock.h"

namespace storage {
namespace {

constinit sys::Mutex lock;
constinit const SpdkLibrary* library = nullptr;

// The folder of the file that contains this code: "/usr/lib" for "/usr/lib/libspillway.so".
std::string_view own_folder() {
  Dl_info info = {};
  if (dladdr(reinterpret_cast<void*>(&own_folder), &info) == 0) return ".";
  std::string_view file = info.dli_fname;
  const size_t slash = file.rfind('/');
  return slash == std::string_view::npos ? "." : file.substr(0, slash);
}

// A constructor of SPDK's replaces the handler of SIGBUS by one that loops for ever: it returns to the faulting instruction.
class KeepBusErrors {
 public:
  KeepBusErrors() { sys::syscall(SYS_rt_sigaction, SIGBUS, nullptr, action_, kMaskBytes); }
  ~KeepBusErrors() { sys::syscall(SYS_rt_sigaction, SIGBUS, action_, nullptr, kMaskBytes); }

 private:
  static constexpr size_t kMaskBytes = 8;
  uint64_t action_[4] = {};  // the kernel's struct: handler, flags, restorer, mask
};

base::Expected<const SpdkLibrary*> load() {
  KeepBusErrors keep;
  const std::string_view folder = own_folder();
  void* handle = nullptr;
  // Beside the runtime; or, for programs that contain the runtime, in the folder of libraries of a build or an installation.
  for (const char* between : {"/", "/../lib/", "/../../lib/"}) {
    base::Text<500> path;
    path << folder << between << kSpdkLibraryFile;
    handle = dlmopen(LM_ID_NEWLM, path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) break;
    if (sys::syscall(SYS_access, path.c_str(), 0) == 0)
      return base::failure(ENOTSUP, "storage: ", kSpdkLibraryFile,
                           " cannot be loaded: ", std::string_view(dlerror()).substr(0, 150));
  }
  if (handle == nullptr)
    return base::failure(ENOTSUP, "storage: spdk: there is no ", kSpdkLibraryFile, " in ", folder,
                         "; build Spillway where pkg-config finds spdk_nvme");
  const auto* found = static_cast<const SpdkLibrary*>(dlsym(handle, kSpdkLibrarySymbol));
  if (found == nullptr || found->version != kSpdkInterfaceVersion)
    return base::failure(ENOTSUP, "storage: ", kSpdkLibraryFile, " in ", folder,
                         " is of another version; install it together with the rest");
  return found;
}

}  // namespace

base::Expected<const SpdkLibrary*> load_spdk() {
  sys::LockGuard guard(lock);
  if (library != nullptr) return library;
  auto loaded = load();
  if (loaded) library = *loaded;
  return loaded;
}

}  // namespace storage
