"""Breakages of benchmarks that measure programs of their own: a kernel computes something else, a side has measured what it should not."""

GRAPH = "bench/graph/kernels.cc"
GENERATE = "bench/graph/generate.cc"
SORT = "bench/sort/sort.cc"
INDIRECT = "bench/indirect/indirect.cc"
DEVICES = "bench/driver/devices.py"
GRAPH_DRIVER = "bench/driver/graph.py"
LIMITED = "bench/driver/limited.py"
LOCKSTEP = "bench/driver/lockstep.py"
MEMORY_GROUP = "scripts/memory_group.py"
PROGRAMS = "bench/driver/programs.py"
REPORT = "bench/driver/report.py"
ROCKSDB = "bench/driver/rocksdb.py"
MIX = "bench/rocksdb/mix.h"
VARIANTS = "bench/driver/variants.py"


def of(name, test, *patches):
    return {"name": name, "test": ("ctest", f"^bench_{test}$"), "patches": list(patches)}


def of_mix(name, gtest_filter, *patches):
    return {"name": name, "test": ("rocksdb_mix_test", gtest_filter), "patches": list(patches)}


EVERYTHING = "bench/driver/everything.py"
KEPT = "bench/driver/kept.py"
PAPERS = "bench/driver/papers.py"
CLAIMS = "bench/driver/claims.py"
BREAKDOWN = "bench/driver/breakdown.py"

