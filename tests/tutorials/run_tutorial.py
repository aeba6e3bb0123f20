#!/usr/bin/env python3
"""Does what a page of docs/tutorials says, as a reader would.  run_tutorial.py SOURCE BUILD WORK PAGE [--slow]

What a page has, in its order:

    ```sh                  commands, for one shell and one folder from the page's begin to its end. One that fails ends the test.
    ```text                what the commands before it say on both streams, all of it. `...` in a line stands for anything, and
                           alone in a line for any number of lines. What comes from the background may be late.
    ```c                   and any other language: a file, if the first line is a comment with its name (`// count.c: what it does`)
    <!-- not run: why -->  in the line before it: the block is to be read only
    <!-- slow -->          the block is for --slow alone
    <!-- numbers vary -->  of what commands say: each number stands for any other, and so do blanks between columns

Commands are printed, and what they say. The folder is fresh, the programs of the build are found by PATH, `~/spillway` is a copy of the source (without --slow only of the folders that
commands name), and libraries are installed where pkg-config and the loader look. A page that serves something has a network of its own, so that its ports are free.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parents[1] / "bindings")]
from installed import install  # noqa: E402
from support import CLEAN, HANG_SECONDS, Failure, Skipped, fresh, status_of  # noqa: E402

BLOCK = re.compile(r"^(?:<!-- (?P<mark>[^\n]*) -->\n)?```(?P<language>\w+)\n(?P<text>.*?)^```$", re.M | re.S)
FILE_NAME = re.compile(r"\A(?://|#) (?P<name>[\w-]+\.\w+)(?::| *\n)")
SOURCE_FOLDERS = ["bench", "bindings", "cmake", "compiler", "examples", "include", "packaging", "scripts", "src", "tests", "tools"]
SOURCE_FILES = ["CMakeLists.txt", "CMakePresets.json"]
LATE_SECONDS = 60


class Block:
    def __init__(self, page, found):
        self.language, self.text, self.mark = found["language"], found["text"], found["mark"] or ""
        self.line = page.count("\n", 0, found.start("language")) + 1


def blocks_of(page, slow):
    """Those that are to be done."""
    blocks = [Block(page, found) for found in BLOCK.finditer(page)]
    for block in blocks:
        if not re.fullmatch(r"|slow|numbers vary|not run: .+", block.mark):
            raise Failure(f"line {block.line}: '{block.mark}' is no mark of a block")
    return [block for block in blocks if not block.mark.startswith("not run") and (block.mark != "slow" or slow)]


def pattern_of(line, numbers_vary):
    pattern = re.escape(line.strip() if numbers_vary else line).replace(r"\.\.\.", r"[^\n]*")
    if numbers_vary:
        pattern = re.sub(r"\d+(?:\\\.\d+)*", r"\\d[\\d.]*", pattern)
        pattern = re.sub(r"(?:\\ )+", r"[^\\S\\n]+", pattern)
        pattern = r"[^\S\n]*" + pattern
    return pattern + r"[^\S\n]*\n"


def says(expected, said, numbers_vary=False):
    """Is it what the page expects?"""
    pattern = ""
    for line in expected.splitlines():
        line = line.rstrip()
        pattern += r"(?:[^\n]*\n)*?" if line == "..." else pattern_of(line, numbers_vary)
    if said and not said.endswith("\n"):
        said += "\n"
    return re.fullmatch(pattern, said) is not None


class Shell:
    """One shell, in which blocks of commands are carried out one after the other. `root` is the folder that is its root, when `before`, the words
    before a command, make it so."""

    def __init__(self, folder, work, environment, before=(), root=pathlib.Path("/")):
        self.work, self.root, self.count = work, root, 0
        self.statuses, theirs = os.pipe()
        # A session of its own: what is still there at the end is ended with it.
        self.process = subprocess.Popen([*before, "bash", "--noprofile", "--norc", "-e"], stdin=subprocess.PIPE, cwd=folder,
                                        env=environment, pass_fds=[theirs], start_new_session=True, text=True)
        os.close(theirs)
        self.their_statuses = theirs

    def close(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.stdin.close()
        self.process.wait()
        os.close(self.statuses)

    def do(self, commands):
        """The file with what they say, and go on to say in the background. Failure when one of them fails."""
        self.count += 1
        script, output = self.work / f"{self.count}.sh", self.work / f"{self.count}.out"
        script.write_text(commands)
        its_script, its_output = ("/" / path.relative_to(self.root) for path in (script, output))
        # The shell forgets what runs in the background, so that it does not tell of its end.
        self.process.stdin.write(f". {its_script} >{its_output} 2>&1 </dev/null {self.their_statuses}>&-; echo done >&{self.their_statuses}; disown -a\n")
        self.process.stdin.flush()
        if os.read(self.statuses, 5) == b"":
            raise Failure(f"a command fails:\n{commands}\nand says:\n{output.read_text(errors='replace')}")
        return output


def check(block, output):
    """Waits for what the background still has to say."""
    give_up = time.monotonic() + LATE_SECONDS
    while not says(block.text, said := output.read_text(errors="replace"), block.mark == "numbers vary"):
        if time.monotonic() > give_up:
            raise Failure(f"line {block.line}: this should be said:\n{block.text}\nand this is:\n{said}")
        time.sleep(0.05)


def show(output):
    if output is not None:
        print(output.read_text(errors="replace"), end="", flush=True)


def follow(page, shell, folder, slow=False):
    """Does what the page says. Returns how many blocks of commands there were."""
    output, count = None, 0
    for block in blocks_of(page, slow):
        if block.language == "sh":
            show(output)
            print(textwrap.indent(block.text, "$ "), end="", flush=True)
            output = shell.do(block.text)
            count += 1
        elif block.language == "text":
            if output is None:
                raise Failure(f"line {block.line}: no commands say this, or two blocks are what the same ones say")
            check(block, output)
            show(output)
            output = None
        elif name := FILE_NAME.match(block.text):
            (folder / name["name"]).write_text(block.text)
    show(output)
    return count


def follow_to_its_end(path, shell, folder, slow):
    """The page, in a shell that is closed then. One that hangs is, too, which is a failure."""
    signal.signal(signal.SIGALRM, lambda *_: os.killpg(shell.process.pid, signal.SIGKILL))
    signal.alarm(HANG_SECONDS * (10 if slow else 1))
    try:
        count = follow(path.read_text(), shell, folder, slow)
    finally:
        signal.alarm(0)
        shell.close()
    if count == 0:
        raise Failure("there are no commands on this page")
    print(f"{path.name}: {count} blocks of commands", flush=True)


def copy_source(source, to, folders):
    to.mkdir(parents=True)
    for name in SOURCE_FILES:
        shutil.copy(source / name, to)
    for name in folders:
        shutil.copytree(source / name, to / name, ignore=shutil.ignore_patterns("__pycache__"))


def environment_of(page, slow, source, build, work):
    """A reader's: programs, libraries and sources where the page looks for them."""
    home, prefix = work / "home", work / "prefix"
    home.mkdir()
    environment = {**CLEAN, "HOME": str(home), "PATH": f"{build / 'bin'}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
    commands = "".join(block.text for block in blocks_of(page, slow))
    if "~/spillway" in commands:
        copy_source(source, home / "spillway", SOURCE_FOLDERS if slow else set(re.findall(r"~/spillway/(\w+)/", commands)))
    if "pkg-config" in commands:
        for component in ("kv", "pagecache"):
            library = install(build, prefix, component)
        environment |= {"PKG_CONFIG_PATH": str(library / "pkgconfig"), "LD_LIBRARY_PATH": str(library)}
    return environment


def network_of_its_own():
    """The words before a command that is to have one."""
    begin = ["sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    for unshare in (["unshare", "--net"], ["unshare", "--user", "--map-root-user", "--net"]):
        if subprocess.run([*unshare, *begin, "true"], capture_output=True).returncode == 0:
            return unshare + begin
    raise Skipped("needs a network namespace: root, or kernel.unprivileged_userns_clone=1")


def test(source, build, work, path, slow):
    page = path.read_text()
    folder = fresh(work) / "folder"
    folder.mkdir()
    before = network_of_its_own() if "spillway serve" in page else []
    shell = Shell(folder, work, environment_of(page, slow, source, build, work), before)
    follow_to_its_end(path, shell, folder, slow)
    shutil.rmtree(work)


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--slow"]
    sys.exit(status_of("run_tutorial", test, *(pathlib.Path(word).resolve() for word in words), "--slow" in sys.argv))
