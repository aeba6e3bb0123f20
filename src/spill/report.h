// What the runtime tells when the program ends: --stats (JSON) and --verbose (one line).
#pragma once

namespace spill {

// Sets the statistics of memory in use now.
void count_memory();

// Does what the options ask for. A file that cannot be written is reported in one line.
void write_report();

}  // namespace spill
