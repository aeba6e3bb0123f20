// Streams: blocks, lines, names. A FILE and its buffer are the C library's and never spilled; what it
// would read from or write to spilled memory bounces through Scratch, or comes straight out of the
// stream's buffer. A call that takes several steps locks the stream, as the C library's does.
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <wchar.h>

#include "spill/intercept/intercept.h"
#include "spill/intercept/once.h"
#include "spill/next.h"
#include "spill/thread.h"
#include "sys/c_library.h"

extern "C" {
size_t __fread_chk(void* to, size_t room, size_t size, size_t count, FILE* stream);
char* __fgets_chk(char* to, size_t room, int n, FILE* stream);
char* __fgets_unlocked_chk(char* to, size_t room, int n, FILE* stream);
}

namespace spill {
namespace {

constexpr size_t kBounceBytes = 32 << 10;
// The same for streams without a buffer, where each call is one system call: longer messages are cut.
constexpr size_t kMessageBounceBytes = 1 << 20;

// _IO_USER_BUF of the C library: the stream does not free its buffer.
constexpr int kForeignBuffer = 1;

// Locks the stream. Holds no slot while it waits for another thread.
void lock_stream(FILE* stream) {
  if (ftrylockfile(stream) == 0) return;
  clear_slots();
  flockfile(stream);
}

// Calls work() with the stream locked. The lock is also released if the thread is cancelled while it waits for input.
template <class Work>
auto with_lock(FILE* stream, Work work) {
  using Result = decltype(work());
  struct Call {
    FILE* stream;
    Work& work;
    Result result;
  } call = {stream, work, {}};
  lock_stream(stream);
  spillway_call_guarded(
      [](void* memory) {
        auto& locked = *static_cast<Call*>(memory);
        locked.result = locked.work();
      },
      [](void* memory, int) { funlockfile(static_cast<Call*>(memory)->stream); }, &call);
  return call.result;
}

// Moves bytes through a bounce buffer: move(plain, length) returns how many it moved. Returns the sum.
template <class Move>
size_t bounce(FILE* stream, size_t n, Move move) {
  Scratch buffer(std::min(n, __fbufsize(stream) <= 1 ? kMessageBounceBytes : kBounceBytes));
  if (n > 0 && buffer.data() == nullptr) {
    errno = ENOMEM;
    return 0;
  }
  clear_slots();
  size_t done = 0;
  while (done < n) {
    const size_t length = std::min(n - done, buffer.size());
    const size_t moved = move(buffer.data(), done, length);
    done += moved;
    if (moved < length) break;
  }
  return done;
}

size_t read_items(void* to, size_t size, size_t count, FILE* stream) {
  size_t bytes;
  if (__builtin_mul_overflow(size, count, &bytes) || bytes == 0)
    return LIBC(fread_unlocked)(nullptr, size, count, stream);
  const size_t done = bounce(stream, bytes, [&](char* plain_bytes, size_t at, size_t length) {
    const size_t moved = LIBC(fread_unlocked)(plain_bytes, 1, length, stream);
    copy(static_cast<char*>(to) + at, plain_bytes, moved);
    return moved;
  });
  return done / size;
}

size_t write_bytes(const void* from, size_t n, FILE* stream) {
  if (all_plain(from, n)) return LIBC(fwrite_unlocked)(from, 1, n, stream);
  return bounce(stream, n, [&](char* plain_bytes, size_t at, size_t length) {
    copy(plain_bytes, static_cast<const char*>(from) + at, length);
    return LIBC(fwrite_unlocked)(plain_bytes, 1, length, stream);
  });
}

// Whether none of the text is spilled: a stream passes a long text to the kernel directly.
bool is_plain_text(const char* text) {
  return plain(text) && (!spillway_has_globals.load(std::memory_order_relaxed) || !ends_spilled(text));
}

size_t write_items(const void* from, size_t size, size_t count, FILE* stream) {
  size_t bytes;
  if (__builtin_mul_overflow(size, count, &bytes)) {
    errno = EOVERFLOW;
    return 0;
  }
  if (bytes == 0) return 0;
  const size_t done = write_bytes(from, bytes, stream);
  return done == bytes ? count : done / size;
}

// What getc_unlocked() does when its macro finds the buffer empty; it waits for input.
int next_character(FILE* stream) {
  clear_slots();
  return __uflow(stream);
}

// Reads up to and including `delimiter`, at most n bytes. reserve(size) returns where the line lies, with room for
// size bytes and a 0, or null. Returns the bytes read; 0 at the end of input.
template <class Reserve>
size_t read_line(FILE* stream, int delimiter, size_t n, Reserve reserve) {
  size_t done = 0;
  while (done < n) {
    const auto available = static_cast<size_t>(stream->_IO_read_end - stream->_IO_read_ptr);
    if (available == 0) {
      const int character = next_character(stream);
      if (character == EOF) break;
      char* line = reserve(done + 1);
      if (line == nullptr) return 0;
      store(line + done++, static_cast<char>(character));
      if (character == static_cast<unsigned char>(delimiter)) break;
      continue;
    }
    size_t length = std::min(available, n - done);
    auto* found = static_cast<char*>(memchr(stream->_IO_read_ptr, delimiter, length));
    if (found != nullptr) length = static_cast<size_t>(found - stream->_IO_read_ptr) + 1;
    char* line = reserve(done + length);
    if (line == nullptr) return 0;
    copy(line + done, stream->_IO_read_ptr, length);
    stream->_IO_read_ptr += length;
    done += length;
    if (found != nullptr) break;
  }
  return done;
}

// `room`: the known size of the memory at `to`; a line that needs more ends the process.
char* get_string(char* to, int n, FILE* stream, size_t room = ~size_t{0}) {
  if (n <= 0) return nullptr;
  if (n == 1) {
    store(to, '\0');
    return to;
  }
  // As in the C library: an error counts only if it is new, and not "try again" after some input.
  const bool had_error = ferror_unlocked(stream) != 0;
  if (had_error) stream->_flags &= ~_IO_ERR_SEEN;
  const size_t length =
      read_line(stream, '\n', std::min(static_cast<size_t>(n) - 1, room), [to](size_t) { return to; });
  const bool failed = ferror_unlocked(stream) != 0 && errno != EAGAIN;
  if (had_error) stream->_flags |= _IO_ERR_SEEN;
  if (length == 0 || failed) return nullptr;
  if (length >= room) buffer_overflow();
  store(to + length, '\0');
  return to;
}

ssize_t get_line_unlocked(char** line, size_t* capacity, int delimiter, FILE* stream) {
  if (ferror_unlocked(stream)) return -1;
  char* block = load(line);
  size_t room = block == nullptr ? 0 : load(capacity);
  // As in the C library, a block of size 0 is ignored.
  if (room == 0) block = nullptr;
  bool out_of_memory = false;
  auto reserve = [&](size_t size) -> char* {
    if (size < room) return block;
    const size_t larger = std::max<size_t>({size + 1, 2 * room, 120});
    auto* moved = static_cast<char*>(__spill_realloc(block, larger));
    if (moved == nullptr) {
      out_of_memory = true;
      return nullptr;
    }
    block = moved;
    room = larger;
    store(line, block);
    store(capacity, room);
    return block;
  };
  if (reserve(0) == nullptr) return -1;
  const size_t length = read_line(stream, delimiter, SSIZE_MAX - 1, reserve);
  if (length == 0) return out_of_memory ? fail(ENOMEM) : -1;
  store(block + length, '\0');
  return static_cast<ssize_t>(length);
}

ssize_t get_line(char** line, size_t* capacity, int delimiter, FILE* stream) {
  if (line == nullptr || capacity == nullptr) return fail(EINVAL);
  return with_lock(stream, [=] { return get_line_unlocked(line, capacity, delimiter, stream); });
}

}  // namespace
}  // namespace spill

