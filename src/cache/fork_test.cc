// Fork: what a cache does for a child, and in a child.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "base/statistics.h"
#include "cache/testing/test_world.h"

namespace cache {
namespace {

// A child that lives until it is told to end.
class Child {
 public:
  explicit Child(const std::function<int()>& run = [] { return 0; }) {
    EXPECT_EQ(pipe(ends_), 0);
    process_ = fork();
    if (process_ != 0) return;
    const int result = run();
    char byte;
    if (result == 0 && read(ends_[0], &byte, 1) != 1) _exit(99);
    _exit(result);
  }
  ~Child() {
    if (process_ > 0) EXPECT_EQ(end(), 0);
  }
  int end() {
    EXPECT_EQ(::write(ends_[1], "e", 1), 1);
    int status = -1;
    EXPECT_EQ(waitpid(process_, &status, 0), process_);
    close(ends_[0]);
    close(ends_[1]);
    process_ = -1;
    return status;
  }

 private:
  int ends_[2];
  pid_t process_;
};

class PlacesFork : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(places.open(kLimit)); }
  ~PlacesFork() override { places.close(); }
  std::set<uint32_t> take_all() {
    std::set<uint32_t> all;
    for (;;) {
      const PlaceId place = places.take(PageId{0}, base::kNoPlace);
      if (place == base::kNoPlace) return all;
      EXPECT_TRUE(all.insert(index(place)).second);
    }
  }
  static constexpr uint32_t kLimit = 1024;
  Places places;
};

TEST_F(PlacesFork, WhatAChildMayReadIsNeitherOverwrittenNorHandedOut) {
  const PlaceId kept = places.take(PageId{0}, PlaceId{0});
  const PlaceId given_back = places.take(PageId{1}, PlaceId{1});
  EXPECT_TRUE(places.may_overwrite(kept));
  places.before_fork();
  Child child;
  places.after_fork_in_parent();
  EXPECT_FALSE(places.may_overwrite(kept));
  const PlaceId later = places.take(PageId{2}, base::kNoPlace);
  EXPECT_TRUE(places.may_overwrite(later));
  places.give_back(given_back);
  EXPECT_EQ(places.garbage_count(), 0u);
  EXPECT_EQ(places.collect_children(), 0u);
  EXPECT_FALSE(take_all().contains(index(given_back)));
  EXPECT_EQ(child.end(), 0);
  EXPECT_EQ(places.collect_children(), 1u);
  EXPECT_TRUE(places.may_overwrite(kept));
  EXPECT_EQ(places.take(PageId{0}, base::kNoPlace), given_back);
  EXPECT_EQ(places.used_count(), kLimit);
}

TEST_F(PlacesFork, EachChildKeepsWhatItWasMadeWith) {
  const PlaceId first = places.take(PageId{0}, PlaceId{0});
  places.before_fork();
  Child early;
  places.after_fork_in_parent();
  const PlaceId second = places.take(PageId{1}, PlaceId{1});
  places.give_back(first);
  places.before_fork();
  Child late;
  places.after_fork_in_parent();
  places.give_back(second);
  EXPECT_EQ(early.end(), 0);
  EXPECT_EQ(places.collect_children(), 1u);
  const std::set<uint32_t> all = take_all();
  EXPECT_TRUE(all.contains(index(first)));
  EXPECT_FALSE(all.contains(index(second)));
  EXPECT_EQ(late.end(), 0);
  EXPECT_EQ(places.collect_children(), 1u);
  EXPECT_EQ(take_all(), std::set<uint32_t>{index(second)});
}

TEST_F(PlacesFork, GarbageThatWasBeingDiscardedIsOnlyFreeLater) {
  std::vector<PlaceId> run;
  for (uint32_t i = 0; i < Places::kRunPlaces; ++i) run.push_back(places.take(PageId{i}, PlaceId{i}));
  for (PlaceId place : run) places.give_back(place);
  const Places::Run garbage = places.take_garbage(Places::kRunPlaces);
  ASSERT_EQ(garbage.count, Places::kRunPlaces);
  places.before_fork();
  Child child;
  places.after_fork_in_parent();
  places.give_back_discarded(garbage);
  EXPECT_EQ(take_all().size(), kLimit - Places::kRunPlaces);
  EXPECT_EQ(child.end(), 0);
  EXPECT_EQ(places.collect_children(), 1u);
  EXPECT_EQ(take_all().size(), Places::kRunPlaces);
}

