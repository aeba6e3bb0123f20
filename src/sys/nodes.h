// Memory nodes of the machine (NUMA): memory and the CPUs near it.
//
// Where these functions ask the system for a place for memory or for a thread, it may refuse: then nothing changes, and everything still works.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace sys {

inline constexpr uint32_t kMaxNodes = 64;

// The nodes that have memory, and CPUs that the calling thread may use.
struct Nodes {
  uint32_t count = 0;
  uint32_t ids[kMaxNodes] = {};
};

// At least one node: number 0, if the system does not tell.
Nodes memory_nodes();
// The node of the CPU that the calling thread is running on.
uint32_t this_node();

// Asks for the node's memory, as long as it has some, for OS pages of [address, address + bytes) that get memory from now on. REQUIRES: whole OS pages.
// False: the system refuses.
bool prefer_node(void* address, uint64_t bytes, uint32_t node);
// From now on the calling thread runs only on those of its CPUs that are the node's. False: there are none, or the system refuses.
bool stay_on_node(uint32_t node);

// Sets bits 0 to 3 and 8 for "0-3,8\n", and so on; numbers beyond `bits` are ignored. False: the text is no such list.
bool parse_number_list(std::string_view text, std::span<uint64_t> bits);

}  // namespace sys
