// spillway dump: prints what a running program's spilled memory holds, wherever that is just now, or what a core
// file has of it.
#include <charconv>
#include <cstdio>

#include "command.h"
#include "process.h"
#include "spill/abi.h"

namespace tools {
namespace {

constexpr uint64_t kLineBytes = 16;

// 0x1f or 31.
uint64_t parse_address(std::string_view text) {
  std::string_view digits = text;
  const bool hex = digits.starts_with("0x") || digits.starts_with("0X");
  if (hex) digits.remove_prefix(2);
  uint64_t address = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), address, hex ? 16 : 10);
  if (error != std::errc() || end != digits.data() + digits.size())
    throw WrongInput(
        concat("'", printable(text), "' is not an address; write it as gdb does, such as 0x100000001000"));
  return address;
}

uint64_t parse_length(std::string_view text) {
  uint64_t length = 0;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    length = parse_address(text);
  } else {
    auto size = base::parse_size(text);
    if (!size) throw WrongInput(concat("LENGTH: ", printable(size.error().message)));
    length = *size;
  }
  if (length == 0) throw WrongInput("LENGTH is 0; ask for a byte at least");
  return length;
}

void print_hex_line(uint64_t address, const unsigned char* bytes, uint64_t n) {
  std::printf("%012lx ", address);
  for (uint64_t i = 0; i < kLineBytes; ++i) {
    const char* gap = i == kLineBytes / 2 ? "  " : " ";
    if (i < n)
      std::printf("%s%02x", gap, bytes[i]);
    else
      std::printf("%s  ", gap);
  }
  std::fputs("  |", stdout);
  for (uint64_t i = 0; i < n; ++i) std::putchar(bytes[i] >= 0x20 && bytes[i] < 0x7f ? bytes[i] : '.');
  std::puts("|");
}

// Lines begin where the dump does, and go on across the pieces that it comes in.
class HexLines {
 public:
  explicit HexLines(uint64_t address) : address_(address) {}
  ~HexLines() {
    if (kept_ > 0) print_hex_line(address_, line_, kept_);
  }
  HexLines(const HexLines&) = delete;
  HexLines& operator=(const HexLines&) = delete;
  void add(const char* bytes, uint64_t n) {
    for (uint64_t i = 0; i < n; ++i) {
      line_[kept_++] = static_cast<unsigned char>(bytes[i]);
      if (kept_ < kLineBytes) continue;
      print_hex_line(address_, line_, kLineBytes);
      address_ += kLineBytes;
      kept_ = 0;
    }
  }

 private:
  uint64_t address_;
  uint64_t kept_ = 0;
  unsigned char line_[kLineBytes];
};

void check_spilled(Process& process, uint64_t address, uint64_t length) {
  if (process.is_fork_child())
    throw WrongInput(concat(process.description(),
                            " is a child of fork that has not called exec: dump its parent's memory"));
  const bool reserved = spill::in_reserved_range(address);
  // Outside the range there may be spilled globals.
  const bool global = !reserved && address >> spill::kAddressBits == 0 && process.is_allocated(address);
  if (!global && (!reserved || length > spill::kRangeEnd - address))
    throw WrongInput(concat(std::hex, std::showbase, reserved ? spill::kRangeEnd : address,
                            " is not spilled memory, which lies from ", spill::kRangeBegin, " to ",
                            spill::kRangeEnd, "; gdb reads the rest"));
  // Stops at the first page that is not allocated: address + length may overflow.
  for (uint64_t at = base::round_down(address, base::kOsPageBytes); at < address || at - address < length;
       at += base::kOsPageBytes)
    if (at >> spill::kAddressBits != 0 || !process.is_allocated(at))
      throw WrongInput(concat("nothing is allocated at ", std::hex, std::showbase, std::max(at, address),
                              std::dec, " in ", process.description(), ": it was freed, or never taken"));
}

}  // namespace

int dump(Arguments arguments) {
  constexpr const char* kUsage = "usage: spillway dump PID|COREFILE ADDRESS LENGTH [--raw]";
  std::vector<std::string_view> words;
  bool raw = false;
  for (std::string_view word : arguments) {
    if (word == "--help" || word == "-h") {
      std::printf(
          "%s\n\nPrints LENGTH bytes (K, M, G, T: powers of 1024) of a program's spilled memory from ADDRESS "
          "on, whether\n"
          "they are in memory or on storage: in hexadecimal, or with --raw as they are. The program goes on\n"
          "undisturbed.\n",
          kUsage);
      return 0;
    }
    if (word == "--raw") {
      raw = true;
    } else if (word.starts_with('-')) {
      throw WrongInput(concat("dump has no option '", printable(word), "'; ", kUsage));
    } else {
      words.push_back(word);
    }
  }
  if (words.size() != 3) throw WrongInput(kUsage);
  const uint64_t address = parse_address(words[1]);
  const uint64_t length = parse_length(words[2]);
  // What is no number is a core file.
  const bool is_number = words[0].find_first_not_of("0123456789") == std::string_view::npos;
  const std::unique_ptr<Process> process =
      is_number ? std::make_unique<Process>(parse_process_id(words[0]))
                : std::make_unique<Process>(std::make_unique<CoreFile>(std::string(words[0])));
  check_spilled(*process, address, length);

  alignas(base::kOsPageBytes) char page[base::kOsPageBytes];
  HexLines lines(address);
  for (uint64_t at = address; at < address + length && std::ferror(stdout) == 0;) {
    const uint64_t begin = base::round_down(at, base::kOsPageBytes);
    const uint64_t n = std::min(begin + base::kOsPageBytes, address + length) - at;
    process->read_os_page(begin, page);
    if (raw)
      std::fwrite(page + (at - begin), 1, n, stdout);
    else
      lines.add(page + (at - begin), n);
    at += n;
  }
  return 0;
}

}  // namespace tools
