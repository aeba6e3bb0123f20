// Choice: chooses the engine of a table whose user has named none.
//
//  1 the model (model.h) estimates what an update costs with each engine. Engines that are more than kModelFactor times as slow as the best are not tried
//  2 the others are tried in turns, the best one first, on the calls that the program makes anyway. Each trial first runs until the engine has staged as
//    much as it may; then the calls of all sessions are timed for a number of keys
//  3 after each round, engines more than kTrialFactor times as slow as the best are left out. After kRounds rounds the engine with the fastest trial is
//    chosen; one that stages has to be better by the factor kStagingGain
//  4 the choice begins again when the table has grown, has twice or half as many sessions, or when the share of keys that want an answer has changed by
//    kShareChange
//
// Thread contract: functions that say "Any thread" may be called by any thread; all others only with the table's gates shut, or while nobody else uses
// the table.
#pragma once
#include <atomic>
#include <span>

#include "batch/model.h"

namespace batch {

class Choice {
 public:
  enum class Why : uint8_t { kOpened, kGrown, kSessions, kAnswers };

  // Asks that the choice begins, or begins again: the next begin() does so.
  void want(Why why);
  bool is_wanted() const { return is_wanted_; }
  // `base` are the costs for the load's shape.
  void begin(const Load& load, const Machine& machine, const BaseCosts& base);
  // Are engines being tried, and calls timed? Any thread.
  bool is_trying() const { return is_trying_.load(std::memory_order_acquire); }
  // After how many keys, of all sessions together, step() has to be called. Any thread.
  uint64_t keys_of_phase() const { return keys_of_phase_.load(std::memory_order_relaxed); }

  // The engine that is being tried, or has been chosen.
  Engine engine() const { return candidates_[at_].engine; }
  // Goes on after keys_of_phase() keys. `ns_each` is the time that a session took for each key, `answers` the share of keys that wanted an answer.
  // Afterwards engine() is the one to use next.
  void step(double ns_each, double answers);
  // Leaves out engine(), because it cannot be used. False: there is no other one.
  bool leave_out();
  // Ends the choice with this engine.
  void stay(Engine engine);
  // Ends the choice without a result, because nobody wants one any more.
  void stop();
  // Has the share of keys that want an answer changed since the choice was made? Any thread.
  bool has_other_answers(double answers) const;

  // For statistics.
  struct Candidate {
    Engine engine = Engine::kPrefetch;
    double modelled_ns = 0;
    double measured_ns = 0;  // of one session for one key; 0: not tried, or not yet
    bool is_in = false;
  };
  static constexpr size_t kCandidateCount = 5;
  std::span<const Candidate, kCandidateCount> candidates() const { return candidates_; }
  uint32_t decision_count() const { return decisions_; }
  Why why() const { return why_; }
  const Load& load() const { return load_; }
  const Machine& machine() const { return machine_; }

 private:
  static constexpr Engine kCandidates[kCandidateCount] = {Engine::kDirect, Engine::kPrefetch, Engine::kTagged,
                                                          Engine::kCacheBuckets, Engine::kPartitioned};
  static constexpr int kRounds = 3;
  static constexpr double kModelFactor = 2.5, kTrialFactor = 1.15, kStagingGain = 1.01, kShareChange = 0.1;

  void begin_phase(bool warms);
  void end();
  uint64_t staged_keys(Engine engine) const;
  bool next();
  void decide();
  double best_measured() const;

  std::atomic<bool> is_trying_{false};
  std::atomic<uint64_t> keys_of_phase_{0};
  std::atomic<double> answers_{0};
  bool is_wanted_ = false;
  bool warms_ = false;  // the phase is not timed, it only fills the staging
  int round_ = 0;
  size_t at_ = 0;
  Candidate candidates_[kCandidateCount];
  Load load_;
  Machine machine_;
  Why why_ = Why::kOpened;
  uint32_t decisions_ = 0;
};

}  // namespace batch
