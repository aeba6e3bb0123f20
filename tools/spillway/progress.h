// Progress: one line on a terminal that says how far something has come and how fast; on anything else nothing.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace tools {

// The last line on the terminal that standard error is becomes this one, as much of it as the terminal has columns for: what goes on in the next row
// would stay there when the line is shown anew.
void show_line(std::string_view line);
void erase_line();

class Progress {
 public:
  enum class Unit { kBytes, kKeys };
  // `what`: "load". Nothing is shown before the first fifth of a second is over, and nothing at all unless `is_wanted`.
  Progress(const char* what, Unit unit, bool is_wanted = true);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `all` 0: nobody knows. Cost: a look at the clock on a terminal.
  void at(uint64_t done, uint64_t all);
  // The line is gone, until at() shows it again: for who prints something else.
  void clear();

 private:
  std::string amount(uint64_t count) const;

  const char* const what_;
  const Unit unit_;
  const bool is_shown_;
  const uint64_t began_ns_;
  uint64_t next_ns_;
  bool has_line_ = false;
};

}  // namespace tools
