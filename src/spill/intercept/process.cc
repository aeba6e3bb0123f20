// Starting programs: argument and environment vectors, and the strings in them, are copied when any of
// them is spilled. The copies lie on the stack if they fit: after vfork the child shares this thread's Scratch
// with its parent and never gives it back.
#include <alloca.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <new>

#include "spill/intercept/intercept.h"
#include "spill/intercept/process.h"
#include "spill/next.h"
#include "spill/thread.h"
#include "sys/c_library.h"
#include "sys/kernel.h"
#include "sys/lock.h"
#include "sys/memory.h"
#include "sys/signals.h"

namespace spill {
namespace {

using Strings = char* const*;

// Bytes for a plain copy of a vector and its strings; 0 when nothing of it is spilled.
size_t copy_bytes(Strings strings) {
  if (strings == nullptr) return 0;
  size_t content_bytes = 0, count = 1;
  for (; const char* text = load(&strings[count - 1]); ++count) content_bytes += spilled_string_bytes(text);
  const size_t vector_bytes = count * sizeof(char*);
  const size_t bytes = vector_bytes + content_bytes;
  return content_bytes > 0 || !all_plain(strings, vector_bytes) ? base::round_up(bytes, sizeof(char*)) : 0;
}

size_t copy_bytes(const char* text) { return base::round_up(spilled_string_bytes(text), sizeof(char*)); }

// Makes plain copies in a block whose size is what copy_bytes() returned.
class Copier {
 public:
  explicit Copier(char* memory) : at_(memory) {}

  const char* text(const char* original) {
    const size_t bytes = copy_bytes(original);
    if (bytes == 0) return original;
    copy(at_, original, string_length(original) + 1);
    return take(bytes);
  }
  Strings strings(Strings original) {
    const size_t bytes = copy_bytes(original);
    if (bytes == 0) return original;
    size_t count = 0;
    while (load(&original[count]) != nullptr) ++count;
    auto* vector = reinterpret_cast<char**>(at_);
    char* content = at_ + (count + 1) * sizeof(char*);
    for (size_t i = 0; i < count; ++i) {
      vector[i] = load(&original[i]);
      const size_t length = spilled_string_bytes(vector[i]);
      if (length == 0) continue;
      copy(content, vector[i], length);
      vector[i] = content;
      content += length;
    }
    vector[count] = nullptr;
    return reinterpret_cast<Strings>(take(bytes));
  }

 private:
  char* take(size_t bytes) {
    at_ += bytes;
    return at_ - bytes;
  }
  char* at_;
};

// The memory that the thread's call has mapped for copies, and in which process. If that was a child of vfork, which has become
// another program, the memory was left to this process, where nobody needs it any more.
struct Mapped {
  char* memory;
  size_t bytes;
  long process;
};
__thread Mapped mapped __attribute__((tls_model("initial-exec"))) = {};

// Calls f(Copier) with `bytes` of memory.
template <class F>
int with_copies(size_t bytes, F f) {
  constexpr size_t kStackBytes = 64 << 10;
  if (bytes <= kStackBytes) return f(Copier(static_cast<char*>(alloca(bytes + 1))));
  const long process = sys::syscall(SYS_getpid);
  if (mapped.memory != nullptr && mapped.process != process) {
    sys::unmap(mapped.memory, base::round_up(mapped.bytes, base::kOsPageBytes));
    mapped = {};
  }
  Scratch memory(bytes);
  if (memory.data() == nullptr) return fail(ENOMEM);
  const Mapped before = mapped;  // of a call that was interrupted by a handler that makes this one
  mapped = {memory.data(), memory.size(), process};
  const int result = f(Copier(memory.data()));
  mapped = before;
  return result;
}

// Some functions of the C library use `environ` where spilled memory cannot be read: they pass it to the kernel, or read it in a child that
// cannot handle faults. If the program has replaced the array, it may be spilled, so environ is a plain copy during such a call. Calls of
// several threads share a copy. It is never freed: others may have got a string of it meanwhile (getenv), or be about to start a child with
// it. So a new copy is made only when something has changed.
struct Lent {
  sys::Mutex mutex;
  char** given = nullptr;  // the program's
  char** copy = nullptr;   // the newest; null: none yet
  size_t bytes = 0;        // of the copy
  uint32_t users = 0;      // calls for which environ is the copy
};
constinit Lent lent;

// Compares two copies of `bytes` bytes that Copier made in zeroed memory.
bool are_same(char* const* a, char* const* b, size_t bytes) {
  const auto begin_a = reinterpret_cast<uint64_t>(a), begin_b = reinterpret_cast<uint64_t>(b);
  size_t i = 0;
  for (; a[i] != nullptr; ++i) {
    const uint64_t at = reinterpret_cast<uint64_t>(a[i]) - begin_a;
    if (at < bytes ? at != reinterpret_cast<uint64_t>(b[i]) - begin_b : a[i] != b[i]) return false;
  }
  const size_t vector_bytes = (i + 1) * sizeof *a;
  return b[i] == nullptr && memcmp(&a[i + 1], &b[i + 1], bytes - vector_bytes) == 0;
}

// Replaces environ by a plain copy. False: it is plain already, or there is no memory. REQUIRES: the lock.
bool lend_environment() {
  const size_t bytes = copy_bytes(environ);
  auto* const memory = bytes > 0 ? static_cast<char*>(sys::c_calloc(1, bytes)) : nullptr;
  if (memory == nullptr) return false;
  auto* const copy = const_cast<char**>(Copier(memory).strings(environ));
  if (lent.copy != nullptr && lent.bytes == bytes && are_same(copy, lent.copy, bytes)) {
    sys::c_free(memory);
  } else {
    lent.copy = copy;
    lent.bytes = bytes;
    lent.users = 0;
  }
  lent.given = environ;
  environ = lent.copy;
  return true;
}

// Handlers are deferred while the lock is held: one may start a program, too.
class PlainEnvironment {
 public:
  PlainEnvironment() {
    const InRuntime inside;
    sys::LockGuard guard(lent.mutex);
    const bool is_lent = lent.users > 0 && environ == lent.copy;
    if (!is_lent && !lend_environment()) return;
    ++lent.users;
    copy_ = lent.copy;
  }
  ~PlainEnvironment() {
    if (copy_ == nullptr) return;
    const InRuntime inside;
    sys::LockGuard guard(lent.mutex);
    if (copy_ == lent.copy && --lent.users == 0 && environ == copy_) environ = lent.given;
  }
  PlainEnvironment(const PlainEnvironment&) = delete;
  PlainEnvironment& operator=(const PlainEnvironment&) = delete;

