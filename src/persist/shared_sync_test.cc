#include "persist/shared_sync.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace persist {
namespace {

// A file whose syncs end when the test says so.
class Gated {
 public:
  int sync() {
    std::unique_lock scope(lock_);
    const int own = ++begun_;
    changed_.notify_all();
    changed_.wait(scope, [&] { return own <= allowed_; });
    return error_;
  }
  void allow(int count, int error = 0) {
    std::scoped_lock scope(lock_);
    allowed_ = count;
    error_ = error;
    changed_.notify_all();
  }
  void wait_until_begun(int count) {
    std::unique_lock scope(lock_);
    changed_.wait(scope, [&] { return begun_ >= count; });
  }
  int begun() {
    std::scoped_lock scope(lock_);
    return begun_;
  }

 private:
  std::mutex lock_;
  std::condition_variable changed_;
  int begun_ = 0, allowed_ = 0, error_ = 0;
};

TEST(SharedSync, OneAloneSyncsAtOnce) {
  SharedSync shared;
  int syncs = 0;
  EXPECT_EQ(shared.run([&] { return ++syncs, 0; }), 0);
  EXPECT_EQ(shared.run([&] { return ++syncs, EIO; }), EIO);
  EXPECT_EQ(shared.run([&] { return ++syncs, 0; }), 0) << "told once";
  EXPECT_EQ(syncs, 3);
}

TEST(SharedSync, WhoComesDuringOneSharesTheNext) {
  SharedSync shared;
  Gated file;
  std::atomic<int> done{0}, errors{0};
  const auto run = [&] {
    errors += shared.run([&] { return file.sync(); }) != 0;
    ++done;
  };
  std::thread first(run);
  file.wait_until_begun(1);
  std::vector<std::thread> late;
  for (int i = 0; i < 6; ++i) late.emplace_back(run);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // until they wait, or almost
  EXPECT_EQ(file.begun(), 1);
  file.allow(1);
  first.join();
  file.wait_until_begun(2);
  EXPECT_EQ(done.load(), 1) << "the first began before they came";
  file.allow(100, EIO);
  for (std::thread& thread : late) thread.join();
  EXPECT_EQ(errors.load(), 6);
  EXPECT_LT(file.begun(), 7) << "some shared one";
}

// Each sync notes what was stored; when a call has returned, a sync has noted its store.
TEST(SharedSync, CoversWhatWasStoredBefore) {
  SharedSync shared;
  constexpr int kThreads = 4;
  std::atomic<uint64_t> stored[kThreads] = {}, durable[kThreads] = {};
  std::atomic<uint64_t> syncs{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (uint64_t i = 1; i <= 3'000; ++i) {
        stored[t].store(i);
        ASSERT_EQ(shared.run([&] {
          ++syncs;
          uint64_t picture[kThreads];
          for (int k = 0; k < kThreads; ++k) picture[k] = stored[k].load();
          std::this_thread::yield();
          for (int k = 0; k < kThreads; ++k) durable[k].store(picture[k]);
          return 0;
        }),
                  0);
        ASSERT_GE(durable[t].load(), i);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_LT(syncs.load(), 3'000u * kThreads) << "some were shared";
}

TEST(SharedSyncs, AreOneForEachFile) {
  SharedSyncs all;
  SharedSync* const one = all.of(5);
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(all.of(5), one);
  EXPECT_NE(all.of(6), one);
  for (int descriptor = 7; descriptor < 21; ++descriptor) EXPECT_NE(all.of(descriptor), nullptr);
  EXPECT_EQ(all.of(21), nullptr);
  EXPECT_EQ(all.of(5), one);
}

}  // namespace
}  // namespace persist
