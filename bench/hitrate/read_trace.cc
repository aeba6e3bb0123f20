#include "hitrate/read_trace.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <iterator>
#include <string>

namespace hitrate {
namespace {

// In the order of Format.
constexpr std::string_view kNames[kFormatCount] = {"oracle", "csv", "spc", "arc", "lirs", "u32", "u64"};
constexpr std::string_view kIdNames[] = {"id", "obj_id", "object_id", "key", "page", "block"};
constexpr uint64_t kPageBytes = 4096, kBlockBytes = 512;
constexpr uint64_t kMaxPagesAtOnce = uint64_t{1} << 24;

// A word of the input as messages show it: they are one line of text.
std::string shown(std::string_view word) {
  std::string text(word.substr(0, 40));
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  return text;
}

bool parse_number(std::string_view word, uint64_t& number) {
  const bool is_hex = word.starts_with("0x") || word.starts_with("0X");
  const char* const begin = word.data() + (is_hex ? 2 : 0);
  const char* const end = word.data() + word.size();
  const auto [stop, wrong] = std::from_chars(begin, end, number, is_hex ? 16 : 10);
  return wrong == std::errc() && stop == end;
}

// Lines of a text, and where one is, for errors.
class Lines {
 public:
  Lines(std::string_view text, std::string_view file) : rest_(text), file_(file) {}

  // The next line that is not empty.
  bool next(std::string_view& line) {
    while (!rest_.empty()) {
      const size_t end = rest_.find('\n');
      line = rest_.substr(0, end);
      rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
      ++number_;
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!line.empty()) return true;
    }
    return false;
  }
  template <class... Parts>
  std::unexpected<base::Error> wrong(const Parts&... parts) const {
    return base::failure(EINVAL, file_, ", line ", number_, ": ", parts...);
  }

 private:
  std::string_view rest_, file_;
  uint64_t number_ = 0;
};

// Takes the first word off a line, and what separates it from the next. Empty when there is none.
std::string_view take_word(std::string_view& line, std::string_view separators) {
  const size_t end = line.find_first_of(separators);
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  return word;
}
std::string_view take_spaced_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  return take_word(line, " \t");
}
std::string_view take_column(std::string_view& line) {
  std::string_view word = take_word(line, ",");
  word.remove_prefix(std::min(word.find_first_not_of(" \t"), word.size()));
  return word.substr(0, word.find_last_not_of(" \t") + 1);
}
std::string_view column(std::string_view line, unsigned number) {
  while (number-- > 0) take_column(line);
  return take_column(line);
}

// Which column of a csv has the ids, by its first line; has_names says whether that line is none of the trace.
base::Expected<unsigned> id_column(std::string_view first, const Lines& lines, bool& has_names) {
  uint64_t number;
  const bool is_only_one = first.find(',') == std::string_view::npos;
  const unsigned usual = is_only_one ? 0 : 1;
  has_names = !parse_number(column(first, usual), number);
  if (!has_names) return usual;
  std::string_view rest = first;
  for (unsigned i = 0; !rest.empty(); ++i) {
    const std::string_view name = take_column(rest);
    for (const std::string_view id_name : kIdNames)
      if (name == id_name) return i;
  }
  return lines.wrong("no column is called id, obj_id, object_id, key, page or block, and '",
                     shown(column(first, usual)), "' is no number");
}

base::Expected<void> read_csv(std::string_view content, std::string_view file, TraceBuilder& to) {
  Lines lines(content, file);
  std::string_view line;
  if (!lines.next(line)) return {};
  bool has_names = false;
  const auto ids = id_column(line, lines, has_names);
  if (!ids) return std::unexpected(ids.error());
  if (has_names && !lines.next(line)) return {};
  do {
    uint64_t id;
    const std::string_view word = column(line, *ids);
    if (!parse_number(word, id))
      return lines.wrong("'", shown(word), "' in column ", *ids + 1, " is no number");
    to.add(id);
  } while (!to.is_full() && lines.next(line));
  return {};
}

base::Expected<void> read_spc(std::string_view content, std::string_view file, TraceBuilder& to) {
  Lines lines(content, file);
  std::string_view line;
  while (!to.is_full() && lines.next(line)) {
    std::string_view words[5];
    for (std::string_view& word : words) word = take_column(line);
    uint64_t unit, block, bytes;
    if (!parse_number(words[0], unit) || unit > 0xffff)
      return lines.wrong("'", shown(words[0]), "' is no unit: a number up to 65535");
    if (!parse_number(words[1], block) || block >> 48 != 0)
      return lines.wrong("'", shown(words[1]), "' is no block: a number below 2^48");
    if (!parse_number(words[2], bytes) || bytes == 0 || bytes / kPageBytes >= kMaxPagesAtOnce)
      return lines.wrong("'", shown(words[2]), "' is no number of bytes: from 1 to 64 G");
    if (words[3].size() != 1 || std::string_view("rRwW").find(words[3][0]) == std::string_view::npos)
      return lines.wrong("'", shown(words[3]), "' is neither r nor w");
    if (words[4].empty()) return lines.wrong("there is no time");
    const uint64_t begin = block * kBlockBytes;
    for (uint64_t page = begin / kPageBytes; page <= (begin + bytes - 1) / kPageBytes && !to.is_full();
         ++page)
      to.add(unit << 48 | page);
  }
  return {};
}

