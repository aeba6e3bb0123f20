#include "history.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>

namespace persist_check {
namespace {

using persist::Record;

// Thrown where the log is damaged.
struct Damage {
  const char* why;
};

class Reader {
 public:
  Reader(std::span<const char> log, const LoadContent& load) : log_(log), load_(load) {}

  History read() {
    uint64_t at = persist::kWindowBytes;
    try {
      while (at + sizeof(Record) <= log_.size() && !history_.is_ended && !history_.is_full) {
        Record record;
        memcpy(&record, log_.data() + at, sizeof record);
        if (record.bytes == 0) break;
        if (record.check != check_of(record, at)) throw Damage{"no record"};
        if (record.bytes < sizeof record || record.bytes % 8 != 0 || record.bytes > log_.size() - at)
          throw Damage{"a record of an impossible length"};
        take(record, log_.subspan(at + sizeof record, record.bytes - sizeof record));
        at += record.bytes;
      }
    } catch (const Damage& damage) {
      history_.damage = "at byte " + std::to_string(at) + ": " + damage.why;
    }
    return std::move(history_);
  }

  void set_process(uint32_t process) { history_.process = process; }

 private:
  struct Domain {
    uint64_t begin = 0, bytes = 0;
    uint32_t file = 0;
    uint64_t first_line = 0;
  };

  void take(const Record& record, std::span<const char> payload) {
    switch (record.kind) {
      case RecordKind::kPad: return;
      case RecordKind::kMap: return take_map(record, payload);
      case RecordKind::kUnmap: return take_unmap(record);
      case RecordKind::kStore: return take_store(record, payload);
      case RecordKind::kFlush: return take_flush(record);
      case RecordKind::kFence: history_.events.push_back(event_of(record)); return;
      case RecordKind::kMarker: {
        Event event = event_of(record);
        event.marker = history_.markers.size();
        history_.markers.push_back(text_of(payload));
        history_.events.push_back(event);
        return;
      }
      case RecordKind::kModule:
        if (record.length > ~record.address) throw Damage{"a module that does not fit"};
        history_.modules.push_back(
            {record.address, record.address + record.length, record.site, text_of(payload)});
        return;
      case RecordKind::kFull: history_.is_full = true; return;
      case RecordKind::kExit: history_.is_ended = true; return;
    }
    throw Damage{"a record of no kind"};
  }

  static Event event_of(const Record& record) {
    return {.kind = record.kind, .flags = record.flags, .thread = record.thread, .site = record.site};
  }
  static std::string text_of(std::span<const char> payload) {
    return {payload.begin(), std::find(payload.begin(), payload.end(), '\0')};
  }

  uint32_t file_called(const std::string& path) {
    for (uint32_t i = 0; i < history_.files.size(); ++i)
      if (!path.empty() && history_.files[i].path == path) return i;
    constexpr uint32_t kMaxFiles = 1024;
    if (history_.files.size() == kMaxFiles) throw Damage{"too many files"};
    history_.files.emplace_back().path = path;
    newest_.emplace_back();
    is_known_.emplace_back();
    return static_cast<uint32_t>(history_.files.size() - 1);
  }

  void take_map(const Record& record, std::span<const char> payload) {
    persist::MapPayload map;
    if (payload.size() < sizeof map) throw Damage{"a mapping without its place"};
    memcpy(&map, payload.data(), sizeof map);
    constexpr uint64_t kMaxBytes = uint64_t{1} << 40;
    if (record.length == 0 || record.length > kMaxBytes || map.file_offset > kMaxBytes ||
        map.file_bytes > kMaxBytes || record.length > ~record.address ||
        (record.length | record.address | map.file_offset) % base::kLineBytes != 0)
      throw Damage{"a mapping that does not fit"};
    if (domains_.contains(record.number)) throw Damage{"a mapping that is there"};
    // The content is loaded first: it bounds how large a file a damaged log can claim.
    const auto content = load_(record.number, record.length);
    if (!content || content->size() != record.length)
      throw Damage{"what was in a domain is not beside the log"};
    // A file is held in memory from its beginning to the end of its last mapping.
    constexpr uint64_t kMaxTimes = 1024, kMaxBefore = 16 << 20;
    if (map.file_offset > kMaxTimes * content->size() + kMaxBefore)
      throw Damage{"a mapping too far into its file"};
    const uint32_t number = file_called(text_of(payload.subspan(sizeof map)));
    File& file = history_.files[number];
    // A device has no length, nor has memory without a file, or a file that was removed: the image ends with what was mapped.
    const uint64_t mapped_end = map.file_offset + record.length;
    file.image_bytes = std::max(file.image_bytes, map.file_bytes != 0 ? map.file_bytes : mapped_end);
    const uint64_t first = map.file_offset / base::kLineBytes, count = record.length / base::kLineBytes;
    if (file.initial.size() < first + count) {
      file.initial.resize(first + count);
      newest_[number].resize(first + count);
      is_known_[number].resize(first + count);
    }
    domains_[record.number] = {record.address, record.length, number, first};
    Event event = event_of(record);
    event.file = number;
    event.first_line = first;
    event.line_count = count;
    event.first_piece = history_.pieces.size();
    for (uint64_t i = 0; i < count; ++i) {
      Units units;
      memcpy(&units, content->data() + i * base::kLineBytes, sizeof units);
      show(number, first + i, units);
    }
    event.piece_count = history_.pieces.size() - event.first_piece;
    history_.events.push_back(event);
  }

