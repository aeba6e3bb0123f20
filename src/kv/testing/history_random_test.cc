// Histories of a simulated register are linearizable, and with one answer changed they are not.
#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <vector>

#include "kv/testing/history.h"

namespace kv {
namespace {

using Outcome = Changed::Outcome;

// A register that says what the store says. Its own code, so that a wrong model is noticed.
class Register {
 public:
  // Fills in what the call says.
  void apply(Call& call) {
    if (call.kind == Call::Kind::kGet) {
      call.outcome = now_ ? Outcome::kDone : Outcome::kAbsent;
      if (now_) call.value = now_->value, call.version = now_->version;
      return;
    }
    const bool needs =
        call.kind == Call::Kind::kRemove || call.when == When::kIfPresent || call.when == When::kIfVersion;
    call.version = now_ ? now_->version : 0;
    if (!now_ && needs) {
      call.outcome = Outcome::kAbsent;
    } else if (now_ && call.when == When::kIfAbsent) {
      call.outcome = Outcome::kPresent;
    } else if (call.when == When::kIfVersion && call.if_version != now_->version) {
      call.outcome = Outcome::kVersion;
    } else if (call.kind == Call::Kind::kRemove) {
      now_.reset();
    } else {
      now_ = {.value = call.value, .version = call.version = versions_ += kVersionStep};
    }
  }
  uint64_t last_version() const { return versions_; }

  // There are versions between those of two puts.
  static constexpr uint64_t kVersionStep = 10;