using spill::all_plain;
using spill::is_plain_text;
using spill::plain;
using spill::PlainString;

SPILL_EXPORT size_t __spill_fread(void* to, size_t size, size_t count, FILE* stream) {
  if (all_plain(to, size * count)) [[likely]] {
    spill::let_go_unless_buffered(stream, size * count);
    return LIBC(fread)(to, size, count, stream);
  }
  return spill::with_lock(stream, [=] { return spill::read_items(to, size, count, stream); });
}

SPILL_EXPORT size_t __spill_fread_unlocked(void* to, size_t size, size_t count, FILE* stream) {
  if (all_plain(to, size * count)) [[likely]] {
    spill::let_go_unless_buffered(stream, size * count);
    return LIBC(fread_unlocked)(to, size, count, stream);
  }
  return spill::read_items(to, size, count, stream);
}

SPILL_EXPORT size_t __spill___fread_chk(void* to, size_t room, size_t size, size_t count, FILE* stream) {
  if (all_plain(to, size * count)) [[likely]] {
    spill::let_go_unless_buffered(stream, size * count);
    return __fread_chk(to, room, size, count, stream);
  }
  size_t bytes;
  if (__builtin_mul_overflow(size, count, &bytes) || bytes > room) spill::buffer_overflow();
  return __spill_fread(to, size, count, stream);
}