base::Expected<void> read_arc(std::string_view content, std::string_view file, TraceBuilder& to) {
  Lines lines(content, file);
  std::string_view line;
  while (!to.is_full() && lines.next(line)) {
    uint64_t numbers[4];
    for (uint64_t& number : numbers)
      if (const std::string_view word = take_spaced_word(line); !parse_number(word, number))
        return word.empty() ? lines.wrong("four numbers are needed: block, count and two that are ignored")
                            : lines.wrong("'", shown(word), "' is no number");
    if (numbers[1] == 0 || numbers[1] > kMaxPagesAtOnce || numbers[0] + (numbers[1] - 1) < numbers[0])
      return lines.wrong(numbers[1], " is no count of blocks from ", numbers[0], " on: from 1 to ",
                         kMaxPagesAtOnce);
    for (uint64_t i = 0; i < numbers[1] && !to.is_full(); ++i) to.add(numbers[0] + i);
  }
  return {};
}

base::Expected<void> read_lirs(std::string_view content, std::string_view file, TraceBuilder& to) {
  Lines lines(content, file);
  std::string_view line;
  while (!to.is_full() && lines.next(line)) {
    const std::string_view word = take_spaced_word(line);
    uint64_t block;
    if (word == "*" || word.empty()) continue;
    if (!parse_number(word, block))
      return lines.wrong("'", shown(word), "' is neither a block's number nor *");
    to.add(block);
  }
  return {};
}

// Records of `bytes`, with the id at `offset`.
template <class Id>
base::Expected<void> read_records(std::string_view content, std::string_view file, size_t bytes,
                                  size_t offset, TraceBuilder& to) {
  for (size_t at = 0; at < content.size() && !to.is_full(); at += bytes) {
    if (content.size() - at < bytes)
      return base::failure(EINVAL, file, ", offset ", at, ": ends within a record of ", bytes, " bytes");
    Id id;
    std::memcpy(&id, content.data() + at + offset, sizeof id);
    to.add(id);
  }
  return {};
}

base::Expected<void> read_content(Format format, std::string_view content, std::string_view file,
                                  TraceBuilder& to) {
  switch (format) {
    case Format::kOracle: return read_records<uint64_t>(content, file, 24, 4, to);
    case Format::kCsv: return read_csv(content, file, to);
    case Format::kSpc: return read_spc(content, file, to);
    case Format::kArc: return read_arc(content, file, to);
    case Format::kLirs: return read_lirs(content, file, to);
    case Format::kU32: return read_records<uint32_t>(content, file, 4, 0, to);
    case Format::kU64: return read_records<uint64_t>(content, file, 8, 0, to);
  }
  __builtin_unreachable();
}

struct Descriptor {
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
  int number;
};

}  // namespace

base::Expected<Format> parse_format(std::string_view name) {
  for (unsigned i = 0; i < std::size(kNames); ++i)
    if (name == kNames[i]) return static_cast<Format>(i);
  return base::failure(EINVAL, "no format is called '", shown(name),
                       "'; there are oracle, csv, spc, arc, lirs, u32 and u64");
}

base::Expected<void> read_trace(Format format, std::string_view content, std::string_view file,
                                TraceBuilder& to) {
  if (auto read = read_content(format, content, file, to); !read) return read;
  if (to.is_empty()) return base::failure(EINVAL, file, ": there is no access in it");
  return {};
}

base::Expected<Trace> read_trace_file(Format format, const char* path, uint64_t most) {
  const auto failed = [path] { return base::failure(errno, path, ": ", std::strerror(errno)); };
  const Descriptor file{::open(path, O_RDONLY | O_CLOEXEC)};
  if (file.number < 0) return failed();
  std::string content;
  char part[1 << 16];
  ssize_t bytes;
  while ((bytes = ::read(file.number, part, sizeof part)) > 0)
    content.append(part, static_cast<size_t>(bytes));
  if (bytes < 0) return failed();
  TraceBuilder builder(most);
  if (auto read = read_trace(format, content, path, builder); !read) return std::unexpected(read.error());
  return builder.take();
}

}  // namespace hitrate
