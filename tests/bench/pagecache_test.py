#!/usr/bin/env python3
"""The program of `pagecache`: what each side counts, and that it looks at what it reads; and what is made of answers.  pagecache_test.py SPILLWAY [unittest arguments]

Times are never looked at.
"""
import json
import types
import unittest
import unittest.mock

from bench_case import HANG_SECONDS, LIBEXEC, Case, assert_refused, run_in

import cases
import devices
import lockstep
import pagecache


class PageCache(Case):
    PROGRAM = LIBEXEC / "pagecache-load"
    BYTES = 1 << 20
    PAGES = BYTES // 4096
    MEMORY = BYTES // 8

    def setUp(self):
        super().setUp()
        self.place = self.folder / "data"
        self.place.write_bytes(bytes(self.BYTES))

    def fill(self, *settings):
        self.assertEqual(run_in(self.folder, self.PROGRAM, "fill", self.place, self.BYTES, *settings).returncode, 0)

    def answers(self, side, *lines, **settings):
        place = f"file:{self.place}" if side in ("cache", "direct") else self.place
        with lockstep.Programs() as programs:
            program = programs.start([self.PROGRAM, side, place, self.BYTES, *(f"{name}={value}" for name, value in settings.items())])
            self.assertEqual(program.read(HANG_SECONDS), "ready")
            answers = [json.loads(program.ask(line + "\n", HANG_SECONDS)) for line in lines]
            program.finish()
        return answers

    def test_each_block_begins_with_its_number_and_no_two_are_alike(self):
        self.fill()
        data = self.place.read_bytes()
        blocks = [data[at:at + 128] for at in range(0, self.BYTES, 128)]
        self.assertEqual([int.from_bytes(block[:8], "little") for block in blocks], list(range(len(blocks))))
        self.assertEqual(len({block[8:] for block in blocks}), len(blocks))

    def test_all_sides_do_what_they_are_asked(self):
        self.fill()
        for side in ("cache", "direct", *pagecache.HOT_PEERS, "pread_random"):
            with self.subTest(side):
                counted, timed = self.answers(side, "count 1000", "run read threads 2 0 0.01", **({"theta": 0.99} if side != "direct" else {}))
                self.assertEqual(counted["requests"], 1000)
                self.assertGreater(timed["requests"], 0)
                self.assertGreater(timed["seconds"], 0.01)
                self.assertEqual((counted["writes"], timed["writes"]), (0, 0))

    def test_what_fits_is_read_once(self):
        self.fill()
        for side in ("cache", "locked"):
            touched, hits = self.answers(side, "touch threads 1", "count 5000", memory=4 * self.BYTES)
            self.assertEqual(touched["requests"], self.PAGES)
            self.assertEqual(hits["reads"], 0, side)
        self.assertEqual(touched["reads"], 1)
        [touched] = self.answers("cache", "touch tasks 16", memory=4 * self.BYTES)
        self.assertAlmostEqual(touched["reads"] * touched["requests"], self.PAGES, delta=0.01)

    def test_both_sides_of_a_mix_do_the_same_to_the_device(self):
        """Once changed pages are evicted: of 100 requests ours reads those pages that are not there, and writes each changed one."""
        self.fill()
        for kind, reads in (("read", 1), ("mixed", 0.7), ("update", 1)):
            for by, depth in (("tasks", 1), ("tasks", 16), ("threads", 2)):
                for side in ("cache", "direct"):
                    with self.subTest(f"{kind} {by} {depth} {side}"):
                        for seconds in (0.1, 1, 10):
                            [answer] = self.answers(side, f"run {kind} {by} {depth} {seconds / 5} {seconds}", memory=self.MEMORY)
                            if answer["requests"] >= 1000:  # fewer, on a busy machine, say nothing of what goes on all the time
                                break
                        resident = self.MEMORY / self.BYTES if side == "cache" else 0
                        self.assertAlmostEqual(answer["reads"], reads * (1 - resident), delta=0.2)
                        self.assertAlmostEqual(answer["writes"], 0 if kind == "read" else 0.3 * (1 - resident), delta=0.2)
        data = self.place.read_bytes()
        self.assertEqual([int.from_bytes(data[at:at + 8], "little") for at in range(0, self.BYTES, 128)], list(range(self.BYTES // 128)))

    def test_what_a_queue_sends(self):
        """All that is not there; then, of what is, what other nodes have."""
        self.fill()
        for nodes in (1, 4):
            with self.subTest(nodes):
                touched, timed = self.answers("cache", "touch queue 256", "run read queue 256 0 0.05", memory=8 * self.BYTES, nodes=nodes)
                self.assertEqual((touched["requests"], touched["sent"]), (self.PAGES, 1))
                self.assertGreater(touched["messages"], 2 / 256)
                self.assertLessEqual(touched["messages"], 2)
                self.assertEqual(timed["reads"], 0)
                self.assertEqual(timed["sent"] > 0, nodes > 1)
                self.assertEqual(timed["messages"] > 0, nodes > 1)

    def test_another_blocks_bytes_end_it(self):
        self.fill()
        with open(self.place, "r+b") as file:
            for at in range(0, self.BYTES, 128):
                file.seek(at)
                file.write((1 << 40).to_bytes(8, "little"))
        for side in ("cache", "direct", "pread", "pread_random", "mmap", "locked"):
            with self.assertRaisesRegex(lockstep.Failure, r"pagecache-load: block [0-9]+ has the bytes of block 1099511627776\Z"):
                self.answers(side, "run read threads 1 0 10")

    def test_a_tree_is_searched_and_updated(self):
        for value in (8, 800):
            self.fill(f"value={value}")
            for side, hows in (("cache", ("tasks 1", "tasks 64", "threads 2")), ("pread", ("threads 2",)), ("pread_random", ("threads 1",))):
                with self.subTest(f"{side} {value}"):
                    lines = [f"run {kind} {how} 0 0.05" for how in hows for kind in ("read", "update", "read")]
                    *timed, counted = self.answers(side, *lines, "count 1000", value=value, memory=self.MEMORY, theta=0.99)
                    self.assertTrue(all(answer["requests"] > 0 for answer in timed))
                    self.assertEqual(counted["requests"], 1000)
            [answer] = self.answers("cache", "run read queue 64 0 0.05", value=value, memory=self.MEMORY, nodes=1)
            # No more than a leaf and the nodes above it.
            self.assertTrue(0.5 < answer["reads"] < 3, answer)
        counted, timed = self.answers("cache", "count 20000", "run update threads 1 0.1 0.2", value=800, memory=self.MEMORY)
        # Next to all leaves are read, and inner nodes stay. Five of a hundred lookups write.
        self.assertAlmostEqual(counted["reads"], 1 - self.MEMORY / self.BYTES, delta=0.1)
        self.assertAlmostEqual(timed["writes"], 0.05, delta=0.03)

    def test_another_keys_value_ends_it(self):
        leaves, values_begin = self.PAGES - 1, 8 + 5 * 8
        for begin, words in ((values_begin, "block [0-9]+ has the bytes of block 0"), (0, "page [0-9]+ is no node of level 0")):
            self.fill("value=800")
            with open(self.place, "r+b") as file:
                for page in range(leaves):
                    file.seek(page * 4096 + begin)
                    file.write(bytes(4096 - begin))
            for side in ("cache", "pread", "pread_random"):
                with self.assertRaisesRegex(lockstep.Failure, rf"pagecache-load: {words}\Z"):
                    self.answers(side, "run read threads 1 0 10", value=800)
            with self.assertRaisesRegex(lockstep.Failure, rf"pagecache-load: {words}\Z"):
                self.answers("cache", "run read queue 8 0 10", value=800, nodes=1)

    def test_the_kernels_page_cache_is_beside_reads_by_threads(self):
        def answers(*seconds):
            return [{"requests": 12, "seconds": each, "reads": 0.9} for each in seconds]

        self.assertEqual(pagecache.beside_kernel({"ours": answers(1), "direct": answers(1)}), {})
        columns = pagecache.beside_kernel({"direct": answers(1, 2, 3), "pread": answers(2, 2, 12)})
        self.assertEqual((columns["pread"], columns["pread_ratio"], columns["pread_spread"], columns["pread_reads"]), (6, 0.5, 1.5, 0.9))
        plan = pagecache.Plan(types.SimpleNamespace(quick=False, pairs=0))
        threads = {kind: [depth for _, of, depth in plan.cold_cases("disk", "threads") if of == kind] for kind in pagecache.KINDS}
        self.assertEqual((threads["read"], threads["update"]), ([1, 2, 4, 12], [1, 2]))

    def test_maps_are_beside_blocks_and_not_beside_trees(self):
        started, limits = [], []

        class Contest:
            def __init__(self, *_):
                self.running = {}

            def start(self, side, *_, **settings):
                self.running[side] = settings
                started.append(settings.get("memory"))

            def turns(self, sides, *_):
                return {side: [{"requests": {"cache": 60, "pread": 20, "pread_random": 30, "mmap": 40}[side], "seconds": 1.0, "cpu_us": 1.0, "reads": 0.5, "writes": 0.0}] for side in sides}

            settle = finish = lambda *_: None

        run = pagecache.Run.__new__(pagecache.Run)
        run.context = types.SimpleNamespace(progress=lambda text: None, say=lambda text: None)
        run.load, run.plan, run.limit_bytes, run.group_of = None, pagecache.Plan(types.SimpleNamespace(quick=True, pairs=1)), lambda cache_bytes: limits.append(cache_bytes) or 1 << 20, lambda *_: None
        with unittest.mock.patch.object(pagecache, "Contest", Contest):
            [[zipf], _], [[tree], _] = (run.limited(places, [(name, "read", 1)], memory_bytes) for places, name, memory_bytes in (("abcd", "zipf/disk/1", 1000), ("abc", "btree/disk/read/1", 2000)))
        self.assertEqual((zipf["best_peer"], zipf["ratio"], zipf["mmap_ratio"], zipf["mmap"]), ("pread_random", 2, 1.5, 40))
        self.assertEqual((tree["best_peer"], tree["ratio"], "mmap_ratio" in tree), ("pread_random", 2, False))
        # The cache has so much, the others what the limit leaves them.
        self.assertEqual((started, limits), ([1000, None, None, None, 2000, None, None], [1000, 2000]))

    def test_profiles_are_read_with_a_quarter_and_with_an_eleventh_in_memory(self):
        for quick in (False, True):
            run, taken = pagecache.Run.__new__(pagecache.Run), {}
            run.context = types.SimpleNamespace(cases=cases.Cases(["btree/disk/eleventh", "btree/disk/read"]), kept=types.SimpleNamespace(missing=list))
            run.plan = pagecache.Plan(types.SimpleNamespace(quick=quick, pairs=0))
            run.together = lambda group, measure: group and measure(group)
            run.profiles = lambda device, group, memory_bytes: taken.update({name: memory_bytes for name, *_ in group})
            run.on("disk")
            self.assertEqual(set(taken), {f"btree/disk/{name}/{threads}" for name in ("read", "eleventh") for threads in run.plan.zipf_threads})
            for name, memory_bytes in taken.items():
                self.assertEqual(memory_bytes % 4096, 0)
                self.assertAlmostEqual(run.plan.data_bytes / memory_bytes, 11 if "eleventh" in name else 4, delta=0.4)

    def test_a_group_begins_with_nothing_of_its_place_in_memory(self):
        forgotten = []
        with unittest.mock.patch.multiple(pagecache, forget=forgotten.append, MemoryGroup=unittest.mock.Mock()), devices.Cleanup() as cleanup:
            pagecache.Run.group_of(cleanup, "pread", self.place, 1 << 20)
        self.assertEqual(forgotten, [self.place])

    def test_zipfs_law(self):
        """An eighth of the pages, those that are asked for most, is asked for more often than not."""
        self.fill()
        alike, by_rank = (self.answers("cache", "count 30000", "count 30000", memory=self.MEMORY, theta=theta)[1] for theta in (0, 0.99))
        self.assertAlmostEqual(alike["reads"], 7 / 8, delta=0.03)
        self.assertLess(by_rank["reads"], 0.5)

    def test_wrong_words_are_one_line_and_status_2(self):
        right = ["cache", "memory:1M", "1048576"]
        wrong = [[], right[:2], ["nothing", *right[1:]], ["cache", "nothing:x", right[2]], [*right[:2], "1000"], [*right[:2], "0"], [*right[:2], "2097152"],
                 ["pread", self.folder / "none", right[2]], ["locked", self.place, right[2], "memory=0"], ["direct", "memory:1M", "2097152"]]
        wrong += [[*right, word] for word in ("memory", "memory=x", "memory=1", "theta=1", "nodes=65", "depth=1", "value=7", "value=4088")]
        wrong += [["locked", self.place, right[2], "value=8"]]
        for words in wrong:
            with self.subTest(words):
                assert_refused(self, run_in(self.folder, self.PROGRAM, *words), by="pagecache-load: ")
        with self.assertRaisesRegex(lockstep.Failure, "of a tree values are read, or changed"):
            self.answers("cache", "run mixed tasks 1 0 1", value=8)
        for line in ("nothing", "count 0", "touch tasks 0", "run read tasks 1 0", "run read tasks 1 0 0", "run read tasks 1 nan 1", "run write tasks 1 0 1",
                     "run read forks 1 0 1", "run read queue 1 0 1", "run read threads 1025 0 1"):
            with self.subTest(line), self.assertRaisesRegex(lockstep.Failure, "ended early with status 2: pagecache-load: "):
                self.answers("cache", line)

    def test_rows_and_figures(self):
        def answers(*rates):
            return [{"requests": 2 * rate, "seconds": 2.0, "cpu_us": 1.0, "reads": 0.5, "writes": 0.25} for rate in rates]
        row = pagecache.make_row("cold/disk/read/tasks/1", answers(90, 100, 110), answers(100, 100, 100))
        self.assertEqual((row["ours"], row["peer"], row["ratio"], row["reads"], row["peer_writes"]), (100, 100, 1, 0.5, 0.25))
        self.assertAlmostEqual(row["spread"], 0.2)
        other = pagecache.make_row("cold/disk/read/tasks/64", answers(4), answers(1))
        zipf = pagecache.make_row("zipf/disk/1", answers(6), answers(2), best_peer="pread")
        nodes = pagecache.make_row("nodes/hot/4", answers(3), answers(6), messages=0.05)
        self.assertEqual(pagecache.summarise([row, other, zipf, nodes]),
                         {"zipf_disk_1_ratio": 3, "nodes_hot_4_ratio": 0.5, "nodes_hot_4_messages": 0.05, "cold_disk_read_ratio": 2, "cold_disk_read_worst": 1})


if __name__ == "__main__":
    unittest.main(verbosity=2)
