#!/usr/bin/env python3
"""The .deb packages in a Debian with nothing else in it: installed, used, removed.  deb_test.py SOURCE BUILD WORK

Prints each command and what it says. Needs root, debootstrap, and the mirror of Debian's packages that apt knows here.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from shells import completed  # noqa: E402
from support import CLEAN, Failure, Skipped, fresh, status_of, take_paths  # noqa: E402

PACKAGES = ["spillway", "spillway-bench", "spillway-compiler", "spillway-dev", "spillway-doc"]
HOME = "home"  # the folder in that Debian where commands are given
BESIDE = ["man-db", "bash-completion", "zsh", "fish", "pkg-config"]  # what is tried needs these
CXX = """#include <iostream>
#include <map>
#include <string>
int main() {
  std::map<std::string, int> numbers;
  for (int i = 0; i < 100000; ++i) numbers["word" + std::to_string(i)] = i;
  std::cout << numbers.rbegin()->first << std::endl;
}
"""


def check(condition, what):
    if not condition:
        raise Failure(what)


def call(command, lines=15, **keywords):
    """What a command prints, which is shown, the last lines of it. Failure if it fails."""
    words = [str(word) for word in command]
    print("$", " ".join(words), flush=True)
    begin = time.monotonic()
    ended = subprocess.run(words, env={**CLEAN, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           errors="replace", timeout=1200, **keywords)
    printed = ended.stdout.splitlines()
    shown = printed[max(len(printed) - lines, 0):]
    print("\n".join(["..."] * (len(printed) > lines) + shown + [f"({time.monotonic() - begin:.1f} s)"]), flush=True)
    check(ended.returncode == 0, f"{words} ends with {ended.returncode}\n{ended.stdout[-4000:]}")
    return ended.stdout


class Machine:
    """A Debian in a folder."""

    def __init__(self, root):
        self.root, self.home = root, root / HOME
        # Mounts are gone when the command is.
        self.into = ["unshare", "--mount", f"--root={root}", "--mount-proc", f"--wd=/{HOME}"]

    def call(self, *command, **keywords):
        return call([*self.into, *command], **keywords)

    def packages(self):
        return set(self.call("dpkg-query", "-W", "-f", "${Package}\\n", lines=0).split())

    def ours(self):
        """Paths that are called after us, but for what apt, dpkg and man keep of their own work."""
        found = self.call("find", "/", "-xdev", "(", "-path", "/proc", "-o", "-path", "/debs", "-o", "-path", "/var/log", "-o", "-path", "/var/cache", ")", "-prune", "-o",
                          "(", "-iname", "*spillway*", "-o", "-name", "spillc[c+]*", ")", "-print", lines=3)
        return found.split()


def mirrors():
    """[(address, release)] of Debian's own packages, as apt has them here; the release itself first."""
    ended = subprocess.run(["apt-get", "indextargets", "--format", "$(SITE) $(CODENAME)", "Created-By: Packages", "Origin: Debian"],
                           capture_output=True, text=True)
    found = {tuple(line.split()) for line in ended.stdout.splitlines() if len(line.split()) == 2}
    return sorted(found, key=lambda mirror: ("-" in mirror[1], mirror))


def need():
    if os.geteuid() != 0:
        raise Skipped("needs root, for a Debian in a folder")
    for program, package in (("debootstrap", "debootstrap"), ("dpkg-shlibdeps", "dpkg-dev"), ("file", "file"), ("unshare", "util-linux")):
        if shutil.which(program) is None:
            raise Skipped(f"needs apt-get install {package}")
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
        raise Skipped("needs mounts of its own: unshare --mount is not permitted here")
    if not mirrors():
        raise Skipped("needs a mirror of Debian's packages that apt knows: apt-get update")


def check_packages(source, build, work):
    """They belong to root, who alone may write them, and name no folder of the build."""
    for deb in sorted((build / "packages").glob("*.deb")):
        call(["dpkg-deb", "--info", deb])
        for line in call(["dpkg-deb", "--contents", deb], lines=2).splitlines():
            check(re.match(r"(l.{9}|.{5}-..-.) root/root ", line), f"{deb}: {line}")
        unpacked = work / deb.name
        call(["dpkg-deb", "--raw-extract", deb, unpacked])
        for path in unpacked.rglob("*"):
            if path.is_file() and not path.is_symlink():
                text = path.read_bytes()
                check(not any(bytes(folder) + b"/" in text for folder in (source, build)), f"{path} names a folder of the build")


def make_machine(root):
    (address, release), *_ = found = mirrors()
    try:
        call(["debootstrap", "--variant=minbase", release, root, address])
    except Failure as failure:
        if "Failed getting release" in str(failure):
            raise Skipped(f"the mirror of Debian's packages does not answer: {address}") from None
        raise
    (root / "etc/apt/sources.list").write_text("".join(f"deb {address} {release} main\n" for address, release in found))
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    machine = Machine(root)
    machine.call("apt-get", "update")
    return machine


def check_program(machine, here):
    shutil.copy(here / "outgrows.c", machine.home)
    machine.call("spillcc", "-O2", "outgrows.c", "-o", "outgrows")
    machine.call("clang-19", "-O2", "outgrows.c", "-o", "native")
    spilled = machine.call("spillway", "run", "--memory", "32M", "--storage", "/var/tmp", "--stats", "stats.json", "--verbose", "--", "./outgrows", "256")
    check(machine.call("./native", "256").strip() in spilled.splitlines(), "the spilled program says something else")
    counted = json.loads((machine.home / "stats.json").read_text())
    print(f"peak of memory {counted['memory']['peak_bytes'] >> 20} MiB, evictions {counted['cache']['evictions']}")
    check(counted["cache"]["evictions"] > 40_000, "256 MiB in 32 without evictions")
    machine.call("spillcc", "-O2", "-static", "outgrows.c", "-o", "static")
    check(machine.call("./static", "1") == machine.call("./native", "1"), "the static program says something else")
    (machine.home / "words.cc").write_text(CXX)
    machine.call("spillc++", "-O2", "words.cc", "-o", "words_of")
    check(machine.call("spillway", "run", "--memory", "8M", "--", "./words_of") == "word99999\n", "the C++ program says something else")


