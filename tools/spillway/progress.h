// Progress: one line on a terminal that says how far something has come and how fast; on anything else nothing.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace tools {

// Replaces the last line of the terminal that standard error is, with as much of this one as the terminal has columns for: what went on in the next
// row would stay there when the line is redrawn.
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

  // `all` 0: unknown. Cost: a look at the clock on a terminal.
  void at(uint64_t done, uint64_t all);
  // Removes the line until at() shows it again, so that something else can be printed.
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