 private:
  char** copy_ = nullptr;
};

int execute(const char* path, Strings arguments, Strings environment, bool searches) {
  const size_t bytes = copy_bytes(path) + copy_bytes(arguments) + copy_bytes(environment);
  return with_copies(bytes, [=](Copier copier) {
    const char* plain_path = copier.text(path);
    Strings plain_arguments = copier.strings(arguments);
    Strings plain_environment = copier.strings(environment);
    if (searches) return execvpe(plain_path, plain_arguments, plain_environment);
    // In a child of vfork nothing may be looked up.
    return fail(static_cast<int>(-sys::syscall(SYS_execve, plain_path, plain_arguments, plain_environment)));
  });
}

using Spawn = int(pid_t*, const char*, const posix_spawn_file_actions_t*, const posix_spawnattr_t*, Strings,
                  Strings);

// Calls f(number, attributes), which starts a program and stores the child's number, and copies that to spilled memory at `child`. As
// natively, the number is there before a handler can learn of the child's end; the child begins with the original signal mask.
template <class F>
int with_number_stored(pid_t* child, const posix_spawnattr_t* attributes, F f) {
  posix_spawnattr_t own;
  short flags = 0;
  if (attributes != nullptr)
    own = *attributes;
  else
    posix_spawnattr_init(&own);
  posix_spawnattr_getflags(&own, &flags);
  const uint64_t before = sys::block_signals(sys::kSentSignals);
  if ((flags & POSIX_SPAWN_SETSIGMASK) == 0) {
    sigset_t mask = {};
    *reinterpret_cast<uint64_t*>(&mask) = before;
    posix_spawnattr_setsigmask(&own, &mask);
    posix_spawnattr_setflags(&own, static_cast<short>(flags | POSIX_SPAWN_SETSIGMASK));
  }
  int result;
  {
    PlainObject<pid_t> number(child);
    result = f(number, &own);
  }
  sys::set_signal_mask(before);
  return result;
}

int spawn(Spawn* function, pid_t* child, const char* path, const posix_spawn_file_actions_t* actions,
          const posix_spawnattr_t* attributes, Strings arguments, Strings environment) {
  PlainIn<posix_spawn_file_actions_t> plain_actions(actions);
  PlainIn<posix_spawnattr_t> plain_attributes(attributes);
  const size_t bytes = copy_bytes(path) + copy_bytes(arguments) + copy_bytes(environment);
  const int result = with_copies(bytes, [&](Copier copier) {
    const char* plain_path = copier.text(path);
    Strings plain_arguments = copier.strings(arguments);
    Strings plain_environment = copier.strings(environment);
    const auto start = [&](pid_t* number, const posix_spawnattr_t* how) {
      return function(number, plain_path, plain_actions, how, plain_arguments, plain_environment);
    };
    return all_plain(child, sizeof *child) ? start(child, plain_attributes)
                                           : with_number_stored(child, plain_attributes, start);
  });
  return result == -1 ? ENOMEM : result;
}

}  // namespace

void forget_copies() {
  new (&lent) Lent;
  mapped = {};
}

}  // namespace spill

