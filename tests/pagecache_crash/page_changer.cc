// A process that is killed: eight threads read and change random ranges of a file with checksums, through a page cache that is resized, flushed and
// synced all the time, and whose device fails now and then.
//
//   page_changer DEVICE RECORD SEED [DAMAGED]...
//
// First, the file is compared with the record (record.h): pages that are named as DAMAGED must be refused as damaged, and are written anew; each other
// page must have a content that the record allows. A line on standard output says that this is done. Then the process makes changes until standard
// input ends, syncs the file and ends. If anything is wrong, it ends with a line on standard error and status 3.
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "../fail.h"
#include "pagecache/request_queue.h"
#include "record.h"
#include "storage/opening/open.h"

namespace {

constexpr uint32_t kThreads = 8;
constexpr uint64_t kMaxRange = 100'000, kLockBytes = 8 * Record::kDataBytes;
constexpr uint64_t kIdle = ~uint64_t{0};

// Is it an error that the device was told to make?
bool is_expected(const base::Error& error) { return error.number == EIO; }

class Changer {
 public:
  Changer(storage::Device& device, Record& record, uint64_t seed)
      : record_(record), random_(seed), locks_(Record::kBytes / kLockBytes + 1) {
    pagecache::CacheOptions options;
    options.memory_bytes = 1 << 20;
    options.memory_bytes_max = 2 << 20;
    options.nodes = 1 + seed % 3;
    options.policy = std::array{cache::SetPolicy::kAlfu, cache::SetPolicy::kS3fifo, cache::SetPolicy::kLru,
                                cache::SetPolicy::kGclock}[seed / 3 % 4];
    options.dirty_ns_max = seed % 4 < 2 ? 6'000'000 : 30'000'000'000;
    options.dirty_share_max = seed % 2 == 0 ? 0.2 : 1;
    auto opened = pagecache::PageCache::open(options);
    if (!opened) fail("%s", opened.error().message);
    cache_ = *opened;
    auto added = cache_->add(device, {.checksums = true});
    if (!added) fail("%s", added.error().message);
    file_ = *added;
    if (file_->bytes() != Record::kBytes) fail("the file has %lu bytes", file_->bytes());
    auto served = pagecache::Servers::open(*cache_, {.threads = 2, .tasks_each = 16});
    if (!served) fail("%s", served.error().message);
    servers_ = *served;
  }

  // Compares the file with the record. The next life begins with what the file holds.
  void compare(std::span<const uint64_t> damaged) {
    Record::Side& side = record_.now();
    std::vector<std::byte> model(side.image, side.image + Record::kBytes);
    const auto is_listed = [&](const Change& change) { return change.life == side.life; };
    for (uint64_t i = 0; i < side.synced; ++i) {
      if (!is_listed(side.changes[i])) fail("change %lu was synced, and not made", i);
      side.changes[i].apply(0, model);
    }
    std::vector<std::vector<const Change*>> later(Record::kPages);
    const uint64_t count = std::min<uint64_t>(side.count, Record::kMaxChanges);
    for (uint64_t i = side.synced; i < count; ++i)
      if (const Change& change = side.changes[i]; is_listed(change))
        for (uint64_t page = change.offset / Record::kDataBytes;
             page * Record::kDataBytes < change.offset + change.bytes; ++page)
          later[page].push_back(&change);
    pagecache::Session session;
    session.open(*cache_);
    now_.resize(Record::kBytes);
    for (uint64_t page = 0; page < Record::kPages; ++page) {
      const uint64_t offset = page * Record::kDataBytes;
      const std::span found = std::span(now_).subspan(offset, Record::kDataBytes);
      const std::span may_be = std::span(model).subspan(offset, Record::kDataBytes);
      if (std::ranges::find(damaged, page) != damaged.end()) {
        refuse_damaged(session, page, found);
        continue;
      }
      until_done([&] { return session.read(*file_, offset, found); });
      bool is_it = std::ranges::equal(found, may_be);
      for (size_t i = 0; i < later[page].size() && !is_it; ++i) {
        later[page][i]->apply(offset, may_be);
        is_it = std::ranges::equal(found, may_be);
      }
      if (!is_it)
        fail("page %lu is none of the %zu that it may be: life %u, %lu of %lu changes synced", page,
             later[page].size() + 1, side.life, side.synced.load(), count);
    }
    until_done([&] { return session.sync(*file_); });
    session.close();
    Record::Side& next = record_.next();
    next.life = side.life + 1;
    next.count = next.synced = 0;
    std::ranges::copy(now_, next.image);
    record_.used = 1 - record_.used;
    ++record_.checks;
  }

