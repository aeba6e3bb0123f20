#include "storage/backends/file_helpers.h"

#include <sys/mman.h>

#include "base/check.h"
#include "storage/objects.h"
#include "sys/kernel.h"

namespace storage {

base::Expected<FileHelpers*> FileHelpers::make(uint32_t helper_count, void (*perform)(void* argument, Io& io),
                                               void* argument) {
  CHECK_LE(helper_count, kMaxHelpers);
  auto made = make_object<FileHelpers>(0, "storage helpers");
  if (!made) return made;
  FileHelpers& helpers = **made;
  sys::syscall(SYS_madvise, &helpers, sizeof helpers, MADV_WIPEONFORK);
  helpers.perform_ = perform;
  helpers.argument_ = argument;
  auto entry = [](void* self) { static_cast<FileHelpers*>(self)->run_helper(); };
  while (helpers.helper_count_ < helper_count) {
    auto thread = sys::start_thread(entry, &helpers, "spillway-io");
    if (!thread) break;  // with fewer threads it is only slower
    helpers.threads_[helpers.helper_count_++] = *thread;
  }
  return made;
}

void FileHelpers::close() {
  {
    sys::LockGuard guard(mutex_);
    CHECK(round_first_ == nullptr);
    stopping_ = true;
    wake_word_.fetch_add(1, std::memory_order_relaxed);
  }
  sys::futex_wake(wake_word_, kMaxHelpers);
  for (uint32_t i = 0; i < helper_count_; ++i) sys::join_thread(threads_[i]);
  free_object(this, 0);
}

void FileHelpers::append_to_round(HelperClient& client) {
  client.in_round = true;
  client.next_in_round = nullptr;
  (round_first_ == nullptr ? round_first_ : round_last_->next_in_round) = &client;
  round_last_ = &client;
}

HelperClient* FileHelpers::first_of_round() {
  HelperClient* client = round_first_;
  if (client == nullptr) return nullptr;
  round_first_ = client->next_in_round;
  client->in_round = false;
  return client;
}

void FileHelpers::want(HelperClient& client, IoList& wanted) {
  CHECK_GT(helper_count_, 0u);
  uint32_t wake_count;
  {
    sys::LockGuard guard(mutex_);
    uint32_t wanted_count = static_cast<uint32_t>(wanted.count());
    while (!wanted.empty()) client.wanted.append(wanted.take_first());
    if (!client.in_round && !client.wanted.empty()) append_to_round(client);
    wake_count = wanted_count < sleeping_count_ ? wanted_count : sleeping_count_;
    wake_word_.fetch_add(1, std::memory_order_relaxed);  // the lock orders it
  }
  if (wake_count > 0) sys::futex_wake(wake_word_, wake_count);
}

Io* FileHelpers::take_wanted(HelperClient& client) {
  sys::LockGuard guard(mutex_);
  if (client.wanted.empty()) return nullptr;
  Io* io = &client.wanted.take_first();
  if (!client.wanted.empty()) return io;
  // The client wants nothing any more: it leaves the round.
  HelperClient* before = nullptr;
  for (HelperClient* c = round_first_; c != &client; c = c->next_in_round) before = c;
  (before == nullptr ? round_first_ : before->next_in_round) = client.next_in_round;
  if (round_last_ == &client) round_last_ = before;
  client.in_round = false;
  return io;
}

void FileHelpers::run_helper() {
  mutex_.lock();
  for (;;) {
    HelperClient* client = first_of_round();
    if (client == nullptr) {
      if (stopping_) break;
      uint32_t word = wake_word_.load(std::memory_order_relaxed);
      ++sleeping_count_;
      mutex_.unlock();
      sys::futex_wait(wake_word_, word);
      mutex_.lock();
      --sleeping_count_;
      continue;
    }
    Io& io = client->wanted.take_first();
    if (!client->wanted.empty()) append_to_round(*client);
    client->helpers_inside.fetch_add(1, std::memory_order_relaxed);  // the lock orders it before close
    mutex_.unlock();

    perform_(argument_, io);
    Io* head = client->done.load(std::memory_order_relaxed);
    do {
      io.next = head;
      // Release: pairs with the acquire of the queue's thread that takes the list.
    } while (
        !client->done.compare_exchange_weak(head, &io, std::memory_order_release, std::memory_order_relaxed));
    client->finished.notify_all();
    if (client->told.descriptor() >= 0) client->told.set();
    // Pairs with the load before the client is freed.
    client->helpers_inside.fetch_sub(1, std::memory_order_release);
    mutex_.lock();
  }
  mutex_.unlock();
}

}  // namespace storage
