#include "process.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "command.h"
#include "spill/abi.h"

namespace tools {
namespace {

// Bytes read, or -1 and errno.
ssize_t read_from(pid_t pid, uint64_t address, void* to, size_t bytes) {
  const iovec local = {to, bytes};
  const iovec remote = {reinterpret_cast<void*>(address), bytes};
  return process_vm_readv(pid, &local, 1, &remote, 1, 0);
}

std::string name_of(pid_t pid) {
  std::ifstream file(concat("/proc/", pid, "/comm"));
  std::string name;
  std::getline(file, name);
  return printable(name);
}

}  // namespace

pid_t parse_process_id(std::string_view text) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (error != std::errc() || end != text.data() + text.size() || pid <= 0)
    throw WrongInput(concat("'", printable(text), "' is not a process id; write a number such as 1234"));
  return pid;
}

std::string Process::description() const {
  return core_ != nullptr ? "the core file" : concat("process ", pid_, " (", name_, ")");
}

void Process::refuse(int error) const {
  if (core_ != nullptr)
    throw WrongInput(concat("the core file is not of a program that runs Spillway",
                            core_->problem().empty() ? "" : concat(", or not whole: it ", core_->problem())));
  switch (error) {
    case EPERM:
      throw WrongInput(
          concat(description(),
                 " may not be looked at: be its user or root, and where kernel.yama.ptrace_scope "
                 "is not 0 root"));
    case ESRCH:
      if (kill(pid_, 0) == 0 || errno != ESRCH)
        throw WrongInput(concat(description(), " has no memory: it has ended, or is the kernel's"));
      throw WrongInput(concat("there is no process ", pid_, "; spillway top lists those that run Spillway"));
    case EFAULT:
      throw WrongInput(
          concat(description(),
                 " does not run Spillway, or has not started it yet; spillway top lists those that do"));
    default: throw WrongInput(concat("cannot look at ", description(), ": ", std::strerror(error)));
  }
}

Process::Process(pid_t pid) : pid_(pid), name_(name_of(pid)) { read_published(); }

Process::Process(std::unique_ptr<CoreFile> core) : core_(std::move(core)) { read_published(); }

void Process::read_published() {
  uint64_t head[2] = {};
  if (!read_memory(spill::kPublished, head, sizeof head)) refuse(errno);
  if (head[0] != spill::Published::kMagic) refuse(EFAULT);
  if (head[1] != spill::kLayoutVersion)
    throw WrongInput(concat(description(), core_ != nullptr ? " is of" : " runs",
                            " another version of Spillway; use the spillway program that came with it"));
  require_memory(spill::kPublished, &published_, sizeof published_);
  published_.device[sizeof published_.device - 1] = '\0';
  if (!published_.cache.is_possible(0))
    throw WrongInput(
        concat(description(), " has another's bytes where Spillway keeps its map: it is garbled"));
}

Process::~Process() {
  if (storage_ >= 0) close(storage_);
}

bool Process::is_fork_child() {
  uint8_t is_child = 0;  // bool there, but who knows what was stored
  require_memory(published_.is_fork_child, &is_child, sizeof is_child);
  return is_child != 0;
}

bool Process::read_memory(uint64_t address, void* to, size_t bytes) {
  if (core_ != nullptr) return core_->read(address, to, bytes);
  return read_from(pid_, address, to, bytes) == static_cast<ssize_t>(bytes);
}

void Process::require_memory(uint64_t address, void* to, size_t bytes) {
  if (read_memory(address, to, bytes)) return;
  if (core_ != nullptr) throw WrongInput(concat("the core file ", core_->problem()));
  throw std::runtime_error(concat("process ", pid_, " has ended"));
}

std::vector<uint64_t> Process::counters() {
  std::vector<char> bytes(sizeof(base::Statistics));
  require_memory(published_.statistics, bytes.data(), bytes.size());
  std::vector<uint64_t> values(base::kStatisticCount);
  for (size_t i = 0; i < values.size(); ++i)
    std::memcpy(&values[i], &bytes[base::counter_offset_bytes(i)], sizeof values[i]);
  return values;
}

std::vector<base::SiteTable::Site> Process::sites(size_t list) {
  base::SiteTable table;
  require_memory(published_.statistics + base::sites_offset_bytes(list), &table, sizeof table);
  std::vector<base::SiteTable::Site> sites(base::kSitesTold);
  sites.resize(table.hottest(sites));
  return sites;
}

std::vector<base::MissCurve::Point> Process::curve_points(size_t curve,
                                                          const std::vector<uint64_t>& counters) {
  base::MissCurve counted;
  require_memory(published_.statistics + base::curve_offset_bytes(curve), &counted, sizeof counted);
  std::vector<base::MissCurve::Point> points;
  for (size_t i = 0; i < base::MissCurve::kStepCount && !counted.is_empty(); ++i)
    points.push_back(counted.point(i, counters[number_of("memory", "budget_bytes")],
                                   counters[number_of("memory", "frames_bytes")],
                                   counters[number_of("cache", "misses")]));
  return points;
}

base::WordText Process::word(size_t i) {
  uint64_t letters = 0;
  require_memory(published_.statistics + base::word_offset_bytes(i), &letters, sizeof letters);
  return base::WordText(letters);
}

