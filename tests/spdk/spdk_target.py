"""A target of NVMe over TCP on 127.0.0.1: SPDK's own nvmf_tgt, told by JSON-RPC what to be.

It runs in interrupt mode, so that it leaves its processor to others, on files in memory: two namespaces that tests may empty
(blank), a third on memory of the target's, which discards, and a fourth that fails on demand (fail_next).
"""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

NQN = "nqn.2016-06.io.spdk:spillway"
NAMESPACE_BYTES = 80 << 20
SECONDS_MAX = 120


class Target:
    def __init__(self, program, folder):
        self.program = program
        self.folder = pathlib.Path(folder)
        self.files = [pathlib.Path(f"/dev/shm/spillway-spdk-{os.getpid()}-{i}") for i in (1, 2)]
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.process = None
        self.blank()

    def device(self, space=1, **settings):
        """The device string of a namespace."""
        more = "".join(f",{name}={value}" for name, value in settings.items())
        return f"spdk:tcp=127.0.0.1:{self.port},nqn={NQN},ns={space}{more}"

    def blank(self):
        """The first two namespaces read as zeros again."""
        for file in self.files:
            with file.open("wb") as empty:
                empty.truncate(NAMESPACE_BYTES)

    def start(self):
        path = self.folder / "rpc"
        path.unlink(missing_ok=True)
        with (self.folder / "target.log").open("ab") as log:
            self.process = subprocess.Popen(
                [self.program, "--no-huge", "-s", "1024", "-u", "--interrupt-mode", "-m", "1", "-r", str(path)],
                stdout=log, stderr=log, start_new_session=True)
        until = time.monotonic() + SECONDS_MAX
        while True:
            try:
                self.call("spdk_get_version")
                break
            except OSError:
                if self.process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError("the target does not start:\n" + (self.folder / "target.log").read_text()[-2000:])
                time.sleep(0.1)
        self.call("nvmf_create_transport", trtype="TCP")
        for i, file in enumerate(self.files, 1):
            self.call("bdev_aio_create", name=f"file{i}", filename=str(file), block_size=512 if i == 1 else 4096,
                      fallocate=True)
        self.call("bdev_malloc_create", name="memory", num_blocks=(16 << 20) // 512, block_size=512)
        self.call("bdev_malloc_create", name="sound", num_blocks=(16 << 20) // 512, block_size=512)
        self.call("bdev_error_create", base_name="sound")
        self.call("nvmf_create_subsystem", nqn=NQN, allow_any_host=True, serial_number="SPILLWAY", max_namespaces=8)
        for i, name in enumerate(["file1", "file2", "memory", "EE_sound"], 1):
            self.add(name, i)
        self.call("nvmf_subsystem_add_listener", nqn=NQN,
                  listen_address={"trtype": "TCP", "adrfam": "IPv4", "traddr": "127.0.0.1", "trsvcid": str(self.port)})

    def remove(self, space):
        self.call("nvmf_subsystem_remove_ns", nqn=NQN, nsid=space)

    def add(self, name, space):
        self.call("nvmf_subsystem_add_ns", nqn=NQN, namespace={"bdev_name": name, "nsid": space})

    def connection_count(self):
        return len(self.call("nvmf_subsystem_get_qpairs", nqn=NQN))

    def fail_next(self, operation, count):
        """The fourth namespace fails the next `count` operations: read, write, unmap, flush."""
        self.call("bdev_error_inject_error", name="EE_sound", io_type=operation, error_type="failure", num=count)

    def signal(self, number):
        os.kill(self.process.pid, number)

    def kill(self):
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process = None

    def end(self):
        self.kill()
        for file in self.files:
            file.unlink(missing_ok=True)

    def call(self, method, **parameters):
        request = {"jsonrpc": "2.0", "id": 1, "method": method}
        if parameters:
            request["params"] = parameters
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(SECONDS_MAX)
            connection.connect(str(self.folder / "rpc"))
            connection.sendall(json.dumps(request).encode())
            answer = b""
            while True:
                answer += connection.recv(65536)
                try:
                    decoded = json.loads(answer)
                    break
                except ValueError:
                    continue
        if "error" in decoded:
            raise RuntimeError(f"{method}: {decoded['error']}")
        return decoded["result"]


def program_of(path):
    """The target's program, if there is one."""
    return path if path and os.access(path, os.X_OK) else shutil.which("nvmf_tgt")
