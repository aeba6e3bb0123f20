#include "sys/nodes.h"

#include <linux/mempolicy.h>

#include <algorithm>

#include "base/bits.h"
#include "base/text.h"
#include "sys/files.h"
#include "sys/kernel.h"
#include "sys/threads.h"

namespace sys {
namespace {

// A list in a file of /sys/devices/system/node.
bool read_list(const char* file, std::span<uint64_t> bits) {
  base::Text<128> path;
  path << "/sys/devices/system/node/" << file;
  char text[4096];
  const long bytes = read_small_file(path.c_str(), text);
  return bytes > 0 && parse_number_list({text, static_cast<size_t>(bytes)}, bits);
}

// The node's CPUs that the calling thread may use; false if there are none.
bool own_cpus_of(uint32_t node, Cpus& cpus) {
  base::Text<64> file;
  file << "node" << node << "/cpulist";
  if (!read_list(file.c_str(), cpus.words)) return false;
  const Cpus allowed = own_cpus();
  bool has_some = false;
  for (size_t i = 0; i < std::size(cpus.words); ++i) has_some |= (cpus.words[i] &= allowed.words[i]) != 0;
  return has_some;
}

}  // namespace

bool parse_number_list(std::string_view text, std::span<uint64_t> bits) {
  size_t at = 0;
  const auto is_digit = [&] { return at < text.size() && text[at] >= '0' && text[at] <= '9'; };
  const auto number = [&] {
    uint64_t value = 0;
    for (; is_digit(); ++at)
      value = std::min<uint64_t>(value * 10 + static_cast<uint64_t>(text[at] - '0'), 1 << 20);
    return value;
  };
  while (at < text.size() && text[at] != '\n') {
    if (!is_digit()) return false;
    const uint64_t first = number();
    uint64_t last = first;
    if (at < text.size() && text[at] == '-') {
      ++at;
      if (!is_digit()) return false;
      last = number();
    }
    for (uint64_t i = first; i <= last && i < bits.size() * 64; ++i) base::set_bit(bits.data(), i);
    if (at < text.size() && text[at] == ',')
      ++at;
    else if (at < text.size() && text[at] != '\n')
      return false;
  }
  return true;
}

Nodes memory_nodes() {
  Nodes nodes;
  uint64_t with_memory = 0;
  if (read_list("has_memory", {&with_memory, 1})) {
    for (uint32_t id = 0; id < kMaxNodes; ++id) {
      Cpus cpus;
      if ((with_memory >> id & 1) != 0 && own_cpus_of(id, cpus)) nodes.ids[nodes.count++] = id;
    }
  }
  nodes.count = std::max(nodes.count, 1u);
  return nodes;
}

uint32_t this_node() {
  uint32_t node = 0;
  syscall(SYS_getcpu, nullptr, &node, nullptr);
  return node;
}

bool prefer_node(void* address, uint64_t bytes, uint32_t node) {
  if (node >= kMaxNodes) return false;
  const uint64_t nodes = uint64_t{1} << node;
  return !failed(syscall(SYS_mbind, address, bytes, MPOL_PREFERRED, &nodes, kMaxNodes + 1, 0));
}

bool stay_on_node(uint32_t node) {
  Cpus cpus;
  return own_cpus_of(node, cpus) && stay_on(cpus);
}

}  // namespace sys
