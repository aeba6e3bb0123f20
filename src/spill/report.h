// What the runtime tells when the program ends: --stats (JSON) and --verbose (one line).
#pragma once

namespace spill {

// Does what the options ask for. A file that cannot be written is reported in one line.
void write_report();

}  // namespace spill