// A child takes places from extents of its own, and the parent gets these when the child and its own child have ended.
TEST_F(PlacesFork, AChildOwnsOnlyWhatItTakes) {
  const PlaceId inherited = places.take(PageId{0}, base::kNoPlace);
  places.before_fork();
  Child child([&] {
    places.after_fork_in_child();
    if (places.may_overwrite(inherited) || places.used_count() != 0) return 1;
    places.give_back(inherited);
    places.give_back(inherited);
    const PlaceId own = places.take(PageId{0}, base::kNoPlace);
    if (own == base::kNoPlace || own == inherited || !places.may_overwrite(own)) return 2;
    places.before_fork();
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      places.after_fork_in_child();
      const PlaceId mine = places.take(PageId{0}, base::kNoPlace);
      _exit(places.may_overwrite(own) || places.may_overwrite(inherited) || mine == own || mine == inherited);
    }
    places.after_fork_in_parent();
    int status;
    if (waitpid(grandchild, &status, 0) != grandchild || status != 0) return 3;
    if (places.may_overwrite(own)) return 4;
    if (places.collect_children() != 1 || !places.may_overwrite(own) || places.may_overwrite(inherited))
      return 5;
    if (places.take_ended_extent().count == 0) return 6;
    return take_all().empty() ? 7 : 0;
  });
  places.after_fork_in_parent();
  const int status = [&] {
    usleep(200'000);
    return child.end();
  }();
  EXPECT_EQ(status, 0);
  EXPECT_LT(take_all().size(), kLimit - 1);
  EXPECT_EQ(places.collect_children(), 1u);
  uint32_t extents = 0;
  for (Places::Run run = places.take_ended_extent(); run.count > 0;
       run = places.take_ended_extent(), ++extents)
    places.give_back_extent(run);
  EXPECT_GT(extents, 0u);
  take_all();
  // The grandchild's extent, which the child took to discard, is lost with the child, which did not give it back.
  EXPECT_GE(places.used_count() + 64, kLimit);
}

TEST_F(PlacesFork, AProcessThatWasNotMadeKeepsNothing) {
  const PlaceId place = places.take(PageId{0}, base::kNoPlace);
  places.before_fork();
  places.after_fork_in_parent();
  EXPECT_EQ(places.collect_children(), 1u);
  EXPECT_TRUE(places.may_overwrite(place));
}

// A child for which there is no descriptor counts as alive as long as the one before it.
TEST_F(PlacesFork, AChildThatCannotBeWatchedLivesAsLongAsTheNewestOne) {
  const PlaceId place = places.take(PageId{0}, PlaceId{0});
  places.before_fork();
  Child early;
  places.after_fork_in_parent();
  const int full = dup(0);
  rlimit limit, few;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  few = {static_cast<rlim_t>(full), limit.rlim_max};
  close(full);
  std::vector<std::unique_ptr<Child>> late;
  for (int n = 0; n < 2; ++n) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    EXPECT_FALSE(places.before_fork());
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    late.push_back(std::make_unique<Child>());
    places.after_fork_in_parent();
    close(ends[0]);
    close(ends[1]);
  }
  EXPECT_EQ(places.child_count(), 3u);
  EXPECT_EQ(early.end(), 0);
  EXPECT_EQ(late[0]->end(), 0);
  EXPECT_EQ(places.collect_children(), 0u);
  EXPECT_FALSE(places.may_overwrite(place));
  EXPECT_EQ(late[1]->end(), 0);
  EXPECT_EQ(places.collect_children(), 3u);
  EXPECT_TRUE(places.may_overwrite(place));
  EXPECT_EQ(places.child_count(), 0u);
}

