// What goes on beside a loop of tasks (spillway/task.h) whose tasks are suspended most of the time: other threads, locks between both,
// initialisers, fork, changes of mappings, code that spillcc did not compile. Nobody waits for ever, and everybody sees right bytes.
// flags: -std=c++20 -pthread -ftls-model=initial-exec
// levels: O0 O2 lto
// expect: spill.task_misses>=300 spill.task_misses_busy>=100 cache.evictions>=500
// memory: 2M
// pages: 4K 16K
#include "../../../include/spillway/task.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "e2e.h"

namespace {

using spillway::parallel_for;

constexpr size_t kWords = size_t{1} << 20;  // 8 MiB
constexpr size_t kPageBytes = 4096;

uint64_t mixed(uint64_t x) {
  uint64_t state = x;
  return next_random(&state);
}

std::vector<uint64_t> data;

// A miss, as a rule.
void touch(uint64_t i) {
  const uint64_t at = mixed(i) % kWords;
  CHECK(data[at] == mixed(at));
}

class Beside {
 public:
  template <class F>
  explicit Beside(F f)
      : thread_([this, f] {
          for (uint64_t i = 0; !stop_; ++i) f(i);
        }) {}
  ~Beside() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

void test_mutex_with_threads() {
  std::mutex plain;
  auto* spilled = static_cast<pthread_mutex_t*>(spilled_zeros(sizeof(pthread_mutex_t)));
  uint64_t count = 0, others = 0;
  {
    Beside beside([&](uint64_t i) {
      std::lock_guard<std::mutex> guard(plain);
      CHECK(pthread_mutex_lock(spilled) == 0);
      touch(i + 100000);
      ++others;
      CHECK(pthread_mutex_unlock(spilled) == 0);
    });
    parallel_for(0, 1500, [&](int i) {
      touch(i);
      std::lock_guard<std::mutex> guard(plain);
      touch(i + 5000);
      CHECK(pthread_mutex_lock(spilled) == 0);
      const uint64_t before = count;
      touch(i + 10000);
      count = before + 1;
      CHECK(pthread_mutex_unlock(spilled) == 0);
    });
  }
  CHECK(count == 1500);
  free(spilled);
  puts("mutexes");
}

void test_kinds_of_locks() {
  std::shared_mutex shared;
  std::timed_mutex timed;
  std::recursive_mutex recursive;
  pthread_spinlock_t spin;
  pthread_spin_init(&spin, 0);
  std::condition_variable condition;
  std::mutex waiting;
  bool posted = false;
  std::thread poster([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::lock_guard<std::mutex> guard(waiting);
    posted = true;
    condition.notify_all();
  });
  uint64_t counts[4] = {};
  parallel_for(0, 600, [&](int i) {
    touch(i);
    if (i % 5 != 0) {
      std::shared_lock<std::shared_mutex> guard(shared);
      touch(i + 20000);
    } else {
      std::unique_lock<std::shared_mutex> guard(shared);
      const uint64_t before = counts[0];
      touch(i + 20000);
      counts[0] = before + 1;
    }
    {
      std::unique_lock<std::timed_mutex> guard(timed, std::defer_lock);
      while (!guard.try_lock_for(std::chrono::seconds(5))) {
      }
      const uint64_t before = counts[1];
      touch(i + 21000);
      counts[1] = before + 1;
    }
    {
      std::lock_guard<std::recursive_mutex> outer(recursive);
      touch(i + 22000);
      std::lock_guard<std::recursive_mutex> inner(recursive);
      const uint64_t before = counts[2];
      touch(i + 23000);
      counts[2] = before + 1;
    }
    CHECK(pthread_spin_lock(&spin) == 0);
    const uint64_t before = counts[3];
    touch(i + 24000);
    counts[3] = before + 1;
    CHECK(pthread_spin_unlock(&spin) == 0);
    if (i % 50 == 0) {
      std::unique_lock<std::mutex> guard(waiting);
      touch(i + 25000);
      condition.wait(guard, [&] { return posted; });
      touch(i + 26000);
    }
    touch(i + 27000);
  });
  poster.join();
  CHECK(counts[0] == 120 && counts[1] == 600 && counts[2] == 600 && counts[3] == 600);
  puts("kinds of locks");
}

uint64_t slow_value(uint64_t i) {
  for (uint64_t k = 0; k < 20; ++k) touch(i * 20 + k);
  return i;
}

std::atomic<int> initialised{0};

template <int n>
uint64_t variable() {
  static const uint64_t value = [] {
    initialised.fetch_add(1);
    return slow_value(n);
  }();
  return value;
}

struct Local {
  explicit Local(uint64_t from) : value(slow_value(from)), complete(0x600d) {}
  ~Local() { complete = 0; }
  uint64_t value, complete;
};
thread_local Local of_thread(77);

uint64_t local_in_function() {
  static thread_local Local local(78);
  CHECK(local.complete == 0x600d);
  return local.value;
}

void test_initialisers() {
  std::once_flag once, fails;
  std::atomic<int> calls{0}, failures{0};
  parallel_for(0, 400, [&](int i) {
    touch(i + 30000);
    switch (i % 4) {
      case 0: CHECK(variable<0>() == 0); break;
      case 1: CHECK(variable<1>() == 1); break;
      case 2: CHECK(variable<2>() == 2); break;
      case 3: CHECK(variable<3>() == 3); break;
    }
    CHECK(of_thread.complete == 0x600d && of_thread.value == 77);
    CHECK(local_in_function() == 78);
    std::call_once(once, [&] {
      slow_value(79);
      calls.fetch_add(1);
    });
    CHECK(calls.load() == 1);
    try {
      std::call_once(fails, [&] {
        touch(i + 31000);
        if (failures.fetch_add(1) < 3) throw 1;
      });
    } catch (int) {
    }
    touch(i + 32000);
  });
  CHECK(initialised.load() == 4);
  CHECK(calls.load() == 1);
  CHECK(failures.load() == 4);
  puts("initialisers");
}

void test_atomic_pointers() {
  std::vector<std::atomic<std::shared_ptr<uint64_t>>> shared(64);
  for (uint64_t i = 0; i < shared.size(); ++i) shared[i] = std::make_shared<uint64_t>(i);
  Beside beside([&](uint64_t i) {
    const uint64_t k = i % shared.size();
    shared[k].store(std::make_shared<uint64_t>(k));
    touch(i + 40000);
  });
  parallel_for(0, 1500, [&](int i) {
    touch(i + 50000);
    const uint64_t k = mixed(i) % shared.size();
    CHECK(*shared[k].load() == k);
    if (i % 3 == 0) CHECK(*shared[k].exchange(std::make_shared<uint64_t>(k)) == k);
  });
  puts("atomic pointers");
}

void test_atomics() {
  std::vector<std::atomic<uint64_t>> counters(1 << 14);
  parallel_for(0, 6000, [&](int i) { counters[mixed(i % 3000) % counters.size()].fetch_add(1); });
  uint64_t sum = 0;
  for (auto& counter : counters) sum += counter.load();
  CHECK(sum == 6000);
  puts("atomics");
}

void child_sees_all() {
  for (uint64_t i = 0; i < 200; ++i) touch(i + 60000);
  parallel_for(0, 200, [](int i) { touch(i + 61000); });
  _exit(0);
}

void wait_for(pid_t child) {
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

void test_fork_in_a_task() {
  fflush(stdout);  // a child that exits writes what it has
  parallel_for(0, 300, [](int i) {
    touch(i + 62000);
    if (i % 60 != 7) return;
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) child_sees_all();
    touch(i + 63000);
    wait_for(child);
  });
  // A child that returns from the body ends there. (Natively the loop is one thread's, which goes on.)
  static std::atomic<int>* const begun = static_cast<std::atomic<int>*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  parallel_for(0, 640, {16, 2, 20, 0}, [](int i) {
    begun->fetch_add(1);
    touch(i + 64000);
    if (i != 307 || !runs_spilled()) return;
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) return;
    wait_for(child);
  });
  CHECK(*begun == 640);
  puts("fork in a task");
}

void test_fork_beside() {
  std::atomic<bool> stop{false};
  std::thread forks([&] {
    for (int i = 0; i < 5; ++i) {
      const pid_t child = fork();
      CHECK(child >= 0);
      if (child == 0) child_sees_all();
      wait_for(child);
    }
    stop = true;
  });
  for (uint64_t round = 0; !stop; ++round) parallel_for(0, 300, [=](int i) { touch(i + round * 300); });
  forks.join();
  puts("fork beside");
}

// Memory that is given back, protected and opened again while tasks use what lies beside it, or translated it before.
void test_mappings_beside() {
  constexpr size_t kPages = 64;
  const auto map = [] {
    void* memory =
        mmap(nullptr, kPages * kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    return static_cast<unsigned char*>(memory);
  };
  unsigned char* const shared = map();
  for (size_t i = 0; i < kPages; ++i) memset(shared + i * kPageBytes, static_cast<int>(i), kPageBytes);
  {
    Beside beside([&](uint64_t i) {
      unsigned char* own = map();
      memset(own, 1, kPages * kPageBytes);
      CHECK(own[i % kPages * kPageBytes] == 1);
      CHECK(munmap(own, kPages * kPageBytes) == 0);
      unsigned char* const page = shared + i % kPages * kPageBytes;
      CHECK(mprotect(page, kPageBytes, PROT_READ) == 0);
      CHECK(*page == i % kPages);
      CHECK(mprotect(page, kPageBytes, PROT_READ | PROT_WRITE) == 0);
      usleep(500);
    });
    parallel_for(0, 3000, [&](int i) {
      touch(i + 70000);
      const size_t at = mixed(i + 7) % (kPages * kPageBytes);
      CHECK(shared[at] == at / kPageBytes);
      touch(i + 75000);
    });
  }
  CHECK(munmap(shared, kPages * kPageBytes) == 0);
  puts("mappings");
}

// A mapped file that somebody opens for writing: its map becomes the kernel's while tasks have translations of it.
void test_files_beside() {
  constexpr size_t kPages = 256;
  char name[] = "loops-XXXXXX";
  const int file = mkstemp(name);
  CHECK(file >= 0);
  for (size_t i = 0; i < kPages; ++i) {
    unsigned char page[kPageBytes];
    memset(page, static_cast<int>(i), sizeof page);
    CHECK(write(file, page, sizeof page) == static_cast<ssize_t>(sizeof page));
  }
  close(file);
  for (int round = 0; round < 6; ++round) {
    const int reading = open(name, O_RDONLY);
    CHECK(reading >= 0);
    const auto* map = static_cast<const unsigned char*>(
        mmap(nullptr, kPages * kPageBytes, PROT_READ, MAP_PRIVATE, reading, 0));
    CHECK(map != MAP_FAILED);
    close(reading);
    std::thread opens([&] {
      usleep(2000);
      const int writing = open(name, O_RDWR);
      CHECK(writing >= 0);
      const unsigned char byte = static_cast<unsigned char>(kPages - 1);
      CHECK(pwrite(writing, &byte, 1, static_cast<off_t>(kPages - 1) * kPageBytes) == 1);
      close(writing);
    });
    parallel_for(0, 1500, [&](int i) {
      const size_t at = mixed(i + round) % (kPages * kPageBytes);
      const unsigned char* one = map + at;
      const uint64_t* other = &data[mixed(i) % kWords];
      const uint64_t sum = *one + *other + *one;
      CHECK(sum == 2 * (at / kPageBytes % 256) + mixed(mixed(i) % kWords));
    });
    opens.join();
    CHECK(munmap(const_cast<unsigned char*>(map), kPages * kPageBytes) == 0);
  }
  unlink(name);
  puts("files");
}

void test_foreign_code() {
  auto* bytes = static_cast<char*>(spilled_zeros(256 * kPageBytes));
  parallel_for(0, 256, [&](int i) {
    touch(i + 80000);
    foreign_increment(bytes + i * kPageBytes);
    touch(i + 81000);
    CHECK(foreign_load(bytes + i * kPageBytes) == 1);
    bytes[i * kPageBytes] += 1;
    touch(i + 82000);
    CHECK(foreign_load(bytes + i * kPageBytes) == 2);
  });
  free(bytes);
  puts("foreign code");
}

int compare(const void* a, const void* b) {
  const auto key = [](const void* p) { return data[*static_cast<const uint32_t*>(p)]; };
  return key(a) < key(b) ? -1 : key(a) > key(b);
}

void test_callbacks() {
  parallel_for(0, 40, [](int i) {
    std::vector<uint32_t> order(100);
    for (size_t k = 0; k < order.size(); ++k) order[k] = mixed(i * 100 + k) % kWords;
    qsort(order.data(), order.size(), sizeof order[0], compare);
    for (size_t k = 1; k < order.size(); ++k) CHECK(compare(&order[k - 1], &order[k]) <= 0);
    const uint32_t* found = static_cast<const uint32_t*>(
        bsearch(&order[50], order.data(), order.size(), sizeof order[0], compare));
    CHECK(found != nullptr && data[*found] == data[order[50]]);
  });
  puts("callbacks");
}

void test_streams() {
  FILE* file = tmpfile();
  parallel_for(0, 200, [&](int i) {
    touch(i + 90000);
    flockfile(file);
    fprintf(file, "%d", i);
    touch(i + 91000);
    fprintf(file, " %d\n", i);
    funlockfile(file);
  });
  rewind(file);
  int one, other, lines = 0;
  while (fscanf(file, "%d %d", &one, &other) == 2) {
    CHECK(one == other);
    ++lines;
  }
  CHECK(lines == 200);
  fclose(file);
  puts("streams");
}

}  // namespace

int main() {
  data.resize(kWords);
  for (size_t i = 0; i < kWords; ++i) data[i] = mixed(i);
  test_mutex_with_threads();
  test_kinds_of_locks();
  test_initialisers();
  test_atomic_pointers();
  test_atomics();
  test_fork_in_a_task();
  test_fork_beside();
  test_mappings_beside();
  test_files_beside();
  test_foreign_code();
  test_callbacks();
  test_streams();
  return 0;
}
