#!/usr/bin/env python3
"""What programs do: spillway top.  top_test.py BIN WORK [unittest arguments]"""
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios
import unittest

from programs import BIN, LIBRARY, PAGE, PUBLISHED, SOURCES, WORK, Live, setUpModule, spillway  # noqa: F401
from support import CLEAN, HANG_SECONDS, NOBODY, ONE_LINE, copied_for_everybody, environment

# A label of a metric, as Prometheus' text format has it.
LABEL = r'\w+="(?:[^"\\\n]|\\[\\"n])*"'
LABEL_PARTS = r'(\w+)="((?:[^"\\]|\\.)*)"'


class Top(unittest.TestCase):
    def json_of(self, *arguments):
        ended = spillway("top", "--once", "--json", *arguments)
        self.assertEqual((ended.returncode, ended.stderr), (0, b""))
        self.assertEqual(ended.stdout.count(b"\n"), 1)
        return json.loads(ended.stdout)

    def metrics_of(self, *arguments):
        """What Prometheus reads: {metric: its type}, and [(metric, {label: value}, value)]."""
        ended = spillway("top", "--prometheus", *arguments)
        self.assertEqual((ended.returncode, ended.stderr), (0, b""))
        types, samples, name = {}, [], None
        lines = ended.stdout.decode().split("\n")
        self.assertEqual(lines.pop(), "")
        heads = iter(lines)
        for line in heads:
            if head := re.fullmatch(r"# HELP (spillway_program_\w+) \S.*", line):
                name = head[1]
                self.assertNotIn(name, types)
                types[name] = re.fullmatch(rf"# TYPE {name} (counter|gauge)", next(heads))[1]
                continue
            sample = re.fullmatch(rf'{name}\{{({LABEL}(?:,{LABEL})*)\}} (\d+)', line)
            self.assertIsNotNone(sample, line)
            labels = {label: re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], value)
                      for label, value in re.findall(LABEL_PARTS, sample[1])}
            samples.append((name, labels, int(sample[2])))
        self.assertEqual(set(types), {name for name, _, _ in samples})
        self.assertEqual(len(samples), len({(name, labels["pid"]) for name, labels, _ in samples}))
        return types, samples

    def refused(self, *arguments, says):
        ended = spillway("top", *arguments)
        self.assertEqual((ended.returncode, ended.stdout), (2, b""), ended)
        self.assertRegex(ended.stderr.decode(), ONE_LINE)
        self.assertIn(says, ended.stderr.decode())

    def test_json_has_what_the_statistics_have(self):
        stats = WORK / "live-stats.json"
        for program, module in (("live", LIBRARY), ("live-static", WORK / "live-static")):
            live = Live(self, program, stats=stats)
            live.ask("foreign")
            [seen] = self.json_of(live.pid)["programs"]
            head = [seen.pop(key) for key in ("pid", "program", "budget_bytes", "page_bytes", "device")]
            self.assertEqual(head[:4], [live.pid, program, 1 << 20, PAGE])
            self.assertIn(str(WORK), head[4])
            live.child.stdin.close()
            live.child.wait(timeout=HANG_SECONDS)
            written = json.loads(stats.read_bytes())
            self.assertEqual({folder: list(keys) for folder, keys in seen.items()},
                             {folder: list(keys) for folder, keys in written.items()})
            self.assertEqual(seen["spill"]["faults"], written["spill"]["faults"])
            self.assertEqual(seen["spill"]["allocated_bytes"], live.bytes)
            self.assertGreater(seen["memory"]["frames_bytes"], 0)
            [site] = seen["spill"]["fault_sites"]
            [told] = written["spill"]["fault_sites"]
            # Here the file's own symbols are known too.
            self.assertEqual((site["module"], site.pop("symbol")), (str(module), "foreign_cold"))
            del told["symbol"]
            self.assertEqual(site, told)

    def test_all_programs(self):
        lives = [Live(self), Live(self)]
        lives[0].ask("foreign")
        lives[1].ask("work")
        programs = {entry["pid"]: entry for entry in self.json_of()["programs"]}
        for live in lives:
            self.assertEqual(programs[live.pid]["program"], "live")
        for _ in range(20):
            ended = spillway("top", "--once")
            self.assertEqual((ended.returncode, ended.stderr), (0, b""))
            lines = ended.stdout.decode().splitlines()
            head = lines[0].split()
            rows = {int(line.split()[0]): line for line in lines[1:]}
            # Its second table, so that there are rates.
            misses = int(rows[lives[1].pid][lines[0].index("spilled") + 7 :].split()[0])
            if misses > 0:
                break
        self.assertEqual(head[:2], ["pid", "program"])
        self.assertGreater(misses, 0)
        self.assertRegex(rows[lives[0].pid], r"libforeign\.so\+0x\w+ \(foreign_cold\)$")
        lives[1].ask("rest")

    def test_prometheus_reads_what_json_has(self):
        live = Live(self)
        live.ask("foreign")
        [seen] = self.json_of(live.pid)["programs"]
        types, samples = self.metrics_of(live.pid)
        told = {name: (labels, value) for name, labels, value in samples}
        for labels, _ in told.values():
            self.assertEqual((labels["pid"], labels["program"]), (str(live.pid), "live"))
        expected = {"spillway_program_info"}
        for folder, name, value in ((folder, *entry) for folder, entries in seen.items() if isinstance(entries, dict) for entry in entries.items()):
            metric = f"spillway_program_{folder}_{name}"
            if isinstance(value, str):
                self.assertEqual((told[metric][0]["word"], told[metric][1]), (value, 1))
            elif isinstance(value, int):
                metric = metric if metric in told else metric + "_total"
            else:  # sites, a curve
                continue
            expected.add(metric)
        self.assertEqual(set(told), expected)
        self.assertEqual({name for name in told if types[name] == "counter"}, {name for name in told if name.endswith("_total")})
        info = told["spillway_program_info"][0]
        self.assertEqual((info["device"], info["page_bytes"]), (seen["device"], str(PAGE)))
        self.assertEqual(told["spillway_program_spill_faults_total"][1], seen["spill"]["faults"])
        self.assertEqual(told["spillway_program_spill_live_bytes"][1], live.bytes)
        self.assertEqual(told["spillway_program_memory_budget_bytes"][1], 1 << 20)
        live.ask("foreign")
        later = {name: value for name, _, value in self.metrics_of(live.pid)[1]}
        self.assertGreaterEqual(later["spillway_program_spill_faults_total"], seen["spill"]["faults"] + live.bytes // PAGE - 64)

    def test_prometheus_reads_of_all_programs(self):
        # Of a name the kernel keeps 15 bytes: half of the last character.
        strange = 'a "q\\ ééééé'
        os.link(WORK / "live", WORK / strange)
        names = {}
        for program in ("live", "live", strange):
            live = Live(self, program)
            names[live.pid] = program
        names[live.pid] = 'a "q\\ éééé\ufffd'
        child = live.fork()
        samples = self.metrics_of()[1]
        found = {int(labels["pid"]): labels for name, labels, _ in samples if name == "spillway_program_info"}
        self.assertEqual({pid: found[pid]["program"] for pid in names}, names)
        problems = {int(labels["pid"]): labels["problem"] for name, labels, value in samples if name == "spillway_program_problem" and value == 1}
        self.assertIn("is a child of fork", problems[child])
        self.assertEqual([name for name, labels, _ in samples if labels["pid"] == str(child)], ["spillway_program_problem"])

    @unittest.skipIf(os.getuid() != 0, "needs root to become somebody else")
    def test_prometheus_reads_nothing_where_no_program_runs(self):
        live = Live(self)
        stranger = NOBODY - 1  # beside this test there may be programs of nobody's
        ended = spillway("top", "--prometheus", user=stranger, group=stranger, bin_folder=copied_for_everybody(self, BIN))
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, b"", b""))
        self.assertEqual(live.ask("foreign"), "done")  # it ran meanwhile, but is another's

    def test_blocks_that_another_thread_frees_are_never_less_than_none(self):
        program = WORK / "lent"
        subprocess.run([BIN / "spillcc", "-O1", "-pthread", SOURCES / "lent.c", "-o", program], check=True, env=CLEAN)
        with subprocess.Popen([program], env=environment(memory="1M", spill_all=1, storage=WORK), stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as child:
            self.assertEqual(child.stdout.readline(), "ready\n")
            [seen] = self.json_of(child.pid)["programs"]
            child.stdin.close()
            self.assertEqual(child.wait(timeout=HANG_SECONDS), 0)
        self.assertEqual(seen["spill"]["live_bytes"], 0)

    def test_one_program_until_it_ends(self):
        live = Live(self)
        live.ask("foreign")
        with subprocess.Popen([BIN / "spillway", "top", str(live.pid)], env=CLEAN, stdout=subprocess.PIPE, text=True) as child:
            lines = []
            while sum(line.startswith("process ") for line in lines) < 3:
                lines.append(child.stdout.readline())
                self.assertNotEqual(lines[-1], "")
            self.assertTrue(any(re.match(r"cache\.misses +\d+ +\d+$", line) for line in lines), lines)
            self.assertTrue(any(re.match(r"spill\.live_bytes +4\.0 MiB *$", line) for line in lines), lines)
            self.assertTrue(any("libforeign.so+" in line and "(foreign_cold)" in line for line in lines), lines)
            live.end()
            child.stdout.read()
            self.assertEqual(child.wait(timeout=HANG_SECONDS), 0)

    def test_on_a_terminal_lines_are_cut(self):
        live = Live(self)
        ours, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 30, 0, 0))
        child = subprocess.Popen([BIN / "spillway", "top", str(live.pid)], env={**CLEAN, "TERM": "xterm"}, stdout=its)
        os.close(its)
        shown = b""
        while shown.count(b"\x1b[H\x1b[2J") < 3:
            shown += os.read(ours, 65536)
        child.kill()
        child.wait()
        os.close(ours)
        for screen in shown.decode().split("\x1b[H\x1b[2J")[1:-1]:
            lines = screen.split("\r\n")
            self.assertEqual(len(lines), 10)
            self.assertLessEqual(max(map(len, lines)), 30)

    def test_wrong_input(self):
        live = Live(self)
        self.refused("12x", says="'12x' is not a process id")
        self.refused(live.pid, live.pid, says="takes one process id")
        self.refused("--twice", says="no option '--twice'")
        self.refused(live.pid, "--prometheus", "--json", says="--json or --prometheus, not both")
        self.refused("--prometheus", ":9150", says="Prometheus itself asks a server")
        for option in ("--once", "--prometheus"):
            self.refused(os.getpid(), option, says="does not run Spillway")
            self.refused(live.fork(), option, says="is a child of fork")
        with open(f"/proc/{live.pid}/mem", "wb", buffering=0) as memory:
            memory.seek(PUBLISHED + 8)
            memory.write(struct.pack("Q", 12345))
        self.refused(live.pid, "--once", says="runs another version of Spillway")
        problems = {entry["pid"]: entry.get("problem", "") for entry in self.json_of()["programs"]}
        self.assertIn("runs another version of Spillway", problems[live.pid])
        [problem] = [labels["problem"] for _, labels, _ in self.metrics_of()[1] if labels["pid"] == str(live.pid)]
        self.assertIn("runs another version of Spillway", problem)
        for option in ("--once", "--prometheus"):
            with open("/dev/full", "wb") as full:
                ended = subprocess.run([BIN / "spillway", "top", option], env=CLEAN, stdout=full, stderr=subprocess.PIPE, timeout=HANG_SECONDS)
            self.assertEqual((ended.returncode, ended.stderr), (1, b"spillway: cannot write to standard output\n"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
