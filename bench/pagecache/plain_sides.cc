// What a program does without a page cache of its own: the kernel's, by calls and mapped, a plain cache, and all of the data in memory.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <list>
#include <mutex>
#include <unordered_map>

#include "side.h"

namespace load {
namespace {

[[noreturn]] void fail_of_file(const Plan& plan) { fail(2, plan.place + ": " + std::strerror(errno)); }

// Of those that only read, or change a tree. What the kernel reads for the process is what it counts, and what becomes dirty.
template <class Reader>
class Plain final : public Side {
 public:
  explicit Plain(const Plan& plan) : reader_(plan) {}
  void work(Turn& turn, uint64_t index) override {
    if (turn.by_tasks || (turn.kind > Kind::kRead && turn.tree == nullptr))
      fail(2, "this side only reads, by threads");
    ask(turn, index, reader_);
  }
  DevicePages device_pages() const override {
    std::FILE* const file = std::fopen("/proc/self/io", "re");
    if (file == nullptr) fail(1, "the kernel does not tell what it has read");
    uint64_t read_bytes = 0, written_bytes = 0;
    char line[100];
    while (std::fgets(line, sizeof line, file) != nullptr)
      if (std::sscanf(line, "read_bytes: %lu", &read_bytes) != 1)
        std::sscanf(line, "write_bytes: %lu", &written_bytes);
    std::fclose(file);
    return {.reads = read_bytes / kPageBytes, .writes = written_bytes / kPageBytes};
  }

 private:
  Reader reader_;
};

class Pread {
 public:
  static constexpr bool kWrites = false;

  explicit Pread(const Plan& plan)
      : file_(open(plan.place.c_str(), (plan.value_bytes == 0 ? O_RDONLY : O_RDWR) | O_CLOEXEC)) {
    if (file_ < 0) fail_of_file(plan);
    const bool is_random = plan.side == "pread_random";
    if (posix_fadvise(file_, 0, 0, is_random ? POSIX_FADV_RANDOM : POSIX_FADV_NORMAL) != 0)
      fail_of_file(plan);
  }
  ~Pread() { close(file_); }

  void read(uint64_t offset, std::span<std::byte, kBlockBytes> to) {
    if (pread(file_, to.data(), to.size(), static_cast<off_t>(offset)) != kBlockBytes)
      fail(1, "cannot read at " + std::to_string(offset));
  }
  template <class Visit>
  void with_node(uint64_t page, const Visit& visit) {
    alignas(64) std::byte node[kPageBytes];
    if (pread(file_, node, sizeof node, static_cast<off_t>(page * kPageBytes)) != kPageBytes)
      fail(1, "cannot read page " + std::to_string(page));
    visit(node);
  }
  void write(uint64_t offset, std::span<const std::byte> from) {
    if (pwrite(file_, from.data(), from.size(), static_cast<off_t>(offset)) !=
        static_cast<ssize_t>(from.size()))
      fail(1, "cannot write at " + std::to_string(offset));
  }

 private:
  const int file_;
};

class Mapped {
 public:
  static constexpr bool kWrites = false;

  explicit Mapped(const Plan& plan) : bytes_(plan.bytes) {
    const int file = open(plan.place.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) fail_of_file(plan);
    void* const data = mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, file, 0);
    if (data == MAP_FAILED || madvise(data, bytes_, MADV_RANDOM) != 0) fail_of_file(plan);
    close(file);
    data_ = static_cast<const std::byte*>(data);
  }
  ~Mapped() { munmap(const_cast<std::byte*>(data_), bytes_); }

  void read(uint64_t offset, std::span<std::byte, kBlockBytes> to) {
    std::memcpy(to.data(), data_ + offset, kBlockBytes);
  }

 private:
  const uint64_t bytes_;
  const std::byte* data_;
};

class Array {
 public:
  static constexpr bool kWrites = false;

  explicit Array(const Plan& plan) : data_(memory_of(plan.bytes)) {
    fill(data_, 0);
    for (uint64_t page = 0; page < plan.pages(); ++page) set_numbers(data_.data() + page * kPageBytes, page);
  }
  ~Array() { munmap(data_.data(), data_.size()); }

  void read(uint64_t offset, std::span<std::byte, kBlockBytes> to) {
    std::memcpy(to.data(), data_.data() + offset, kBlockBytes);
  }

 private:
  const std::span<std::byte> data_;
};

class Locked {
 public:
  static constexpr bool kWrites = false;

  explicit Locked(const Plan& plan)
      : file_(open(plan.place.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC)),
        memory_(memory_of(plan.memory_bytes)) {
    if (file_ < 0) fail_of_file(plan);
    if (memory_.size() < kPageBytes) fail(2, "there is no memory for a page");
    pages_.reserve(memory_.size() / kPageBytes);
  }
  ~Locked() {
    munmap(memory_.data(), memory_.size());
    close(file_);
  }

  void read(uint64_t offset, std::span<std::byte, kBlockBytes> to) {
    const std::lock_guard scope(lock_);
    const uint64_t page = offset / kPageBytes;
    const auto found = pages_.find(page);
    if (found == pages_.end())
      load(page);
    else
      uses_.splice(uses_.begin(), uses_, found->second);
    std::memcpy(to.data(), uses_.front().bytes + offset % kPageBytes, kBlockBytes);
  }

 private:
  struct Page {
    uint64_t number;
    std::byte* bytes;
  };

  // To the front of the list.
  void load(uint64_t page) {
    if ((pages_.size() + 1) * kPageBytes <= memory_.size()) {
      uses_.push_front({page, memory_.data() + pages_.size() * kPageBytes});
    } else {
      pages_.erase(uses_.back().number);
      uses_.splice(uses_.begin(), uses_, std::prev(uses_.end()));
      uses_.front().number = page;
    }
    if (pread(file_, uses_.front().bytes, kPageBytes, static_cast<off_t>(page * kPageBytes)) != kPageBytes)
      fail(1, "cannot read page " + std::to_string(page));
    pages_.emplace(page, uses_.begin());
  }

  const int file_;
  const std::span<std::byte> memory_;
  std::mutex lock_;
  std::list<Page> uses_;  // the last one first
  std::unordered_map<uint64_t, std::list<Page>::iterator> pages_;
};

}  // namespace

std::unique_ptr<Side> make_pread(const Plan& plan) { return std::make_unique<Plain<Pread>>(plan); }
std::unique_ptr<Side> make_mapped(const Plan& plan) { return std::make_unique<Plain<Mapped>>(plan); }
std::unique_ptr<Side> make_locked(const Plan& plan) { return std::make_unique<Plain<Locked>>(plan); }
std::unique_ptr<Side> make_array(const Plan& plan) { return std::make_unique<Plain<Array>>(plan); }

}  // namespace load