  void run() {
    for (auto& began : began_) began = kIdle;
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < kThreads; ++i)
      threads.emplace_back([this, i, seed = random_()] { change_on(i, seed); });
    threads.emplace_back([this] { sync_on(); });
    threads.emplace_back([this, seed = random_()] { resize_on(seed); });
    for (char byte; read(STDIN_FILENO, &byte, 1) > 0;) {
    }
    ends_ = true;
    for (auto& thread : threads) thread.join();
    pagecache::Session session;
    session.open(*cache_);
    sync(session);
    session.close();
    servers_->close();
    cache_->close();
  }

 private:
  // Repeats what fails by an error that the device was told to make.
  void until_done(const std::function<base::Expected<void>()>& act) {
    for (;;) {
      auto done = act();
      if (done) return;
      if (!is_expected(done.error())) fail("%s", done.error().message);
      ++record_.errors;
    }
  }

  void refuse_damaged(pagecache::Session& session, uint64_t page, std::span<std::byte> bytes) {
    const uint64_t offset = page * Record::kDataBytes;
    base::Expected<void> read;
    do read = session.read(*file_, offset, bytes);
    while (!read && is_expected(read.error()));
    if (read) fail("page %lu is damaged, and was read", page);
    if (read.error().number != EBADMSG) fail("page %lu is damaged: %s", page, read.error().message);
    std::ranges::fill(bytes, std::byte{0});
    until_done([&] { return session.write(*file_, offset, bytes); });
    ++record_.damaged;
  }

  struct Worker {
    uint32_t self = 0;
    std::mt19937_64 random;
    pagecache::Session session;
    pagecache::RequestQueue queue;
    std::vector<std::byte> bytes = std::vector<std::byte>(kMaxRange);
  };

  void change_on(uint32_t self, uint64_t seed) {
    Worker worker;
    worker.self = self;
    worker.random.seed(seed);
    worker.session.open(*cache_);
    worker.queue.open(*servers_, 16);
    while (!ends_ && record_.now().count < Record::kMaxChanges - kThreads) {
      uint64_t offset = worker.random() % Record::kBytes;
      uint64_t bytes = 1 + worker.random() % (worker.random() % 8 == 0 ? kMaxRange : 600);
      if (worker.random() % 16 == 0) {  // whole pages
        offset -= offset % Record::kDataBytes;
        bytes = Record::kDataBytes * (1 + worker.random() % 8);
      }
      bytes = std::min(bytes, Record::kBytes - offset);
      const uint64_t first = offset / kLockBytes, last = (offset + bytes - 1) / kLockBytes;
      for (uint64_t i = first; i <= last; ++i) locks_[i].lock();
      if (worker.random() % 2 == 0)
        read_range(worker, offset, std::span(worker.bytes).first(bytes));
      else
        change_range(worker, offset, std::span(worker.bytes).first(bytes));
      for (uint64_t i = first; i <= last; ++i) locks_[i].unlock();
      ++record_.operations;
    }
    worker.queue.close();
    worker.session.close();
  }

  void read_range(Worker& worker, uint64_t offset, std::span<std::byte> to) {
    switch (worker.random() % 4) {
      case 0: {
        const auto at = file_->position_of(offset);
        to = to.first(std::min(to.size(), Record::kDataBytes - at.begin));
        until_done([&]() -> base::Expected<void> {
          const auto view = worker.session.view(*file_, offset, to.size());
          if (!view) return std::unexpected(view.error());
          std::ranges::copy(view->bytes(), to.begin());
          return {};
        });
        break;
      }
      case 1: request(worker, pagecache::Request::Kind::kRead, offset, to); break;
      default: until_done([&] { return worker.session.read(*file_, offset, to); });
    }
    if (!std::ranges::equal(to, std::span(now_).subspan(offset, to.size())))
      fail("%zu bytes at offset %lu are not what was written", to.size(), offset);
  }

