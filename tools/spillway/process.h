// A running program that uses Spillway, seen from outside: its counters, and what its spilled memory holds. Nothing in it is changed
// or stopped; it can only be asked for another budget. Or a program that has ended, as a core file has it.
#pragma once
#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/statistics.h"
#include "cache/pages/page_reader.h"
#include "core_file.h"
#include "spill/published.h"

namespace tools {

// Which of kStatisticInfo has this name.
consteval size_t number_of(std::string_view folder, std::string_view name) {
  for (size_t i = 0; i < base::kStatisticCount; ++i)
    if (folder == base::kStatisticInfo[i].folder && name == base::kStatisticInfo[i].name) return i;
  throw "no statistic has this name";
}

class Process final : public cache::Outside {
 public:
  // Throws WrongInput, in one line: there is no such process, it is not ours to look at, does not run Spillway, or a
  // runtime of another build.
  explicit Process(pid_t pid);
  // The same for a core file. Where it lacks what is asked of it, all that throws std::runtime_error below throws WrongInput instead,
  // except for pages that were on storage.
  explicit Process(std::unique_ptr<CoreFile> core);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  std::string name() const { return name_; }
  // For messages: "process 1234 (name)".
  std::string description() const;
  const spill::Published& published() const { return published_; }
  // Is it a child of fork that has not called exec? Its spilled memory is not where `published` says.
  bool is_fork_child();

  // The counters of base::kStatisticInfo, in that order. Throws std::runtime_error when the process has ended.
  std::vector<uint64_t> counters();
  // The sites of kSitesInfo[list], the most frequent first.
  std::vector<base::SiteTable::Site> sites(size_t list);

  // The word of kWordInfo[i].
  base::WordText word(size_t i);

  // The points of kCurveInfo[curve], none when too few misses were seen; `counters` as counters() gave them.
  std::vector<base::MissCurve::Point> curve_points(size_t curve, const std::vector<uint64_t>& counters);

  // Asks the process to take a budget of so many bytes, and waits for its answer. Throws std::runtime_error if none comes within ten
  // seconds: it is stopped, or has ended. REQUIRES: a process.
  spill::BudgetAnswer ask_for_budget(uint64_t bytes);

  // Is the OS page of `address` allocated? REQUIRES: in the range. Throws std::runtime_error when the process has ended.
  bool is_allocated(uint64_t address);
  // Reads the OS page at `address` into `to`, which is aligned to one. REQUIRES: in the range. Throws std::runtime_error.
  void read_os_page(uint64_t address, char* to);

  bool read_memory(uint64_t address, void* to, size_t bytes) override;
  bool read_storage(uint64_t offset_bytes, void* to, size_t bytes) override;

 private:
  void read_published();
  [[noreturn]] void refuse(int error) const;
  void require_memory(uint64_t address, void* to, size_t bytes);
  int storage_descriptor();

  std::unique_ptr<CoreFile> core_;  // null: the process pid_
  pid_t pid_ = 0;
  std::string name_;
  spill::Published published_ = {};
  int storage_ = -1;
  std::string storage_problem_;
  bool misses_storage_ = false;  // what was to be read lay on storage, which went with the process
};

// The processes that run Spillway, of those that this user may look at, ascending.
std::vector<pid_t> find_spillway_processes();

// A process number as the user gave it. Throws WrongInput.
pid_t parse_process_id(std::string_view text);

}  // namespace tools
