// spillway kv get, put, delete: the subcommands that work on keys that are named.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "kv.h"
#include "progress.h"

namespace tools {
namespace {

using Outcome = kv::Changed::Outcome;

void check_key(const KvLine& line, std::string_view key) {
  if (key.empty() || key.size() > kv::kMaxKeyBytes)
    line.refuse(concat("a key of ", key.size(), " bytes; give 1 to ", kv::kMaxKeyBytes));
}

// Prints one line; a long key is cut.
void say_absent(std::string_view key) {
  constexpr size_t kMaxShown = 60;
  const bool is_long = key.size() > kMaxShown;
  std::fprintf(stderr, "spillway: there is no key '%s%s'\n", escaped(key.substr(0, kMaxShown)).c_str(),
               is_long ? "..." : "");
}

uint64_t expiry_ms(const KvLine& line) {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  const auto now_ms =
      static_cast<uint64_t>(now.tv_sec) * 1000 + static_cast<uint64_t>(now.tv_nsec) / 1'000'000;
  constexpr uint64_t kMaxSeconds = uint64_t{100} * 365 * 86400;
  return now_ms + 1000 * line.number("--expires", 1, kMaxSeconds);
}

kv::PutOptions put_options(const KvLine& line) {
  if (line.has("--if-absent") + line.has("--if-present") + line.has("--if-version") > 1)
    line.refuse("give one of --if-absent, --if-present, --if-version");
  kv::PutOptions options;
  if (line.has("--if-absent")) options.when = kv::When::kIfAbsent;
  if (line.has("--if-present")) options.when = kv::When::kIfPresent;
  if (line.has("--if-version")) {
    options.when = kv::When::kIfVersion;
    options.version = line.number("--if-version", 1, kv::kMaxSequence);
  }
  if (line.has("--expires")) options.expires_ms = expiry_ms(line);
  if (line.has("--flags")) options.flags = static_cast<uint32_t>(line.number("--flags", 0, ~uint32_t{0}));
  return options;
}

// A value that does not come from the command line, but from standard input or from --file.
class Source {
 public:
  Source(const KvLine& line, bool is_input)
      : line_(line),
        name_(is_input ? "standard input" : concat('\'', printable(line.options.at("--file")), '\'')) {
    if (!is_input) descriptor_ = open(std::string(line.options.at("--file")).c_str(), O_RDONLY | O_CLOEXEC);
    struct stat facts = {};
    if (descriptor_ < 0 || fstat(descriptor_, &facts) != 0) refuse();
    if (S_ISREG(facts.st_mode) && static_cast<uint64_t>(facts.st_size) > kv::kMaxValueBytes) refuse_size();
  }
  ~Source() {
    if (descriptor_ != STDIN_FILENO) close(descriptor_);
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  // The next bytes; 0 at the end.
  size_t read(std::span<std::byte> to) {
    ssize_t bytes = 0;
    do bytes = ::read(descriptor_, to.data(), to.size());
    while (bytes < 0 && errno == EINTR);
    if (bytes < 0) refuse();
    read_bytes_ += static_cast<uint64_t>(bytes);
    if (read_bytes_ > kv::kMaxValueBytes) refuse_size();
    return static_cast<size_t>(bytes);
  }

 private:
  [[noreturn]] void refuse() const {
    line_.refuse(concat("cannot read ", name_, ": ", std::strerror(errno)));
  }
  [[noreturn]] void refuse_size() const {
    line_.refuse(
        concat(name_, " has more than ", kv::kMaxValueBytes, " bytes, which is the most for a value"));
  }

  const KvLine& line_;
  std::string name_;
  int descriptor_ = STDIN_FILENO;
  uint64_t read_bytes_ = 0;
};

constexpr size_t kPieceBytes = 1 << 20;

// Puts the value that the source holds, in memory for two pieces. Puts nothing if the source cannot be read to its end.
kv::Changed put_from(const KvLine& line, kv::Session& session, Source& source,
                     const kv::PutOptions& options) {
  Progress progress("put", Progress::Unit::kBytes);
  std::vector<std::byte> piece(kPieceBytes);
  kv::ValueWriter writer;
  value_of(writer.open(session, line.words[1]));
  for (uint64_t done_bytes = 0;;) {
    const size_t bytes = source.read(piece);
    if (bytes == 0) return value_of(writer.commit(options));
    value_of(writer.append(std::span(piece).first(bytes)));
    progress.at(done_bytes += bytes, 0);
  }
}

kv::Changed put(const KvLine& line, kv::Session& session, const kv::PutOptions& options) {
  if (line.has("--file") || line.words[2] == "-") {
    Source source(line, !line.has("--file"));
    return put_from(line, session, source, options);
  }
  return value_of(session.put(line.words[1], kv::bytes_of(line.words[2]), options));
}

// Writes the value as it is. If standard output fails, main says so.
void print_value(kv::Session& session, kv::Found& found) {
  // Where the value itself is shown, that is progress enough.
  Progress progress("get", Progress::Unit::kBytes, isatty(STDOUT_FILENO) == 0);
  std::vector<std::byte> piece(std::min<uint64_t>(found.value_bytes(), kPieceBytes));
  for (uint64_t at = 0; at < found.value_bytes() && std::ferror(stdout) == 0;) {
    const size_t bytes = value_of(session.read_value(found, at, piece));
    std::fwrite(piece.data(), 1, bytes, stdout);
    at += bytes;
    progress.at(at, found.value_bytes());
  }
}

int say_outcome(const KvLine& line, const kv::Changed& changed) {
  switch (changed.outcome) {
    case Outcome::kDone: std::printf("%lu\n", changed.version); return 0;
    case Outcome::kAbsent: say_absent(line.words[1]); return 1;
    case Outcome::kPresent:
      std::fprintf(stderr, "spillway: the key is there already, with version %lu; nothing was done\n",
                   changed.version);
      return 1;
    case Outcome::kVersion:
      std::fprintf(stderr, "spillway: the key has version %lu; nothing was done\n", changed.version);
      return 1;
  }
  return 1;
}

}  // namespace

int kv_get(const KvLine& line) {
  const std::string_view key = line.words[1];
  check_key(line, key);
  KvStore store(line.device, {.read_only = true});
  bool is_there = false;
  {
    KvSession session(*store);
    kv::Found found = value_of(session->get(key));
    is_there = found.found();
    if (!is_there)
      say_absent(key);
    else if (line.has("--version"))
      std::printf("%lu\n", found.version());
    else
      print_value(*session, found);
  }
  store.close();
  return is_there ? 0 : 1;
}

int kv_put(const KvLine& line) {
  check_key(line, line.words[1]);
  if (line.has("--file") == (line.words.size() == 3))
    line.refuse("give the value once: VALUE, - for standard input, or --file FILE");
  const kv::PutOptions options = put_options(line);
  KvStore store(line.device);
  kv::Changed changed;
  {
    KvSession session(*store);
    changed = put(line, *session, options);
  }
  store.close();
  return say_outcome(line, changed);
}

int kv_delete(const KvLine& line) {
  const std::span keys = std::span(line.words).subspan(1);
  for (const std::string_view key : keys) check_key(line, key);
  KvStore store(line.device);
  bool all_were_there = true;
  {
    KvSession session(*store);
    for (const std::string_view key : keys) {
      const kv::Changed changed = value_of(session->remove(key));
      if (changed.outcome == Outcome::kDone) continue;
      say_absent(key);
      all_were_there = false;
    }
  }
  store.close();
  return all_were_there ? 0 : 1;
}

}  // namespace tools