MUTATIONS = [
    of("all: one that fails ends the others", "everything", (EVERYTHING, "            self.failed[name] = str(failure)\n", "            raise\n")),
    of("all: results of other options are kept", "everything", (KEPT, '"quick": context.quick, "pairs"', '"pairs"')),
    of("all: a result of before stands for one that failed", "everything", (EVERYTHING, "            (self.out / (name + suffix)).unlink(missing_ok=True)", "            (self.out / (name + suffix + 'x')).unlink(missing_ok=True)")),
    of("cases of another build are taken", "kept", (KEPT, ' and found.get("made_by") == made_by else None', ' and "made_by" in found else None')),
    of("cases of a run before are taken without --resume", "kept", (KEPT, "        if not resume:\n            self.remove()\n        elif found := ", "        if found := ")),
    of("a case is written when the last one is measured", "kept", (KEPT, "        report.write_files(self.out, self.name, ", "        if len(self.data) > 2:\n            report.write_files(self.out, self.name, ")),
    of("what only some cases were measured of stands for all", "kept", ("bench/driver/bench.py", '"made_by": made_by | ({"only": only} if only else {})', '"made_by": made_by')),
    of("cases that are kept are measured again", "kept", (KEPT, "(case[0] if isinstance(case, tuple) else case) not in self]", "case]")),
    of("a figure is measured though no case of it is there", "everything", (PAPERS, '(how if tables else "missing")', "how")),
    of("a figure is measured though one of its tables is not", "everything", (PAPERS, "if reasons and figure", "if False and figure")),
    of("what is beside a figure makes it measured", "everything", (PAPERS, 'r"(Figure|Tables?)', 'r"(?i:Beside )?(?i:Figure|Tables?)')),
    of("the spread of another ratio stands beside one", "everything", (PAPERS, 'column.removesuffix("ratio") + "spread"', '"spread"')),
    of("the last-level cache of a machine is its first level", "driver", (REPORT, "found.get(max(found", "found.get(min(found")),
    of("a single pair has no spread at all", "driver", (REPORT, ' and row.get("pairs", 1) == 1 else figure(value)', " and False else figure(value)")),
    of("lines of several programs are one", "everything", (PAPERS, "if len({name[at] for name in names}) > 1]", "if False]")),
    of("a figure has notes of other figures' cases", "everything", (PAPERS, "            elif fits(case, source", "            elif True or fits(case, source")),
    of("of all ratios more is better", "everything", (PAPERS, 'fits(column, source.get("less", []))', "False")),
    of("a curve of some rows hides the bars of the others", "everything", ("bench/driver/overview.py", " and not papers.fits(row", " and not in_curves and not papers.fits(row")),
    of("a curve of one point hides the bars", "everything", (PAPERS, "if len(points) > 1}", "if points}")),
    of("a logarithmic axis begins at nothing", "driver", ("bench/driver/plot.py", "is_logarithmic and min(numbers) > 0", "is_logarithmic")),
    of("the kernel's page cache is beside ours instead of direct I/O", "pagecache", ("bench/driver/pagecache.py", 'zip(rates, answers["direct"])', 'zip(rates, answers["pread"])')),
    of("an eleventh of the data in memory is a quarter", "pagecache", ("bench/driver/pagecache.py", "missing, plan.eleventh_memory_bytes))", "missing, plan.zipf_memory_bytes))")),
    of("a map is over ours instead of ours over it", "pagecache", ("bench/driver/pagecache.py", "rate_of(ours) / rate for ours, rate in", "rate / rate_of(ours) for ours, rate in")),
    of("a workload that inserts runs before those that do not", "ycsb", ("bench/driver/ycsb.py", "for workload in WORKLOADS for case in CASES}", "for workload in reversed(WORKLOADS) for case in CASES}")),
    of("what the disk costs is beside a peer on the disk", "server", ("bench/driver/server.py", '"disk_over_memcached": ("ours on disk", "memcached")', '"disk_over_memcached": ("ours on disk", "extstore")')),
    of("gets that ours does not find are as good as others", "ycsb", ("bench/driver/ycsb.py", "        if wrong and self.name != TIER:\n", "        if wrong and self.name == TIER:\n")),
    of("a failure of any server is a note", "ycsb", ("bench/driver/ycsb.py", "        if not str(failure).startswith(TIER):\n            raise\n", "")),
    of("simulated cores do any number of gets", "kv", ("bench/driver/kv_drives.py", "        heapq.heapreplace(free_cores, begun + core_us)\n", "")),
    of("simulated cores pay nothing for the kernel's part of a get", "kv", ("bench/driver/kv_drives.py", 'f"cores_{backend}": case for', 'f"cores_{backend}": self.busiest for')),
    of("the map that was told its size is one that grows", "kv_index", ("bench/driver/kv_index.py", '("peer", "insert_sized")', '("peer", "insert")')),
    of("fio reads from more than ours does", "kv", ("bench/driver/kv_contest.py", 'if operation == "get" else None)', "if False else None)")),
    of("fio's latency is that of its slower way", "kv", ("bench/driver/kv_contest.py", '"peer_p50_us": middle(best, "p50_us")', '"peer_p50_us": min(middle(side, "p50_us") for side in peers)')),
    of("sizes of cache-buckets are measured one after the other", "batch", ("bench/driver/batch_load.py", "for cell in in_turn(cells, turn):", "for cell in cells:")),
    of("misses that are saved are those that are left", "batch", ("bench/driver/batch_figures.py", '[100 * (1 - row["ratio"]) for row', '[100 * row["peer"] for row')),
    of("cache-buckets are over another search than is said", "batch", ("bench/driver/batch_figures.py", '"M/s"), **_over(DIRECT, ours, direct)}', '"M/s"), **_over(DIRECT, ours, peer)}')),
    of("gains by coalescing are among those without", "persist", ("bench/driver/papers/ribbon.toml", '"modelled_[!c]*_gain_percent_24*"', '"modelled_*_gain_percent_24*"')),
    of("a dirty line is over a clean one that another number of threads has flushed", "persist", ("bench/driver/persist_lines.py", 'row["case"].split("/")[1:5]): row["peer"]', 'row["case"].split("/")[1:4] + ["1"]): row["peer"]')),
    of("a crowd's factor is told and not used", "persist", ("bench/persist/model_load.cc", "make({.crowd_factor = settings.crowd_factor},", "make({},")),
    of("throughput by threads is over the most threads", "persist", ("bench/driver/persist_model.py", "own, rates[1], UNIT)", "own, rates[count], UNIT)")),
    of("a claim is measured in another unit", "everything", (CLAIMS, 'part.get("scale", 1) * value', "value")),
    of("a claim may be any amount too low", "everything", (CLAIMS, ', ("more", max(values) > (1 + TOLERANCE) * most))', ",)")),
    of("a claim of several values is held against the least", "everything", (CLAIMS, '("more", max(values) >', '("more", min(values) >')),
    of("quick runs say that claims are off", "everything", ("bench/driver/overview.py", 'is_check = not run["made_by"]["quick"]', "is_check = True")),
    of("figures of another processor are held against a claim", "everything", (CLAIMS, ' and part.get("cpu", "") in results[name]["machine"]["cpu"]', "")),
    of("a claim of several values is beside one of them", "everything", (CLAIMS, 'max(part["measured"])', 'min(part["measured"])')),
    of("Private shrinks as threads come", "breakdown", (BREAKDOWN, "threads=count, sharing=max(THREADS)", "threads=count")),
    of("Private has less of the memory where pages are of some sizes", "breakdown", (BREAKDOWN, ", half=True) for kib", ") for kib")),
    of("misses of what is loaded are those of the work", "breakdown", (BREAKDOWN, "after[key] - before.get(key, 0)", "after[key]")),
    of("compiling is measured of sources with -o alone", "programs", (PROGRAMS, 'if "-c" in words and len(sources) == 1', 'if "-c" in words and "-o" in words and len(sources) == 1')),
    of("vertices that a thread has found are lost at the end of a step", "graph", (GRAPH, "  ~Found() { flush(); }\n", "  ~Found() {}\n")),
    of("where rows begin is read in order whatever is advised", "graph", ("bench/graph/main.cc", "    madvise(const_cast<uint64_t*>(graph_.offsets), (graph_.vertices + 1) * sizeof(uint64_t), advice);\n", "")),
    of("a step upwards ends the search too soon", "graph", (GRAPH, "      next[v / 64] |= uint64_t{1} << v % 64;\n", "")),
    of("distances of a bin are not looked at again", "graph", (GRAPH, "        bins[better / kDelta].push_back(v);\n", "        if (better / kDelta != distance / kDelta) bins[better / kDelta].push_back(v);\n")),
    of("an edge has two weights", "graph", (GENERATE, "load::mix(uint64_t{std::min(a, b)} << 32 | std::max(a, b))", "load::mix(uint64_t{a} << 32 | b)")),
    of("parts of a shuffle are not sorted", "limited", (SORT, "  for (size_t part = 0; part < kParts; ++part)\n    std::sort(", "  for (size_t part = 1; part < kParts; ++part)\n    std::sort(")),
    of("a wrong sum is not noticed", "limited", (INDIRECT, "if (sum_of(a, b + at, kBatch) != sums[at / kBatch]) {", "if (sum_of(a, b + at, kBatch) == 0) {")),
    of("what was evicted counts as resident", "limited", (LIMITED, "    if resident != (counted[\"cache\"][\"evictions\"] == 0):\n", "    if not resident and counted[\"cache\"][\"evictions\"] == 0:\n")),
    of("what is mapped stays in the page cache", "limited", (DEVICES, "        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)\n", "")),
    of("a reader begins with what the last group has left", "pagecache", ("bench/driver/pagecache.py", "        forget(place)\n", "")),
    of("a contest begins with what the last one has left", "limited", (LIMITED, "            forget(device.mapped)\n", "            pass\n")),
    of("who waits for memory is not woken", "limited", (MEMORY_GROUP, "            if retries > 0:\n", "            if retries > RETRIES_MOST:\n")),
    of("who waits for memory waits for ever", "limited", (MEMORY_GROUP, "retries < RETRIES_MOST and ", "")),
    of("a table has the columns of its first row alone", "driver", (REPORT, "for row in rows for key in row)\n", "for row in rows[:1] for key in row)\n")),
    of("turns go on when the time is over", "driver", (LOCKSTEP, "+ last / 2 <= seconds", "<= 2 * seconds")),
    of("turns begin that cannot end in time", "driver", (LOCKSTEP, "+ last / 2 <= seconds", "<= seconds")),
    of("a first pair of half of the time does not count", "driver", (LOCKSTEP, "return first if spent > seconds / 2 else take_turns(", "return take_turns(")),
    of("a way of a peer that cannot be the best is waited for", "limited", (LIMITED, "min(waited_seconds, max(BEGIN_SECONDS, min(took.values())))", "waited_seconds")),
    of("first turns never count", "graph", (GRAPH_DRIVER, "        if spent > seconds:\n", "        if False:\n")),
    of("a peer has to load what it works on within the time for a turn", "graph", (GRAPH_DRIVER, "functools.partial(self.contest.ask, side, seconds=ANSWER_SECONDS)", "self.contest.asking(side)")),
    of("a peer that has begun anew is measured cold", "graph", (GRAPH_DRIVER, "sorted(self.cold) if take is take_turns else ()", "()")),
    of("long cases try all ways of peers", "graph", (GRAPH_DRIVER, "(names[:1] if is_long and known[side] else names)", "names")),
    of("who was late in a turn of rocksdb is in no note", "rocksdb", (ROCKSDB, "for note in contest.left_out()]", "for note in contest.notes]")),
    of("what two cases have in common is measured twice", "kept", (ROCKSDB, "if other in kept and cases[other] == cases[name]", "if False")),
    of("a peer is waited for however long it takes", "limited", (LIMITED, "self.peer_seconds if side in self.PEERS else ANSWER_SECONDS", "ANSWER_SECONDS")),
    of("swap reads no page ahead where memory is used in order", "limited", (LIMITED, "swap_in(self.swapped_in[side])", "swap_in(1)")),
    of("a peer works in the slowest of its ways", "limited", (LIMITED, "        best = min(took, key=took.get)\n", "        best = max(took, key=took.get)\n")),
    of("all turns of a peer that was late once are", "limited", (LIMITED, "    return seconds + [waited_seconds] * (pairs - len(seconds))\n", "    return [waited_seconds] * pairs\n")),
    of("tasks are beside few threads alone", "limited", ("bench/driver/random_access.py", "(peer, MANY_THREADS, mode)", "(peer, FEW_THREADS, mode)")),
    of("a row is over the worse peer", "limited", (LIMITED, "    best = min(peers, key=lambda peer: median(times[peer]))\n", "    best = max(peers, key=lambda peer: median(times[peer]))\n")),
    of("programs of both sides come of one compiler", "programs", (PROGRAMS, "zip((\"clang\", \"clang++\"), self.sides[side][:2])", "zip((\"clang\", \"clang++\"), self.sides[\"native\"][:2])")),
    of("Private holds half of what a kernel reads", "kernels", ("bench/driver/kernels.py", "SATC_PAGES = 1 << 18", "SATC_PAGES = 1 << 17")),
    of("the side of two bodies is compiled with one", "kernels", (VARIANTS, "\"two_bodies\": [BODIES.format(2)]", "\"two_bodies\": [BODIES.format(1)]")),
    of("a library of an older compiler is used", "rocksdb", (ROCKSDB, " and stamp.exists() and stamp.read_text() == self.made_of(side) else None", " else None")),
    of("tables that are plain maps count as spilled", "rocksdb", (ROCKSDB, "    if counted[\"spill\"][\"file_maps\"] == 0 or ", "    if ")),
    of("sources that are needed are left out", "rocksdb", (ROCKSDB, "        return \"\".join(line for line in lines if not LEFT_OUT.match(line.strip())) + last\n", "        return \"\".join(line for line in lines if not LEFT_OUT.match(line.strip()))\n")),
    of_mix("all keys of a range are as hot", "*SomeRangesAreHot*", (MIX, "std::pow(random.unit(), 1 / 0.3467)", "random.unit()")),
    of_mix("the end of a value is not looked at", "*WhetherItIsWhole*", (MIX, "return Value(number, version).text() == value;", "return Value(number, version).text().substr(0, 8) == value.substr(0, 8);")),
]
