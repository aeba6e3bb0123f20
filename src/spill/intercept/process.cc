// Starting programs: argument and environment vectors, and the strings in them, are copied when any of
// them is spilled. The copies lie on the stack as far as they fit: after vfork the child shares this
// thread's Scratch with its parent and never gives it back.
#include <alloca.h>
#include <errno.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "spill/intercept/intercept.h"
#include "sys/c_library.h"

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

// Takes plain copies from a block of the bytes that copy_bytes() said.
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

// Calls f(Copier) with `bytes` of memory.
template <class F>
int with_copies(size_t bytes, F f) {
  constexpr size_t kStackBytes = 64 << 10;
  if (bytes <= kStackBytes) return f(Copier(static_cast<char*>(alloca(bytes + 1))));
  Scratch memory(bytes);
  if (memory.data() == nullptr) return fail(ENOMEM);
  return f(Copier(memory.data()));
}

// `environ`, which the C library gives to the kernel as it is, is plain for the time of a call: an array of the program's own need not be.
class PlainEnvironment {
 public:
  PlainEnvironment() : given_(environ) {
    const size_t bytes = copy_bytes(given_);
    copy_ = bytes > 0 ? static_cast<char*>(sys::c_malloc(bytes)) : nullptr;
    if (copy_ != nullptr) environ = const_cast<char**>(Copier(copy_).strings(given_));
  }
  // What another thread has set meanwhile refers to the copy.
  ~PlainEnvironment() {
    if (copy_ == nullptr || environ != reinterpret_cast<char**>(copy_)) return;
    environ = given_;
    sys::c_free(copy_);
  }
  PlainEnvironment(const PlainEnvironment&) = delete;
  PlainEnvironment& operator=(const PlainEnvironment&) = delete;

 private:
  char** given_;
  char* copy_;
};

int execute(const char* path, Strings arguments, Strings environment, bool searches) {
  const size_t bytes = copy_bytes(path) + copy_bytes(arguments) + copy_bytes(environment);
  return with_copies(bytes, [=](Copier copier) {
    const char* plain_path = copier.text(path);
    Strings plain_arguments = copier.strings(arguments);
    Strings plain_environment = copier.strings(environment);
    return searches ? execvpe(plain_path, plain_arguments, plain_environment)
                    : execve(plain_path, plain_arguments, plain_environment);
  });
}

using Spawn = int(pid_t*, const char*, const posix_spawn_file_actions_t*, const posix_spawnattr_t*, Strings,
                  Strings);

int spawn(Spawn* function, pid_t* child, const char* path, const posix_spawn_file_actions_t* actions,
          const posix_spawnattr_t* attributes, Strings arguments, Strings environment) {
  PlainObject<pid_t> plain_child(child);
  PlainIn<posix_spawn_file_actions_t> plain_actions(actions);
  PlainIn<posix_spawnattr_t> plain_attributes(attributes);
  const size_t bytes = copy_bytes(path) + copy_bytes(arguments) + copy_bytes(environment);
  const int result = with_copies(bytes, [&](Copier copier) {
    const char* plain_path = copier.text(path);
    Strings plain_arguments = copier.strings(arguments);
    return function(plain_child, plain_path, plain_actions, plain_attributes, plain_arguments,
                    copier.strings(environment));
  });
  return result == -1 ? ENOMEM : result;
}

}  // namespace
}  // namespace spill

using spill::PlainIn;
using spill::PlainObject;
using spill::PlainString;

// The arguments of an execl call as a vector; leaves `list` behind the null that ends them.
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
  return spill::spawn(posix_spawn, child, path, actions, attributes, arguments, environment);
}
SPILL_EXPORT int __spill_posix_spawnp(pid_t* child, const char* file,
                                      const posix_spawn_file_actions_t* actions,
                                      const posix_spawnattr_t* attributes, char* const* arguments,
                                      char* const* environment) {
  return spill::spawn(posix_spawnp, child, file, actions, attributes, arguments, environment);
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