 private:
  struct Now {
    uint64_t value, version;
  };
  std::optional<Now> now_;
  uint64_t versions_ = 0;
};

struct Shape {
  uint32_t keys = 2;
  int clients = 4;
  int calls = 120;
  bool removes = true;
  bool errors = false;
};

// Clients that each make one call at a time, whose moments are in any order.
std::vector<Call> random_history(uint64_t seed, const Shape& shape) {
  std::mt19937_64 random(seed);
  struct Client {
    Call call;
    enum { kIdle, kBegun, kApplied } state = kIdle;
  };
  std::vector<Client> clients(shape.clients);
  std::vector<Register> registers(shape.keys);
  std::vector<Call> calls, late;  // late: errors that may still be done
  uint64_t time = 0, values = 0;
  for (int begun = 0; static_cast<int>(calls.size()) < shape.calls;) {
    ++time;
    if (!late.empty() && random() % 4 == 0) {
      if (Call call = late.back(); random() % 2 == 0) registers[call.key].apply(call);
      late.pop_back();
    }
    auto& [call, state] = clients[random() % clients.size()];
    switch (state) {
      case Client::kIdle:
        if (begun == shape.calls) break;
        ++begun;
        call = {.key = static_cast<uint32_t>(random() % shape.keys), .began = time};
        if (const uint64_t kind = random() % 8; kind < 4) {
          call.kind = kind == 0 && shape.removes ? Call::Kind::kRemove : Call::Kind::kPut;
          call.when = static_cast<When>(random() % (call.kind == Call::Kind::kPut ? 4 : 1));
          if (call.kind == Call::Kind::kPut) call.value = ++values;
          if (call.when == When::kIfVersion) {
            const uint64_t last = registers[call.key].last_version();
            call.if_version = last - (last != 0 && random() % 2 == 0 ? Register::kVersionStep : 0);
          }
        }
        state = Client::kBegun;
        break;
      case Client::kBegun:
        if (shape.errors && call.kind != Call::Kind::kGet && random() % 10 == 0) {
          late.push_back(call);
          call.is_known = false;
          calls.push_back(call);
          state = Client::kIdle;
          break;
        }
        registers[call.key].apply(call);
        state = Client::kApplied;
        break;
      case Client::kApplied:
        call.ended = time;
        calls.push_back(call);
        state = Client::kIdle;
        break;
    }
  }
  return calls;
}

TEST(RandomHistory, OfARegisterIsLinearizable) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    ASSERT_EQ(violation_of(random_history(seed, {})), "") << "seed " << seed;
    ASSERT_EQ(violation_of(random_history(seed, {.errors = true})), "") << "seed " << seed;
    ASSERT_EQ(violation_of(random_history(seed, {.keys = 1, .clients = 16})), "") << "seed " << seed;
  }
  ASSERT_EQ(violation_of(random_history(1, {.keys = 4, .clients = 8, .calls = 20'000})), "");
}

// What is wrong for certain. Each changes one answer, or says that there is none to change; `old` is a put that ended before
// `now`, another one, began.
bool is_put(const Call& call) {
  return call.kind == Call::Kind::kPut && call.is_known && call.outcome == Outcome::kDone;
}
bool is_found(const Call& call) { return call.kind == Call::Kind::kGet && call.outcome == Outcome::kDone; }
bool is_before(const Call& one, const Call& other) { return one.key == other.key && one.ended < other.began; }

bool is_of_nobody(std::vector<Call>&, Call& call, std::mt19937_64&) {
  if (!is_found(call)) return false;
  call.value += 1'000'000;
  return true;
}
bool has_another_version(std::vector<Call>&, Call& call, std::mt19937_64&) {
  if (!is_found(call)) return false;
  ++call.version;
  return true;
}
bool is_of_later(std::vector<Call>& calls, Call& call, std::mt19937_64& random) {
  const Call& later = calls[random() % calls.size()];
  if (!is_found(call) || !is_put(later) || !is_before(call, later)) return false;
  call.value = later.value;
  call.version = later.version;
  return true;
}
bool is_stale(std::vector<Call>& calls, Call& call, std::mt19937_64& random) {
  const Call &old = calls[random() % calls.size()], &now = calls[random() % calls.size()];
  if (call.kind != Call::Kind::kGet || !is_put(old) || !is_put(now) || !is_before(old, now) ||
      !is_before(now, call))
    return false;
  call.outcome = Outcome::kDone;
  call.value = old.value;
  call.version = old.version;
  return true;
}
bool replaces_an_old_version(std::vector<Call>& calls, Call& call, std::mt19937_64& random) {
  const Call &old = calls[random() % calls.size()], &now = calls[random() % calls.size()];
  if (call.outcome != Outcome::kVersion || !is_put(old) || !is_put(now) || !is_before(old, now) ||
      !is_before(now, call))
    return false;
  call.outcome = Outcome::kDone;
  call.if_version = old.version;
  ++call.version;
  return true;
}
bool swaps_versions(std::vector<Call>& calls, Call& call, std::mt19937_64& random) {
  Call& other = calls[random() % calls.size()];
  if (!is_put(call) || !is_put(other) || !is_before(call, other)) return false;
  std::swap(call.version, other.version);
  return true;
}
// Those that follow are for histories without removes.
bool finds_nothing(std::vector<Call>& calls, Call& call, std::mt19937_64& random) {
  const Call& old = calls[random() % calls.size()];
  if (!is_found(call) || !is_put(old) || !is_before(old, call)) return false;
  call.outcome = Outcome::kAbsent;
  call.value = call.version = 0;
  return true;
}
bool is_first_again(std::vector<Call>& calls, Call& call, std::mt19937_64& random) {
  const Call& old = calls[random() % calls.size()];
  if (call.outcome != Outcome::kPresent || !is_put(old) || !is_before(old, call)) return false;
  call.outcome = Outcome::kDone;
  ++call.version;
  return true;
}
bool is_refused(std::vector<Call>& calls, Call& call, std::mt19937_64& random) {
  const Call& old = calls[random() % calls.size()];
  if (!is_put(call) || call.when == When::kAlways || call.when == When::kIfAbsent || !is_put(old) ||
      !is_before(old, call))
    return false;
  call.outcome = Outcome::kAbsent;
  call.version = 0;
  return true;
}

TEST(RandomHistory, WithOneWrongAnswerIsNot) {
  using Corrupt = bool (*)(std::vector<Call>&, Call&, std::mt19937_64&);
  const struct {
    const char* name;
    Corrupt corrupt;
    bool removes;
  } corruptions[] = {{"a value of nobody", is_of_nobody, true},
                     {"another version", has_another_version, true},
                     {"a value of later", is_of_later, true},
                     {"a stale value", is_stale, true},
                     {"an old version replaced", replaces_an_old_version, true},
                     {"versions in another order", swaps_versions, true},
                     {"nothing found", finds_nothing, false},
                     {"first again", is_first_again, false},
                     {"refused", is_refused, false}};
  for (const auto& [name, corrupt, removes] : corruptions) {
    uint64_t corrupted_count = 0;
    for (uint64_t seed = 1; seed <= 100; ++seed) {
      std::mt19937_64 random(seed);
      std::vector<Call> calls = random_history(seed, {.calls = 200, .removes = removes});
      bool corrupted = false;
      for (int tries = 0; tries < 200'000 && !corrupted; ++tries)
        corrupted = corrupt(calls, calls[random() % calls.size()], random);
      if (!corrupted) continue;
      ++corrupted_count;
      EXPECT_FALSE(is_linearizable(calls)) << name << ", seed " << seed;
    }
    EXPECT_GT(corrupted_count, 90u) << name;
  }
}

}  // namespace
}  // namespace kv