  // Takes the content that the line has in a new mapping.
  void show(uint32_t file, uint64_t line, const Units& units) {
    Units& newest = newest_[file][line];
    if (!is_known_[file][line]) {
      is_known_[file][line] = true;
      newest = history_.files[file].initial[line] = units;
      return;
    }
    if (newest == units) return;
    newest = units;
    history_.pieces.push_back(
        {.line = line_id(file, line), .content = units, .units = 0xff, .changed = 0xff, .is_outside = true});
  }

  void take_unmap(const Record& record) {
    const auto found = domains_.find(record.number);
    if (found == domains_.end()) throw Damage{"the end of no mapping"};
    Event event = event_of(record);
    event.file = found->second.file;
    event.first_line = found->second.first_line;
    event.line_count = found->second.bytes / base::kLineBytes;
    history_.events.push_back(event);
    domains_.erase(found);
  }

  const Domain& domain_with(const Record& record) const {
    for (const auto& [number, domain] : domains_)
      if (record.address >= domain.begin && record.address - domain.begin < domain.bytes &&
          record.length <= domain.bytes - (record.address - domain.begin) && record.length != 0)
        return domain;
    throw Damage{"an access outside of all mappings"};
  }

  void take_store(const Record& record, std::span<const char> payload) {
    if (record.address % kUnitBytes != 0 || record.length != payload.size())
      throw Damage{"a store that does not fit"};
    const Domain& domain = domain_with(record);
    Event event = event_of(record);
    event.first_piece = history_.pieces.size();
    uint64_t at = record.address - domain.begin;
    while (!payload.empty()) {
      const uint64_t line = domain.first_line + at / base::kLineBytes;
      const uint64_t first = at % base::kLineBytes / kUnitBytes;
      const uint64_t count = std::min(kUnitsOfLine - first, payload.size() / kUnitBytes);
      Piece piece = {.line = line_id(domain.file, line), .content = {}};
      Units& newest = newest_[domain.file][line];
      for (uint64_t i = first; i < first + count; ++i) {
        memcpy(&piece.content[i], payload.data() + (i - first) * kUnitBytes, kUnitBytes);
        piece.units = static_cast<uint8_t>(piece.units | 1 << i);
        if (newest[i] != piece.content[i]) piece.changed = static_cast<uint8_t>(piece.changed | 1 << i);
        newest[i] = piece.content[i];
      }
      history_.pieces.push_back(piece);
      at += count * kUnitBytes;
      payload = payload.subspan(count * kUnitBytes);
    }
    event.piece_count = history_.pieces.size() - event.first_piece;
    history_.events.push_back(event);
  }

  void take_flush(const Record& record) {
    if ((record.address | record.length) % base::kLineBytes != 0) throw Damage{"a flush that does not fit"};
    const Domain& domain = domain_with(record);
    Event event = event_of(record);
    event.file = domain.file;
    event.first_line = domain.first_line + (record.address - domain.begin) / base::kLineBytes;
    event.line_count = record.length / base::kLineBytes;
    history_.events.push_back(event);
  }

  const std::span<const char> log_;
  const LoadContent& load_;
  History history_;
  std::unordered_map<uint32_t, Domain> domains_;  // by number
  // By file:
  std::vector<std::vector<Units>> newest_;
  std::vector<std::vector<bool>> is_known_;
};

std::optional<std::vector<char>> read_file(const std::string& path, uint64_t bytes_max) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return std::nullopt;
  const auto size = static_cast<uint64_t>(file.tellg());
  if (size > bytes_max) return std::nullopt;
  std::vector<char> content(size);
  file.seekg(0);
  file.read(content.data(), static_cast<std::streamsize>(size));
  if (!file) return std::nullopt;
  return content;
}

}  // namespace

std::optional<History> read_history(std::span<const char> log, const LoadContent& load, std::string& why) {
  persist::LogHeader header;
  if (log.size() < sizeof header) {
    why = "is not a log of a recorded program";
    return std::nullopt;
  }
  memcpy(&header, log.data(), sizeof header);
  if (memcmp(header.magic, persist::LogHeader::kMagic, sizeof header.magic) != 0) {
    why = "is not a log of a recorded program";
    return std::nullopt;
  }
  if (header.version != persist::LogHeader::kVersion || header.window_bytes != persist::kWindowBytes) {
    why = "is a log of another version";
    return std::nullopt;
  }
  Reader reader(log, load);
  reader.set_process(header.process);
  return reader.read();
}

History read_history(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    throw std::runtime_error("'" + path + "' is a folder; name the log in it");
  const auto log = read_file(path, ~uint64_t{0});
  if (!log) throw std::runtime_error("cannot read '" + path + "'");
  std::string why;
  auto history = read_history(
      *log,
      [&](uint32_t number, uint64_t bytes) { return read_file(path + "." + std::to_string(number), bytes); },
      why);
  if (!history) throw std::runtime_error("'" + path + "' " + why);
  return std::move(*history);
}

}  // namespace persist_check
