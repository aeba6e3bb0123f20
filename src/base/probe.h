// Probes: static tracepoints (USDT). Each is an instruction that does nothing, and a note in the binary that says where it is and where its
// arguments are: bpftrace and gdb put a breakpoint there, in processes that run already. Nobody else pays for it.
//
//   base::probes::miss(index(page), count);
//
// Arguments are computed whether anybody listens or not: give what is at hand. None belongs in code that runs at each access.
// To add one: a line in probes.inc; its call, once for all places that mean the same if that can be; `make docs`. tests/probes finds one that
// a binary has lost, or has with other arguments.
#pragma once
#include <sys/sdt.h>

#include <cstddef>
#include <cstdint>

namespace base {

namespace probes {
// Inlined, so that the instruction lies where it is called, also where nothing is optimized.
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
  Argument arguments[3];  // those that it has have names
};
inline constexpr ProbeInfo kProbeInfo[] = {
#define PROBE1(folder, name, doc, a, a_doc) {#folder, #name, doc, {{#a, a_doc}}},
#define PROBE2(folder, name, doc, a, a_doc, b, b_doc) {#folder, #name, doc, {{#a, a_doc}, {#b, b_doc}}},
#define PROBE3(folder, name, doc, a, a_doc, b, b_doc, c, c_doc) \
  {#folder, #name, doc, {{#a, a_doc}, {#b, b_doc}, {#c, c_doc}}},
#include "base/probes.inc"
};

}  // namespace base
