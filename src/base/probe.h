// Probes: static tracepoints (USDT). Each is a no-op instruction, and a note in the binary that says where it is and where its arguments are:
// bpftrace and gdb put a breakpoint there, also in running processes. Nobody else pays for it.
//
//   base::probes::miss(index(page), count);
//
// Arguments are computed whether anybody listens or not, so pass what is at hand. No probe belongs in code that runs at each access.
// To add one: a line in probes.inc; a call, a single one if possible for all places that mean the same; `make docs`. tests/probes finds probes
// that a binary has lost, or has with other arguments.
#pragma once
#include <sys/sdt.h>

#include <cstddef>
#include <cstdint>

namespace base {

namespace probes {
// Always inlined, so that the instruction lies in the caller, in unoptimized builds too.
#define PROBE1(folder, name, doc, a, a_doc) \
  [[gnu::always_inline]] inline void name(uint64_t a) { STAP_PROBE1(spillway, name, a); }
#define PROBE2(folder, name, doc, a, a_doc, b, b_doc) \
  [[gnu::always_inline]] inline void name(uint64_t a, uint64_t b) { STAP_PROBE2(spillway, name, a, b); }
#define PROBE3(folder, name, doc, a, a_doc, b, b_doc, c, c_doc)                 \
  [[gnu::always_inline]] inline void name(uint64_t a, uint64_t b, uint64_t c) { \
    STAP_PROBE3(spillway, name, a, b, c);                                       \
  }
#include "base/probes.inc"
}  // namespace probes

struct ProbeInfo {
  struct Argument {
    const char* name = nullptr;
    const char* doc = nullptr;
  };
  const char* folder;
  const char* name;
  const char* doc;
  Argument arguments[3];  // those without a name are unused
};
inline constexpr ProbeInfo kProbeInfo[] = {
#define PROBE1(folder, name, doc, a, a_doc) {#folder, #name, doc, {{#a, a_doc}}},
#define PROBE2(folder, name, doc, a, a_doc, b, b_doc) {#folder, #name, doc, {{#a, a_doc}, {#b, b_doc}}},
#define PROBE3(folder, name, doc, a, a_doc, b, b_doc, c, c_doc) \
  {#folder, #name, doc, {{#a, a_doc}, {#b, b_doc}, {#c, c_doc}}},
#include "base/probes.inc"
};

}  // namespace base