  void change_range(Worker& worker, uint64_t offset, std::span<std::byte> from) {
    Record::Side& side = record_.now();
    began_[worker.self] = side.count.load();
    Change& change = side.changes[side.count++];
    change.seed = worker.random();
    change.offset = offset;
    change.bytes = static_cast<uint32_t>(from.size());
    change.life = side.life;
    change.fill(offset, from);
    switch (worker.random() % 4) {
      case 0:
        until_done([&] {
          return worker.session.update(
              *file_, offset, from.size(), [&](std::span<std::byte> piece, uint64_t at) {
                std::ranges::copy(from.subspan(at - offset, piece.size()), piece.begin());
              });
        });
        break;
      case 1: request(worker, pagecache::Request::Kind::kWrite, offset, from); break;
      default: until_done([&] { return worker.session.write(*file_, offset, from); });
    }
    std::ranges::copy(from, now_.begin() + static_cast<ptrdiff_t>(offset));
    began_[worker.self] = kIdle;
    ++record_.changes;
  }

  // In up to sixteen pieces, of whole pages except at the ends, so that each page is read or changed at once. Pieces that fail are repeated.
  void request(Worker& worker, pagecache::Request::Kind kind, uint64_t offset, std::span<std::byte> bytes) {
    std::array<pagecache::Request, 16> requests;
    std::vector<pagecache::Request*> all;
    const uint64_t pages = bytes.size() / Record::kDataBytes + 2,
                   most = (pages / requests.size() + 1) * Record::kDataBytes;
    for (uint64_t done = 0, piece = 0; done < bytes.size(); done += piece) {
      piece = std::min(most - (offset + done) % Record::kDataBytes, bytes.size() - done);
      pagecache::Request& one = requests.at(all.size());
      one.kind = kind;
      one.file = file_;
      one.offset = offset + done;
      one.bytes = bytes.subspan(done, piece);
      all.push_back(&one);
    }
    while (!all.empty()) {
      worker.queue.run(all);
      std::erase_if(all, [&](const pagecache::Request* one) {
        if (one->result) return true;
        if (!is_expected(one->result.error())) fail("%s", one->result.error().message);
        ++record_.errors;
        return false;
      });
    }
  }

  // The position in the list of changes up to which all have been made.
  uint64_t made_count() {
    uint64_t made = record_.now().count;
    for (const auto& began : began_) made = std::min(made, began.load());
    return made;
  }

  void sync(pagecache::Session& session) {
    const uint64_t made = made_count();
    until_done([&] { return session.sync(*file_); });
    record_.now().synced = made;
    ++record_.syncs;
  }

  void sync_on() {
    pagecache::Session session;
    session.open(*cache_);
    uint64_t counted = 0;
    while (!ends_) {
      sync(session);
      const uint64_t written = session.counts().writebacks + servers_->session_counts().writebacks;
      record_.written_pages += written - counted;
      counted = written;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    session.close();
  }

  void resize_on(uint64_t seed) {
    std::mt19937_64 random(seed);
    pagecache::Session session;
    session.open(*cache_);
    while (!ends_) {
      const uint64_t bytes = (400 << 10) + random() % (cache_->options().memory_bytes_max - (400 << 10));
      until_done([&] { return session.resize(bytes); });
      ++record_.resizes;
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
    }
    session.close();
  }

  Record& record_;
  std::mt19937_64 random_;
  pagecache::PageCache* cache_ = nullptr;
  pagecache::File* file_ = nullptr;
  pagecache::Servers* servers_ = nullptr;
  std::vector<std::mutex> locks_;  // for some pages each, taken in ascending order
  std::vector<std::byte> now_;     // the file
  // The first change of each thread that may not have been made.
  std::array<std::atomic<uint64_t>, kThreads> began_;
  std::atomic<bool> ends_{false};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) fail("page_changer DEVICE RECORD SEED [DAMAGED]...");
  auto device = storage::open_device(argv[1], {.store = true});
  if (!device) fail("%s", device.error().message);
  Record& record = Record::open(argv[2]);
  Changer changer(**device, record, strtoull(argv[3], nullptr, 10));
  std::vector<uint64_t> damaged;
  for (int i = 4; i < argc; ++i) damaged.push_back(strtoull(argv[i], nullptr, 10));
  changer.compare(damaged);
  puts("ready");
  fflush(stdout);
  changer.run();
  (*device)->close();
  printf(
      "%lu operations, %lu changes, %lu syncs, %lu resizes, %lu errors, %lu pages written, %lu damaged, %lu "
      "compared\n",
      record.operations.load(), record.changes.load(), record.syncs.load(), record.resizes.load(),
      record.errors.load(), record.written_pages.load(), record.damaged.load(), record.checks.load());
  return 0;
}
