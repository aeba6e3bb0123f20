#!/usr/bin/env python3
"""Programs over libpmem under `spillway persist run`: what they print and leave is what it is without it.

  persist_pmem_test.py BUILD [unittest arguments]     2 kills of each map; tests/kills.py has variables for more, and others

The programs are those of bench/persist_programs, pmem_calls.c, and fio. Pools lie in /dev/shm and are taken for persistent memory, but for those
that the kernel is to write.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from kills import Kills  # noqa: E402
from support import CLEAN, HANG_SECONDS, take_paths, temporary_folder  # noqa: E402

[BUILD] = take_paths(1)
SPILLWAY = BUILD / "bin/spillway"
MAPS, KV = BUILD / "libexec/spillway/persist-maps", BUILD / "libexec/spillway/persist-kv"
CALLS = BUILD / "tests/pmem_calls"
KINDS = ["ctree", "btree", "rbtree", "hashmap_tx", "hashmap_atomic"]
POLICIES = ["auto", "inline", "epoch", "decoupled", "proactive"]
MEMORY = {"PMEM_IS_PMEM_FORCE": "1", "PMEM2_FORCE_GRANULARITY": "CACHE_LINE"}
OPERATIONS, KEYS, SEED = 3000, 400, 5
KILLS = 2  # of each map


def run(*command, variables=MEMORY, folder=None):
    return subprocess.run([str(word) for word in command], env={**CLEAN, **variables}, capture_output=True, text=True, timeout=HANG_SECONDS, cwd=folder)


def content(answer):
    return {name: answer[name] for name in ("entries", "digest")}


@unittest.skipUnless(os.access("/dev/shm", os.W_OK), "/dev/shm is not there")
class Case(unittest.TestCase):
    def setUp(self):
        self.folder = temporary_folder(self, "/dev/shm")
        self.pools = 0

    def pool(self):
        self.pools += 1
        return self.folder / f"pool{self.pools}"

    def answer(self, *command, **keywords):
        ended = run(*command, **keywords)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""), (command, ended.stdout))
        return json.loads(ended.stdout)

    def through(self, *command, flags=(), **keywords):
        """What the program says, and the runtime's statistics."""
        stats = self.folder / "stats"
        answer = self.answer(SPILLWAY, "persist", "run", *flags, "--stats", stats, "--", *command, **keywords)
        return answer, json.loads(stats.read_text())

    def check_pool(self, pool):
        if shutil.which("pmempool"):
            ended = run("pmempool", "check", pool)
            self.assertEqual(ended.returncode, 0, ended.stdout)


class Calls(Case):
    def setUp(self):
        super().setUp()
        if not CALLS.exists():
            self.skipTest("libpmem2 is not there")

    def check(self, what, file, policy, variables, out=""):
        ended = run(SPILLWAY, "persist", "run", "--policy", policy, "--", CALLS, what, file, variables=variables)
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, out, ""), (what, policy))

    def test_libpmem(self):
        for policy in POLICIES:
            self.check("calls", self.folder / "file", policy, MEMORY)

    def test_domains_end_before_their_memory(self):
        for policy in POLICIES:
            self.check("ends", self.folder / "file", policy, MEMORY)

    def test_ordinary_files(self):
        folder = temporary_folder(self, "/var/tmp")
        for policy in POLICIES:
            self.check("pages", folder / "file", policy, {})

    def test_libpmem2(self):
        folder = temporary_folder(self, "/var/tmp")
        for policy in POLICIES:
            self.check("pmem2", self.folder / "file", policy, MEMORY, "lines\n")
            self.check("pmem2", folder / "file", policy, {}, "pages\n")

    def test_what_is_saved_when_power_fails_is_not_flushed(self):
        _, stats = self.through(MAPS, self.pool(), "ctree", 300, 100, SEED, flags=["--domain", "flush_on_fail"])
        self.assertGreater(stats["persist"]["asked_lines"], 0)
        self.assertEqual(stats["persist"]["executed_lines"], 0)


