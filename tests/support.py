"""Shared by the test scripts: the environment and the folders of programs under test, and how a script ends.

Scripts lie in folders below this one; tests/cli/cli_test.py imports it by

    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
    from support import CLEAN  # noqa: E402
"""
import ctypes
import datetime
import errno
import json
import os
import pathlib
import pty
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import time

# The environment without the options of Spillway that this process was given, and without the options of a make that runs the tests.
CLEAN = {name: value for name, value in os.environ.items()
         if not name.startswith("SPILLWAY_") and name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
HANG_SECONDS = 240  # what a program that ends in seconds may take on a slow machine before it counts as hung
NOBODY = 65534
SKIPPED = 77  # an exit status; ctest counts it by itself


def one_line(by):
    """A pattern of all that a program prints about wrong input: one line that begins with `by`."""
    return rf"\A{by}[^\n]{{10,300}}\n\Z"


ONE_LINE = one_line("spillway: ")


class Skipped(Exception):
    """Something that the test needs is missing."""


class Failure(Exception):
    pass


def status_of(name, test, *arguments):
    """Runs test(*arguments) and returns the exit status of the script; prints what went wrong."""
    try:
        test(*arguments)
    except Skipped as reason:
        print(reason)
        return SKIPPED
    except Failure as failure:
        print(f"{name}: {failure}", file=sys.stderr)
        return 1
    return 0


def environment(**settings):
    """CLEAN with options as variables: spill_all=1 is SPILLWAY_SPILL_ALL=1."""
    return {**CLEAN, **{"SPILLWAY_" + name.upper(): str(value) for name, value in settings.items()}}


def shell_line(variables, command):
    """A line for a shell that runs the command with these variables."""
    return " ".join([*(f"{name}={shlex.quote(value)}" for name, value in variables.items()), shlex.join(command)])


def sanitizer_of(program):
    """Which one it was built with: "address", "thread" or None. With one, a process has terabytes of addresses, and takes several times the memory and time."""
    content = pathlib.Path(program).read_bytes()
    return next((name for name, symbol in (("address", b"__asan_init"), ("thread", b"__tsan_init")) if symbol in content), None)


def take_paths(count):
    """Takes the first arguments of the script; the rest are for unittest."""
    return [pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(count)]


def fresh(folder):
    """The folder, with nothing in it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def temporary_folder(test, inside=None):
    """A folder that is removed when the test has ended."""
    folder = tempfile.TemporaryDirectory(dir=inside)
    test.addCleanup(folder.cleanup)
    return pathlib.Path(folder.name)


def run_in(folder, *command, **settings):
    """Runs a command there until it ends; settings as for environment()."""
    return subprocess.run([str(word) for word in command], env=environment(**settings), cwd=folder, capture_output=True,
                          text=True, timeout=300)


def built_in(folder, *command):
    """Runs a compiler there, which must print nothing, and returns what it made: the file after -o."""
    ended = run_in(folder, *command)
    if ended.returncode != 0 or ended.stderr:
        raise AssertionError(f"{command}\n{ended.stdout}{ended.stderr}")
    return folder / command[command.index("-o") + 1]


def shown_on_a_terminal(run):
    """All that a terminal was sent while run(its descriptor) ran."""
    ours, its = pty.openpty()
    try:
        run(its)
    finally:
        os.close(its)
    shown = b""
    try:
        while block := os.read(ours, 1 << 16):
            shown += block
    except OSError as error:
        if error.errno != errno.EIO:  # nobody has it open any more
            raise
    finally:
        os.close(ours)
    return shown


def assert_refused(test, ended, *says, by="spillway: "):
    """A program has ended with status 2, nothing on standard output, and one line on standard error, which begins with `by` and has all of `says`."""
    test.assertEqual((ended.returncode, ended.stdout), (2, ""), ended)
    test.assertRegex(ended.stderr, one_line(by), ended)
    for words in says:
        test.assertIn(words, ended.stderr, ended)


def log_event(test, line):
    """The object in a line that was written with --log-format json, after checking what all of them have."""
    event = json.loads(line)
    test.assertEqual((list(event)[:3], list(event)[-1]), (["time", "level", "event"], "message"), line)
    moment = datetime.datetime.strptime(event["time"], "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=datetime.timezone.utc)
    test.assertLess(abs(time.time() - moment.timestamp()), HANG_SECONDS)
    test.assertIn(event["level"], ("info", "warning", "error"))
    test.assertRegex(event["event"], r"^[a-z_]+$")
    return event


def become_nobody():
    """For preexec_fn: the program runs as a user without rights."""
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def filtering(*steps):
    """For preexec_fn: these steps of classic BPF decide about each system call of the program. Each is (code, steps to skip if true, steps to skip if false, number)."""
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    library = ctypes.CDLL(None, use_errno=True)

    def enter():
        program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
        no_new_privileges, set_filter = 38, (22, 2)
        if library.prctl(no_new_privileges, 1, 0, 0, 0) != 0 or library.prctl(*set_filter, program, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "seccomp")

    return enter


def copied_for_everybody(test, bin_folder):
    """Copies `spillway` and the library that it preloads, in their places relative to each other, to a folder that every user may
    enter, since the build folder may be closed to them. The folder is removed when the test has ended."""
    root = temporary_folder(test)
    root.chmod(0o755)
    for path in (bin_folder / "spillway", bin_folder.parent / "lib" / "libspillway-preload.so"):
        copy = root / path.relative_to(bin_folder.parent)
        copy.parent.mkdir(exist_ok=True)
        shutil.copy(path, copy)
    return root / bin_folder.name
