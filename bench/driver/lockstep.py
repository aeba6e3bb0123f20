"""Programs that are asked one line at a time, so that several can take turns, and statistics over the turns.

  with Programs() as programs:             whatever happens, they are gone afterwards
      a = programs.start([...])            waits for nothing
      a.ask("run\n", seconds)              one line of answer; Failure when there is none in time
"""
import math
import os
import pathlib
import select
import signal
import statistics
import subprocess
import tempfile
import time


def in_turn(sides, number):
    """The sides in the order of pair `number`: A B, B A, A B, …, so that neither is always the first."""
    return list(sides) if number % 2 == 0 else list(sides)[::-1]


def turns_within(warm_up, pairs, seconds):
    """(number, whether it counts) of each turn of all sides, until so many are done or the time is over: a third of it for those that do not count. One of each kind at least."""
    began, number = time.monotonic(), 0
    for counts, most, until in ((False, warm_up, seconds / 3), (True, pairs, seconds)):
        for turn in range(most):
            if turn > 0 and time.monotonic() - began > until:
                break
            yield number, counts
            number += 1


class Failure(Exception):
    """Ends a benchmark: the message is one line, the status the exit status."""

    def __init__(self, message, status=1):
        super().__init__(message)
        self.status = status


class Late(Failure):
    """There was no answer within the time for it."""


class Program:
    def __init__(self, command, environment, group=None):
        self.name = str(command[0])
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors, env=environment, bufsize=0, start_new_session=True,
                                        preexec_fn=group.enter if group else None)
        self.rest = b""

    def read(self, seconds):
        """The next line of its output, without the line's end."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self.rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise Late(f"{self.name} gave no answer within {seconds:.0f} s")
            part = self.process.stdout.read(4096)
            if not part:
                raise Failure(f"{self.name} ended early{self.last_words()}")
            self.rest += part
        line, self.rest = self.rest.split(b"\n", 1)
        return line.decode()

    def ask(self, question, seconds):
        try:
            self.process.stdin.write(question.encode())
        except BrokenPipeError:
            raise Failure(f"{self.name} ended early{self.last_words()}") from None
        return self.read(seconds)

    def asking(self, seconds):
        """ask, with the time that every answer may take (workloads.py)."""
        return lambda question: self.ask(question, seconds)

    def peak_bytes(self):
        """The most memory that it has taken so far."""
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
        raise Failure("the kernel does not tell how much memory a process uses")

    def last_words(self):
        self.process.wait()
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").strip().splitlines()
        status = self.process.returncode
        how = f" by signal {-status}" if status < 0 else f" with status {status}"
        return how + (f": {lines[-1]}" if lines else "")

    def finish(self, seconds=60):
        """Closes its input and waits for a good end."""
        self.process.stdin.close()
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.name} did not end") from None
        if status != 0:
            raise Failure(f"{self.name} ended{self.last_words()}")

    def kill(self):
        if self.process.poll() is None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.errors.close()


class Programs:
    def __init__(self):
        self.running = []
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("SPILLWAY_")}

    def start(self, command, group=None):
        program = Program(command, self.environment, group)
        self.running.append(program)
        return program

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for program in self.running:
            program.kill()


def median(values):
    return statistics.median(values)


def spread(values):
    """Of the pairs' ratios: from the least to the greatest, as a part of the median."""
    return (max(values) - min(values)) / median(values)


def geometric_mean(values):
    return math.exp(sum(math.log(value) for value in values) / len(values))