SPILL_EXPORT size_t __spill___fread_unlocked_chk(void* to, size_t room, size_t size, size_t count,
                                                 FILE* stream) {
  size_t bytes;
  if (__builtin_mul_overflow(size, count, &bytes) || bytes > room) spill::buffer_overflow();
  return __spill_fread_unlocked(to, size, count, stream);
}

SPILL_EXPORT size_t __spill_fwrite(const void* from, size_t size, size_t count, FILE* stream) {
  if (all_plain(from, size * count)) [[likely]]
    return LIBC(fwrite)(from, size, count, stream);
  return spill::with_lock(stream, [=] { return spill::write_items(from, size, count, stream); });
}

SPILL_EXPORT size_t __spill_fwrite_unlocked(const void* from, size_t size, size_t count, FILE* stream) {
  if (all_plain(from, size * count)) [[likely]]
    return LIBC(fwrite_unlocked)(from, size, count, stream);
  return spill::write_items(from, size, count, stream);
}

SPILL_EXPORT int __spill_fputs_unlocked(const char* text, FILE* stream) {
  if (is_plain_text(text)) [[likely]]
    return LIBC(fputs_unlocked)(text, stream);
  const size_t length = spill::string_length(text);
  return spill::write_bytes(text, length, stream) == length ? 1 : EOF;
}

SPILL_EXPORT int __spill_fputs(const char* text, FILE* stream) {
  if (is_plain_text(text)) [[likely]]
    return LIBC(fputs)(text, stream);
  return spill::with_lock(stream, [=] { return __spill_fputs_unlocked(text, stream); });
}

SPILL_EXPORT int __spill_puts(const char* text) {
  if (is_plain_text(text)) [[likely]]
    return LIBC(puts)(text);
  const size_t length = spill::string_length(text);
  const bool written = spill::with_lock(stdout, [=] {
    return spill::write_bytes(text, length, stdout) == length && putc_unlocked('\n', stdout) != EOF;
  });
  return written ? static_cast<int>(std::min<size_t>(length + 1, INT_MAX)) : EOF;
}

SPILL_EXPORT char* __spill_fgets(char* to, int n, FILE* stream) {
  if (plain(to)) [[likely]] {
    spill::let_go_unless_buffered(stream, 1);
    return fgets(to, n, stream);
  }
  return spill::with_lock(stream, [=] { return spill::get_string(to, n, stream); });
}

SPILL_EXPORT char* __spill_fgets_unlocked(char* to, int n, FILE* stream) {
  if (plain(to)) [[likely]] {
    spill::let_go_unless_buffered(stream, 1);
    return fgets_unlocked(to, n, stream);
  }
  return spill::get_string(to, n, stream);
}

SPILL_EXPORT char* __spill___fgets_chk(char* to, size_t room, int n, FILE* stream) {
  if (plain(to)) [[likely]] {
    spill::let_go_unless_buffered(stream, 1);
    return __fgets_chk(to, room, n, stream);
  }
  return spill::with_lock(stream, [=] { return spill::get_string(to, n, stream, room); });
}

SPILL_EXPORT char* __spill___fgets_unlocked_chk(char* to, size_t room, int n, FILE* stream) {
  if (plain(to)) [[likely]] {
    spill::let_go_unless_buffered(stream, 1);
    return __fgets_unlocked_chk(to, room, n, stream);
  }
  return spill::get_string(to, n, stream, room);
}

