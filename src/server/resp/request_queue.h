// RequestQueue: copies of requests that are carried out later, as those between MULTI and EXEC.
//
//   requests_    SET, 3 arguments | GET, 2 | ...
//   lengths_     3 1 5 | 3 1 | ...
//   bytes_       S E T k h e l l o | G E T k | ...
//
// Thread contract: used by one thread or task.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/resp/command.h"

namespace server::resp {

class RequestQueue {
 public:
  // False: its requests would then have more than this many bytes, including what is kept of each beside its arguments, and nothing was added.
  // While growing, the queue may take three times as much memory. Cost: a copy.
  bool add(const Command& command, Arguments arguments, uint64_t bytes_max);
  size_t count() const { return requests_.size(); }

  // Calls use(const Command&, Arguments) for each, in the order in which they were added. The arguments are views into the queue.
  template <class Use>
  void for_each(const Use& use) const {
    std::vector<std::string_view> arguments;
    const size_t* length = lengths_.data();
    std::string_view left = bytes_;
    for (const Request& request : requests_) {
      arguments.clear();
      for (size_t i = 0; i < request.argument_count; ++i, ++length) {
        arguments.push_back(left.substr(0, *length));
        left.remove_prefix(*length);
      }
      use(*request.command, Arguments(arguments));
    }
  }

 private:
  struct Request {
    const Command* command;
    size_t argument_count;
  };

  std::vector<Request> requests_;
  std::vector<size_t> lengths_;  // of the arguments of all requests
  std::string bytes_;            // the arguments, one behind the other
};

}  // namespace server::resp
