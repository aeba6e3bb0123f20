// Fuzzes the reader of logs and the analysis: any log gives a History from which the medium, its images and the findings can
// be made.
//
// Input: records, one after the other: kind, flags, thread, number (a byte each), site, address, length (2 bytes each), payload length (1; 255: there is
// no payload, and the record's check is wrong), payload. Sites, addresses and lengths from 0x8000 on stand for the last 32 KiB below 2^64. The
// content of a domain is zeros, and cannot be loaded if it is longer than 16 KiB.
#include <cstring>

#include "checker.h"
#include "findings.h"
#include "history.h"

namespace {

using persist::Record;

class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool is_over() const { return size_ == 0; }
  uint64_t take(size_t bytes) {
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; ++i, --size_)
      if (size_ == 0)
        return value;
      else
        value |= uint64_t{*data_++} << 8 * i;
    return value;
  }

 private:
  const uint8_t* data_;
  size_t size_;
};

uint64_t wide(uint64_t address) { return address < 0x8000 ? address : ~uint64_t{0x7fff} | address; }

std::vector<char> log_of(Input input) {
  std::vector<char> log(persist::kWindowBytes);
  persist::LogHeader header;
  memcpy(header.magic, persist::LogHeader::kMagic, sizeof header.magic);
  header.version = persist::LogHeader::kVersion;
  header.window_bytes = persist::kWindowBytes;
  memcpy(log.data(), &header, sizeof header);
  while (!input.is_over()) {
    Record record;
    record.kind = static_cast<persist::RecordKind>(input.take(1));
    record.flags = static_cast<uint8_t>(input.take(1));
    record.thread = static_cast<uint32_t>(input.take(1));
    record.number = static_cast<uint32_t>(input.take(1));
    record.site = wide(input.take(2));
    record.address = wide(input.take(2));
    record.length = wide(input.take(2));
    const uint64_t given = input.take(1);
    std::vector<char> payload(given == 255 ? 0 : given);
    for (char& byte : payload) byte = static_cast<char>(input.take(1));
    record.bytes = static_cast<uint32_t>(sizeof record + payload.size());
    record.check = static_cast<uint16_t>(check_of(record, log.size()) + (given == 255));
    const char* const bytes = reinterpret_cast<const char*>(&record);
    log.insert(log.end(), bytes, bytes + sizeof record);
    log.insert(log.end(), payload.begin(), payload.end());
  }
  return log;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<char> log = log_of({data, size});
  std::string why;
  const auto history = persist_check::read_history(
      log,
      [](uint32_t, uint64_t bytes) {
        constexpr uint64_t kMaxBytes = 16 << 10;
        return bytes > kMaxBytes ? std::nullopt : std::optional(std::vector<char>(bytes));
      },
      why);
  if (!history) __builtin_trap();
  static_cast<void>(find_static(*history));
  // A recovery that fails now and then, depending on the content.
  static_cast<void>(check(
      *history, {.crash_points_max = 20, .images_max = 20},
      [](const auto& content, const std::string&) {
        uint64_t sum = 0;
        for (const auto& file : content)
          for (size_t i = 0; i < file.size(); i += 7) sum += file[i][i % 8];
        return persist_check::Outcome{sum % 5 != 0, ""};
      },
      [](const auto&, const std::string&, size_t) { return std::string(); }, true));
  return 0;
}