TEST_F(PlacesFork, AChildThatWasCollectedIsOver) {
  places.before_fork();
  {
    Child child;
    places.after_fork_in_parent();
    EXPECT_FALSE(places.last_child_is_over());
  }
  EXPECT_EQ(places.collect_children(), 1u);
  EXPECT_TRUE(places.last_child_is_over());
}

// A process is killed while it discards an extent: the extent is not lost.
TEST_F(PlacesFork, AnExtentThatWasBeingDiscardedComesBack) {
  places.before_fork();
  Child child([&] {
    places.after_fork_in_child();
    places.before_fork();
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      places.after_fork_in_child();
      _exit(places.take(PageId{0}, base::kNoPlace) == base::kNoPlace);
    }
    places.after_fork_in_parent();
    int status;
    if (waitpid(grandchild, &status, 0) != grandchild || status != 0) return 3;
    return places.collect_children() == 1 && places.take_ended_extent().count > 0 ? 0 : 4;
  });
  places.after_fork_in_parent();
  EXPECT_EQ(child.end(), 0);
  EXPECT_EQ(places.collect_children(), 1u);
  EXPECT_EQ(take_all().size(), kLimit);
}

TEST(PlacesCopied, WhatWasBeingDiscardedIsFreeInAChild) {
  Places places;
  ASSERT_TRUE(places.open(1024, true));
  for (uint32_t i = 0; i < Places::kRunPlaces; ++i) places.take(PageId{i}, PlaceId{i});
  for (uint32_t i = 0; i < Places::kRunPlaces; ++i) places.give_back(PlaceId{i});
  ASSERT_EQ(places.take_garbage(Places::kRunPlaces).count, Places::kRunPlaces);
  places.before_fork();
  Child child([&] {
    places.after_fork_in_child();
    return places.used_count() == 0 && places.take(PageId{0}, PlaceId{3}) == PlaceId{3} ? 0 : 1;
  });
  places.after_fork_in_parent();
  EXPECT_EQ(places.used_count(), Places::kRunPlaces);
  places.close();
}

TEST(PlacesCopied, AChildHasAllToItself) {
  Places places;
  ASSERT_TRUE(places.open(1024, true));
  const PlaceId place = places.take(PageId{0}, base::kNoPlace);
  places.before_fork();
  Child child([&] {
    places.after_fork_in_child();
    if (!places.may_overwrite(place)) return 1;
    places.give_back(place);
    return places.take(PageId{0}, place) == place ? 0 : 2;
  });
  places.after_fork_in_parent();
  EXPECT_TRUE(places.may_overwrite(place));
  EXPECT_EQ(places.child_count(), 1u) << "the frames are still lent";
  places.close();
}

class CacheFork : public WorldTest {
 protected:
  static constexpr PinsOverFork kNoPins = {[](PageId) { return false; }, [](PageId) { return 0u; }};
  void before_fork(const PinsOverFork& pins = kNoPins) {
    a->release_all();
    b->release_all();
    EXPECT_TRUE(world->cache->before_fork(pins));
  }
  // In the child.
  bool become_child() {
    if (!world->cache->after_fork_in_child()) return false;
    if (a->workspace->queue().in_flight_count() == 0) a->workspace->destroy();
    auto workspace = world->cache->open_workspace();
    if (!workspace) return false;
    a->workspace = *workspace;
    return true;
  }
  void write_all(char first) {
    for (uint64_t page = 0; page < world->parameters.range_pages; ++page)
      write(page, static_cast<char>(first + page % 20));
    a->release_all();
  }
  bool holds(char first) {
    for (uint64_t page = 0; page < world->parameters.range_pages; ++page)
      if (value(page) != static_cast<char>(first + page % 20)) return false;
    return true;
  }
  void share_all() {
    for (int step = 0; step < 5000; ++step) world->cache->share_step(*a->workspace);
  }
  // The page's value in the memory file, as uninstrumented code would be given it.
  char value_in_file(uint64_t page) {
    auto pinned = world->cache->pin_shared(PageId{page}, *a->workspace);
    EXPECT_TRUE(pinned.has_value());
    const Cache::FilePiece piece = world->cache->file_piece(PageId{page}, *pinned);
    std::string bytes(page_bytes, 0);
    EXPECT_EQ(pread(piece.descriptor, bytes.data(), page_bytes, static_cast<off_t>(piece.offset)),
              static_cast<ssize_t>(page_bytes));
    world->cache->unpin(PageId{page});
    return bytes == std::string(page_bytes, bytes[0]) ? bytes[0] : '?';
  }
};

