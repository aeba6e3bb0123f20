"""Programs that are asked one line at a time, so that several can take turns, and statistics over the turns.

  with Programs() as programs:             whatever happens, they are gone afterwards
      a = programs.start([...])            waits for nothing
      a.ask("run\n", seconds)              one line of answer; Failure when there is none in time

  turns = take_turns(sides, turn, pairs, seconds)    all benchmarks end a case so: when it has its pairs, or when its time is over
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


def take_turns(sides, turn, pairs, seconds, look=None):
    """{side: what turn(side) has given, pair by pair}: so many pairs of turns of all sides, or as many as there is time for: one at least, and another one where the time that is left is half of what the last one took.
    What turn() has None of is left out: a side that is no longer there. look({side: what its turn has given}): at each pair."""
    taken, began, number, last = {side: [] for side in sides}, time.monotonic(), 0, 0.0
    while number == 0 or (number < pairs and time.monotonic() - began + last / 2 <= seconds):
        before = time.monotonic()
        answers = {side: answer for side in in_turn(taken, number) if (answer := turn(side)) is not None}
        if look:
            look(answers)
        for side, answer in answers.items():
            taken[side].append(answer)
        number, last = number + 1, time.monotonic() - before
    return taken


def take_warm_turns(sides, turn, pairs, seconds, look=None):
    """The same after a pair that does not count; but where that takes more than half of the time it is the one that counts: what was in memory before it has little part in it."""
    began = time.monotonic()
    first = take_turns(sides, turn, 1, 0, look)
    spent = time.monotonic() - began
    return first if spent > seconds / 2 else take_turns(sides, turn, pairs, seconds - spent, look)


def take_turns_after_one(sides, turn, pairs, seconds, look=None):
    """The same after a pair that never counts, neither as one nor as time: a warm-up."""
    take_turns(sides, turn, 1, 0, look)
    return take_turns(sides, turn, pairs, seconds, look)


def row_of(case, ours, peer, unit, **more):
    """A row of numbers of two sides, pair by pair. `pairs`: how many there were."""
    ratios = [own / theirs for own, theirs in zip(ours, peer)]
    return {"case": case, "ours": median(ours), "peer": median(peer), "ratio": median(ratios), "spread": spread(ratios), "unit": unit, "pairs": len(ratios), **more}


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
