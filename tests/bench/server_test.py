#!/usr/bin/env python3
"""Who stands beside whom in `server`; no server is run.  server_test.py SPILLWAY [unittest arguments]"""
import types
import unittest
import unittest.mock

from bench_case import Case

import server


class FakeServer:
    """Takes as much CPU time for a request as its name has letters."""

    def __init__(self, _, name):
        self.name = name

    def fill(self):
        pass

    def turn(self, *_):
        return dict.fromkeys(("rate", "p50_us", "p99_us", "p999_us", "hits", "read"), 1.0) | {"cpu_us": float(len(self.name))}


class Compared(Case):
    def rows(self, *wanted):
        context = types.SimpleNamespace(quick=True, pairs=1, progress=lambda text: None)
        contest = types.SimpleNamespace(context=context, plan=server.Plan(context), needed=server.Compared.servers(wanted))
        with unittest.mock.patch.object(server, "Server", FakeServer):
            return {row["case"]: (row["ours"], row["peer"]) for row in server.Compared.measure(contest, wanted)}

    def test_each_is_beside_its_peer(self):
        self.assertEqual(self.rows("1/memcached", "1/extstore", "1/disk_over_memcached", "16/extstore"),
                         {"1/memcached": (len("ours in memory"), len("memcached")), "1/extstore": (len("ours on disk"), len("extstore")),
                          "1/disk_over_memcached": (len("ours on disk"), len("memcached")), "16/extstore": (len("ours on disk"), len("extstore"))})

    def test_no_more_servers_run_than_are_needed(self):
        self.assertEqual(server.Compared.servers(["16x16/disk_over_memcached", "idle", "hitrate/zipf"]), ["ours on disk", "memcached"])
        self.assertEqual(server.Compared.servers(["idle", "overload"]), [])
        self.assertEqual(set(server.Compared.servers(server.Compared.CASES)), {"ours in memory", "memcached", "ours on disk", "extstore"})


if __name__ == "__main__":
    unittest.main(verbosity=2)
