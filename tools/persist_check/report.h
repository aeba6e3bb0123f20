// What a check found, for people and for programs.
#pragma once
#include <string>
#include <vector>

#include "checker.h"
#include "findings.h"

namespace persist_check {

struct Report {
  const History* history = nullptr;
  std::vector<Finding> findings;
  bool has_recovery = false;
  CheckOptions options;
  CheckResult checked;  // meaningless if there was no recovery

  bool has_bugs() const;
};

// The findings, except those whose site, or the site's library, has a name that contains one of these texts. For findings in a library that is not what
// is to be checked.
std::vector<Finding> without(const std::vector<std::string>& ignored, const History& history,
                             std::vector<Finding> findings);

// Lines, each with its newline.
std::string as_text(const Report& report);
// One JSON object, pretty, ended by a newline.
std::string as_json(const Report& report);

}  // namespace persist_check
