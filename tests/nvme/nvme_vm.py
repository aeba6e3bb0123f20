"""A virtual machine with NVMe devices: QEMU, a kernel that has their driver built in, and what was built here as its only programs.

Each device is a file of its own, whose bytes can be looked at, or made zeros, while the machine runs. The machine does what it is
told by vm_agent.c, on two lines: one of them may wait for a program while the other changes something.
"""
import glob
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import Skipped  # noqa: E402

DEVICE_BYTES = 80 << 20
BOOT_SECONDS_MAX = 400
ANSWER_SECONDS_MAX = 600  # without a word from the machine
# serial: (of its controller, of its namespace, of its file). 0 is what the controller takes in one command: 4K << mdts.
DEVICES = {
    "small": ("mdts=3", "logical_block_size=512,physical_block_size=512", ""),
    "large": ("mdts=0", "logical_block_size=4096,physical_block_size=4096", ""),
    "metadata": ("", "logical_block_size=4096,physical_block_size=4096,ms=8", ""),
    "failing": ("", "", "blkdebug"),
    "slow": ("", "", "throttle"),
    "removed": ("", "", "throttle"),
    "unplugged": ("", "", "throttle"),
}


def kernel():
    """The one that SPILLWAY_TEST_KERNEL names, or one that is installed and has NVMe built in, as Debian's for clouds."""
    named = os.environ.get("SPILLWAY_TEST_KERNEL")
    found = [named] if named else sorted(glob.glob("/boot/vmlinuz-*cloud*"))
    if not found or not os.access(found[-1], os.R_OK):
        raise Skipped("no kernel for a virtual machine: set SPILLWAY_TEST_KERNEL (docs/internals/storage.md, NVMe)")
    return found[-1]


def emulator():
    found = shutil.which("qemu-system-x86_64")
    if found is None:
        raise Skipped("no virtual machine: qemu-system-x86_64 is not there (docs/internals/storage.md, NVMe)")
    return found


class Archive:
    """An initial file system in memory (cpio, "newc")."""

    def __init__(self):
        self.parts = []
        self.names = set()

    def add(self, name, mode, content=b""):
        if name in self.names:
            return
        self.names.add(name)
        parent = os.path.dirname(name)
        if parent:
            self.add(parent, 0o40755)
        fields = [len(self.names), mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0]
        header = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
        self.parts += [header + bytes(-len(header) % 4), content + bytes(-len(content) % 4)]

    def add_program(self, source, name):
        """With the libraries that it is linked with, where it looks for them."""
        self.add(name, 0o100755, pathlib.Path(source).read_bytes())
        listed = subprocess.run(["ldd", source], capture_output=True, text=True).stdout
        for library in re.findall(r"(/\S+) \(0x", listed):
            self.add(library[1:], 0o100755, pathlib.Path(library).read_bytes())

    def write(self, path):
        self.add("TRAILER!!!", 0)
        path.write_bytes(b"".join(self.parts))


class Line:
    """One of the lines to the agent, or to the program that it runs."""

    def __init__(self, path, machine):
        self.machine = machine
        self.socket = socket.socket(socket.AF_UNIX)
        until = time.monotonic() + BOOT_SECONDS_MAX
        while True:
            try:
                self.socket.connect(str(path))
                break
            except OSError:
                if time.monotonic() > until or machine.process.poll() is not None:
                    raise RuntimeError(f"the machine does not start\n{machine.said()}") from None
                time.sleep(0.1)
        self.socket.settimeout(ANSWER_SECONDS_MAX)
        self.rest = b""

    def hear(self):
        """The next line that is not empty."""
        while True:
            end = self.rest.find(b"\n")
            if end >= 0:
                line, self.rest = self.rest[:end].decode(errors="replace").strip("\r"), self.rest[end + 1:]
                if line:
                    return line
                continue
            try:
                more = self.socket.recv(65536)
            except TimeoutError:
                raise RuntimeError(f"no word from the machine\n{self.machine.said()}") from None
            if not more:
                raise EOFError(f"the machine has ended\n{self.machine.said()}")
            self.rest += more

    def is_silent(self):
        self.socket.setblocking(False)
        try:
            self.rest += self.socket.recv(65536)
        except BlockingIOError:
            pass
        self.socket.settimeout(ANSWER_SECONDS_MAX)
        return not self.rest

    def say(self, *words):
        self.socket.sendall("\t".join(str(word) for word in words).encode() + b"\n")

    def answer(self):
        """What was said until the agent is there again: its number, and lines."""
        lines = []
        while True:
            line = self.hear()
            if line.startswith("@ "):
                return line[2:], lines
            lines.append(line)

    def ask(self, *words):
        self.say(*words)
        return self.answer()

    def run(self, *words):
        """A program's status and output."""
        status, lines = self.ask("run", *words)
        return int(status), "\n".join(lines)

    def close(self):
        self.socket.close()


