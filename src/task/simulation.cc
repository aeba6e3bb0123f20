#include "task/simulation.h"

#include <cstdio>
#include <cstdlib>

#include "base/check.h"
#include "base/mix.h"
#include "sys/memory.h"
#include "task/scheduler.h"

namespace task {
namespace {

constexpr uint32_t kMaxWorkers = 8;
constexpr size_t kLoopStackBytes = 256 << 10;
constexpr uint64_t kNsPerDecision = 20;

// A simulated worker's state while another one runs.
struct Player {
  Worker* worker = nullptr;  // null: it has ended, or was never started
  sys::Fiber place;
  char* stack = nullptr;
  bool sleeps = false;
  bool roused = false;
  uint64_t until_ns = kNever;
};

struct State {
  uint64_t seed = 0;
  uint64_t random = 0;
  uint32_t calm = 1;
  uint64_t decision_count = 0;
  uint64_t now_ns = 1'000'000'000;
  Player players[kMaxWorkers];
  uint32_t player_count = 1;
  uint32_t present = 0;
  bool is_running = false;
} play;

uint64_t next_random() {
  const uint64_t drawn = base::mix(play.random);
  play.random += base::kMixStep;
  return drawn;
}

bool can_go_on(const Player& player) {
  return player.worker != nullptr && (!player.sleeps || player.roused || player.until_ns <= play.now_ns);
}

void go_on_with(uint32_t next) {
  if (next == play.present) return;
  Player& from = play.players[play.present];
  play.present = next;
  from.place.switch_to(play.players[next].place);
  Worker::set_current(play.players[play.present].worker);
}

// Picks another worker that can continue, or the present one if only it can; lets time pass while none can.
uint32_t pick() {
  for (;;) {
    uint32_t candidates[kMaxWorkers];
    uint32_t count = 0;
    uint64_t next_ns = kNever;
    for (uint32_t i = 0; i < play.player_count; ++i) {
      const Player& player = play.players[i];
      if (can_go_on(player)) candidates[count++] = i;
      if (player.worker != nullptr && player.until_ns < next_ns) next_ns = player.until_ns;
    }
    if (count > 0) return candidates[next_random() % count];
    if (next_ns == kNever) {
      fprintf(stderr, "all workers sleep for ever; seed %llu, decision %llu\n",
              static_cast<unsigned long long>(play.seed),
              static_cast<unsigned long long>(play.decision_count));
      play.players[0].worker->scheduler().dump();
      abort();
    }
    play.now_ns = next_ns;
  }
}

}  // namespace

void choice_point() {
  if (!play.is_running) return;
  ++play.decision_count;
  play.now_ns += kNsPerDecision;
  if (next_random() % play.calm == 0) go_on_with(pick());
}

uint32_t choose(uint32_t count) {
  ++play.decision_count;
  return static_cast<uint32_t>(next_random() % count);
}

uint64_t now_ns() { return play.now_ns; }

Simulation::Simulation(uint64_t seed, uint32_t calm) {
  play.seed = play.random = seed;
  play.calm = calm;
  play.decision_count = 0;
  play.player_count = 1;
  play.present = 0;
}

Simulation::~Simulation() { CHECK(!play.is_running); }

uint64_t Simulation::decision_count() const { return play.decision_count; }

base::Expected<void> Worker::open_sleep() { return {}; }
void Worker::close_sleep() {}
base::Expected<void> Worker::watch(int) { return {}; }
void Worker::end_watch(int) {}
void Worker::look_for_peers() {}

void Worker::sleep_until_woken(uint64_t until_ns) {
  Player& player = play.players[index_];
  player.sleeps = true;
  player.until_ns = until_ns;
  go_on_with(pick());
  player.sleeps = player.roused = false;
  player.until_ns = kNever;
}

void Worker::end_sleep() { play.players[index_].roused = true; }

base::Expected<void> Scheduler::start_workers(uint32_t& started_count) {
  CHECK_LE(worker_count_, kMaxWorkers);
  play.player_count = started_count = worker_count_;
  for (uint32_t i = 0; i < worker_count_; ++i) {
    Player& player = play.players[i];
    player.worker = &workers_[i];
    player.sleeps = player.roused = false;
    player.until_ns = kNever;
    if (i == 0) continue;
    if (player.stack == nullptr) player.stack = *sys::map_anonymous(kLoopStackBytes, "a simulated worker");
    const auto run_worker = [](void* argument) {
      Player& self = *static_cast<Player*>(argument);
      self.worker->run();
      self.worker = nullptr;
      play.players[0].roused = true;  // it may be in join_workers
      const uint32_t next = pick();
      play.present = next;
      self.place.end_and_switch_to(play.players[next].place);
    };
    player.place.start(player.stack, kLoopStackBytes, run_worker, &player);
  }
  play.is_running = true;
  return {};
}

void Scheduler::join_workers(uint32_t) {
  // The first one has ended, and waits until the others have, too.
  Player& first = play.players[0];
  for (;;) {
    bool others = false;
    for (uint32_t i = 1; i < play.player_count; ++i) others |= play.players[i].worker != nullptr;
    if (!others) break;
    first.sleeps = true;
    go_on_with(pick());
    first.sleeps = first.roused = false;
  }
  play.is_running = false;
  Worker::set_current(nullptr);
}

}  // namespace task
