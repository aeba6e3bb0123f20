"""gdb: spilled memory of the program that is stopped, or of its core file.

    (gdb) source /usr/local/share/spillway/spillway-gdb.py
    (gdb) print $spilled(node)                      what node points to
    (gdb) print $spilled($spilled(node).next).key   and further
    (gdb) print $spilled((int (*)[10])array)        ten elements
    (gdb) spill-dump node 64                        bytes

gdb itself shows zeros there, since no memory is mapped at most of these addresses. Both ask `spillway dump`, which leaves the
program as it is. `set spillway-program PATH` names another `spillway` than the one installed with this file.
"""
import pathlib
import re
import shutil
import subprocess

import gdb


class SpillwayProgram(gdb.Parameter):
    """The spillway program that reads spilled memory."""

    set_doc = show_doc = __doc__

    def __init__(self):
        super().__init__("spillway-program", gdb.COMMAND_DATA, gdb.PARAM_OPTIONAL_FILENAME)
        beside = pathlib.Path(__file__).resolve().parents[2] / "bin" / "spillway"
        self.value = str(beside) if beside.exists() else shutil.which("spillway") or "spillway"

    def get_set_string(self):
        return ""

    def get_show_string(self, value):
        return f"Spilled memory is read by {value}."


PROGRAM = SpillwayProgram()


def target():
    """What to name to `spillway dump`: a process, or a core file."""
    core = re.search(r"^Local core dump file:\s+`(.*)', file type", gdb.execute("info files", to_string=True), flags=re.M)
    if core:
        return core[1]
    if gdb.selected_inferior().pid == 0:
        raise gdb.GdbError("no program is running, and there is no core file")
    return str(gdb.selected_inferior().pid)


def ask(address, length, *options):
    """What spillway dump writes, or GdbError with the line that it says."""
    command = [PROGRAM.value, "dump", target(), hex(address), str(length), *options]
    try:
        ended = subprocess.run(command, capture_output=True, check=False)
    except OSError as error:
        raise gdb.GdbError(f"cannot run {PROGRAM.value}: {error.strerror}; set spillway-program") from None
    if ended.returncode != 0:
        raise gdb.GdbError(ended.stderr.decode(errors="replace").strip())
    return ended.stdout


def read(address, length):
    # gdb cannot be asked first: it reads zeros where spilled memory is not mapped.
    try:
        return ask(address, length, "--raw")
    except gdb.GdbError as error:
        if "is not spilled memory" not in str(error):
            raise
        return bytes(gdb.selected_inferior().read_memory(address, length))


class Spilled(gdb.Function):
    """$spilled(POINTER): what POINTER points to, in spilled memory or not."""

    def __init__(self):
        super().__init__("spilled")

    def invoke(self, pointer):
        pointer_type = pointer.type.strip_typedefs()
        if pointer_type.code != gdb.TYPE_CODE_PTR:
            raise gdb.GdbError(f"$spilled wants a pointer, not {pointer.type}")
        target_type = pointer_type.target()
        if target_type.strip_typedefs().code == gdb.TYPE_CODE_VOID:
            raise gdb.GdbError("$spilled wants to know what the pointer points to: cast it")
        return gdb.Value(read(int(pointer), target_type.sizeof), target_type)


class SpillDump(gdb.Command):
    """spill-dump ADDRESS LENGTH: bytes of spilled memory."""

    def __init__(self):
        super().__init__("spill-dump", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        words = gdb.string_to_argv(argument)
        if len(words) != 2:
            raise gdb.GdbError("spill-dump ADDRESS LENGTH")
        address, length = (int(gdb.parse_and_eval(word)) for word in words)
        gdb.write(ask(address, length).decode())


Spilled()
SpillDump()
