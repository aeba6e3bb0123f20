// Logs that tests compose, and the histories that are read from them.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "history.h"

namespace persist_check {

class LogBuilder {
 public:
  LogBuilder() : log_(persist::kWindowBytes) {
    persist::LogHeader header;
    memcpy(header.magic, persist::LogHeader::kMagic, sizeof header.magic);
    header.version = persist::LogHeader::kVersion;
    header.window_bytes = persist::kWindowBytes;
    header.process = 77;
    memcpy(log_.data(), &header, sizeof header);
  }

  void map(uint32_t number, uint64_t address, const std::vector<uint64_t>& content,
           const std::string& path = "f", uint64_t offset = 0, uint64_t file_bytes = 0) {
    const persist::MapPayload map = {offset, file_bytes != 0 ? file_bytes : offset + 8 * content.size()};
    std::string payload(reinterpret_cast<const char*>(&map), sizeof map);
    payload += path;
    contents_[number] = content;
    add({.kind = RecordKind::kMap, .number = number, .address = address, .length = 8 * content.size()},
        payload);
  }
  void unmap(uint32_t number) { add({.kind = RecordKind::kUnmap, .number = number}); }
  void store(uint32_t thread, uint64_t site, uint64_t address, const std::vector<uint64_t>& units,
             uint8_t flags = 0) {
    add({.kind = RecordKind::kStore,
         .flags = flags,
         .thread = thread,
         .site = site,
         .address = address,
         .length = 8 * units.size()},
        {reinterpret_cast<const char*>(units.data()), 8 * units.size()});
  }
  void flush(uint32_t thread, uint64_t site, uint64_t address, uint64_t lines = 1, bool is_ordered = false) {
    add({.kind = RecordKind::kFlush,
         .flags = is_ordered ? persist::kOrdered : uint8_t{0},
         .thread = thread,
         .site = site,
         .address = address,
         .length = 64 * lines});
  }
  void fence(uint32_t thread, uint64_t site) {
    add({.kind = RecordKind::kFence, .thread = thread, .site = site});
  }
  void marker(const std::string& text) { add({.kind = RecordKind::kMarker}, text); }
  void module(uint64_t begin, uint64_t bytes, uint64_t offset, const std::string& path) {
    add({.kind = RecordKind::kModule, .site = offset, .address = begin, .length = bytes}, path);
  }
  void exit() { add({.kind = RecordKind::kExit}); }

  void add(persist::Record record, std::string payload = "") {
    payload.resize(base::round_up(payload.size(), 8));
    record.bytes = static_cast<uint32_t>(sizeof record + payload.size());
    record.check = check_of(record, log_.size());
    const char* const bytes = reinterpret_cast<const char*>(&record);
    log_.insert(log_.end(), bytes, bytes + sizeof record);
    log_.insert(log_.end(), payload.begin(), payload.end());
  }

  std::vector<char>& log() { return log_; }
  std::optional<std::vector<char>> content(uint32_t number) const {
    const auto found = contents_.find(number);
    if (found == contents_.end()) return std::nullopt;
    std::vector<char> bytes(8 * found->second.size());
    memcpy(bytes.data(), found->second.data(), bytes.size());
    return bytes;
  }
  // REQUIRES: it is a log.
  History history() const {
    std::string why;
    auto history = read_history(log_, [this](uint32_t number, uint64_t) { return content(number); }, why);
    EXPECT_TRUE(history) << why;
    return std::move(*history);
  }

 private:
  std::vector<char> log_;
  std::map<uint32_t, std::vector<uint64_t>> contents_;
};

}  // namespace persist_check
