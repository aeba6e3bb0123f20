"""Servers that are measured: each on a CPU of its own, from when it answers at its port."""
import os
import pathlib
import socket
import time

from lockstep import Failure

SERVER_CPU, CLIENT_CPU = 0, 1  # of those that this may use
READY_SECONDS = 30


def cpus():
    """As taskset names them."""
    found = [str(cpu) for cpu in sorted(os.sched_getaffinity(0))]
    if len(found) < 2:
        raise Failure("the server and its client need a CPU each", 2)
    return found


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class ServerProcess:
    def __init__(self, programs, name, command, port, group=None):
        self.name = name
        self.program = programs.start(["taskset", "-c", cpus()[SERVER_CPU], *command], group)
        deadline = time.monotonic() + READY_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                if self.program.process.poll() is not None:
                    raise Failure(f"{name} ended{self.program.last_words()}") from None
                if time.monotonic() > deadline:
                    raise Failure(f"{name} does not serve") from None
                time.sleep(0.02)

    def cpu_us(self):
        """What it has taken so far."""
        fields = pathlib.Path(f"/proc/{self.program.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * 1e6 / os.sysconf("SC_CLK_TCK")

    def resident_bytes(self):
        for line in pathlib.Path(f"/proc/{self.program.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise Failure("the kernel does not tell how much memory a process uses")
