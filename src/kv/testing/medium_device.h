// For tests and fuzzers: a device in memory; a derived class may do something before each request, and fail it.
#pragma once
#include <cstring>
#include <mutex>
#include <vector>

#include "base/text.h"
#include "storage/device.h"

namespace kv {

class MediumDevice : public storage::Device {
 public:
  explicit MediumDevice(std::vector<std::byte> medium) : medium_(std::move(medium)) {
    capacity_bytes_ = medium_.size();
    counted_ = false;
    base::TextRef(name_, sizeof name_) << "medium";
  }
  virtual ~MediumDevice() = default;
  // A copy of the medium as it is now.
  std::vector<std::byte> medium() {
    std::lock_guard scope(lock_);
    return medium_;
  }

 protected:
  // Called before the request is done, in the thread that makes it, without a lock held. Returns 0 or the errno value with which the request
  // ends; it is done all the same.
  virtual int before(const storage::Io&) { return 0; }
  // Called after before(). False: the request is not done, and ends with EIO.
  virtual bool takes(const storage::Io&) { return true; }

 private:
  class MediumQueue final : public storage::Queue {
   public:
    MediumQueue(MediumDevice& device, size_t depth) : Queue(device, depth), own_(device) {}

   private:
    void do_start(storage::Io& io) override {
      io.error = own_.before(io);
      if (own_.takes(io))
        own_.perform(io);
      else
        io.error = EIO;
      if (io.error == 0) io.transferred_bytes = io.length_bytes;
      complete(io);
    }
    void do_poll(bool) override {}
    void do_close() override { delete this; }

    MediumDevice& own_;
  };

  base::Expected<storage::Queue*> do_open_queue(size_t depth, const storage::QueueUse&) final {
    return new MediumQueue(*this, depth);
  }
  void do_close() final { delete this; }

  void perform(const storage::Io& io) {
    std::lock_guard scope(lock_);
    uint64_t at = io.offset_bytes;
    for (uint32_t i = 0; i < io.segment_count; ++i) {
      const iovec& segment = io.segments[i];
      if (io.operation == storage::Operation::kRead)
        memcpy(segment.iov_base, &medium_[at], segment.iov_len);
      else
        memcpy(&medium_[at], segment.iov_base, segment.iov_len);
      at += segment.iov_len;
    }
  }

  std::mutex lock_;  // for medium_
  std::vector<std::byte> medium_;
};

}  // namespace kv
