// Memory nodes of the machine (NUMA): memory and the CPUs that are near to it.
//
// What is asked for here is where memory and threads should be: a system that does not agree leaves them where they are, and all works on.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace sys {

inline constexpr uint32_t kNodesMost = 64;

// Those that have memory, and CPUs that this process may use.
struct Nodes {
  uint32_t count = 0;
  uint32_t ids[kNodesMost] = {};
};

// At least one: 0, if the system does not say.
Nodes memory_nodes();
// Of the CPU that the calling thread runs on, at this moment.
uint32_t this_node();

// The pages of [address, address + bytes) that come into being from now on should be of the node's memory, as long as it has some. Whole OS
// pages. False: the system does not agree.
bool prefer_node(void* address, uint64_t bytes, uint32_t node);
// The calling thread stays on those of its CPUs that are the node's. False: there are none, or the system does not agree.
bool stay_on_node(uint32_t node);

// Sets the bits of "0-3,8\n", as far as there are any. False: that is no such list.
bool parse_number_list(std::string_view text, std::span<uint64_t> bits);

}  // namespace sys
