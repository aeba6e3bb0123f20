// Memory nodes of the machine (NUMA): memory and the CPUs that are near to it.
//
// These functions ask for a place of memory or of a thread. A system that does not agree leaves it where it is, and everything works on.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace sys {

inline constexpr uint32_t kMaxNodes = 64;

// The nodes that have memory, and CPUs that this process may use.
struct Nodes {
  uint32_t count = 0;
  uint32_t ids[kMaxNodes] = {};
};

// At least one node: number 0, if the system does not tell.
Nodes memory_nodes();
// The node of the CPU that the calling thread runs on at this moment.
uint32_t this_node();

// OS pages of [address, address + bytes), all of them whole, that come into being from now on should be in the node's memory, as long as it has some.
// False: the system does not agree.
bool prefer_node(void* address, uint64_t bytes, uint32_t node);
// The calling thread stays on those of its CPUs that are the node's. False: there are none, or the system does not agree.
bool stay_on_node(uint32_t node);

// Sets bits 0 to 3 and 8 for "0-3,8\n", and so on; numbers beyond `bits` are passed over. False: the text is no such list.
bool parse_number_list(std::string_view text, std::span<uint64_t> bits);

}  // namespace sys
