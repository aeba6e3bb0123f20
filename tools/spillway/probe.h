// What this machine offers, found by trying: each probe does the call that the runtime would do.
#pragma once
#include <nlohmann/json.hpp>

namespace tools {

// An object of sections (cpu, kernel, io_uring, memory, ...), each an object of facts, names with
// units, and "problems": an array of lines that say what stands in Spillway's way and what to do.
// Takes some ms; creates and removes one unnamed file in the default storage directory.
nlohmann::ordered_json probe_machine();

}  // namespace tools