using spill::PlainIn;
using spill::PlainObject;
using spill::PlainString;

// The arguments of an execl call as a vector; leaves `list` after the null that ends them.
#define SPILL_COLLECT(vector, first)                                        \
  va_list list;                                                             \
  va_start(list, first);                                                    \
  size_t count = 1;                                                         \
  while (va_arg(list, char*) != nullptr) ++count;                           \
  va_end(list);                                                             \
  auto** vector = static_cast<char**>(alloca((count + 1) * sizeof(char*))); \
  va_start(list, first);                                                    \
  vector[0] = const_cast<char*>(first);                                     \
  for (size_t i = 1; i <= count; ++i) vector[i] = va_arg(list, char*)

SPILL_EXPORT int __spill_execve(const char* path, char* const* arguments, char* const* environment) {
  return spill::execute(path, arguments, environment, false);
}
SPILL_EXPORT int __spill_execv(const char* path, char* const* arguments) {
  return spill::execute(path, arguments, environ, false);
}
SPILL_EXPORT int __spill_execvp(const char* file, char* const* arguments) {
  return spill::execute(file, arguments, environ, true);
}
SPILL_EXPORT int __spill_execvpe(const char* file, char* const* arguments, char* const* environment) {
  return spill::execute(file, arguments, environment, true);
}
SPILL_EXPORT int __spill_fexecve(int descriptor, char* const* arguments, char* const* environment) {
  return spill::with_copies(spill::copy_bytes(arguments) + spill::copy_bytes(environment),
                            [=](spill::Copier copier) {
                              char* const* plain_arguments = copier.strings(arguments);
                              return fexecve(descriptor, plain_arguments, copier.strings(environment));
                            });
}
SPILL_EXPORT int __spill_execveat(int folder, const char* path, char* const* arguments,
                                  char* const* environment, int flags) {
  const size_t bytes =
      spill::copy_bytes(path) + spill::copy_bytes(arguments) + spill::copy_bytes(environment);
  return spill::with_copies(bytes, [=](spill::Copier copier) {
    const char* plain_path = copier.text(path);
    char* const* plain_arguments = copier.strings(arguments);
    return execveat(folder, plain_path, plain_arguments, copier.strings(environment), flags);
  });
}
SPILL_EXPORT int __spill_execl(const char* path, const char* first, ...) {
  SPILL_COLLECT(arguments, first);
  va_end(list);
  return spill::execute(path, arguments, environ, false);
}
SPILL_EXPORT int __spill_execlp(const char* file, const char* first, ...) {
  SPILL_COLLECT(arguments, first);
  va_end(list);
  return spill::execute(file, arguments, environ, true);
}
SPILL_EXPORT int __spill_execle(const char* path, const char* first, ...) {
  SPILL_COLLECT(arguments, first);
  auto* environment = va_arg(list, char* const*);
  va_end(list);
  return spill::execute(path, arguments, environment, false);
}

SPILL_EXPORT int __spill_posix_spawn(pid_t* child, const char* path,
                                     const posix_spawn_file_actions_t* actions,
                                     const posix_spawnattr_t* attributes, char* const* arguments,
                                     char* const* environment) {
  return spill::spawn(LIBC(posix_spawn), child, path, actions, attributes, arguments, environment);
}
SPILL_EXPORT int __spill_posix_spawnp(pid_t* child, const char* file,
                                      const posix_spawn_file_actions_t* actions,
                                      const posix_spawnattr_t* attributes, char* const* arguments,
                                      char* const* environment) {
  // The child looks for PATH in environ after the C library has reset its signal handlers.
  const spill::PlainEnvironment plain_environment;
  return spill::spawn(LIBC(posix_spawnp), child, file, actions, attributes, arguments, environment);
}
SPILL_EXPORT int __spill_posix_spawn_file_actions_addopen(posix_spawn_file_actions_t* actions, int descriptor,
                                                          const char* path, int flags, mode_t mode) {
  return posix_spawn_file_actions_addopen(PlainObject<posix_spawn_file_actions_t>(actions), descriptor,
                                          PlainString(path), flags, mode);
}

SPILL_EXPORT int __spill_system(const char* command) {
  PlainString plain_command(command);
  const spill::PlainEnvironment plain_environment;
  spill::clear_slots();
  return system(plain_command);
}
SPILL_EXPORT FILE* __spill_popen(const char* command, const char* mode) {
  const spill::PlainEnvironment plain_environment;
  return popen(PlainString(command), PlainString(mode));
}
