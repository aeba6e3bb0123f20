// Fuzzes opening: a small table with a log is made once, and left as a crash leaves it. Each input changes bytes of both, and corrects their checksums or
// not. Then the table is opened, read, changed, flushed and closed. Calls may fail; they must not crash or hang. If the input changes nothing, the table
// has everything that was synced.
//
// Input: for each change, flags (1: in the log; 2: correct the checksum), an offset (3 bytes, little-endian), a count (1), then the bytes.
#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/checksum.h"
#include "batch/stored/test_device_store.h"
#include "storage/backends/memory.h"

namespace {

using namespace batch;

constexpr uint64_t kStoreBytes = 256 << 10, kLogBytes = 96 << 10, kKeys = 1200;

using Image = std::vector<std::byte>;

void transfer(storage::Device& device, storage::Operation what, Image& image) {
  storage::BufferPool pool;
  const storage::Buffer buffer(pool, image.size());
  memcpy(buffer.bytes().data(), image.data(), image.size());
  storage::Queue* const queue = *device.open_queue(1);
  storage::PieceIo io(what, 0, buffer.bytes().data(), image.size());
  queue->run(io);
  CHECK(io.whole());
  memcpy(image.data(), buffer.bytes().data(), image.size());
  device.close_queue(queue);
}

StoredOptions options_with(storage::Device& log) {
  return {.shape = {.key_bytes = 8, .value_bytes = 8},
          .records = 500,
          .staging_bytes = 48 << 10,
          .makers = 1,
          .slot_pages = 2,
          .log = &log,
          .log_buffer_bytes = 8 << 10};
}

void add_function(StoredTable& table) {
  table.add_function({.function = [](void*, void* value, const void* given) {
    for (int i = 0; i < 8; ++i)
      static_cast<unsigned char*>(value)[i] ^= static_cast<const unsigned char*>(given)[i];
  }});
}

void change(StoredSession& session, Action action, uint64_t begin, uint64_t end) {
  std::vector<uint64_t> keys;
  for (uint64_t key = begin; key < end; ++key) keys.push_back(key * 77);
  Job job{.code = {.action = action},
          .count = keys.size(),
          .keys = reinterpret_cast<const std::byte*>(keys.data()),
          .given = takes_values(action) ? reinterpret_cast<const std::byte*>(keys.data()) : nullptr};
  static_cast<void>(session.run(job));
}

// A device in memory with this content; it exists for a scope.
class Device {
 public:
  explicit Device(Image image) : device_(*storage::make_memory_device(image.size())) {
    transfer(*device_, storage::Operation::kWrite, image);
  }
  ~Device() { device_->close(); }
  storage::Device& operator*() { return *device_; }
  Image image() {
    Image image(device_->capacity_bytes());
    transfer(*device_, storage::Operation::kRead, image);
    return image;
  }

 private:
  storage::Device* const device_;
};

struct Images {
  Image store, log;

  Images() {
    Device store_device((Image(kStoreBytes))), log_device((Image(kLogBytes)));
    DeviceStore device_store(*store_device);
    StoredTable table;
    CHECK(table.open(device_store, options_with(*log_device)).has_value());
    add_function(table);
    {
      StoredSession session;
      CHECK(session.open(table).has_value());
      change(session, Action::kUpsert, 0, kKeys);
      CHECK(session.flush().has_value());
      change(session, Action::kMerge, 0, 300);
      change(session, Action::kRemove, 100, 200);
      CHECK(session.sync().has_value());
      store = store_device.image();
      log = log_device.image();
    }
    CHECK(table.close().has_value());
  }
};

// The value of `key` if nothing changed the images: the merge of the first 300 keys combined each value with itself by XOR, which gives 0.
constexpr uint64_t kAbsent = 1;
uint64_t value_of(uint64_t key) {
  if (key >= 100 && key < 200) return kAbsent;
  return key < 300 ? 0 : key * 77;
}

// Corrects the checksum of what the byte at `at` belongs to, as far as this can be recognized.
void make_right(Image& image, bool is_log, uint64_t at) {
  constexpr size_t kSummed = sizeof(uint64_t);
  std::byte* const page = image.data() + at / kPageBytes * kPageBytes;
  const auto put = [](std::byte* to, uint64_t sum) { memcpy(to, &sum, sizeof sum); };
  if (is_log && at < ChangeLog::kBlockBytes) {
    constexpr size_t kBytes = offsetof(ChangeLog::Header, checksum);
    put(page + kBytes, base::checksum(page, kBytes));
  } else if (is_log) {
    ChangeLog::RecordHeader header;
    memcpy(&header, page, sizeof header);
    const uint64_t bytes = sizeof header + uint64_t{header.count} * 17;
    if (bytes <= static_cast<uint64_t>(image.data() + image.size() - page))
      put(page, base::checksum(page + kSummed, bytes - kSummed));
  } else if (at < 2 * kPageBytes) {
    constexpr size_t kBytes = offsetof(Superblock, checksum);
    put(page + kBytes, base::checksum(page, kBytes));
  } else {
    // A slot of the map, if it looks like one.
    std::byte* const slot = image.data() + at / (2 * kPageBytes) * (2 * kPageBytes);
    MapHeader header;
    memcpy(&header, slot, sizeof header);
    if (header.number != 0 && header.number < 1000 && header.bytes <= 2 * kPageBytes - sizeof header)
      put(slot, base::checksum(slot + kSummed, sizeof header - kSummed + header.bytes));
    else
      put(page, base::checksum(page + kSummed, kPageBytes - kSummed));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Images* const images = new Images;
  Image store = images->store, log = images->log;
  const bool is_changed = size >= 5;
  while (size >= 5) {
    const bool is_log = (data[0] & 1) != 0, is_right = (data[0] & 2) != 0;
    Image& image = is_log ? log : store;
    const uint64_t at = (data[1] | uint64_t{data[2]} << 8 | uint64_t{data[3]} << 16) % image.size();
    const size_t count = std::min({size_t{data[4]}, size - 5, static_cast<size_t>(image.size() - at)});
    memcpy(image.data() + at, data + 5, count);
    if (is_right) make_right(image, is_log, at);
    data += 5 + count;
    size -= 5 + count;
  }
  Device store_device(store), log_device(log);
  DeviceStore device_store(*store_device);
  StoredTable table;
  const bool is_open = table.open(device_store, options_with(*log_device)).has_value();
  CHECK(is_open || is_changed);
  if (!is_open) return 0;
  add_function(table);
  {
    StoredSession session;
    const bool has_session = session.open(table).has_value();
    CHECK(has_session || is_changed);
    if (has_session) {
      std::vector<uint64_t> keys, values(kKeys, kAbsent);
      for (uint64_t key = 0; key < kKeys; ++key) keys.push_back(key * 77);
      Job reads{.code = {.action = Action::kRead},
                .count = kKeys,
                .keys = reinterpret_cast<const std::byte*>(keys.data()),
                .read = reinterpret_cast<std::byte*>(values.data())};
      const bool has_read = session.run(reads).has_value();
      CHECK(has_read || is_changed);
      for (uint64_t key = 0; key < kKeys && !is_changed; ++key) CHECK_EQ(values[key], value_of(key));
      static_cast<void>(session.for_each([](const std::byte*, const std::byte*) { return true; }));
      change(session, Action::kMerge, 0, 200);
      static_cast<void>(session.flush());
      static_cast<void>(session.sync());
    }
  }
  static_cast<void>(table.close());
  return 0;
}