class Programs(Case):
    def check_stats(self, stats, policy):
        counts, flushers = stats["persist"], stats["flushers"]
        self.assertGreater(counts["asked_lines"], OPERATIONS)
        self.assertGreater(counts["fences"], OPERATIONS)
        self.assertEqual(counts["outside_lines"], 0)
        self.assertLessEqual(counts["executed_lines"] + flushers["executed_lines"], counts["asked_lines"])
        if policy == "decoupled":
            self.assertGreater(counts["pushed_lines"], 0)
        if policy == "inline":
            self.assertEqual(counts["executed_lines"], counts["asked_lines"])

    def test_maps(self):
        for kind in KINDS:
            words = [kind, OPERATIONS, KEYS, SEED]
            expected = self.answer(MAPS, self.pool(), *words)
            for policy in POLICIES:
                pool = self.pool()
                answer, stats = self.through(MAPS, pool, *words, flags=["--policy", policy])
                self.assertEqual({**answer, "seconds": 0}, {**expected, "seconds": 0}, policy)
                self.check_stats(stats, policy)
                self.assertEqual(content(self.answer(MAPS, pool, kind, 0, KEYS, SEED)), content(expected))
                self.check_pool(pool)
                pool.unlink()

    def test_all_maps_agree(self):
        contents = [content(self.answer(MAPS, self.pool(), kind, OPERATIONS, KEYS, SEED)) for kind in KINDS]
        self.assertEqual(contents, contents[:1] * len(KINDS))
        self.assertGreater(contents[0]["entries"], KEYS // 2)

    def test_keys_and_values(self):
        digests, lines = set(), {}
        for way in ("separate", "together"):
            words = [way, 1000, 4 * OPERATIONS, SEED]
            digests.add(self.answer(KV, self.pool(), *words)["digest"])
            for policy in POLICIES:
                pool = self.pool()
                answer, stats = self.through(KV, pool, *words, flags=["--policy", policy])
                self.check_stats(stats, policy)
                digests |= {answer["digest"], self.answer(KV, pool, *words)["digest"]}
                self.check_pool(pool)
                pool.unlink()
                lines[way] = stats["persist"]["asked_lines"]
        self.assertEqual(len(digests), 1)
        # What belongs together takes fewer lines.
        self.assertLess(lines["together"], lines["separate"])

    def test_dirtiness(self):
        _, stats = self.through(KV, self.pool(), "separate", 1000, 1000, SEED, flags=["--dirtiness"])
        self.assertGreater(stats["dirtiness"]["lines"], 1000)
        self.assertGreater(stats["dirtiness"]["share"], 0.01)
        self.assertLess(stats["dirtiness"]["share"], 0.9)

    def test_a_pool_that_the_kernel_writes(self):
        folder = temporary_folder(self, "/var/tmp")
        words = ["btree", 40, 40, SEED]
        expected = content(self.answer(MAPS, folder / "native", *words, variables={}))
        # libpmemobj has the kernel write each flush; taken for memory, fences do so.
        for name, variables in (("pages", {}), ("memory", MEMORY)):
            answer, stats = self.through(MAPS, folder / name, *words, flags=["--domain", "file"], variables=variables)
            self.assertEqual(content(answer), expected)
            self.assertGreater(stats["persist"]["noted_lines"], 40)
            self.assertEqual(stats["persist"]["noted_lines"], stats["persist"]["asked_lines"])
            self.assertEqual(content(self.answer(MAPS, folder / name, "btree", 0, 40, SEED, variables=variables)), expected)

    def kill(self, kind, policy, seconds):
        """Operations that the program has said are done before it is killed, and the pool that it leaves."""
        pool = self.pool()
        command = [SPILLWAY, "persist", "run", "--policy", policy, "--", MAPS, pool, kind, 100_000_000, KEYS, SEED, "report"]
        with subprocess.Popen([str(word) for word in command], env={**CLEAN, **MEMORY}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            said = bytearray(os.read(process.stdout.fileno(), 1))  # it has begun
            ends_at = time.monotonic() + seconds
            while time.monotonic() < ends_at:
                said += os.read(process.stdout.fileno(), 1 << 16)
            process.kill()
            said += process.stdout.read()
        self.assertEqual((process.returncode, set(said)), (-9, set(b".")))
        return len(said), pool

    def test_killed(self):
        kills = Kills(KILLS)
        for number in range(kills.count * len(KINDS)):
            kind, policy = KINDS[number % len(KINDS)], ["epoch", "decoupled", "auto"][number % 3]
            done, pool = self.kill(kind, policy, kills.random.uniform(0.01, 0.3))
            found = content(self.answer(MAPS, pool, kind, 0, KEYS, SEED))
            self.check_pool(pool)
            pool.unlink()
            # The operation that had begun is there or not; all before are.
            possible = [content(self.answer(MAPS, self.pool(), kind, count, KEYS, SEED)) for count in (done, done + 1)]
            self.assertIn(found, possible, f"{kind}, {policy}, {done} operations, SPILLWAY_TEST_SEED={kills.seed}")


@unittest.skipUnless(shutil.which("fio"), "fio is not there")
class Fio(Case):
    def fio(self, mode, *before, engine="libpmem"):
        words = ["fio", "--name=job", f"--directory={self.folder}", "--filename=data", "--size=16m", "--bs=4k", f"--rw={mode}", f"--ioengine={engine}", "--iodepth=1",
                 "--thread", "--verify=crc32c", "--verify_state_save=0", "--minimal"]
        words += ["--direct=1", "--sync=1"] if engine == "libpmem" else []  # which it does without
        ended = run(*before, *words, folder=self.folder)
        if "engine libpmem not loadable" in ended.stderr + ended.stdout:
            self.skipTest("this fio has no libpmem")
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)

    def test_what_is_written_is_read(self):
        self.fio("randwrite")
        self.fio("read", engine="psync")
        for policy in POLICIES:
            (self.folder / "data").unlink()
            stats = self.folder / "stats"
            self.fio("randwrite", SPILLWAY, "persist", "run", "--policy", policy, "--stats", stats, "--")
            counts = json.loads(stats.read_text())["persist"]
            self.assertEqual(counts["copied_lines"], (16 << 20) // 64)  # whole lines, which need no flush
            self.assertGreaterEqual(counts["fences"], 4096)
            self.fio("read", engine="psync")  # checks each block


if __name__ == "__main__":
    unittest.main(verbosity=2)