TEST_F(CacheFork, BothGoOnWithTheirOwnFrames) {
  for (const size_t bytes : {size_t{4096}, size_t{16384}}) {
    open({.page_bytes = bytes, .frame_count = 24, .range_pages = 20, .partition_count = 2});
    write_all('a');
    before_fork();
    int go[2];
    ASSERT_EQ(pipe(go), 0);
    Child child([&] {
      char byte;
      if (!become_child() || read(go[0], &byte, 1) != 1) return 1;
      if (!holds('a')) return 2;
      write_all('A');
      if (!holds('A')) return 3;
      share_all();
      if (!holds('A')) return 4;
      evict();
      return holds('A') ? 0 : 5;
    });
    world->cache->after_fork_in_parent();
    write_all('b');
    share_all();
    write_all('c');
    share_all();
    write_all('b');
    ASSERT_EQ(::write(go[1], "g", 1), 1);
    EXPECT_TRUE(holds('b'));
    usleep(50'000);
    EXPECT_TRUE(holds('b'));
    EXPECT_EQ(child.end(), 0);
    EXPECT_TRUE(holds('b'));
    share_all();
    evict();
    EXPECT_TRUE(holds('b'));
  }
}

// Even those of a frame that is stored to before and after it gets memory of its own.
TEST_F(CacheFork, SharedFramesKeepTheirContent) {
  for (const bool lives : {false, true}) {
    open({.frame_count = 200, .range_pages = 150});
    write_all('a');
    before_fork();
    Child child;
    world->cache->after_fork_in_parent();
    for (uint64_t page = 0; page < 150; page += 3) write(page, 'S');
    a->release_all();
    if (!lives) EXPECT_EQ(child.end(), 0);
    share_all();
    for (uint64_t page = 0; page < 150; ++page) {
      const char expected = page % 3 == 0 ? 'S' : static_cast<char>('a' + page % 20);
      EXPECT_EQ(value(page), expected);
      EXPECT_EQ(value_in_file(page), expected) << page << ' ' << lives;
    }
    write(7, 'T');
    a->release_all();
    EXPECT_EQ(value_in_file(7), 'T');
    evict();
    EXPECT_EQ(value(7), 'T');
    EXPECT_EQ(world->cache->frames_bytes(), 150 * page_bytes);
  }
}

TEST_F(CacheFork, WhatIsOnStorageForAChildStaysThere) {
  write_all('a');
  evict();
  std::vector<uint64_t> offsets;
  for (uint64_t at = 0; at < world->device->capacity_bytes(); at += page_bytes) {
    const auto byte = static_cast<char>(world->device->contents(at)[0]);
    if (byte >= 'a' && byte < 'a' + 20) offsets.push_back(at);
  }
  ASSERT_EQ(offsets.size(), world->parameters.range_pages);
  std::string before;
  for (uint64_t at : offsets) before += static_cast<char>(world->device->contents(at)[0]);
  before_fork();
  Child child;
  world->cache->after_fork_in_parent();
  const auto unchanged = [&] {
    for (size_t i = 0; i < offsets.size(); ++i)
      for (uint64_t byte = 0; byte < page_bytes; byte += 512)
        if (static_cast<char>(world->device->contents(offsets[i] + byte)[0]) != before[i]) return false;
    return true;
  };
  for (char turn = 'A'; turn < 'D'; ++turn) {
    write_all(turn);
    evict();
    EXPECT_TRUE(holds(turn));
    a->release_all();
    EXPECT_TRUE(unchanged()) << turn;
  }
  world->cache->discard(PageId{0}, 32, *a->workspace);
  EXPECT_TRUE(world->cache->prepare_cleaning());
  for (uint64_t page = 32; page < 64; ++page) write(page, 'z');
  a->release_all();
  for (int turn = 0; turn < 20; ++turn) world->cache->idle_step(*a->workspace);
  evict();
  EXPECT_TRUE(unchanged());
  EXPECT_EQ(child.end(), 0);
  share_all();
  write_all('e');
  evict();
  write_all('f');
  evict();
  EXPECT_TRUE(holds('f'));
}

// Only a part of the page has changed, but all of it is written to the new place.
TEST_F(CacheFork, APageThatChangedInPartMovesAsAWhole) {
  open({.page_bytes = 16384});
  write_and_evict(3, 'x');
  before_fork();
  Child child;
  world->cache->after_fork_in_parent();
  a->translate(world->address(3, 5000))[0] = 'y';
  evict();
  std::string bytes(page_bytes, 0), expected(page_bytes, 'x');
  expected[5000] = 'y';
  ASSERT_TRUE(a->read(world->address(3), bytes.data(), bytes.size()));
  EXPECT_EQ(bytes, expected);
}

TEST_F(CacheFork, StorageThatIsFullOfSnapshotsIsFullUntilTheChildEnds) {
  open({.frame_count = 8, .range_pages = 64, .storage_pages = 80});
  write_all('a');
  evict();
  before_fork();
  const uint64_t ended_before = base::statistics.cache_snapshots_ended.get();
  Child child;
  world->cache->after_fork_in_parent();
  std::string bytes(page_bytes, 'b');
  uint64_t page = 0;
  while (page < 64 && a->write(world->address(page), bytes.data(), bytes.size())) ++page;
  EXPECT_LT(page, 64u);
  EXPECT_EQ(a->error.number, ENOSPC);
  a->release_all();
  EXPECT_EQ(child.end(), 0);
  for (page = 0; page < 64; ++page) write(page, 'c');
  a->release_all();
  for (page = 0; page < 64; ++page) EXPECT_EQ(value(page), 'c');
  EXPECT_EQ(base::statistics.cache_snapshots_ended.get() - ended_before, 1u) << "whoever looked";
}

// Other threads had begun evictions and loads at the time of the fork.
TEST_F(CacheFork, AChildEndsWhatOthersHadBegun) {
  for (const bool in_write : {false, true}) {
    open({});
    for (uint64_t page = 0; page < 6; ++page) write_and_evict(page, static_cast<char>('a' + page));
    // Resident and changed pages, to be written; and one that is loading.
    for (uint64_t page = 0; page < 3; ++page) write(page, static_cast<char>('A' + page));
    a->release_all();
    bool forked = false;
    const auto fork_once = [&] {
      if (forked) return;
      forked = true;
      ASSERT_TRUE(world->cache->before_fork(kNoPins));
      Child child([&] {
        if (!become_child()) return 1;
        b->release_all();
        world->cache->verify();
        for (uint64_t page = 0; page < 6; ++page)
          if (value(page) != static_cast<char>((page < 3 ? 'A' : 'a') + page))
            return 2 + static_cast<int>(page);
        write_all('m');
        return holds('m') ? 0 : 9;
      });
      world->cache->after_fork_in_parent();
      EXPECT_EQ(child.end(), 0) << in_write;
    };
    world->device->before_transfer = [&](const storage::Io& io) {
      if ((io.operation == storage::Operation::kWrite) == in_write) fork_once();
    };
    if (in_write)
      world->cache->evict(*a->workspace);
    else
      value(5);
    if (in_write) world->cache->evict(*a->workspace);
    world->device->before_transfer = nullptr;
    EXPECT_TRUE(forked);
    for (uint64_t page = 0; page < 6; ++page)
      EXPECT_EQ(value(page), static_cast<char>((page < 3 ? 'A' : 'a') + page));
    share_all();
    evict();
    for (uint64_t page = 0; page < 6; ++page)
      EXPECT_EQ(value(page), static_cast<char>((page < 3 ? 'A' : 'a') + page));
  }
}

#if !__has_feature(thread_sanitizer)  // whose vfork is fork
// It shares this process's memory, but has its own descriptors.
TEST_F(CacheFork, AChildOfVforkOpensNothingForItsParent) {
  open({.frame_count = 256, .range_pages = 256});
  for (uint64_t page = 0; page < 64; ++page) write(page, 'a');
  a->release_all();
  before_fork();
  Child child;
  world->cache->after_fork_in_parent();
  const std::string bytes(page_bytes, 'v');
  const pid_t shares = vfork();
  if (shares == 0) _exit(a->write(world->address(100), bytes.data(), bytes.size()) ? 0 : 1);
  int status = -1;
  EXPECT_EQ(waitpid(shares, &status, 0), shares);
  EXPECT_EQ(status, 0);
  a->release_all();
  EXPECT_EQ(value_in_file(0), 'a');
  EXPECT_EQ(value_in_file(100), 'v');
}
#endif

// The kernel stores to pinned memory for other threads through addresses that it has looked up: such memory must not be lent.
TEST_F(CacheFork, WaitsForPinsOfOthers) {
  write(3, 'a');
  a->release_all();
  ASSERT_TRUE(world->cache->pin(PageId{3}, *a->workspace).has_value());
  std::atomic<bool> unpinned = false;
  std::thread other([&] {
    usleep(50'000);
    unpinned = true;
    world->cache->unpin(PageId{3});
  });
  before_fork();
  EXPECT_TRUE(unpinned);
  world->cache->after_fork_in_parent();
  other.join();
}

// A thread forks in a signal handler, and the interrupted call, with its pins, continues in the child.
TEST_F(CacheFork, AChildHasItsThreadsPins) {
  write(3, 'a');
  a->release_all();
  const auto pinned = world->cache->pin(PageId{3}, *a->workspace);
  ASSERT_TRUE(pinned.has_value());
  before_fork({[](PageId) { return false; }, [](PageId page) { return uint32_t{page == PageId{3}}; }});
  Child child([&] {
    if (!become_child()) return 1;
    world->cache->pin_again(PageId{3});
    write_all('m');
    evict();
    (*pinned)[0] = 'n';
    world->cache->unpin(PageId{3});
    std::string bytes(page_bytes, 0);
    return a->read(world->address(3), bytes.data(), bytes.size()) && bytes[0] == 'n' && bytes[1] == 'm' + 3
               ? 0
               : 2;
  });
  world->cache->after_fork_in_parent();
  EXPECT_EQ(value(3), 'a');
  world->cache->unpin(PageId{3});
}

// A fork comes between the pin and the mapping, which would not see what is stored to the frame afterwards.
TEST_F(CacheFork, AFrameThatWasPinnedToBeMappedIsNotSharedAfterAFork) {
  write(3, 'a');
  a->release_all();
  ASSERT_TRUE(world->cache->pin_shared(PageId{3}, *a->workspace).has_value());
  EXPECT_TRUE(world->cache->is_shared(PageId{3}));
  before_fork({[](PageId) { return false; }, [](PageId) { return 1u; }});
  Child child;
  world->cache->after_fork_in_parent();
  EXPECT_FALSE(world->cache->is_shared(PageId{3}));
  world->cache->unpin(PageId{3});
  ASSERT_TRUE(world->cache->pin_shared(PageId{3}, *a->workspace).has_value());
  EXPECT_TRUE(world->cache->is_shared(PageId{3}));
  world->cache->unpin(PageId{3});
}

// The kernel does not store there on account of a staying pin.
TEST_F(CacheFork, APageThatStaysGetsMemoryOfItsOwnWhereItIs) {
  write(3, 'a');
  a->release_all();
  for (int times = 0; times < 2; ++times) {
    ASSERT_TRUE(world->cache->pin(PageId{3}, *a->workspace).has_value());
    world->cache->stay(PageId{3});
  }
  before_fork();
  Child child([&] {
    if (!become_child()) return 1;
    world->cache->pin_again(PageId{3});
    world->cache->stay(PageId{3});
    evict();
    if (!world->resident(3)) return 2;
    world->cache->end_stay(PageId{3});
    evict();
    return !world->resident(3) && value(3) == 'a' ? 0 : 3;
  });
  world->cache->after_fork_in_parent();
  write(3, 'b');
  a->release_all();
  ASSERT_FALSE(world->cache->is_shared(PageId{3}));
  EXPECT_EQ(value_in_file(3), 'b');
  EXPECT_TRUE(world->cache->is_shared(PageId{3}));
  evict();
  EXPECT_TRUE(world->resident(3));
  before_fork();
  world->cache->after_fork_in_parent();
  EXPECT_EQ(child.end(), 0);
  share_all();
  EXPECT_TRUE(world->cache->is_shared(PageId{3}));
  world->cache->end_stay(PageId{3});
  evict();
  EXPECT_FALSE(world->resident(3));
  EXPECT_EQ(value(3), 'b');
}

// The page was mapped elsewhere at one fork, and is not any more at the next, which a handler makes that interrupts a call.
TEST_F(CacheFork, APageThatIsKeptNoMoreDoesNotHoldUpAFork) {
  write(3, 'a');
  a->release_all();
  const PinsOverFork kept = {[](PageId page) { return page == PageId{3}; }, [](PageId) { return 0u; }};
  const PinsOverFork own = {[](PageId) { return false; },
                            [](PageId page) { return uint32_t{page == PageId{3}}; }};
  ASSERT_TRUE(world->cache->pin_shared(PageId{3}, *a->workspace).has_value());
  before_fork(kept);
  Child first;
  world->cache->after_fork_in_parent();
  before_fork(own);
  Child second;
  world->cache->after_fork_in_parent();
  EXPECT_EQ(value(3), 'a');
  world->cache->unpin(PageId{3});
}

// There is no background thread.
TEST_F(CacheFork, AForkLooksWhichChildrenHaveEnded) {
  for (int n = 0; n < 3; ++n) {
    const uint64_t before = base::statistics.cache_snapshots_ended.get();
    before_fork();
    Child child;
    world->cache->after_fork_in_parent();
    EXPECT_EQ(base::statistics.cache_snapshots_ended.get() - before, n > 0);
  }
}

TEST_F(CacheFork, FramesThatWereNeverUsedAreZeros) {
  open({.frame_count = 256, .range_pages = 256});
  write(0, 'a');
  a->release_all();
  before_fork();
  Child child;
  world->cache->after_fork_in_parent();
  for (uint64_t page = 100; page < 200; ++page) write(page, 'b');
  a->release_all();
  for (uint64_t page = 200; page < 220; ++page) EXPECT_EQ(value(page), 0);
  uint64_t own = 0;
  for (uint64_t page = 100; page < 200; ++page) own += value_in_file(page) == 'b';
  EXPECT_EQ(own, 100u);
  EXPECT_EQ(world->cache->frames_bytes(), 121 * page_bytes);
}

// Even if they are used one after the other: the memory file from before the fork would have an OS page for each of them, too.
TEST_F(CacheFork, FramesThatWereNeverUsedTakeMemoryOnce) {
  open({.frame_count = 256, .range_pages = 256});
  write(0, 'a');
  a->release_all();
  const int file = dup(world->cache->pool(0).descriptor);
  ASSERT_GE(file, 0);
  before_fork();
  Child child;
  world->cache->after_fork_in_parent();
  for (uint64_t page = 1; page < 200; ++page) write(page, 'b');
  a->release_all();
  struct stat facts = {};
  EXPECT_EQ(fstat(file, &facts), 0);
  // Frames are shared 64 at a time. Page 0 is in one of the first, which stay as they are.
  EXPECT_LE(static_cast<uint64_t>(facts.st_blocks) * 512, 64 * page_bytes);
  close(file);
}

}  // namespace
}  // namespace cache
