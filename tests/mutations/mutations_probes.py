"""Breakages of probes: places where nobody can listen any more, or is told what is not so."""


def of(name, *patches, test="probes"):
    return {"name": name, "test": ("ctest", f"^{test}$"), "patches": list(patches)}


LOAD, EVICT, INC = "src/cache/partition/partition_load.cc", "src/cache/partition/partition_evict.cc", "src/base/probes.inc"

MUTATIONS = [
    of("a probe has gone from its place", ("src/spill/budget.cc", "  base::probes::budget(before_bytes, bytes);\n", "")),
    of("a probe's argument is of another size", ("src/base/probe.h", "inline void name(uint64_t a) { STAP_PROBE1(spillway, name, a); }", "inline void name(uint64_t a) { STAP_PROBE1(spillway, name, static_cast<uint32_t>(a)); }")),
    of("a probe tells of the frame instead of the page", (EVICT, "base::probes::eviction(index(victim.page), victim.changed_count)", "base::probes::eviction(index(victim.frame), victim.changed_count)")),
    of("a script listens to a probe that there is not", ("tools/trace/misses.bt", "spillway:load_done", "spillway:loaded")),
    of("a script is none that bpftrace understands", ("tools/trace/misses.bt", "  @missed[pid, arg0] = count();\n", "  @missed[pid, arg0] = counts();\n"), test="probes_scripts"),
]