spill::BudgetAnswer Process::ask_for_budget(uint64_t bytes) {
  const auto write = [&](uint64_t offset, uint64_t value) {
    const iovec local = {&value, sizeof value};
    const iovec remote = {reinterpret_cast<void*>(spill::kPublished + offset), sizeof value};
    if (process_vm_writev(pid_, &local, 1, &remote, 1, 0) != sizeof value) refuse(errno);
  };
  constexpr uint64_t kRequest = offsetof(spill::Published, budget_request);
  std::random_device random;
  const uint64_t number = (uint64_t{random()} << 32 | random()) | 1;
  write(kRequest + offsetof(spill::BudgetRequest, bytes), bytes);
  write(kRequest + offsetof(spill::BudgetRequest, number), number);
  constexpr auto kPatience = std::chrono::seconds(10);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    spill::BudgetAnswer answer;
    require_memory(spill::kPublished + offsetof(spill::Published, budget_answer), &answer, sizeof answer);
    answer.message[sizeof answer.message - 1] = '\0';
    // The number is written last, but may have been read before the rest: a second read gets all that belongs
    // to it.
    if (answer.number == number) {
      require_memory(spill::kPublished + offsetof(spill::Published, budget_answer), &answer, sizeof answer);
      answer.message[sizeof answer.message - 1] = '\0';
      return answer;
    }
    if (std::chrono::steady_clock::now() > end)
      throw std::runtime_error(concat(description(),
                                      " has not answered for ten seconds: it is stopped, has no thread of "
                                      "the runtime's, or somebody else has asked at the same time"));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

bool Process::is_allocated(uint64_t address) {
  const auto element = [&]<class T>(uint64_t map, uint64_t i, T value) {
    require_memory(map + i * sizeof value, &value, sizeof value);
    return value;
  };
  const spill::AddressMaps& maps = published_.address_maps;
  return spill::is_allocated_by(
      address, [&](uint64_t i) { return element(maps.chunk_use, i, spill::ChunkUse{}); },
      [&](uint64_t i) { return element(maps.page_bits, i, uint64_t{0}); });
}

void Process::read_os_page(uint64_t address, char* to) {
  alignas(base::kOsPageBytes) char scratch[base::kOsPageBytes];
  misses_storage_ = false;
  const auto result = cache::read_os_page(published_.cache, address, to, scratch, *this);
  if (result == cache::ReadResult::kDone) return;
  const std::string at = concat(std::hex, std::showbase, address);
  if (core_ != nullptr) {
    if (misses_storage_)
      throw std::runtime_error(
          concat(at, " was on storage, which ended with the process; a core file has what was in memory"));
    if (result == cache::ReadResult::kUnreadable)
      throw WrongInput(concat("the core file ", core_->problem()));
    throw std::runtime_error(concat(at, " was on its way between memory and storage when the process ended"));
  }
  if (result == cache::ReadResult::kUnsettled)
    throw std::runtime_error(concat(at,
                                    " came and went whenever it was looked at; stop the process (kill -STOP ",
                                    pid_, ") and try again"));
  if (kill(pid_, 0) != 0 && errno == ESRCH) throw std::runtime_error(concat("process ", pid_, " has ended"));
  throw std::runtime_error(concat("cannot read ", at, " of process ", pid_, " from ",
                                  printable(published_.device),
                                  storage_problem_.empty() ? "" : ": " + storage_problem_));
}

bool Process::read_storage(uint64_t offset_bytes, void* to, size_t bytes) {
  if (published_.storage_memory != 0) return read_memory(published_.storage_memory + offset_bytes, to, bytes);
  if (core_ != nullptr) {
    misses_storage_ = true;
    return false;
  }
  if (published_.storage_descriptor < 0) {
    storage_problem_ = "only the process itself can read there";
    return false;
  }
  const ssize_t got = pread(storage_descriptor(), to, bytes, static_cast<off_t>(offset_bytes));
  if (got == static_cast<ssize_t>(bytes)) return true;
  if (got < 0 && storage_ >= 0) storage_problem_ = std::strerror(errno);
  return false;
}

// A descriptor for the file that the process has open, opened as it opened it.
int Process::storage_descriptor() {
  if (storage_ >= 0) return storage_;
  const auto handle = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  if (handle < 0) {
    storage_problem_ = concat("pidfd_open: ", std::strerror(errno));
    return -1;
  }
  storage_ = static_cast<int>(syscall(SYS_pidfd_getfd, handle, published_.storage_descriptor, 0));
  if (storage_ < 0) storage_problem_ = concat("pidfd_getfd: ", std::strerror(errno));
  close(handle);
  return storage_;
}

std::vector<pid_t> find_spillway_processes() {
  std::vector<pid_t> found;
  std::error_code error;
  const std::filesystem::directory_iterator processes("/proc", error);
  if (error) throw WrongInput(concat("cannot look for programs: /proc: ", error.message(), "; mount /proc"));
  for (const auto& entry : processes) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const pid_t pid = parse_process_id(name);
    uint64_t magic = 0;
    if (read_from(pid, spill::kPublished, &magic, sizeof magic) == sizeof magic &&
        magic == spill::Published::kMagic)
      found.push_back(pid);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace tools
