// For tests: a stored table in memory, and keys that are numbers.
#pragma once
#include <algorithm>
#include <memory>

#include "batch/stored/test_store.h"

namespace batch {

inline constexpr uint64_t kStoreBytes = 8 << 20, kLogBytes = 256 << 10;

inline std::string number_key(uint64_t number, uint32_t bytes) {
  std::string key(bytes, 0);
  memcpy(key.data(), &number, std::min<size_t>(bytes, sizeof number));
  if (bytes > 8) key[bytes - 1] = static_cast<char>(number * 7);
  return key;
}

// A table in memory, with or without a log, whose devices can be made to fail.
class Tables {
 public:
  explicit Tables(const StoredOptions& options, bool has_log = true, uint64_t store_bytes = kStoreBytes,
                  uint64_t log_bytes = kLogBytes)
      : device(*new storage::FailDevice(*storage::make_memory_device(store_bytes))),
        log_device(*new storage::FailDevice(*storage::make_memory_device(log_bytes))),
        options_(options),
        store_(device) {
    if (has_log) options_.log = &log_device;
  }
  ~Tables() {
    close();
    device.close();
    log_device.close();
  }

  std::string open() {
    table = std::make_unique<StoredTable>();
    if (auto opened = table->open(store_, options_); !opened) return opened.error().message;
    add_test_functions(*table);
    session = std::make_unique<StoredSession>();
    auto opened = session->open(*table);
    return opened ? "" : opened.error().message;
  }
  std::string close() {
    session.reset();
    if (table == nullptr) return "";
    auto closed = table->close();
    table.reset();
    return closed ? "" : closed.error().message;
  }

  storage::FailDevice& device;
  storage::FailDevice& log_device;
  StoredOptions options_;
  DeviceStore store_;
  std::unique_ptr<StoredTable> table;
  std::unique_ptr<StoredSession> session;
};

}  // namespace batch
