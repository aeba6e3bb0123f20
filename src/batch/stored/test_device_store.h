// For tests and fuzzers: a table's store that is a device.
#pragma once
#include <cstring>

#include "batch/stored/stored_table.h"
#include "storage/buffer_pool.h"
#include "storage/opening/content.h"
#include "storage/piece_io.h"

namespace batch {

class DeviceStore final : public BucketStore {
 public:
  explicit DeviceStore(storage::Device& device) : DeviceStore(device, device.capacity_bytes()) {}
  // The store is the first `bytes` bytes of the device.
  DeviceStore(storage::Device& device, uint64_t bytes) : device_(device), bytes_(bytes) {}
  uint64_t bytes() const override { return bytes_; }
  base::Expected<bool> has_content() const override { return storage::device_has_content(device_); }
  const char* name() const override { return device_.name(); }

  base::Expected<std::unique_ptr<Access>> open_access() override {
    return std::make_unique<DeviceAccess>(device_);
  }

 private:
  class DeviceAccess final : public Access {
   public:
    explicit DeviceAccess(storage::Device& device)
        : device_(device), queue_(*device.open_queue(4)), buffer_(pool_, kBytes) {}
    ~DeviceAccess() override { device_.close_queue(queue_); }

    base::Expected<void> read(std::span<const Piece> pieces) override {
      for (const Piece& piece : pieces)
        for (uint64_t done = 0; done < piece.to.size(); done += kBytes) {
          const uint64_t bytes = std::min<uint64_t>(kBytes, piece.to.size() - done);
          if (auto ran = run(storage::Operation::kRead, piece.offset + done, bytes); !ran) return ran;
          memcpy(piece.to.data() + done, buffer_.bytes().data(), bytes);
        }
      return {};
    }
    base::Expected<void> write(uint64_t offset, std::span<const std::byte> from) override {
      for (uint64_t done = 0; done < from.size(); done += kBytes) {
        const uint64_t bytes = std::min<uint64_t>(kBytes, from.size() - done);
        memcpy(buffer_.bytes().data(), from.data() + done, bytes);
        if (auto ran = run(storage::Operation::kWrite, offset + done, bytes); !ran) return ran;
      }
      return {};
    }
    base::Expected<void> sync() override {
      storage::Io io;
      io.operation = storage::Operation::kFlush;
      queue_->run(io);
      return io.error == 0 ? base::Expected<void>() : base::failure(io.error, "cannot flush");
    }

   private:
    static constexpr uint64_t kBytes = 16 << 10;

    base::Expected<void> run(storage::Operation what, uint64_t offset, uint64_t bytes) {
      storage::PieceIo io(what, offset, buffer_.bytes().data(), bytes);
      queue_->run(io);
      if (io.whole()) return {};
      return base::failure(io.error != 0 ? io.error : EIO,
                           what == storage::Operation::kRead ? "cannot read" : "cannot write");
    }

    storage::Device& device_;
    storage::Queue* const queue_;
    storage::BufferPool pool_;
    storage::Buffer buffer_;
  };

  storage::Device& device_;
  const uint64_t bytes_;
};

}  // namespace batch
