// The check with a recovery command: finds images that a crash could leave and on which the recovery fails.
#pragma once
#include <functional>
#include <optional>
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
  size_t bugs_max = 20;     // the check ends when so many were found
  uint64_t seed = 1;
  // Called before each crash point, with how many there are in all.
  std::function<void(const CheckResult& so_far, size_t crash_points)> on_progress = {};
};

// Which of the pending stores to an open line an image has.
struct LineNote {
  LineId line;
  std::optional<uint64_t> held_site = {};     // of the last pending store that is there
  std::optional<uint64_t> missing_site = {};  // of the first pending store that is not there as a whole
  bool is_torn = false;                       // a part of the store at missing_site is there
  bool was_flushed = false;                   // the store at missing_site was flushed, but not fenced
};

struct Bug {
  size_t event_count = 0;  // the crash came after so many events of the history
  size_t image = 0;        // how many images had been tried, including this one
  size_t times = 0;        // how many images show this bug
  Outcome outcome;
  std::string marker;            // the last one before the crash
  std::vector<LineNote> behind;  // if these had what they lack, the recovery would succeed
  std::vector<LineNote> ahead;   // if these lacked what they hold, it would succeed, too
  std::string command;           // fails again on the image that was kept
};

struct CheckResult {
  std::vector<Bug> bugs;
  size_t crash_points = 0;
  size_t images = 0;        // that the recovery ran on
  size_t failures = 0;      // of those, on how many it failed
  bool is_all = true;       // no image was left out, at any crash point
  bool is_stopped = false;  // the check ended early, with enough bugs or failures
};

// Runs the recovery. `content` is of all files.
using Recover =
    std::function<Outcome(const std::vector<std::vector<Units>>& content, const std::string& marker)>;
// Keeps the image of bug number `bug`, on which the recovery ran last; returns Bug::command.
using Keep = std::function<std::string(const std::vector<std::vector<Units>>& content,
                                       const std::string& marker, size_t bug)>;

// Runs the recovery on images of crash points until all that are chosen were tried, or there are enough bugs or failures. Throws what `recover` and `keep` throw.
// `has_marker`: what a recovery must find depends on the last marker, so an image is tried again with each marker.
CheckResult check(const History& history, const CheckOptions& options, const Recover& recover,
                  const Keep& keep, bool has_marker);

}  // namespace persist_check
