// TopView: what `spillway top` shows of programs or of servers. It looks at them again and again, and shows a table or JSON.
#pragma once
#include <sys/types.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace tools {

class TopView {
 public:
  virtual ~TopView() = default;
  // Looks at what is there now. Rates are those between the last two looks.
  virtual void look() = 0;
  // Why there is nothing to show; "": there is something.
  virtual std::string problem() const = 0;
  // True: if there is nothing to show any more, there may be something later.
  virtual bool may_come_back() const = 0;
  // REQUIRES: no problem.
  virtual std::string table() = 0;
  // REQUIRES: no problem, or may_come_back(): then it tells the problem.
  virtual nlohmann::ordered_json json() = 0;
};

// 0: all programs. Throws WrongInput: there is no such process, or it does not run Spillway.
std::unique_ptr<TopView> watch_programs(pid_t pid);
// Servers, by the addresses of their metrics (split_address()). Throws WrongInput for what is no address.
std::unique_ptr<TopView> watch_servers(const std::vector<std::string>& addresses);

// What programs tell now, as Prometheus reads it (docs/debugging.md); "": there are none. 0: all of them. Throws as watch_programs(), and std::runtime_error:
// the process has ended.
std::string metrics_of_programs(pid_t pid);

// Cells of tables; "" if there is no value.
std::string padded(std::string text, size_t width, bool right = true);
std::string count_text(std::optional<double> value);
std::string bytes_text(std::optional<double> value);

}  // namespace tools
