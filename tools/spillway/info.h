// What `spillway info` shows. Facts are found by trying the calls that the runtime would make.
#pragma once
#include <nlohmann/json.hpp>

namespace tools {

// What this machine offers: an object of sections (cpu, kernel, io_uring, memory, ...), each an object of facts, names with
// units, and "problems": an array of lines that say what stands in Spillway's way and what to do.
// Takes some ms; creates and removes one unnamed file in the default storage directory.
nlohmann::ordered_json machine_info();

// What `--storage TEXT` would be, as an object of sections: "device" (backend, block and capacity, ...), then "medium 1" and so
// on for each path in the text; and "problems". Opens them as `spillway run` would, but only the paths where that would change
// something: a file that pmem would allocate, or content that a run would refuse to overwrite, which is a problem. Throws
// WrongInput for what cannot be opened.
nlohmann::ordered_json device_info(std::string_view text);

}  // namespace tools
