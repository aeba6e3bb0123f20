#include "batch/stored/change_log.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>

#include "base/checksum.h"
#include "base/ids.h"
#include "storage/opening/content.h"
#include "storage/piece_io.h"

namespace batch {
namespace {

constexpr size_t kSummed = sizeof(uint64_t);

uint64_t checksum_of(const ChangeLog::Header& header) {
  return base::checksum(&header, offsetof(ChangeLog::Header, checksum));
}

}  // namespace

base::Expected<std::unique_ptr<ChangeLog>> ChangeLog::open(storage::Device& device, const Shape& shape,
                                                           uint64_t buffer_bytes) {
  const uint64_t blocks = device.capacity_bytes() / kBlockBytes;
  if (blocks < 1 + 4 * buffer_bytes / kBlockBytes)
    return base::failure(EINVAL, "table: the log ", device.name(), " has ", device.capacity_bytes(),
                         " bytes; it takes ", kBlockBytes + 4 * buffer_bytes, " at least");
  auto queue = device.open_queue(4);
  if (!queue) return std::unexpected(queue.error());
  std::unique_ptr<ChangeLog> log(new (std::nothrow) ChangeLog(device, *queue));
  if (log == nullptr) {
    device.close_queue(*queue);
    return base::failure(ENOMEM, "table: no memory for a log");
  }
  log->buffer_bytes_ = buffer_bytes;
  log->block_ = storage::Buffer(log->pool_, kBlockBytes);
  for (auto& buffer : log->buffers_) buffer = storage::Buffer(log->pool_, buffer_bytes);
  if (log->block_.bytes().empty() || log->buffers_[0].bytes().empty() || log->buffers_[1].bytes().empty())
    return base::failure(ENOMEM, "table: no memory for a log");
  const std::span<std::byte> block = log->block_.bytes().first(kBlockBytes);
  if (auto read = log->transfer(storage::Operation::kRead, 0, block.data(), kBlockBytes); !read)
    return std::unexpected(read.error());
  const uint32_t entry_bytes = 1 + shape.record_bytes();
  const uint64_t capacity = (blocks - 1) * kBlockBytes;
  memcpy(&log->header_, block.data(), sizeof log->header_);
  const bool is_one = memcmp(log->header_.magic, Header::kMagic, sizeof Header::kMagic) == 0 &&
                      log->header_.checksum == checksum_of(log->header_);
  if (!is_one) {
    const auto has_content = storage::device_has_content(device);
    if (!has_content) return std::unexpected(has_content.error());
    if (*has_content)
      return base::failure(EINVAL, "table: ", device.name(),
                           " has content, and is not a log; name another file");
  }
  if (is_one && log->header_.id != 0 &&
      (log->header_.version != 1 || log->header_.entry_bytes != entry_bytes ||
       log->header_.capacity > capacity || log->header_.capacity % kBlockBytes != 0 ||
       log->header_.capacity < 2 * buffer_bytes))
    return base::failure(EINVAL, "table: the log ", device.name(),
                         " is of a table with other records, or has become shorter");
  if (!is_one || log->header_.id == 0) {
    log->header_ = {};
    log->header_.entry_bytes = entry_bytes;
    log->header_.capacity = capacity;
  }
  return log;
}

ChangeLog::~ChangeLog() { device_.close_queue(queue_); }

base::Expected<void> ChangeLog::transfer(storage::Operation what, uint64_t offset, const std::byte* bytes,
                                         uint64_t count) {
  storage::PieceIo io(what, offset, bytes, count);
  queue_->run(io);
  if (io.whole()) return {};
  return base::failure(io.error != 0 ? io.error : EIO, "table: cannot ",
                       what == storage::Operation::kRead ? "read" : "write", " the log ", device_.name(),
                       " at offset ", offset, ": ",
                       io.error != 0 ? base::error_name(io.error) : "it has become shorter");
}

base::Expected<void> ChangeLog::transfer_ring(storage::Operation what, uint64_t position,
                                              const std::byte* bytes, uint64_t count) {
  while (count > 0) {
    const uint64_t at = position % header_.capacity, part = std::min(count, header_.capacity - at);
    if (auto done = transfer(what, kBlockBytes + at, bytes, part); !done) return done;
    position += part;
    bytes += part;
    count -= part;
  }
  return {};
}

base::Expected<void> ChangeLog::flush() {
  if (flush_error_ == 0) {
    storage::Io io;
    io.operation = storage::Operation::kFlush;
    queue_->run(io);
    flush_error_ = io.error;
  }
  if (flush_error_ == 0) return {};
  return base::failure(flush_error_, "table: cannot flush the log ", device_.name(), ": ",
                       base::error_name(flush_error_));
}

base::Expected<void> ChangeLog::write_header() {
  memcpy(header_.magic, Header::kMagic, sizeof Header::kMagic);
  header_.checksum = checksum_of(header_);
  const std::span<std::byte> block = block_.bytes().first(kBlockBytes);
  memset(block.data(), 0, block.size());
  memcpy(block.data(), &header_, sizeof header_);
  if (auto written = transfer(storage::Operation::kWrite, 0, block.data(), kBlockBytes); !written)
    return written;
  return flush();
}

base::Expected<void> ChangeLog::begin(const TableId& table, uint64_t id) {
  header_.table = table;
  header_.id = id;
  return write_header();
}

base::Expected<void> ChangeLog::end_use() {
  header_.id = 0;
  return write_header();
}

void ChangeLog::go_on(uint64_t position, uint32_t incarnation) {
  begin_ = base::round_up(position, kBlockBytes);
  used_ = 0;
  previous_end_ = tail_ = durable_ = writing_end_ = begin_;
  incarnation_ = incarnation;
}

uint64_t ChangeLog::room() const {
  const uint64_t left = std::min(buffer_bytes_ - used_, ring_left() - std::min(ring_left(), kBlockBytes));
  return left <= sizeof(RecordHeader) ? 0 : (left - sizeof(RecordHeader)) / header_.entry_bytes;
}

void ChangeLog::fill_entry(const Shape& shape, Code code, const std::byte* key, const std::byte* given,
                           std::byte* to) {
  *to = static_cast<std::byte>(code.byte());
  memcpy(to + 1, key, shape.key_bytes);
  if (given != nullptr)
    memcpy(to + 1 + shape.key_bytes, given, shape.value_bytes);
  else
    memset(to + 1 + shape.key_bytes, 0, shape.value_bytes);
}

void ChangeLog::seal_record(std::byte* record, uint32_t count) {
  RecordHeader header = {
      .position = end(), .previous_end = previous_end_, .count = count, .incarnation = incarnation_};
  const uint64_t bytes = sizeof header + uint64_t{count} * header_.entry_bytes;
  memcpy(record, &header, sizeof header);
  header.checksum = base::checksum(record + kSummed, bytes - kSummed);
  memcpy(record, &header, kSummed);
  used_ += bytes;
  previous_end_ = end();
}

bool ChangeLog::begin_write() {
  if (is_writing_) return false;
  is_writing_ = true;
  // What could not be written last time is written again first.
  if (is_to_write_ || used_ == 0) return true;
  const uint64_t bytes = base::round_up(used_, kBlockBytes);
  memset(buffers_[active_].bytes().data() + used_, 0, bytes - used_);
  writing_begin_ = begin_;
  writing_end_ = begin_ + bytes;
  is_to_write_ = true;
  begin_ = writing_end_;
  used_ = 0;
  active_ ^= 1;
  return true;
}

base::Expected<void> ChangeLog::write(bool to_flush) {
  if (is_to_write_) {
    auto written = transfer_ring(storage::Operation::kWrite, writing_begin_,
                                 buffers_[active_ ^ 1].bytes().data(), writing_end_ - writing_begin_);
    if (!written) return written;
  }
  return to_flush ? flush() : base::Expected<void>();
}

void ChangeLog::end_write(bool is_done, bool is_flushed) {
  is_writing_ = false;
  if (is_done) is_to_write_ = false;
  if (is_done && is_flushed) durable_ = std::max(durable_, writing_end_);
}

// Returns at least `bytes` bytes of the ring from `position` on; they stay in memory until the next call.
base::Expected<const std::byte*> ChangeLog::look(Reader& reader, uint64_t position, uint64_t bytes) {
  const std::byte* const memory = buffers_[0].bytes().data();
  const uint64_t end = position + bytes;
  if (position < reader.window_begin || end > reader.window_begin + reader.window_bytes) {
    reader.window_begin = base::round_down(position, kBlockBytes);
    reader.window_bytes = std::min(buffers_[0].bytes().size(), header_.capacity);
    reader.window_bytes = base::round_down(reader.window_bytes, kBlockBytes);
    auto read = transfer_ring(storage::Operation::kRead, reader.window_begin, memory, reader.window_bytes);
    if (!read) return std::unexpected(read.error());
  }
  return memory + (position - reader.window_begin);
}

bool ChangeLog::is_record_at(Reader& reader, const std::byte* at, uint64_t position, uint64_t left) const {
  RecordHeader& header = reader.header;
  memcpy(&header, at, sizeof header);
  if (header.position != position || header.incarnation != reader.incarnation || header.count == 0)
    return false;
  if (!reader.is_first && header.previous_end != reader.position) return false;
  const uint64_t bytes = sizeof header + uint64_t{header.count} * header_.entry_bytes;
  return bytes <= left && header.checksum == base::checksum(at + kSummed, bytes - kSummed);
}

// Moves the reader to the next record. False: there is none. A record was written from one buffer, so it fits into a window that begins with its block.
base::Expected<bool> ChangeLog::read_record(Reader& reader) {
  const uint64_t next_block = base::round_up(reader.position, kBlockBytes);
  for (const uint64_t position : {reader.position, next_block}) {
    if (position != reader.position && reader.is_first && reader.is_exact) break;
    // The record may reach beyond the current window; in that case a window that begins at the record is read.
    for (const bool is_anew : {false, true}) {
      if (is_anew) reader.window_bytes = 0;
      auto at = look(reader, position, sizeof(RecordHeader));
      if (!at) return std::unexpected(at.error());
      const uint64_t left = reader.window_begin + reader.window_bytes - position;
      if (!is_record_at(reader, *at, position, left)) continue;
      reader.entries = *at + sizeof(RecordHeader);
      reader.position = position + sizeof(RecordHeader) + uint64_t{reader.header.count} * header_.entry_bytes;
      reader.is_first = false;
      return true;
    }
  }
  return false;
}

}  // namespace batch
