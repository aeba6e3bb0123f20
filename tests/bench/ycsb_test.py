#!/usr/bin/env python3
"""What `ycsb` measures, and what it makes of YCSB's figures; nothing is run.  ycsb_test.py SPILLWAY [unittest arguments]"""
import contextlib
import json
import pathlib
import types
import unittest
import unittest.mock

from bench_case import Case

import cases
import lockstep
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
        self.assertEqual(plan.turns()["clients/extstore/256"], ("extstore", "A", 256))
        self.assertEqual(plan.turns()["B/redis"], ("redis", "B", plan.threads))
        self.assertNotIn(plan.threads, plan.clients, "A/CASE has that")
        self.assertEqual(context(False, "clients/extstore/1").cases.chosen(plan.turns()), ["clients/extstore/1"])
        self.assertLessEqual(len(ycsb.Plan(context(True)).clients), 2)

    def test_the_tier_has_as_much_memory_as_ours_beside_it(self):
        ours, peer, _ = ycsb.CASES["extstore"]
        plan, folder = ycsb.Plan(context(False)), pathlib.Path("folder")
        server = types.SimpleNamespace(contest=types.SimpleNamespace(plan=plan, context=types.SimpleNamespace(folder=folder, spillway="spillway")), ports={"MemcacheDb": 1, "RespDb": 2})
        words = {name: [str(word) for word in ycsb.Server._command(server, name)] for name in (ours, peer, "memcached")}
        self.assertIn(f"ext_path=folder/ext:{2 * plan.memory_mib}M,ext_item_size=512,slab_automove=2", words[peer])
        self.assertEqual(words[ours][words[ours].index("--memory") + 1], f"{plan.disk_memory_mib}M")
        # Its group has more, of which items in memory may have a part.
        limits = []
        with unittest.mock.patch.object(ycsb, "MemoryGroup", types.SimpleNamespace(create=lambda limit, _: limits.append(limit) or unittest.mock.Mock(), remove=lambda _: None)), ycsb.Cleanup() as cleanup:
            ycsb.Contest.group(types.SimpleNamespace(plan=plan, cleanup=cleanup))
        self.assertEqual(limits, [(plan.disk_memory_mib + ycsb.GROUP_REST_MIB) << 20])
        self.assertLess(int(words[peer][words[peer].index("-m") + 1]), plan.disk_memory_mib)
        self.assertFalse(any("ext_path" in word for word in words["memcached"]))

    def test_what_the_tier_cannot_do_is_a_note_and_of_others_an_error(self):
        notes = []
        with ycsb.tier_may_fail(notes, "A/extstore: "):
            raise lockstep.Failure("extstore: no memory controller")
        self.assertEqual(notes, ["A/extstore: extstore: no memory controller"])
        with self.assertRaises(lockstep.Failure), ycsb.tier_may_fail(notes, ""):
            raise lockstep.Failure("ours on disk ended by signal 11")

    def test_of_what_failed_the_part_is_known(self):
        told = {("READ", "Return=OK"): 80, ("READ", "Return=NOT_FOUND"): 15, ("UPDATE", "Return=ERROR"): 5, ("UPDATE", "Operations"): 1000, ("OVERALL", "RunTime(ms)"): 7}
        self.assertEqual(ycsb.failed_of(told), 0.2)
        self.assertEqual(ycsb.failed_of({("READ", "Return=OK"): 80}), 0)

    def test_an_operation_that_fails_ends_all_but_the_tier(self):
        for name, ends in (("memcached", True), ("ours on disk", True), ("extstore", False)):
            server = types.SimpleNamespace(name=name, records=1, ports={"MemcacheDb": 1}, cpu_us=lambda: 0.0)
            told = [{"metric": "READ", "measurement": "Return=NOT_FOUND", "value": 1}, {"metric": "OVERALL", "measurement": "Throughput(ops/sec)", "value": 1}, {"metric": "OVERALL", "measurement": "RunTime(ms)", "value": 1000}]

            def output(_):
                (self.folder / "measured.json").write_text(json.dumps(told))
                return ""

            server.contest = types.SimpleNamespace(context=types.SimpleNamespace(folder=self.folder, output=output), plan=ycsb.Plan(context(True)), classes="")
            with unittest.mock.patch.object(ycsb, "cpus", lambda: ["0", "1"]), self.assertRaises(lockstep.Failure) if ends else contextlib.nullcontext():
                ycsb.Server.run(server, "MemcacheDb", "-t", 1, {})

    def test_a_row_is_of_medians_pair_by_pair(self):
        ours, theirs = ([{"rate": rate, "cpu_us": 2.0 * rate, "read_p50_us": 7.0 * rate} for rate in rates] for rates in ((10.0, 30.0, 20.0), (20.0, 30.0, 10.0)))
        row = ycsb._row("clients/disk/4", ours, theirs)
        self.assertEqual([row[key] for key in ("case", "ours", "peer", "ratio", "spread", "cpu_ratio", "read_p50_us", "peer_read_p50_us")], ["clients/disk/4", 20, 20, 1, 1.5, 1, 140, 140])


if __name__ == "__main__":
    unittest.main(verbosity=2)
