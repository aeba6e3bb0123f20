// The check with a recovery: which images a crash could leave that it does not come back from.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "images.h"
#include "medium.h"
#include "trial.h"

namespace persist_check {

struct CheckResult;

struct CheckOptions {
  size_t crash_points_max = 1000;
  size_t images_max = 100;  // of one crash point
  size_t bugs_max = 20;     // with more there is no end to reading
  uint64_t seed = 1;
  // Before each crash point; how many there are.
  std::function<void(const CheckResult& so_far, size_t crash_points)> on_progress = {};
};

// What an image has of a line that was not sure.
struct LineNote {
  LineId line;
  uint64_t held_site = 0;     // of the last store that is there; 0: none of those that were not sure
  uint64_t missing_site = 0;  // of the first store that is not there, or not as a whole; 0: all are
  bool is_torn = false;       // a part of the store at missing_site is there
  bool was_flushed = false;   // that store was flushed, but not fenced
};

struct Bug {
  size_t event_count = 0;  // the crash came after so many events of the history
  size_t image = 0;        // the number of the image, as images were tried
  size_t times = 0;        // images with the same
  Outcome outcome;
  std::string marker;            // the last one before
  std::vector<LineNote> behind;  // with what they lack, the recovery succeeds
  std::vector<LineNote> ahead;   // without what they have, it does, too
  std::string command;           // that fails again
};

struct CheckResult {
  std::vector<Bug> bugs;
  size_t crash_points = 0;
  size_t images = 0;        // that the recovery ran on
  size_t failures = 0;      // those of them that it was not good on, whatever for
  bool is_all = true;       // there are no others, at no crash point
  bool is_stopped = false;  // there were so many bugs or failures that the rest was left out
};

// Runs the recovery. `content` is of all files.
using Recover =
    std::function<Outcome(const std::vector<std::vector<Units>>& content, const std::string& marker)>;
// Keeps the image of bug i, which the recovery ran on last; returns Bug::command.
using Keep = std::function<std::string(const std::vector<std::vector<Units>>& content,
                                       const std::string& marker, size_t bug)>;

// `has_marker`: what a recovery is to find depends on the last marker, too, so that an image is tried again with another.
CheckResult check(const History& history, const CheckOptions& options, const Recover& recover,
                  const Keep& keep, bool has_marker);

}  // namespace persist_check