def exchange(port, request):
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        client.sendall(request + b"quit\r\n")
        answer = b""
        while more := client.recv(1 << 16):
            answer += more
    print(f"{request!r} -> {answer!r}")
    return answer


def check_server(machine):
    """Twice: what was stored is there after a restart."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [*machine.into, "spillway", "serve", "--storage", "/var/tmp/items", "--capacity", "64M", "--memory", "32M", "--memcache", str(port)]
    for request, expected in ((b"set greeting 0 0 5\r\nhello\r\n", b"STORED\r\n"), (b"get greeting\r\n", b"VALUE greeting 0 5\r\nhello\r\nEND\r\n")):
        print("$", " ".join(map(str, command)), "&", flush=True)
        server = subprocess.Popen([str(word) for word in command], env=CLEAN)
        try:
            for _ in range(600):
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except ConnectionRefusedError:
                    check(server.poll() is None, "the server ends")
                    time.sleep(0.1)
            check(exchange(port, request) == expected, "another answer")
            server.send_signal(signal.SIGTERM)
            check(server.wait(timeout=60) == 0, "the server does not end well")
        finally:
            server.kill()
            server.wait()


def check_library(machine):
    flags = machine.call("pkg-config", "--cflags", "--libs", "spillway-kv").split()
    machine.call("clang-19", "/usr/share/doc/spillway/examples/kv_example.c", "-o", "kv_example", *flags)
    check(machine.call("./kv_example", "words", "spill", "way").split() == ["spill", "1", "way", "1"], "the example counts otherwise")


def check_beside(machine):
    """Manual pages, completion, the unit, benchmarks, documents."""
    for page in ("spillway", "spillway-run", "spillway-kv", "spillcc", "spillc++"):
        check(page.upper() in machine.call("man", "-P", "cat", page, lines=4), f"no manual page of {page}")
    for shell in ("bash", "zsh", "fish"):
        def offers(*words):
            return completed(shell, "/usr/share", words, machine.into)
        check({"run", "serve", "kv"} <= set(offers("spillway", "")), f"{shell}: {offers('spillway', '')}")
        check({"--memory", "--storage"} <= set(offers("spillway", "run", "--")), f"{shell}: options")
        check({"put", "get"} <= set(offers("spillway", "kv", "")), f"{shell}: subcommands of kv")
        check("--if-absent" in offers("spillway", "kv", "put", "--i"), f"{shell}: options of kv put")
        check(set(offers("spillway", "kv", "load", "--durability", "")) >= {"none", "batch", "sync"}, f"{shell}: values")
        check("kernels" in offers("spillway", "bench", "k"), f"{shell}: benchmarks")
        program = offers("spillway", "run", "--memory", "4G", "--", "prin")
        check("printf" in program or program == ["at 1 of prin"], f"{shell}: a program: {program}")
        print(f"{shell}: completes")
    found = machine.call("bash", "-c", ". /usr/share/bash-completion/bash_completion; for name in spillway spillc++; do _completion_loader $name; complete -p $name; done")
    check("-F _spillway spillway" in found and "-F _spillcxx spillc++" in found, "bash-completion does not find it")
    check(set(completed("fish", "/usr/share", ["spillcc", "-fspill-g"], machine.into)) >= {"-fspill-globals"}, "fish: options of spillcc")
    unit = (machine.root / "usr/lib/systemd/system/spillway-serve@.service").read_text()
    check("ExecStart=/usr/bin/spillway serve" in unit, unit)
    check(not list((machine.root / "etc/systemd").rglob("*spillway*")), "the unit is enabled")
    machine.call("spillway", "bench", "kernels", "--quick", "--only", "sort", "--out", "bench")
    check((machine.home / "bench/kernels.svg").exists(), "no plot")
    check((machine.root / "usr/share/doc/spillway/docs/spill.md").exists(), "no documents")


def test(source, build, work):
    need()
    call([source / "packaging/deb/make_deb.sh", build])
    debs = sorted((build / "packages").glob("*.deb"))
    check({deb.name.split("_")[0] for deb in debs} == set(PACKAGES), f"other packages: {debs}")
    fresh(work)
    check_packages(source, build, work)
    try:
        machine = make_machine(work / "root")
        machine.call("apt-get", "install", "-y", "--no-install-recommends", *BESIDE)
        check(not machine.ours(), "it is not clean")
        (machine.root / "debs").mkdir()
        for deb in debs:
            shutil.copy(deb, machine.root / "debs")
        machine.call("apt-get", "install", "-y", "--no-install-recommends", *(f"/debs/{deb.name}" for deb in debs))
        check_program(machine, pathlib.Path(__file__).parent)
        check_server(machine)
        check_library(machine)
        check_beside(machine)
        for path in (f"{HOME}/words", "var/tmp/items"):
            (machine.root / path).unlink()
        machine.call("apt-get", "purge", "-y", *PACKAGES)
        left = machine.ours()
        check(not left, f"left: {left}")
        check(not machine.packages() & set(PACKAGES), "packages of ours stay")
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(status_of("deb_test", test, *take_paths(3)))
