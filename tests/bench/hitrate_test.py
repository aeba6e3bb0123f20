#!/usr/bin/env python3
"""The program that `hitrate` runs, and the traces that it finds in a folder.  hitrate_test.py SPILLWAY [unittest arguments]

Times are never looked at.
"""
import gzip
import json
import lzma
import struct
import unittest

from bench_case import LIBEXEC, Case, assert_refused, bench, run_in


class HitRate(Case):
    PROGRAM = LIBEXEC / "hitrate"
    POLICIES = 25

    def setUp(self):
        super().setUp()
        self.traces = self.folder / "traces"
        self.traces.mkdir()

    def bench(self, *arguments):
        return bench("hitrate", "--quick", "--out", self.folder, "--storage", self.folder, "--traces", self.traces, *arguments)

    def test_a_trace_over_all_policies(self):
        (self.folder / "t").write_text("\n".join(str(i % 50) for i in range(1000)))
        ended = run_in(self.folder, self.PROGRAM, "lirs:t", 0, "32,100%", "all")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        answer = json.loads(ended.stdout)
        self.assertEqual((answer["accesses"], answer["pages"], len(answer["results"])), (1000, 50, 2 * self.POLICIES))
        hits = {(result["policy"], result["size"]): result["hits"] for result in answer["results"]}
        self.assertEqual((hits["lru", 32], hits["lru", 50]), (0, 950))
        self.assertEqual(max(hits[policy, 32] for policy, size in hits if size == 32), hits["opt", 32])

    def test_only_what_was_asked_for(self):
        answer = json.loads(run_in(self.folder, self.PROGRAM, "loop/10", 500, "32", "lru/8,2q").stdout)
        self.assertEqual((answer["accesses"], answer["pages"]), (500, 101))
        self.assertEqual([(result["policy"], result["size"]) for result in answer["results"]], [("lru/8", 32), ("2q", 32)])

    def test_wrong_words_are_one_line_and_status_2(self):
        (self.folder / "bad").write_text("1\n2\nthree\n")
        for words, said in (([], "sizes"), (["loop", "0", "64"], "sizes"), (["nothing", "0", "64", "lru"], "zipfleaf"), (["loop/0", "0", "64", "lru"], "NAME/N"),
                            (["loop", "x", "64", "lru"], "'x'"), (["loop", "0", "31", "lru"], "'31'"), (["loop", "0", "67108865", "lru"], "67108864"), (["loop", "0", "0%", "lru"], "'0%'"),
                            (["loop", "0", "101%", "lru"], "101%"), (["loop", "0", "nan%", "lru"], "nan%"), (["loop", "0", "64,", "lru"], "''"),
                            (["loop", "0", "64", "lfu"], "lru, clock"), (["loop", "0", "64", "clock/8"], "nrlfu, alfu, gclock"),
                            (["loop", "0", "64", "lru/12"], "8, 16 or 32"), (["tar:bad", "0", "64", "lru"], "oracle"),
                            (["lirs:bad", "0", "64", "lru"], "bad, line 3: 'three'"), (["u64:bad", "0", "64", "lru"], "bad, offset 8"),
                            (["lirs:none", "0", "64", "lru"], "none: No such file")):
            assert_refused(self, run_in(self.folder, self.PROGRAM, *words), said, by="hitrate: ")

    def test_files_of_each_format_are_found(self):
        """All hold the same pages in the same order."""
        pages = [number * number % 97 for number in range(2000)]
        lines = "".join(f"{page}\n" for page in pages).encode()
        (self.traces / "README.md").write_text("What they are.")
        (self.traces / "plain.trace").write_bytes(lines)
        (self.traces / "gz.txt.gz").write_bytes(gzip.compress(lines))
        (self.traces / "xz.lirs.xz").write_bytes(lzma.compress(lines))
        (self.traces / "arc.lis").write_text("".join(f"{page} 1 0 {number}\n" for number, page in enumerate(pages)))
        (self.traces / "csv.csv").write_text("time,id\n" + "".join(f"0,{page}\n" for page in pages))
        (self.traces / "spc.spc").write_text("".join(f"0,{page * 8},4096,r,0\n" for page in pages))
        (self.traces / "oracle.oracleGeneral.bin").write_bytes(b"".join(struct.pack("<IQIq", 0, page, 1, -1) for page in pages))
        (self.traces / "web12.trace").write_bytes(struct.pack(f"<{len(pages)}I", *pages))
        (self.traces / "scarab-recs.trace").write_bytes(struct.pack(f"<{len(pages)}Q", *pages))
        (self.traces / "half.u32").write_bytes(struct.pack(f"<{len(pages)}I", *pages))
        (self.traces / "half.u64").write_bytes(struct.pack(f"<{len(pages)}Q", *pages))
        (self.traces / "what.trace").write_bytes(struct.pack(f"<{len(pages)}I", *pages))
        names = ["arc", "csv", "gz", "half.u32", "half.u64", "oracle", "plain", "scarab-recs", "spc", "web12", "xz"]
        ended = self.bench(*(word for name in [*names, "what"] for word in ("--only", name)))
        self.assertEqual(ended.returncode, 0, ended.stderr)
        result = json.loads((self.folder / "hitrate.json").read_text())
        self.assertEqual([row["case"] for row in result["rows"]], [f"{name}/32" for name in names])
        self.assertEqual(len({json.dumps({**row, "case": ""}) for row in result["rows"]}), 1)
        self.assertEqual(len(result["notes"]), 1)
        self.assertIn("what.trace", result["notes"][0])

    def test_more_of_a_cache_hits_more(self):
        ended = self.bench("--only", "sizes", "--only", "loop")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        result = json.loads((self.folder / "hitrate.json").read_text())
        loop, *sizes = result["rows"]
        self.assertEqual((loop["case"], [row["case"] for row in sizes]), ("loop/202", [f"sizes/{pages}" for pages in (482, 964, 1929, 3858)]))
        for policy in ("lru/8", "nrlfu/8", "ours", "peer"):
            rates = [row[policy] for row in sizes]
            self.assertEqual(rates, sorted(rates), policy)
        # What is asked of them alone is in no mean.
        self.assertEqual(result["summary"]["mean_opt"], round(loop["opt"], 2))

    def test_a_wrong_file_is_one_line_and_status_2(self):
        for name, content in (("bad.lis", b"1 1 0\n"), ("bad.trace.gz", b"no gzip"), ("bad.xz", b""), ("bad.u64.gz", gzip.compress(b"1"))):
            path = self.traces / name
            path.write_bytes(content)
            assert_refused(self, self.bench("--only", "bad"), str(path))
            path.unlink()


if __name__ == "__main__":
    unittest.main(verbosity=2)
