// ChangeLog: the changes of a stored table in the order in which they came, on a medium of their own. After a crash, the changes that are in no slot of
// the last checkpoint are made again from the log. (docs/formats/batch.md)
//
//   block 0     Header
//   the rest    a ring of records: position p lies at kBlockBytes + p % capacity. Positions are never used twice
//
//   record      RecordHeader, then entries: a code, a key, and the given value each
//
// There are two buffers: new changes are appended to one, while a thread writes the other without the lock. Each write begins and ends at a block's
// boundary, so that no durable block is written again before the ring has come round.
//
// A reader looks for the next record where the last one ends, then at the next block, and stops if neither place has one. Two kinds of records that may
// lie there do not count: records from before a crash that the start after it did not reach, and records of another table that was closed. Both are
// recognized by their incarnation, which grows with each start after a crash, and is drawn at random when a table begins to use a log.
//
// Thread contract: under the table's lock, except write(), which one thread at a time calls without it.
#pragma once
#include <memory>

#include "base/check.h"
#include "base/error.h"
#include "batch/job.h"
#include "batch/stored/format.h"
#include "storage/buffer_pool.h"
#include "storage/device.h"

namespace batch {

class ChangeLog {
 public:
  static constexpr uint64_t kBlockBytes = 4096;
  struct Header {
    static constexpr char kMagic[8] = {'S', 'P', 'I', 'L', 'L', 'L', 'O', 'G'};
    char magic[8] = {};
    uint32_t version = 1;
    uint32_t entry_bytes = 0;
    TableId table;
    uint64_t id = 0;  // the same as Superblock::log_id; 0: no table needs the log
    uint64_t capacity = 0;
    uint64_t checksum = 0;
  };
  struct RecordHeader {
    uint64_t checksum = 0;  // of the rest of the header, and the entries
    uint64_t position = 0;
    uint64_t previous_end = 0;
    uint32_t count = 0;  // of entries
    uint32_t incarnation = 0;
  };
  static_assert(sizeof(RecordHeader) == 32);

  // The device still belongs to the caller. Errors: EINVAL: it is too small, or neither a log nor empty, or it is a log in use with entries of another size;
  // of I/O; ENOMEM.
  static base::Expected<std::unique_ptr<ChangeLog>> open(storage::Device& device, const Shape& shape,
                                                         uint64_t buffer_bytes);
  ~ChangeLog();

  // The header that was found; for an empty device, or a log that no table needs, a new one with id 0.
  const Header& header() const { return header_; }
  const char* name() const { return device_.name(); }
  uint32_t entry_bytes() const { return header_.entry_bytes; }
  uint64_t capacity() const { return header_.capacity; }

  // From now on the log belongs to this table. Returns when that is durable.
  base::Expected<void> begin(const TableId& table, uint64_t id);
  // The next record will begin at this position, or at the next block; no earlier record is needed any more.
  void go_on(uint64_t position, uint32_t incarnation);

  // Calls visit(record's position, entries, count) -> base::Expected<void> for each record of the incarnation from `tail` on. If is_there, the first
  // record must be at `tail`; otherwise it may be at the next block instead. Returns where the last record ends.
  template <class Visit>
  base::Expected<uint64_t> replay(uint64_t tail, uint32_t incarnation, bool is_there, const Visit& visit) {
    Reader reader = {.position = tail, .incarnation = incarnation, .is_exact = is_there};
    for (;;) {
      auto read = read_record(reader);
      if (!read) return std::unexpected(read.error());
      if (!*read) return reader.position;
      if (auto visited = visit(reader.header.position, reader.entries, reader.header.count); !visited)
        return std::unexpected(visited.error());
    }
  }

  // Where the next record begins.
  uint64_t end() const { return begin_ + used_; }
  // How many entries a record may have at the moment. 0: the buffer has to be written first, or the ring is full.
  uint64_t room() const;
  bool is_full() const { return ring_left() < kBlockBytes + sizeof(RecordHeader) + entry_bytes(); }
  void set_tail(uint64_t tail) { tail_ = tail; }
  // Appends a record; fill(i, to) writes its entry i. REQUIRES: 0 < count <= room().
  template <class Fill>
  void append(uint32_t count, const Fill& fill) {
    CHECK_LE(count, room());
    std::byte* const to = buffers_[active_].bytes().data() + used_;
    for (uint32_t i = 0; i < count; ++i)
      fill(i, to + sizeof(RecordHeader) + uint64_t{i} * header_.entry_bytes);
    seal_record(to, count);
  }
  static void fill_entry(const Shape& shape, Code code, const std::byte* key, const std::byte* given,
                         std::byte* to);

  // Is everything before this position durable?
  bool is_durable(uint64_t position) const { return position <= durable_; }
  // Takes over what was appended, in order to write it. False: another thread is writing. Otherwise the caller calls write() without the lock, and then
  // end_write() with it.
  bool begin_write();
  base::Expected<void> write(bool to_flush);
  void end_write(bool is_done, bool is_flushed);

  base::Expected<void> flush();

  // No table needs the log any more. Returns when that is durable.
  base::Expected<void> end_use();

 private:
  struct Reader {
    uint64_t position = 0;  // where the last record ended
    uint32_t incarnation = 0;
    bool is_first = true;
    bool is_exact = false;  // the first record is at `position`, not at the next block
    RecordHeader header = {};
    const std::byte* entries = nullptr;
    // Which part of the ring is in memory.
    uint64_t window_begin = 0, window_bytes = 0;
  };
  ChangeLog(storage::Device& device, storage::Queue* queue) : device_(device), queue_(queue) {}
  uint64_t ring_left() const { return header_.capacity - (end() - tail_); }
  void seal_record(std::byte* record, uint32_t count);
  base::Expected<bool> read_record(Reader& reader);
  base::Expected<const std::byte*> look(Reader& reader, uint64_t position, uint64_t bytes);
  bool is_record_at(Reader& reader, const std::byte* at, uint64_t position, uint64_t left) const;
  base::Expected<void> transfer(storage::Operation what, uint64_t offset, const std::byte* bytes,
                                uint64_t count);
  base::Expected<void> transfer_ring(storage::Operation what, uint64_t position, const std::byte* bytes,
                                     uint64_t count);
  base::Expected<void> write_header();

  storage::Device& device_;
  storage::Queue* const queue_;
  storage::BufferPool pool_;
  storage::Buffer buffers_[2];
  storage::Buffer block_;
  Header header_;
  uint64_t buffer_bytes_ = 0;
  uint32_t incarnation_ = 0;
  // The buffer to which changes are appended, the position of its first byte, and how many bytes are in it.
  uint32_t active_ = 0;
  uint64_t begin_ = 0;
  uint64_t used_ = 0;
  uint64_t previous_end_ = 0;  // of the last record
  uint64_t tail_ = 0;          // what lies before it may be overwritten
  // The other buffer.
  bool is_writing_ = false;
  // The other buffer has something that is not on the medium: a write that failed is tried again.
  bool is_to_write_ = false;
  uint64_t writing_begin_ = 0, writing_end_ = 0;
  uint64_t durable_ = 0;
  int flush_error_ = 0;  // is never reset: after a failed flush nobody knows what the device has lost
};

}  // namespace batch
