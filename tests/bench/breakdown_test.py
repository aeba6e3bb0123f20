#!/usr/bin/env python3
"""What `breakdown` gives each thread's caches, and what it counts.  breakdown_test.py SPILLWAY [unittest arguments]

Times are never looked at.
"""
import types
import unittest
import unittest.mock

from bench_case import Case

import breakdown

PAGE = breakdown.PAGE_BYTES


class Figures(Case):
    def setUp(self):
        super().setUp()
        self.measured = breakdown.Breakdown.__new__(breakdown.Breakdown)
        self.measured.context, self.measured.quick, self.measured.part = types.SimpleNamespace(storage="x", say=lambda text: None), False, 4
        self.measured.data_bytes = {"pagerank": 141_000_000, "gnu_sort": 200_000_000, "few": 8_000_000}

    def settings(self):
        return {**self.measured.figures(), "size": self.measured.sizes()}

    def test_threads_may_pin_what_their_caches_have(self):
        for name in self.measured.data_bytes:
            for figure, settings in self.settings().items():
                for setting in settings:
                    with self.subTest(f"{figure} {name} {setting.name}"):
                        frames = self.measured.budget(name) // setting.page_bytes
                        pinned = self.measured.private_pages(name, setting) * setting.threads
                        if pinned > breakdown.LEAST_PRIVATE * setting.threads:
                            self.assertLessEqual(pinned, frames - max(frames // 4, min(1024, frames // 2)))
                        self.assertLessEqual(self.measured.direct_pages(name, setting), self.measured.private_pages(name, setting))

    def test_what_a_figure_compares_differs_in_nothing_else(self):
        """Neither numbers of threads by what each has, nor sizes of pages by the bytes, nor policies and levels by either."""
        for name in ("pagerank", "gnu_sort"):
            for figure, unit in (("threads", lambda setting: 1), ("page", lambda setting: setting.page_bytes), ("policy", lambda setting: 1), ("levels", lambda setting: 1)):
                with self.subTest(f"{figure} {name}"):
                    self.assertEqual(len({self.measured.private_pages(name, setting) * unit(setting) for setting in self.settings()[figure]}), 1)

    def test_sizes_are_in_the_rows(self):
        setting = breakdown.Setting("both")
        self.assertEqual(self.measured.sizes_of("gnu_sort", setting), {"private_pages": 4096, "private_share": 2 * 4096 * PAGE / 50_000_000, "direct_pages": 1024})
        self.assertEqual(self.measured.sizes_of("gnu_sort", breakdown.Setting("direct", levels="direct")), {"direct_pages": 1024})
        self.assertEqual(self.measured.sizes_of("gnu_sort", breakdown.Setting("none", levels="none")), {})

    def test_each_ratio_has_its_own_spread_and_each_row_its_sizes(self):
        turns = {("satc", "4K"): [1.0, 2.0], ("satc", "8K"): [1.0, 3.0], ("table", "4K"): [1.0, 1.0], ("table", "8K"): [2.0, 2.0]}
        self.measured.command, self.measured.turns = lambda name, side, setting: None, lambda case, name, sides: turns
        settings = [setting for setting in self.measured.figures()["page"] if setting.name in ("4K", "8K")]
        rows = self.measured.figure("page/gnu_sort", "gnu_sort", settings)
        self.assertEqual({name: round(rows[1][name], 6) for name in ("ratio", "spread", "own_ratio", "own_spread", "table_ratio", "table_spread")},
                         {"ratio": 1.0, "spread": 1.0, "own_ratio": 1.25, "own_spread": 0.4, "table_ratio": 2.0, "table_spread": 0.0})
        for row, setting in zip(rows, settings):
            self.assertLessEqual(self.measured.sizes_of("gnu_sort", setting).items(), row.items())

    def test_misses_are_those_of_the_work(self):
        loaded = {"direct_hits": 100, "direct_misses": 50, "private_hits": 0, "private_misses": 50, "shared_accesses": 50, "direct_cycles": 1000, "private_cycles": 0, "shared_cycles": 5000, "bypasses": 1, "loads": 50}
        done = {"direct_hits": 190, "direct_misses": 60, "private_hits": 8, "private_misses": 52, "shared_accesses": 52, "direct_cycles": 1900, "private_cycles": 400, "shared_cycles": 25000, "bypasses": 3, "loads": 51}
        with unittest.mock.patch.object(self.measured, "counts", lambda name, setting, with_work: done if with_work else loaded, create=True):
            [row] = self.measured.misses("misses/gnu_sort", "gnu_sort")
        self.assertEqual({key: row[key] for key in ("case", "ours", "peer", "shared_misses_percent", "direct_cycles", "private_cycles", "shared_cycles", "bypassed", "pairs")},
                         {"case": "misses/gnu_sort/counted", "ours": 10, "peer": 20, "shared_misses_percent": 25, "direct_cycles": 10, "private_cycles": 50, "shared_cycles": 10000, "bypassed": 2, "pairs": 1})


if __name__ == "__main__":
    unittest.main(verbosity=2)