// The line's block is the program's: its realloc may turn it into a spilled one at any time.
SPILL_EXPORT ssize_t __spill_getdelim(char** line, size_t* capacity, int delimiter, FILE* stream) {
  return spill::get_line(line, capacity, delimiter, stream);
}
SPILL_EXPORT ssize_t __spill___getdelim(char** line, size_t* capacity, int delimiter, FILE* stream) {
  return spill::get_line(line, capacity, delimiter, stream);
}
SPILL_EXPORT ssize_t __spill_getline(char** line, size_t* capacity, FILE* stream) {
  return spill::get_line(line, capacity, '\n', stream);
}

SPILL_EXPORT FILE* __spill_fopen(const char* path, const char* mode) {
  const PlainString plain_path(path), plain_mode(mode);
  spill::clear_slots();  // a FIFO waits for its other end
  return LIBC(fopen)(plain_path, plain_mode);
}
SPILL_EXPORT FILE* __spill_fopen64(const char* path, const char* mode) { return __spill_fopen(path, mode); }
SPILL_EXPORT FILE* __spill_freopen(const char* path, const char* mode, FILE* stream) {
  FILE* opened = LIBC(freopen)(PlainString(path), PlainString(mode), stream);
  spill::look_at_error_output();
  return opened;
}
SPILL_EXPORT FILE* __spill_freopen64(const char* path, const char* mode, FILE* stream) {
  return __spill_freopen(path, mode, stream);
}
SPILL_EXPORT FILE* __spill_fdopen(int descriptor, const char* mode) {
  return fdopen(descriptor, PlainString(mode));
}

// A buffer in spilled memory would reach system calls inside the C library: the stream gets a plain one of that size instead, which it frees.
SPILL_EXPORT int __spill_setvbuf(FILE* stream, char* buffer, int mode, size_t n) {
  const bool is_plain = spill::all_plain(buffer, n);
  if (is_plain || mode == _IONBF) return LIBC(setvbuf)(stream, is_plain ? buffer : nullptr, mode, n);
  // A buffer of size 0 is never used: any address will do.
  static char none;
  auto* block = n > 0 ? static_cast<char*>(sys::c_malloc(n)) : &none;
  const int result = LIBC(setvbuf)(stream, block, mode, n);
  if (n == 0 || block == nullptr) return result;
  if (result == 0)
    stream->_flags &= ~spill::kForeignBuffer;
  else
    sys::c_free(block);
  return result;
}
SPILL_EXPORT void __spill_setbuf(FILE* stream, char* buffer) {
  __spill_setvbuf(stream, buffer, buffer != nullptr ? _IOFBF : _IONBF, BUFSIZ);
}
SPILL_EXPORT void __spill_setbuffer(FILE* stream, char* buffer, size_t n) {
  __spill_setvbuf(stream, buffer, buffer != nullptr ? _IOFBF : _IONBF, n);
}

SPILL_EXPORT int __spill_fgetpos(FILE* stream, fpos_t* position) {
  return fgetpos(stream, spill::PlainObject<fpos_t>(position));
}
SPILL_EXPORT int __spill_fsetpos(FILE* stream, const fpos_t* position) {
  return fsetpos(stream, spill::PlainIn<fpos_t>(position));
}

SPILL_EXPORT void __spill_perror(const char* text) {
  const int error = errno;
  PlainString plain_text(text);
  errno = error;
  perror(plain_text);
}

SPILL_EXPORT int __spill_remove(const char* path) { return LIBC(remove)(PlainString(path)); }

// A loop's task is not suspended while it has a stream's lock.
SPILL_EXPORT void __spill_flockfile(FILE* stream) {
  spill::lock_stream(stream);
  spill::begin_busy();
}
SPILL_EXPORT int __spill_ftrylockfile(FILE* stream) {
  const int result = ftrylockfile(stream);
  if (result == 0) spill::begin_busy();
  return result;
}
SPILL_EXPORT void __spill_funlockfile(FILE* stream) {
  funlockfile(stream);
  spill::end_busy();
}
