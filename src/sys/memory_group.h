// Which memory groups (cgroups, version 1 or 2) this process is in.
#pragma once
#include <cstddef>
#include <string_view>

namespace sys {

// Finds a group in the text of /proc/self/cgroup, a line of which is "4:memory:/path": the group of these controllers, "memory" in version 1, "" in
// version 2. `path` becomes a part of the text, empty for the root. Returns whether there is such a group. In a container that path may not exist: the
// group is what the container sees as the root then.
inline bool find_group(std::string_view text, std::string_view controllers, std::string_view& path) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos ||
        line.substr(first + 1, second - first - 1) != controllers)
      continue;
    path = line.substr(second + 1);
    if (path == "/") path = "";
    return true;
  }
  return false;
}

}  // namespace sys
