#include "server/resp/request_queue.h"

namespace server::resp {

bool RequestQueue::add(const Command& command, Arguments arguments, uint64_t bytes_max) {
  uint64_t bytes = bytes_.size();
  for (const std::string_view argument : arguments) bytes += argument.size();
  const size_t length_count = lengths_.size() + arguments.size();
  if (bytes + length_count * sizeof(size_t) + (count() + 1) * sizeof(Request) > bytes_max) return false;
  for (const std::string_view argument : arguments) {
    lengths_.push_back(argument.size());
    bytes_ += argument;
  }
  requests_.push_back({.command = &command, .argument_count = arguments.size()});
  return true;
}

}  // namespace server::resp