class Machine:
    def __init__(self, folder, build, programs=()):
        self.folder = pathlib.Path(folder)
        self.process = None
        self.lines = []
        self.program, self.kernel = emulator(), kernel()
        self.files = {serial: self.folder / f"{serial}.raw" for serial in DEVICES}
        archive = Archive()
        archive.add("init", 0o100755, (build / "tests" / "vm_agent").read_bytes())
        for program in (build / "tests" / "storage_test", build / "tests" / "device_driver", *programs):
            archive.add_program(program, f"bin/{pathlib.Path(program).name}")
        archive.add("dev/null", 0o20666)
        archive.write(self.folder / "initial")

    def blank(self, serial):
        """Makes a device zeros."""
        with self.files[serial].open("wb") as file:
            file.truncate(DEVICE_BYTES)

    def storage_of(self, number, serial):
        of_controller, of_namespace, filtered = DEVICES[serial]
        file = {"driver": "file", "filename": str(self.files[serial])}
        if filtered == "blkdebug":
            # Of 512 bytes each.
            file = {"driver": "blkdebug", "image": file, "inject-error": [
                {"event": "none", "iotype": "read", "sector": 20 * 8, "errno": 5, "once": False},
                {"event": "none", "iotype": "write", "sector": 25 * 8, "errno": 5, "once": False}]}
        nodes = [{"driver": "raw", "node-name": serial, "file": file, "discard": "unmap"}]
        if filtered == "throttle":
            nodes[0]["node-name"] = f"{serial}-file"
            nodes.append({"driver": "throttle", "node-name": serial, "throttle-group": "slow", "file": f"{serial}-file"})
        words = []
        for node in nodes:
            words += ["-blockdev", json.dumps(node)]
        port = f"port{number}"
        words += ["-device", f"pcie-root-port,id={port},chassis={number + 1}",
                  "-device", f"nvme,id={serial},serial={serial},bus={port}" + (f",{of_controller}" if of_controller else "")]
        # A namespace beside its controller: one of `drive=` of the controller knows no blocks.
        words += ["-device", f"nvme-ns,drive={serial},bus={serial},nsid=1" + (f",{of_namespace}" if of_namespace else "")]
        return words

    def start(self):
        for name in ("line1", "line2", "qmp"):
            (self.folder / name).unlink(missing_ok=True)
        words = [self.program, "-M", "q35", "-cpu", "max", "-accel", "tcg,thread=multi", "-smp", "2", "-m", "1024", "-nodefaults",
                 "-display", "none", "-no-reboot", "-kernel", self.kernel, "-initrd", str(self.folder / "initial"),
                 "-append", "console=ttyS0 quiet panic=-1 no_timer_check nvme.poll_queues=1 nvme_core.io_timeout=10",
                 "-serial", f"file:{self.folder / 'console'}"]
        for name in ("line1", "line2"):
            words += ["-chardev", f"socket,id={name},path={self.folder / name},server=on,wait=off", "-serial", f"chardev:{name}"]
        words += ["-qmp", f"unix:{self.folder / 'qmp'},server=on,wait=off",
                  "-object", "throttle-group,id=slow,x-iops-total=100"]
        for number, serial in enumerate(DEVICES):
            words += self.storage_of(number, serial)
        with (self.folder / "errors").open("wb") as errors:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors)
        self.lines = [Line(self.folder / name, self) for name in ("line1", "line2")]
        for line in self.lines:
            line.answer()
        self.names = {}
        # Which controller is which depends on who was faster.
        for i in range(len(DEVICES)):
            self.names[self.get(f"/sys/class/nvme/nvme{i}/serial").strip()] = f"{i}n1"

    def said(self):
        return "\n".join((self.folder / name).read_text(errors="replace")[-3000:] for name in ("console", "errors")
                         if (self.folder / name).exists())

    def get(self, path):
        return "\n".join(self.lines[1].ask("get", path)[1])

    def put(self, path, text):
        number, _ = self.lines[1].ask("put", path, text)
        if number != "0":
            raise RuntimeError(f"{path}: error {number}")

    def controller(self, serial):
        return f"/sys/class/nvme/nvme{self.names[serial].split('n')[0]}"

    def device(self, serial):
        return f"/dev/ng{self.names[serial]}"

    def block(self, serial):
        return f"/dev/nvme{self.names[serial]}"

    def command(self, name, **arguments):
        """One of QEMU's own protocol."""
        with socket.socket(socket.AF_UNIX) as to:
            to.connect(str(self.folder / "qmp"))
            lines = to.makefile("rw")
            lines.readline()
            for one in ({"execute": "qmp_capabilities"}, {"execute": name, "arguments": arguments}):
                lines.write(json.dumps(one) + "\n")
                lines.flush()
                while True:
                    answer = json.loads(lines.readline())
                    if "event" not in answer:
                        break
            if "error" in answer:
                raise RuntimeError(f"{name}: {answer['error']['desc']}")

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        for line in self.lines:
            line.close()
        self.process, self.lines = None, []
