#!/usr/bin/env python3
"""The programs of `tasks`, each case for a moment, and the benchmark without what it may do without.  tasks_test.py SPILLWAY [unittest arguments]

Times are never looked at.
"""
import json
import os
import shutil
import unittest

from bench_case import BENCH, LIBEXEC, Case, assert_refused, bench, built_in, run_in

import tasks


class Tasks(Case):
    OURS = LIBEXEC / "tasks-load"

    def check_cases(self, program):
        for case in tasks.COUNTS:
            if case == "notify_remote" and len(os.sched_getaffinity(0)) < 2:
                continue
            for count in (2, 300):
                ended = run_in(self.folder, program, case, count)
                self.assertEqual((ended.returncode, ended.stderr), (0, ""), (program, case))
                answer = json.loads(ended.stdout)
                self.assertEqual(answer["operations"], count, (program, case))
                figures = ("spawn_ns", "end_ns", "bytes") if case == "alive" else ("cpu_ns", "wall_ns")
                for figure in figures if count == 300 else ():
                    self.assertGreater(answer[figure], 0, (program, case))

    def test_ours_does_what_it_is_asked(self):
        self.check_cases(self.OURS)

    def test_threads_do_what_they_are_asked(self):
        self.check_cases(built_in(self.folder, "clang++-19", *tasks.FLAGS, BENCH / "tasks/pthreads.cc", "-o", "pthreads"))

    def test_a_task_takes_a_page_and_little_more(self):
        count = 20000
        answer = json.loads(run_in(self.folder, self.OURS, "alive", count).stdout)
        self.assertLess(answer["bytes"], 6144 * count)
        self.assertGreater(answer["bytes"], 4096 * count)

    def test_wrong_words_are_one_line_and_status_2(self):
        for words in ([], ["switch"], ["switch", "2", "2"], ["nothing", "2"], ["switch", "3"], ["switch", "0"], ["switch", "-2"],
                      ["switch", "2x"], ["switch", ""], ["switch", "2000000000002"]):
            assert_refused(self, run_in(self.folder, self.OURS, *words), by="")

    def test_what_is_missing_is_named_and_left_out(self):
        (self.folder / "path").mkdir()
        for program in ("clang-19", "python3", "ld"):
            (self.folder / "path" / program).symlink_to(shutil.which(program))
        compiler = self.folder / "path/clang++-19"
        compiler.write_text(f'#!/bin/sh\ncase "$*" in *boost*) echo libboost_fiber.so;; *) exec {shutil.which("clang++-19")} "$@";; esac\n')
        compiler.chmod(0o755)
        ended = bench("tasks", "--quick", "--pairs", 1, "--only", "switch", "--out", self.folder, "--storage", self.folder,
                      env={**os.environ, "PATH": str(self.folder / "path")})
        self.assertEqual(ended.returncode, 0, ended.stderr)
        result = json.loads((self.folder / "tasks.json").read_text())
        self.assertEqual([row["case"] for row in result["rows"]], ["switch"])
        self.assertEqual(result["rows"][0]["peer"], result["rows"][0]["pthreads"])
        self.assertEqual(set(result["summary"]), {"switch_ns", "switch_pthreads_ratio"})
        notes = " ".join(result["notes"])
        for package in ("libboost-fiber1.74-dev", "valgrind"):
            self.assertIn(package, notes)
            self.assertIn(package, ended.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
