#!/usr/bin/env python3
"""What `ycsb` measures, and what it makes of YCSB's figures; nothing is run.  ycsb_test.py SPILLWAY [unittest arguments]"""
import types
import unittest

from bench_case import Case

import cases
import ycsb


def context(quick, *only):
    return types.SimpleNamespace(quick=quick, pairs=0, cases=cases.Cases(only))


class Ycsb(Case):
    def test_what_inserts_comes_last(self):
        """Since the other workloads ask for no more records than were loaded."""
        for quick in (False, True):
            turns = ycsb.Plan(context(quick)).turns()
            inserts = [ycsb.WORKLOADS[workload].get("insertproportion", 0) > 0 for _, workload, _ in turns.values()]
            self.assertEqual(inserts, sorted(inserts))
            self.assertTrue(any(inserts))

    def test_client_threads_are_gone_through(self):
        plan = ycsb.Plan(context(False))
        self.assertEqual(plan.turns()["clients/disk/256"], ("disk", "A", 256))
        self.assertEqual(plan.turns()["B/redis"], ("redis", "B", plan.threads))
        self.assertNotIn(plan.threads, plan.clients, "A/CASE has that")
        self.assertEqual(context(False, "clients/disk/1").cases.chosen(plan.turns()), ["clients/disk/1"])
        self.assertLessEqual(len(ycsb.Plan(context(True)).clients), 2)

    def test_a_row_is_of_medians_pair_by_pair(self):
        ours, theirs = ([{"rate": rate, "cpu_us": 2.0 * rate, "read_p50_us": 7.0 * rate} for rate in rates] for rates in ((10.0, 30.0, 20.0), (20.0, 30.0, 10.0)))
        row = ycsb._row("clients/disk/4", ours, theirs)
        self.assertEqual([row[key] for key in ("case", "ours", "peer", "ratio", "spread", "cpu_ratio", "read_p50_us", "peer_read_p50_us")], ["clients/disk/4", 20, 20, 1, 1.5, 1, 140, 140])


if __name__ == "__main__":
    unittest.main(verbosity=2)
